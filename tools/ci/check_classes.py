#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which classes of the product code are large, and has a class a friend in another file?

usage: check_classes.py ROOT

A class, struct or union of product code (product.py) with more than 35 member functions or 20 data
members is printed as a hint to look at it; that is no failure, and no reason to divide the class.
Static, virtual and private functions count, overloads one by one, and constructors, destructors and
operators, unless they are defaulted or deleted. Static data members, inherited members and those of
nested classes do not count.

Refused: a friend that is not defined in the file of the class that names it.
"""
import pathlib
import re
import sys

import cpp_scan
import product

MANY_FUNCTIONS = 35
MANY_MEMBERS = 20
_TRIVIAL = re.compile(r'=\s*(default|delete)\s*$')


def is_friend(entry):
    return bool(re.match(r'(template\s*<[^;]*>\s*)?friend\b', entry.head))


def class_of(entry):
    """Name of the class that has the entry as a member, with the classes around it; or None."""
    if entry.scope[-1:] != ('class',):
        return None
    return '::'.join(name for kind, name in zip(entry.scope, entry.inside) if kind == 'class')


def tally(entries):
    """{class: [functions, data members]} of one file."""
    found = {}
    for entry in entries:
        name = class_of(entry)
        if name is None or is_friend(entry) or _TRIVIAL.search(entry.head):
            continue
        pair = found.setdefault(name, [0, 0])
        if entry.kind in ('function', 'prototype'):
            pair[0] += 1
        elif entry.kind == 'member':
            pair[1] += 1
    return found


def foreign_friends(entries):
    """(class, friend) for each friend that the file does not define."""
    defined = {e.name.split('::')[-1] for e in entries
               if e.kind in ('class', 'function') and not is_friend(e)}
    for entry in entries:
        name = entry.name.split('::')[-1]
        if entry.kind == 'friend' and name not in defined and not _TRIVIAL.search(entry.head):
            yield class_of(entry), name


def check(root):
    """(Hints at large classes, complaints about friends)."""
    hints, bad = [], []
    for path in product.files(root):
        entries = cpp_scan.scan(path.read_text())
        name = path.relative_to(root)
        hints += [f'{name}: {owner} has {functions} functions and {members} data members'
                  for owner, (functions, members) in sorted(tally(entries).items())
                  if functions > MANY_FUNCTIONS or members > MANY_MEMBERS]
        bad += [f'{name}: {owner} has a friend in another file: {friend}'
                for owner, friend in sorted(set(foreign_friends(entries)))]
    return hints, bad


def main():
    root = pathlib.Path(sys.argv[1])
    hints, bad = check(root)
    for line in [f'hint: {hint}' for hint in hints] + bad:
        print(line)
    counts = product.counts(root)
    print('product code, in lines: ' +
          ', '.join(f'{module} {number}' for module, number in sorted(counts.items())))
    print(f'classes: {len(product.files(root))} files checked, {sum(counts.values())} lines of '
          f'product code, {len(hints)} hints, {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
