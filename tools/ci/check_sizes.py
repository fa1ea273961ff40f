#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Is any file or function longer than one head can hold?

usage: check_sizes.py ROOT

Files end at 700 lines, functions at 70. What is longer must stand, with its reason, in
tools/ci/size_waivers.txt: `PATH [FUNCTION] LINES # reason`. The list may only shrink: an entry that
is not needed any more, allows more lines than there are, or was not there before is refused.
"""
import ast
import pathlib
import sys

import cpp_scan
import waiver_history

MAX_FILE = 700
MAX_FUNCTION = 70
PARTS = ('src', 'tests', 'bench', 'fuzz', 'examples', 'tools', 'cmake')
WAIVERS = 'tools/ci/size_waivers.txt'
CPP = {'.h', '.cc', '.c'}
OTHER = {'.py', '.sh', '.cmake', '.txt'}


def parse_waivers(text):
    """{(path, function or ''): lines}; each entry must give its reason."""
    waivers = {}
    for line in text.splitlines():
        entry, _, reason = line.partition('#')
        words = entry.split()
        if not words:
            continue
        if len(words) not in (2, 3) or not words[-1].isdigit() or not reason.strip():
            raise ValueError(f'{WAIVERS}: not `PATH [FUNCTION] LINES # reason`: {line}')
        waivers[(words[0], words[1] if len(words) == 3 else '')] = int(words[-1])
    return waivers


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno


def functions(path, text):
    """(name, first line, last line) of each function."""
    if path.suffix in CPP:
        return [(e.name.replace(' ', ''), e.first, e.last) for e in cpp_scan.scan(text)
                if e.kind == 'function']
    return list(python_functions(text)) if path.suffix == '.py' else []


def source_files(root):
    files = [p for part in PARTS for p in (root / part).rglob('*')
             if p.suffix in CPP | OTHER and '__pycache__' not in p.parts]
    files += [root / name for name in ('dev', 'CMakeLists.txt', '.ci/run')]
    return sorted(p for p in files if p.is_file() and p != root / WAIVERS)


def measure(root):
    """{(path, function or ''): lines} of everything too long; the longest of equal names counts."""
    long = {}
    for path in source_files(root):
        text = path.read_text()
        name = str(path.relative_to(root))
        if len(text.splitlines()) > MAX_FILE:
            long[(name, '')] = len(text.splitlines())
        for function, first, last in functions(path, text):
            if last - first + 1 > MAX_FUNCTION:
                key = (name, function)
                long[key] = max(long.get(key, 0), last - first + 1)
    return long


def label(key):
    return f'{key[0]}: {key[1] + "()" if key[1] else "the file"}'


def compare(long, waivers, earlier):
    """Complaints; `earlier` is the list before this change, or None when there was none."""
    bad = []
    for key, lines in sorted(long.items()):
        limit = MAX_FUNCTION if key[1] else MAX_FILE
        if lines > waivers.get(key, limit):
            bad.append(f'{label(key)} has {lines} lines, the limit is {waivers.get(key, limit)}')
    for key, lines in sorted(waivers.items()):
        if key not in long:
            bad.append(f'{label(key)} needs its waiver no more: remove it')
        elif lines > long[key]:
            bad.append(f'{label(key)} has {long[key]} lines: lower its waiver from {lines}')
        if earlier is not None and lines > earlier.get(key, 0):
            bad.append(f'{label(key)}: the list of waivers may only shrink')
    return bad


def check(root):
    path = root / WAIVERS
    text = path.read_text() if path.exists() else ''
    earlier = waiver_history.earlier(root, WAIVERS, text, parse_waivers)
    return compare(measure(root), parse_waivers(text), earlier)


def main():
    root = pathlib.Path(sys.argv[1])
    bad = check(root)
    print('\n'.join(bad), end='\n' if bad else '')
    print(f'sizes: {len(source_files(root))} files checked, {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
