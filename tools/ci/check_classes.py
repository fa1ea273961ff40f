#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does a class of the product code have more parts than one head can hold, or friends elsewhere?

usage: check_classes.py ROOT

A class, struct or union of product code (product.py) has at most 35 member functions and 20 data
members. Static, virtual and private functions count, overloads one by one, and constructors,
destructors and operators, unless they are defaulted or deleted. Static data members, inherited
members and those of nested classes do not count. A friend is defined in the same file as the class
that names it. Exceptions stand in tools/ci/class_waivers.txt, as
`PATH CLASS FUNCTIONS MEMBERS # reason` and `PATH CLASS friend NAME # reason`. The list may only
shrink: an entry that is not needed any more, allows more than there is, or was not there before is
refused. An entry may follow its class to another file.
"""
import pathlib
import re
import sys

import cpp_scan
import product
import waiver_history

MAX_FUNCTIONS = 35
MAX_MEMBERS = 20
WAIVERS = 'tools/ci/class_waivers.txt'
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


def measure(root):
    """({(path, class): (functions, members)} beyond a limit, {(path, class, friend)})."""
    large, friends = {}, set()
    for path in product.files(root):
        entries = cpp_scan.scan(path.read_text())
        name = str(path.relative_to(root))
        for owner, (functions, members) in tally(entries).items():
            if functions > MAX_FUNCTIONS or members > MAX_MEMBERS:
                large[(name, owner)] = (functions, members)
        friends |= {(name, owner, friend) for owner, friend in foreign_friends(entries)}
    return large, friends


def parse_waivers(text):
    """As measure(); each entry must give its reason."""
    large, friends = {}, set()
    for line in text.splitlines():
        entry, _, reason = line.partition('#')
        words = entry.split()
        if not words:
            continue
        if len(words) == 4 and reason.strip() and words[2] == 'friend':
            friends.add((words[0], words[1], words[3]))
        elif len(words) == 4 and reason.strip() and (words[2] + words[3]).isdigit():
            large[(words[0], words[1])] = (int(words[2]), int(words[3]))
        else:
            raise ValueError(f'{WAIVERS}: not `PATH CLASS FUNCTIONS MEMBERS # reason`: {line}')
    return large, friends


def compare_sizes(large, waivers, earlier):
    """Complaints about classes; `earlier` is the list before this change, or None without one."""
    bad = []
    limits = (MAX_FUNCTIONS, MAX_MEMBERS)
    for (path, name), found in sorted(large.items()):
        allowed = waivers.get((path, name), limits)
        for what, number, limit, most in zip(('functions', 'data members'), found, allowed, limits):
            if number > max(limit, most):
                bad.append(f'{path}: {name} has {number} {what}, the limit is {max(limit, most)}')
    for (path, name), allowed in sorted(waivers.items()):
        found = large.get((path, name))
        if found is None:
            bad.append(f'{path}: {name} needs its waiver no more: remove it')
        elif allowed[0] > found[0] or allowed[1] > found[1]:
            bad.append(f'{path}: {name} has {found[0]} functions and {found[1]} data members: '
                       'lower its waiver')
        before = [allowed] if earlier is None else \
            [numbers for (_, other), numbers in earlier.items() if other == name]
        if not any(allowed[0] <= old[0] and allowed[1] <= old[1] for old in before):
            bad.append(f'{path}: {name}: the list of waivers may only shrink')
    return bad


def compare_friends(friends, waivers, earlier):
    """Complaints about friends, in the same way."""
    bad = [f'{path}: {name} has a friend in another file: {friend}'
           for path, name, friend in sorted(friends - waivers)]
    bad += [f'{path}: {name} needs its waiver for the friend {friend} no more: remove it'
            for path, name, friend in sorted(waivers - friends)]
    before = waivers if earlier is None else earlier
    bad += [f'{path}: {name}: the list of waivers may only shrink'
            for path, name, friend in sorted(waivers)
            if (name, friend) not in {(old, other) for _, old, other in before}]
    return bad


def earlier_waivers(root, current):
    """The list before the change at hand."""
    text = waiver_history.earlier(root, WAIVERS, current)
    return (None, None) if text is None else parse_waivers(text)


def check(root):
    path = root / WAIVERS
    text = path.read_text() if path.exists() else ''
    (large, friends), (sizes, names) = measure(root), parse_waivers(text)
    sizes_before, names_before = earlier_waivers(root, text)
    return (compare_sizes(large, sizes, sizes_before) +
            compare_friends(friends, names, names_before))


def main():
    root = pathlib.Path(sys.argv[1])
    bad = check(root)
    print('\n'.join(bad), end='\n' if bad else '')
    counts = product.counts(root)
    print('product code, in lines: ' +
          ', '.join(f'{module} {number}' for module, number in sorted(counts.items())))
    print(f'classes: {len(product.files(root))} files checked, {sum(counts.values())} lines of '
          f'product code, {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
