#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Is the subject of the last commit `module: imperative`?

usage: check_subject.py ROOT

A subject has at most 72 characters. Before the colon stand directories of src or src/frontend, or
one of the names of PARTS, several of them separated by ", ". Behind it stands an imperative in lower case
without a full stop. Words for persons are refused as in comments (check_words.py). Merges are not looked at.
"""
import pathlib
import re
import subprocess
import sys

from check_words import WORDS

LIMIT = 72
PARTS = {'all', 'bench', 'ci', 'dev', 'docs', 'frontend', 'fuzz', 'tests', 'tools'}
# First words that show a statement, which an imperative never begins with.
NO_VERB = re.compile(r'(a|an|the|it|its|this|that|what|where|when|of|in|on|by|for|no|not|more|some|all|there|'
                     r'\w{3,}ed|\w{3,}ing)$')
VERBS = {'embed', 'exceed', 'proceed', 'speed', 'bring', 'string'}


def names(root):
    """Of what a commit may be about."""
    folders = [p for top in ('src', 'src/frontend') for p in (root / top).glob('*') if p.is_dir()]
    return PARTS | {folder.name for folder in folders}


def judge(subject, known):
    """Complaints about one subject."""
    bad = []
    if len(subject) > LIMIT:
        bad.append(f'{len(subject)} characters, the limit is {LIMIT}')
    about, colon, text = subject.partition(': ')
    if not colon:
        return bad + ['must be `module: imperative`']
    bad += [f'{name} is neither a module nor one of {", ".join(sorted(PARTS))}'
            for name in about.split(', ') if name not in known]
    first = text.split(' ')[0]
    if not re.match(r'[a-z]', first) or (NO_VERB.match(first) and first not in VERBS):
        bad.append(f'"{first}" must be an imperative in lower case')
    if text.endswith('.'):
        bad.append('ends with a full stop')
    found = WORDS.search(subject)
    return bad + ([f'"{found[0]}" names a person'] if found else [])


def last_subject(root):
    """Of the last commit that is no merge; empty where there is none."""
    done = subprocess.run(['git', '-C', str(root), 'log', '-1', '--no-merges', '--format=%s'],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ''


def check(root):
    subject = last_subject(root)
    return [f'"{subject}": {why}' for why in judge(subject, names(root))] if subject else []


def main():
    bad = check(pathlib.Path(sys.argv[1]))
    print('\n'.join(bad), end='\n' if bad else '')
    print(f'commit subject: {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
