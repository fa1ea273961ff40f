#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which tests failed, and what did they print?

usage: failures.py RESULT.xml...

Reads the JUnit files that ctest writes and prints every failed test with the end of its output, so
that the end of a long log says what is wrong. Exit status: 0, also when there are failures.
"""
import os
import sys
import xml.etree.ElementTree as ElementTree

LINES = 60  # of the output of each test


def failures(path):
    """Yields (name, output) of every failed test in a JUnit file of ctest."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.get("status") != "fail" and case.find("failure") is None:
            continue
        yield case.get("name"), case.findtext("system-out") or ""


def report(path):
    """The lines that say what failed in one file."""
    if not os.path.exists(path):
        return [f"-- {path}: not there; the build failed, or the run was ended"]
    lines = []
    for name, output in failures(path):
        lines.append(f"-- failed: {name} ({path})")
        lines += ["   " + line for line in output.splitlines()[-LINES:]]
    return lines


def main():
    for path in sys.argv[1:]:
        print("\n".join(report(path)) or f"-- {path}: no failure")


if __name__ == "__main__":
    main()
