#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does every #include stay within what its module declares?

usage: check_layers.py BUILD_DIR/layers.txt

The table has one line per module: name, rank, directory, declared dependencies (tabs between).
Refused: an include of a module that is not declared, a system or foreign header outside the module
named for it, a path that climbs, a header under another module's include root, and a directory of
code that no module declares. Tests (*_test.cc, *_support.cc) may use any system header.
"""
import pathlib
import re
import sys
from dataclasses import dataclass

OS_HEADER = (r'(sys(?!/types\.h)|linux|asm|netinet|arpa|net)/|'
             r'(unistd|fcntl|pthread|poll|dlfcn|signal|sched|semaphore|ifaddrs|netdb|mqueue)\.h$|'
             r'csignal$')
# sys/types.h is free: it only names types (pid_t, off_t).
# Headers that only hold structures of the foreign interface: a front end must speak them.
ADDRESS_STRUCTS = {'netinet/in.h', 'sys/socket.h', 'sys/uio.h'}
# By contract rdma_getaddrinfo(3), rpoll, rselect and rfcntl are these functions of libc.
CALLS_OF_LIBC = {'frontend_rdmacm': {'netdb.h', 'fcntl.h', 'poll.h', 'sys/select.h'}}
FOREIGN = [
    (r'infiniband/', {'frontend_verbs', 'frontend_rdmacm'}),
    (r'rdma/(rdma_|rsocket)', {'frontend_rdmacm'}),
    (r'rdma/(fabric\.h|fi_|providers/)', {'frontend_fabric'}),
]
EXEMPT = re.compile(r'_(test|support|bench|fuzz)\.cc$')
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
CODE = {'.h', '.cc', '.c'}


@dataclass
class Module:
    name: str
    rank: int
    root: pathlib.Path
    deps: set

    def files(self):
        return sorted(p for p in self.root.rglob('*') if p.suffix in CODE)

    def include_root(self):
        return self.root.name  # src/os -> os, src/frontend/fabric -> fabric


def read_table(path):
    modules = []
    for line in pathlib.Path(path).read_text().splitlines():
        name, rank, root, deps = line.split('\t')
        modules.append(Module(name, int(rank), pathlib.Path(root), set(filter(None, deps.split(',')))))
    return modules


def refuse_header(module, header, is_test):
    """Why `module` may not include this header of the system or of others, or None."""
    if is_test:
        return None
    if re.match(OS_HEADER, header) and module.name != 'os':
        is_structure = module.name.startswith('frontend_') and header in ADDRESS_STRUCTS
        if not is_structure and header not in CALLS_OF_LIBC.get(module.name, ()):
            return f'{module.name} may not include <{header}>: only os talks to the system'
    for pattern, allowed in FOREIGN:
        if re.match(pattern, header) and module.name not in allowed:
            return f'{module.name} may not include <{header}> (only {", ".join(sorted(allowed))})'
    return None


def refuse_include(module, header, owners, is_test):
    """Why `module` may not include `header`, or None."""
    if '..' in header.split('/') or header.startswith('/'):
        return f'{header}: an include path may not climb out of its root'
    owner = owners.get(header.split('/')[0]) if '/' in header else None
    if owner and owner != module.name and owner not in module.deps:
        return f'{module.name} includes {header} but does not declare a dependency on {owner}'
    return refuse_header(module, header, is_test)


def check_file(module, path, owners):
    bad = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        reason = match and refuse_include(module, match[1], owners, EXEMPT.search(path.name))
        if reason:
            bad.append(f'{path}:{number}: {reason}')
    return bad


def check_roots(module):
    """Public headers must lie under include/<module>/, so that an include names its owner."""
    include = module.root / 'include'
    return [f'{p}: a public header of {module.name} belongs under include/{module.include_root()}/'
            for p in module.files()
            if include in p.parents and p.relative_to(include).parts[0] != module.include_root()]


def check_ranks(modules):
    rank = {m.name: m.rank for m in modules}
    return [f'{m.name} (rank {m.rank}) declares {dep} (rank {rank.get(dep)}): not downward'
            for m in modules for dep in sorted(m.deps)
            if dep not in rank or rank[dep] >= m.rank]


def check_strays(modules, source):
    """Code below src/ that belongs to no module would escape every rule."""
    roots = [m.root for m in modules]
    return [f'{p}: belongs to no declared module' for p in sorted(source.rglob('*'))
            if p.suffix in CODE and not any(r in p.parents for r in roots)]


def check(table):
    modules = read_table(table)
    owners = {m.include_root(): m.name for m in modules}
    bad = check_ranks(modules)
    for module in modules:
        bad += check_roots(module)
        for path in module.files():
            bad += check_file(module, path, owners)
    if modules:
        bad += check_strays(modules, modules[0].root.parent)
    return modules, bad


def main():
    modules, bad = check(sys.argv[1])
    print('\n'.join(bad), end='\n' if bad else '')
    print(f'layers: {len(modules)} modules checked, {len(bad)} violations')
    return 1 if bad or not modules else 0


if __name__ == '__main__':
    sys.exit(main())
