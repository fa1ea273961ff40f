#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does each type name mean one thing in the product code?

usage: check_types.py ROOT

A class, struct, union, enumeration or alias of a module under src must not have the name of one in
another module, at whatever scope; template parameters and forward declarations do not count, nor
do files that only tests include (product.py).
"""
import pathlib
import re
import sys

import cpp_scan
import product

DEFINED = re.compile(r'\b(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:alignas\s*\([^()]*\)\s*)?'
                     r'([A-Z]\w*)\s*(?:final\s*)?(?::(?!:)[^;{()]*)?\{')
ALIAS = re.compile(r'\busing\s+([A-Z]\w*)\s*=')


def names(text):
    """The types that a source defines."""
    text = cpp_scan.blank(text)
    return set(DEFINED.findall(text)) | set(ALIAS.findall(text))


def measure(root):
    """{name: modules that define it} of each name that several modules define."""
    found = {}
    source = root / 'src'
    for path in product.files(root):
        for name in names(path.read_text()):
            found.setdefault(name, set()).add(product.module_of(path, source))
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def check(root):
    """Complaints."""
    return [f'type {name}: defined in {", ".join(sorted(modules))}'
            for name, modules in sorted(measure(root).items())]


def main():
    bad = check(pathlib.Path(sys.argv[1]))
    print('\n'.join(bad), end='\n' if bad else '')
    print(f'types: {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
