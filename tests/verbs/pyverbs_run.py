# SPDX-License-Identifier: BSD-2-Clause
# How are tests of rdma-core run in one process, so that a crash is seen?
"""usage: pyverbs_run.py FOLDER RESULTS GID [WORDS...]

Runs the tests in FOLDER whose name contains one of WORDS, or all, with that index of the GID. Writes a line of JSON each
to RESULTS: the names of all tests; then [name, "running", ""] and [name, outcome, text] of each that runs."""
import json
import sys
import unittest
from importlib.machinery import SourceFileLoader


def each(suite):
    """The tests of a suite and of the suites in it."""
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from each(part)
        else:
            yield part


def load(folder, gid):
    """The tests by name, as FOLDER/run_tests.py finds them."""
    sys.path.insert(0, folder)
    # Index 0 means "not given" to the tests, which choose the first GID then.
    sys.argv = [sys.argv[0], *(["--gid", gid] if gid != "0" else [])]
    from args_parser import parser  # pylint: disable=import-outside-toplevel
    parser.parse_args()
    tests = SourceFileLoader("tests", f"{folder}/__init__.py").load_module()
    suite = unittest.defaultTestLoader.loadTestsFromModule(tests)
    return {test.id().removeprefix("tests."): test for test in each(suite)}


def outcome_of(test):
    """Runs a test: (outcome, text)."""
    result = unittest.TestResult()
    test.run(result)
    for name, list_of in (("error", result.errors), ("failure", result.failures), ("skipped", result.skipped)):
        if list_of:
            return name, list_of[0][1]
    if result.unexpectedSuccesses or result.expectedFailures:
        return "failure", "it expects to fail"
    return "passed", ""


def main():
    folder, results, gid, *words = sys.argv[1:]
    tests = load(folder, gid)
    with open(results, "w", encoding="utf-8") as out:
        def write(line):
            print(json.dumps(line), file=out, flush=True)

        write(sorted(tests))
        for name, test in sorted(tests.items()):
            if words and not any(word in name for word in words):
                continue
            write([name, "running", ""])
            write([name, *outcome_of(test)])


main()
