#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What does clang-tidy say about the code of the modules, within a bounded time?

usage: run_tidy.py ROOT BUILD_DIR [--budget SECONDS] [--jobs N]

Examines src/**/*.cc except tests; files that differ from the last commit come first. A file whose
preprocessed text and settings were found clean before is not examined again. Files that the budget
left out are named; they are examined next time, before those found clean.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def compile_commands(build):
    """[(source path, argument list, directory)] of what is examined."""
    found = []
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        path = pathlib.Path(entry['file'])
        found.append((path, shlex.split(entry['command']), entry['directory']))
    return found


def is_examined(path, root):
    return (root / 'src') in path.parents and not path.stem.endswith(('_test', '_support', '_bench', '_fuzz'))


def changed_files(root):
    """Paths that git sees as different from the last commit's parent."""
    changed = set()
    for command in (['diff', '--name-only', 'HEAD~1'], ['ls-files', '--others', '--exclude-standard']):
        done = subprocess.run(['git', '-C', str(root), *command], capture_output=True, text=True,
                              check=False)
        changed |= {root / line for line in done.stdout.splitlines()}
    return changed


def preprocess(arguments):
    """The compile command turned into one that prints the preprocessed text."""
    if os.path.basename(arguments[0]) == 'ccache':
        arguments = arguments[1:]
    at = arguments.index('-o')
    return arguments[:at] + arguments[at + 2:] + ['-E']


def fingerprint(settings, arguments, directory):
    text = subprocess.run([a for a in preprocess(arguments) if a != '-c'], cwd=directory,
                          capture_output=True, check=False).stdout
    return hashlib.sha256(settings + text).hexdigest()


def tidy(path, build):
    extra = ['-Wno-error', '-Wno-unknown-warning-option', f'-isystem{HERE / "clang14"}']
    done = subprocess.run(['clang-tidy', '--quiet', '-p', str(build),
                           *(f'--extra-arg={argument}' for argument in extra), str(path)],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + ('' if done.returncode == 0 else done.stderr)


class Run:
    """One run over a list of files; counts what was clean, bad, known and left out."""

    def __init__(self, root, build, budget):
        self.root, self.build = root, build
        self.end = time.monotonic() + budget
        self.settings = (root / '.clang-tidy').read_bytes()
        self.cache = build / 'tidy-clean'
        self.cache.mkdir(exist_ok=True)

    def examine(self, job):
        """(path, 'clean' | 'known' | 'bad' | 'left out', output)."""
        path, arguments, directory = job
        mark = self.cache / fingerprint(self.settings, arguments, directory)
        if mark.exists():
            return path, 'known', ''
        if time.monotonic() > self.end:
            return path, 'left out', ''
        code, output = tidy(path, self.build)
        if code == 0:
            mark.touch()
        return path, 'clean' if code == 0 else 'bad', output


def report(results, root):
    counts = {}
    for path, verdict, output in results:
        counts[verdict] = counts.get(verdict, 0) + 1
        if verdict in ('bad', 'left out'):
            print(f'{path.relative_to(root)}: {verdict}\n{output}', end='')
    print('tidy: ' + (', '.join(f'{n} {v}' for v, n in sorted(counts.items())) or 'no files'))
    return counts.get('bad', 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('root', type=pathlib.Path)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('--budget', type=float, default=30)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    options = parser.parse_args()
    root, build = options.root.resolve(), options.build.resolve()
    changed = changed_files(root)
    jobs = sorted((j for j in compile_commands(build) if is_examined(j[0], root)),
                  key=lambda j: (j[0] not in changed, j[0]))
    run = Run(root, build, options.budget)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(run.examine, jobs))
    return 1 if report(results, root) else 0


if __name__ == '__main__':
    sys.exit(main())
