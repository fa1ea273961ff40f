#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does each test that docs/conformance names for a sentence of a specification exist?

usage: check_conformance.py ROOT BUILD_DIR

BUILD_DIR is configured; nothing in it need be built. The last cell of each row of the tables in docs/conformance names
tests of CTest, each in `code`, or says `none: REASON`. Refused: a row with neither, a name that `ctest -N` does not list,
and a page without a row.
"""
import json
import pathlib
import re
import subprocess
import sys

PAGES = 'docs/conformance/*.md'
RULE = re.compile(r'\|[\s|:-]+\|')
NAME = re.compile(r'`([^`]+)`')
REASON = re.compile(r'none: \S')


def tests_of(build):
    """The names of the tests that CTest knows there."""
    done = subprocess.run(['ctest', '--test-dir', str(build), '--show-only=json-v1'], capture_output=True, text=True, check=True)
    return {test['name'] for test in json.loads(done.stdout)['tests']}


def rows(text):
    """(line number, cells) of each row below the head of a table."""
    in_table = False
    for number, line in enumerate(text.splitlines(), 1):
        is_row = line.startswith('|')
        is_rule = is_row and bool(RULE.fullmatch(line.rstrip()))
        if in_table and is_row and not is_rule:
            yield number, [cell.strip() for cell in line.strip().strip('|').split('|')]
        in_table = is_row and (in_table or is_rule)


def judge(name, text, tests):
    """Complaints about one page."""
    bad, count = [], 0
    for number, cells in rows(text):
        count += 1
        named = NAME.findall(cells[-1])
        if not named and not REASON.match(cells[-1]):
            bad.append(f'{name}:{number}: neither a test nor `none: REASON`: {cells[0]}')
        bad += [f'{name}:{number}: there is no test {test}' for test in named if test not in tests]
    return bad if count else [f'{name}: no table of tests']


def check(root, tests):
    return [complaint for page in sorted(root.glob(PAGES))
            for complaint in judge(page.relative_to(root), page.read_text(), tests)]


def main():
    bad = check(pathlib.Path(sys.argv[1]), tests_of(sys.argv[2]))
    print('\n'.join(bad), end='\n' if bad else '')
    print(f'conformance: {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
