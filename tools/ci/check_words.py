#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Do comments speak of things, not of persons?

usage: check_words.py ROOT

Comments of C++ sources, docs and README.md must not have the words who, whoever, whom, nobody,
somebody and he (check_subject.py refuses them in the subject of a commit). Older files that still have some stand in
tools/ci/word_waivers.txt as `PATH COUNT`. The list may only shrink: an entry that is not needed any
more, or allows more words than there are, is refused.
"""
import pathlib
import re
import sys

WORDS = re.compile(r'\b(who|whoever|whom|nobody|somebody|he)\b', re.IGNORECASE)
PARTS = ('src', 'tests', 'bench', 'fuzz')
TEXTS = ('README.md', 'docs/**/*.md')
CPP = {'.h', '.cc', '.c'}
WAIVERS = 'tools/ci/word_waivers.txt'
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'')


def comments(text):
    """The comments of a C++ source, which has no other ones than those of a line."""
    lines = (LITERAL.sub('""', line).partition('//')[2] for line in text.splitlines())
    return '\n'.join(lines)


def measure(root):
    """{path: how many of the words} of each file that has any."""
    found = {}
    for part in PARTS:
        for path in sorted((root / part).rglob('*')):
            if path.suffix in CPP:
                found[str(path.relative_to(root))] = len(WORDS.findall(comments(path.read_text())))
    for pattern in TEXTS:
        for path in sorted(root.glob(pattern)):
            found[str(path.relative_to(root))] = len(WORDS.findall(path.read_text()))
    return {path: count for path, count in found.items() if count}


def parse_waivers(text):
    return {path: int(count) for path, count in (line.split() for line in text.splitlines() if line)}


def compare(found, waivers):
    """Complaints."""
    bad = [f'{path}: {count} words for persons in comments, {waivers.get(path, 0)} allowed'
           for path, count in found.items() if count > waivers.get(path, 0)]
    bad += [f'{path}: lower its entry in {WAIVERS} from {count} to {found.get(path, 0)}'
            for path, count in waivers.items() if count > found.get(path, 0)]
    return bad


def check(root):
    path = root / WAIVERS
    return compare(measure(root), parse_waivers(path.read_text() if path.exists() else ''))


def main():
    bad = check(pathlib.Path(sys.argv[1]))
    print('\n'.join(bad), end='\n' if bad else '')
    print(f'words: {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
