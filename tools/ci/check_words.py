#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Do comments, documents, texts and names of tests speak of things, not of persons?

usage: check_words.py ROOT

Comments, string literals and names of tests of C++ sources, docs and READMEs must not have the words who,
whoever, whom, nobody, somebody and he (check_subject.py refuses them in the subject of a commit).
"""
import pathlib
import re
import sys

WORDS = re.compile(r'\b(who|whoever|whom|nobody|somebody|he)\b', re.IGNORECASE)
PARTS = ('src', 'tests', 'bench', 'fuzz', 'examples')
TEXTS = ('README.md', 'docs/**/*.md') + tuple(f'{part}/**/README.md' for part in PARTS)
CPP = {'.h', '.cc', '.c'}
TEST = re.compile(r'\bTEST(?:_F|_P)?\((\w+),\s*(\w+)\)')
WORD_START = re.compile(r'(?<!^)(?=[A-Z])')
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'')


def prose(line):
    """Of a line of a C++ source its names of tests, word by word, its literals and its comment."""
    tests = [WORD_START.sub(' ', name) for test in TEST.findall(line) for name in test]
    return ' | '.join([*tests, *LITERAL.findall(line), LITERAL.sub('""', line).partition('//')[2]])


def complaints(path, text):
    return [f'{path}:{number}: "{word[0]}" names a person'
            for number, line in enumerate(text.splitlines(), 1) for word in WORDS.finditer(line)]


def check(root):
    bad = []
    for part in PARTS:
        for path in sorted((root / part).rglob('*')):
            if path.suffix in CPP:
                bad += complaints(path.relative_to(root), '\n'.join(map(prose, path.read_text().splitlines())))
    for path in sorted({path for pattern in TEXTS for path in root.glob(pattern)}):
        bad += complaints(path.relative_to(root), path.read_text())
    return bad


def main():
    bad = check(pathlib.Path(sys.argv[1]))
    print('\n'.join(bad), end='\n' if bad else '')
    print(f'words: {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
