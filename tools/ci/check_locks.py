#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does the code keep the lock rules that its annotations state (base/mutex.h)?

usage: check_locks.py ROOT BUILD_DIR [--jobs N]

Lets clang's thread safety analysis read the sources that include base/mutex.h, or a header that does.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

from run_tidy import HERE, compile_commands, is_examined

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


def analyse(job):
    """(exit status, output) of the analysis of one file."""
    path, words, directory = job
    options = []
    for word, following in zip(words, [*words[1:], '']):
        if word.startswith(('-I', '-D', '-std')):
            options.append(word)
        elif word == '-isystem':
            options += [word, following]
    command = ['clang++', '-fsyntax-only', '-Wno-everything', '-Wthread-safety', '-Werror=thread-safety',
               '-isystem', str(HERE / 'clang14'), *options, str(path)]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('root', type=pathlib.Path)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    options = parser.parse_args()
    root = options.root.resolve()
    headers = annotated_headers(root)
    jobs = [job for job in compile_commands(options.build)
            if is_examined(job[0], root) and has_annotations(job[0], headers)]
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for status, output in pool.map(analyse, jobs):
            bad += status != 0
            print(output, end='')
    print(f'locks: {len(jobs)} files analysed, {bad} violate the rules')
    return 1 if bad or not jobs else 0


if __name__ == '__main__':
    sys.exit(main())
