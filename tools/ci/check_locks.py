#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does the code keep the lock rules that its annotations state (base/mutex.h)?

usage: check_locks.py ROOT BUILD_DIR [--jobs N]

Lets clang's thread safety analysis read the sources that include base/mutex.h, or a header that does.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LEFT_OUT = ('_test', '_support', '_bench', '_fuzz')


INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def includes(path):
    return set(INCLUDE.findall(path.read_text()))


def annotated_headers(root):
    """Headers below src that include base/mutex.h, as other files name them."""
    return {path.relative_to(root).as_posix() for path in (root / 'src').rglob('*.h')
            if 'base/mutex.h' in includes(path)}


def has_annotations(path, headers):
    """True for a source that uses mutexes itself or includes an annotated header."""
    named = includes(path)
    return 'base/mutex.h' in named or any(h.endswith('/' + name) for name in named for h in headers)


def analyse(entry):
    """(exit status, output) of the analysis of one file."""
    words = shlex.split(entry['command'])
    options = [w for w in words if w.startswith(('-I', '-D', '-isystem', '-std'))]
    follows = [w for first, w in zip(words, words[1:]) if first == '-isystem']
    command = ['clang++', '-fsyntax-only', '-Wno-everything', '-Wthread-safety', '-Werror=thread-safety',
               '-isystem', str(HERE / 'clang14'), *[w for w in options if w != '-isystem'],
               *(word for folder in follows for word in ('-isystem', folder)), entry['file']]
    done = subprocess.run(command, cwd=entry['directory'], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('root', type=pathlib.Path)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    options = parser.parse_args()
    root = options.root.resolve()
    headers = annotated_headers(root)
    entries = []
    for entry in json.loads((options.build / 'compile_commands.json').read_text()):
        path = pathlib.Path(entry['file'])
        of_product = (root / 'src') in path.parents and not path.stem.endswith(LEFT_OUT)
        if of_product and has_annotations(path, headers):
            entries.append(entry)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for status, output in pool.map(analyse, entries):
            bad += status != 0
            print(output, end='')
    print(f'locks: {len(entries)} files analysed, {bad} violate the rules')
    return 1 if bad or not entries else 0


if __name__ == '__main__':
    sys.exit(main())
