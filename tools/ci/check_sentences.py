#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does a sentence of a comment begin without its subject?

usage: check_sentences.py [--write] ROOT

Refused: a sentence of a comment of C++ that begins with What, Of or That; its subject must be a thing with a
name. Questions ("What is an event queue?") may. The sentences that were there when the rule came are
counted by file in tools/ci/sentence_counts.txt, `PATH NUMBER`. The counts may only shrink: a file with more is
refused, a file with fewer needs a lower count, and the sum of the list never exceeds that before the change,
so that a sentence may follow its code to another file. --write replaces the list by what there is.
"""
import pathlib
import re
import sys

import waiver_history
from check_words import CPP, LITERAL, PARTS

COUNTS = 'tools/ci/sentence_counts.txt'
HEAD = '# Sentences that begin with What, Of or That: PATH NUMBER, made by check_sentences.py --write. May only shrink.\n'
SENTENCE = re.compile(r'(?:^|(?<=[.?!] ))(?:What|Of|That)\b.*?(?:[.?!](?= |$)|$)')


def comments(text):
    """(line of its beginning, text) of each comment; `//` lines that follow each other are one."""
    found, last = [], -1
    for number, line in enumerate(text.splitlines(), 1):
        code, slashes, comment = LITERAL.sub('""', line).partition('//')
        if not slashes:
            continue
        if last == number - 1 and not code.strip() and comment.strip():
            found[-1][1] += ' ' + comment.strip()
        else:
            found.append([number, comment.strip()])
        last = number if comment.strip() and 'SPDX-' not in comment else -1
    return found


def sentences(text):
    """(line of its comment, sentence) of each refused sentence of a source."""
    return [(line, sentence) for line, comment in comments(text)
            for sentence in SENTENCE.findall(comment) if not sentence.endswith('?')]


def measure(root):
    """{path: its refused sentences}."""
    files = sorted(p for part in PARTS for p in (root / part).rglob('*') if p.suffix in CPP)
    found = {str(path.relative_to(root)): sentences(path.read_text()) for path in files}
    return {path: bad for path, bad in found.items() if bad}


def parse(text):
    """{path: number}."""
    words = [line.split() for line in text.splitlines() if not line.startswith('#')]
    return {path: int(number) for path, number in words}


def compare(found, counts, earlier):
    """Complaints; `earlier` is the list before this change, or None when there was none."""
    bad = []
    for path, listed in sorted(found.items()):
        if len(listed) > counts.get(path, 0):
            bad += [f'{path}: {len(listed)} sentences begin with What, Of or That, the limit is '
                    f'{counts.get(path, 0)}'] + [f'{path}:{line}: {text[:60]}' for line, text in listed]
    bad += [f'{path} has {len(found.get(path, []))} of {number} sentences: check_sentences.py --write . lowers it'
            for path, number in sorted(counts.items()) if number > len(found.get(path, []))]
    if earlier is not None and sum(counts.values()) > sum(earlier.values()):
        bad.append(f'{COUNTS}: the sum may only shrink')
    return bad


def check(root, write=False):
    found, path = measure(root), root / COUNTS
    if write:
        path.write_text(HEAD + ''.join(f'{name} {len(bad)}\n' for name, bad in sorted(found.items())))
    text = path.read_text() if path.exists() else ''
    return compare(found, parse(text), waiver_history.earlier(root, COUNTS, text, parse))


def main():
    root = pathlib.Path([word for word in sys.argv[1:] if word != '--write'][0])
    bad = check(root, '--write' in sys.argv)
    print('\n'.join(bad), end='\n' if bad else '')
    print(f'sentences: {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
