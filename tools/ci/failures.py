#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which tests failed, and what did they print?

usage: failures.py RESULT.xml...

Reads the JUnit files that ctest writes and prints every failed test with the end of its output and
the begin of a sanitizer's report, so that the end of a long log says what is wrong. Exit status: 0,
also when there are failures.
"""
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

LINES = 60  # of the end of each test's output
BEFORE, AFTER = 4, 40  # lines around the one that begins a sanitizer's report
REPORT = re.compile(r"(ERROR|WARNING): \w+Sanitizer|runtime error:")


def failures(path):
    """Yields (name, output) of every failed test in a JUnit file of ctest."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.get("status") != "fail" and case.find("failure") is None:
            continue
        yield case.get("name"), case.findtext("system-out") or ""


def without_passed(lines):
    """Of the output of a GoogleTest program the lines outside the tests that passed: a test that crashes or hangs is named by its RUN
    line, the last one."""
    kept, test = [], []
    for line in lines:
        if line.startswith("[ RUN      ]"):
            kept, test = kept + test, []
        if not line.startswith("[------"):
            test.append(line)
        if line.startswith("[       OK ]"):
            test = []
    return kept + test


def excerpt(output):
    """The lines of one test's output that are worth a reader's time."""
    lines = without_passed(output.splitlines())
    first_of_end = max(0, len(lines) - LINES)
    begin = next((i for i, line in enumerate(lines) if REPORT.search(line)), first_of_end)
    if begin >= first_of_end:
        return lines[first_of_end:]
    first = max(0, begin - BEFORE)
    last = min(begin + AFTER, first_of_end)
    return lines[first:last] + ["[...]"] * (last < first_of_end) + lines[first_of_end:]


def report(path):
    """The lines that say what failed in one file."""
    if not os.path.exists(path):
        return [f"-- {path}: not there; the build failed, or the run was ended"]
    lines = []
    for name, output in failures(path):
        lines.append(f"-- failed: {name} ({path})")
        lines += ["   " + line for line in excerpt(output)]
    return lines


def main():
    for path in sys.argv[1:]:
        print("\n".join(report(path)) or f"-- {path}: no failure")


if __name__ == "__main__":
    main()
