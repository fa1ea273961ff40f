#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do rdma-core's own tests of libibverbs pass on the drop-in library?
"""usage: pyverbs_tests.py BUILD [--gid INDEX] [--repeat TIMES] [WORDS...]

Runs the tests of package rdma-core by package python3-pyverbs under `weft run`, on the loopback interface: those whose
name contains one of WORDS, or all. A failure, an error, and a skipped test that no row of docs/user/pyverbs.md names
fail it, and so do rows that name another number of tests than they say."""
import argparse
import collections
import fnmatch
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE.parents[1] / "docs/user/pyverbs.md"
SOURCES = Path("/usr/share/doc/rdma-core/tests")
PYTHON = "/usr/bin/python3"  # that pyverbs is packaged for
HANG = 300  # seconds, far beyond what a run of all tests takes
LEAST_PASSED = 90  # of all tests, whatever the table says
# A row of the table: names of tests, their number, a reason.
ROW = re.compile(r"^\| (`[^|]+`) \| (\d+) \| ([^|]+) \|$")


def fail(text):
    """Ends the test with the reason."""
    print(f"FAILED: {text}")
    sys.exit(1)


def unpack(folder):
    """Copies the tests, of which Debian compresses the longer ones."""
    if not SOURCES.is_dir():
        fail(f"{SOURCES} is not there: install package rdma-core with its documentation")
    for source in SOURCES.iterdir():
        if source.suffix == ".gz":
            (folder / source.stem).write_bytes(gzip.decompress(source.read_bytes()))
        else:
            shutil.copy(source, folder)


def skippable():
    """The rows of the table: (patterns, number of tests, reason)."""
    rows = [ROW.match(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    return [(re.findall("`([^`]+)`", row[1]), int(row[2]), row[3]) for row in rows if row]


def run(build, folder, gid, words):
    """Runs the tests in a process of their own. Returns all names, and outcomes by name."""
    results = folder / "results"
    command = [build / "bin/weft", "run", PYTHON, HERE / "pyverbs_run.py", folder, results, str(gid), *words]
    env = os.environ | {"WEFT_IFACE": "lo"}
    preload = env.pop("WEFT_TEST_PRELOAD", "")  # a sanitizer's runtime, for those processes only
    if preload:
        env["LD_PRELOAD"] = preload
    try:
        status = subprocess.run(command, env=env, timeout=HANG, check=False).returncode
    except subprocess.TimeoutExpired:
        status = f"none within {HANG} s"
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()] if results.exists() else []
    if not lines:
        fail(f"the tests did not begin: status {status}")
    names, outcomes = lines[0], {}
    for name, outcome, text in lines[1:]:
        outcomes[name] = (outcome, text)
    running = [name for name, (outcome, _) in outcomes.items() if outcome == "running"]
    if running or status != 0:
        fail(f"the process ended with status {status} in {running or 'no test'}")
    return names, outcomes


def judge(names, outcomes, rows):
    """All reasons to fail."""
    faults = [f"{name}: {text}" for name, (outcome, text) in outcomes.items() if outcome in ("failure", "error")]
    named = collections.Counter()
    for patterns, number, _ in rows:
        found = [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
        if len(found) != number:
            faults.append(f"{TABLE.name}: {patterns} name {len(found)} tests, not {number}")
        named.update(found)
    faults += [f"{TABLE.name}: two rows name {name}" for name, count in named.items() if count > 1]
    faults += [f"{name} is skipped, and no row of {TABLE.name} names it: {text}"
               for name, (outcome, text) in outcomes.items() if outcome == "skipped" and name not in named]
    passed = sum(outcome == "passed" for outcome, _ in outcomes.values())
    if len(outcomes) == len(names) and passed < LEAST_PASSED:
        faults.append(f"{passed} tests pass, at least {LEAST_PASSED} must")
    return faults


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--gid", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    rows = skippable()
    for _ in range(arguments.repeat):
        with tempfile.TemporaryDirectory() as folder:
            unpack(Path(folder))
            names, outcomes = run(arguments.build.resolve(), Path(folder), arguments.gid, arguments.words)
        faults = judge(names, outcomes, rows)
        if not outcomes:
            faults.append("no test has such a name")
        if faults:
            fail("\n".join(faults))
        counts = collections.Counter(outcome for outcome, _ in outcomes.values())
        print(f"pyverbs, GID {arguments.gid}: {counts['passed']} passed, {counts['skipped']} skipped")


if __name__ == "__main__":
    main()
