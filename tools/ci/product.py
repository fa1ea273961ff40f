# SPDX-License-Identifier: BSD-2-Clause
"""Which files of src are product code, and how many lines of code do they have?

Product code is each .cc that is no test, each public header, and each private header that one of
these includes. Lines without anything but comments and blanks do not count.
"""
import pathlib
import re

import cpp_scan

_TESTS = re.compile(r'(_test|_support|_bench)\.(h|cc)$')
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def module_of(path, source):
    parts = path.relative_to(source).parts
    return '/'.join(parts[:2]) if parts[0] == 'frontend' else parts[0]


def files(root):
    """The product's files, sorted."""
    source = root / 'src'
    todo = [p for p in source.rglob('*') if not _TESTS.search(p.name) and
            (p.suffix == '.cc' or p.suffix == '.h' and 'include' in p.parts)]
    found = set()
    while todo:
        path = todo.pop()
        if path in found:
            continue
        found.add(path)
        near = (path.parent / name for name in _INCLUDE.findall(path.read_text()))
        todo += [pathlib.Path(p) for p in near if p.is_file()]
    return sorted(found)


def lines(text):
    """How many lines of a source have code."""
    return sum(bool(line.strip()) for line in cpp_scan.without_comments(text).splitlines())


def counts(root):
    """{module: lines of code}."""
    found = {}
    for path in files(root):
        module = module_of(path, root / 'src')
        found[module] = found.get(module, 0) + lines(path.read_text())
    return found
