#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Do the documents name files and functions that exist?

usage: check_names.py ROOT

In docs and in the READMEs of modules every file name (`mailbox.cc`, `link_shm/layout.h`) must be that of a
file of the repository, and every `Class::function` must be a class and a word of one source or header
that names the class. Words in other code, system headers in <> and names with a star are not looked at.
"""
import pathlib
import re
import sys

PAGES = ('README.md', 'docs/**/*.md', 'src/**/README.md', 'bench/README.md', 'fuzz/README.md')
PARTS = ('include', 'src', 'tests', 'bench', 'fuzz', 'examples', 'tools', 'cmake')
CPP = {'.h', '.cc', '.c'}
FILE = re.compile(r'(?<![\w*<./])((?:\w+/)*\w+\.(?:h|cc|c|py|cmake|lua))\b(?![*>])')
FUNCTION = re.compile(r'`([A-Z]\w+)::(\w+)')


def read_sources(root):
    """({path: its text} of C++ of src, {paths of all files})."""
    files = {str(path.relative_to(root)) for part in PARTS for path in (root / part).rglob('*') if path.is_file()}
    texts = {path: (root / path).read_text() for path in files
             if path.startswith('src/') and pathlib.Path(path).suffix in CPP}
    return texts, files


def has_function(texts, owner, name):
    return any(re.search(rf'\b{owner}\b', text) and re.search(rf'\b{name}\b', text)
               for text in texts.values())


def judge(page, texts, files):
    """Complaints about the text of one page."""
    bad = [f'file {name}' for name in FILE.findall(page)
           if not any(path == name or path.endswith('/' + name) for path in files)]
    bad += [f'function {owner}::{name}' for owner, name in FUNCTION.findall(page)
            if not has_function(texts, owner, name)]
    return sorted(set(bad))


def check(root):
    texts, files = read_sources(root)
    pages = sorted({path for pattern in PAGES for path in root.glob(pattern)})
    return [f'{page.relative_to(root)}: names the {what}, which does not exist'
            for page in pages for what in judge(page.read_text(), texts, files)]


def main():
    bad = check(pathlib.Path(sys.argv[1]))
    print('\n'.join(bad), end='\n' if bad else '')
    print(f'names: {len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
