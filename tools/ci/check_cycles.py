#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Do the files of a module include each other in large cycles?

usage: check_cycles.py ROOT

A pair is a header and the source of the same name (x.h and x.cc); a file without its counterpart is a pair,
too. A cycle is a largest set of pairs of one module, each of which includes each other one, directly or
through others. Only product code (product.py) is looked at. The sizes of all cycles are printed.

Refused: a cycle of more than 3 pairs. The modules that had a larger one when the rule came stand in
tools/ci/cycle_waivers.txt: `MODULE PAIRS # reason`. The list may only shrink: an entry that is not needed
any more, allows more pairs than there are, or was not there before is refused.
"""
import pathlib
import re
import sys

import cpp_scan
import product
import waiver_history

MAX_PAIRS = 3
WAIVERS = 'tools/ci/cycle_waivers.txt'
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.M)


def pair_of(path, folder):
    """Name of the pair of a file: its path in the module without include/MODULE/ and suffix."""
    parts = path.relative_to(folder).with_suffix('').parts
    return '/'.join(parts[2:] if parts[0] == 'include' else parts)


def edges_of(files, folder):
    """{pair: pairs of the same module that its files include}."""
    pairs = {path: pair_of(path, folder) for path in files}
    edges = {pair: set() for pair in pairs.values()}
    for path, pair in pairs.items():
        for name in INCLUDE.findall(cpp_scan.without_comments(path.read_text())):
            for other in (path.parent / name, folder / 'include' / name):
                edges[pair] |= {pairs[other]} - {pair} if other in pairs else set()
    return edges


def reachable(edges, pair):
    found, todo = set(), [pair]
    while todo:
        new = edges[todo.pop()] - found
        found |= new
        todo += new
    return found


def cycles(edges):
    """The sets of two or more pairs that reach each other, the largest first."""
    reach = {pair: reachable(edges, pair) for pair in edges}
    found = {frozenset(other for other in reach[pair] if pair in reach[other]) for pair in reach}
    return sorted((sorted(cycle) for cycle in found if cycle), key=lambda cycle: (-len(cycle), cycle))


def measure(root):
    """{module: its cycles}."""
    modules = {}
    for path in product.files(root):
        modules.setdefault(product.module_of(path, root / 'src'), []).append(path)
    return {module: cycles(edges_of(files, root / 'src' / module)) for module, files in modules.items()}


def parse_waivers(text):
    """{module: pairs}; each entry must give its reason."""
    waivers = {}
    for line in text.splitlines():
        entry, _, reason = line.partition('#')
        words = entry.split()
        if not words:
            continue
        if len(words) != 2 or not words[1].isdigit() or not reason.strip():
            raise ValueError(f'{WAIVERS}: not `MODULE PAIRS # reason`: {line}')
        waivers[words[0]] = int(words[1])
    return waivers


def compare(found, waivers, earlier):
    """Complaints; `found` is as of measure(), `earlier` the list before this change or None."""
    bad = []
    for module, sets in sorted(found.items()):
        limit = waivers.get(module, MAX_PAIRS)
        bad += [f'src/{module}: a cycle of {len(cycle)} pairs, the limit is {limit}: {", ".join(cycle)}'
                for cycle in sets if len(cycle) > limit]
    for module, limit in sorted(waivers.items()):
        largest = max(map(len, found.get(module, [])), default=0)
        if largest <= MAX_PAIRS:
            bad.append(f'src/{module} needs its waiver no more: remove it from {WAIVERS}')
        elif largest < limit:
            bad.append(f'src/{module}: the largest cycle has {largest} pairs: lower its waiver from {limit}')
        if earlier is not None and limit > earlier.get(module, 0):
            bad.append(f'src/{module}: the list of waivers may only shrink')
    return bad


def check(root, found):
    path = root / WAIVERS
    text = path.read_text() if path.exists() else ''
    earlier = waiver_history.earlier(root, WAIVERS, text, parse_waivers)
    return compare(found, parse_waivers(text), earlier)


def main():
    root = pathlib.Path(sys.argv[1])
    found = measure(root)
    bad = check(root, found)
    print('\n'.join(bad), end='\n' if bad else '')
    print('cycles of includes, in pairs: ' +
          ', '.join(f'{module} {"+".join(str(len(cycle)) for cycle in sets)}'
                    for module, sets in sorted(found.items()) if sets))
    print(f'cycles: {len(found)} modules checked, {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
