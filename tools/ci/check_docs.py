#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does every module, file and public function say what it is for, and does every link lead somewhere?

usage: check_docs.py ROOT BUILD_DIR/layers.txt

Refused: a module with code and no README.md (or one longer than 20 lines), a source file that does
not open with its licence line and the question it answers, and fewer than 90 % of the public
functions and classes of public headers under a comment. A comment covers the declarations that
follow it without an empty line. Constructors and destructors are explained by their class,
overriding functions by what they override, operators by their sign.

Of the documents are refused: a README.md of the repository of 60 lines or more, a relative link to a file
or a heading that does not exist, and a page of docs/user, docs/conformance, docs/formats or docs/design that its index
(README.md of the repository or of the folder) does not link.
"""
import pathlib
import re
import sys

import cpp_scan
from check_layers import CODE, read_table

SHARE = 0.9
README_LINES = 20
TOP_README_LINES = 59
PAGES = ('*.md', 'docs/**/*.md', 'src/**/*.md', 'bench/**/*.md', 'fuzz/*.md', 'tests/**/*.md', 'examples/**/*.md')
INDEXES = {'docs/user': 'README.md', 'docs/conformance': 'README.md', 'docs/formats': 'docs/formats/README.md',
           'docs/design': 'docs/design/README.md'}
LINK = re.compile(r'\]\(([^)\s]+)\)')
PARTS = ('src', 'tests', 'bench', 'fuzz', 'examples')
HIDDEN = {'detail', 'internal'}


def check_readme(module):
    if not module.files():
        return []
    readme = module.root / 'README.md'
    if not readme.is_file():
        return [f'{readme}: missing; ten lines say what {module.name} is responsible for']
    lines = len(readme.read_text().splitlines())
    return [f'{readme}: {lines} lines; ten are meant, {README_LINES} the most'] \
        if lines > README_LINES else []


def check_opening(path):
    lines = path.read_text().splitlines()[:2] + ['', '']
    if 'SPDX-License-Identifier: BSD-2-Clause' not in lines[0]:
        return [f'{path}:1: the first line must be the SPDX licence line']
    if not re.match(r'\s*(//|/\*|\*)\s*\S', lines[1]):
        return [f'{path}:2: the second line must say which question the file answers']
    return []


def needs_comment(entry):
    """True for what a reader of the header would call."""
    if entry.kind not in ('class', 'function', 'prototype'):
        return False
    if not entry.public or any(kind in ('function', 'initializer') for kind in entry.scope):
        return False
    if HIDDEN & {part for name in entry.inside for part in name.split('::')}:
        return False
    if entry.kind == 'class' and not entry.name:
        return False
    if entry.name.lstrip('~') in entry.inside[-1:]:  # constructors and destructors
        return False
    if entry.name.startswith('operator') or re.search(r'\boverride\b', entry.head):
        return False
    return not re.search(r'=\s*(default|delete)\s*$', entry.head)


def has_comment(lines, first):
    """Walks up from line `first` (from 1) over lines without a gap to the nearest comment."""
    for at in range(first - 2, -1, -1):
        line = lines[at].strip()
        if line.startswith(('//', '*', '/*')) or line.endswith('*/'):
            return True
        if not line or re.match(r'(public|protected|private)\s*:|#', line) or opens_scope(line):
            return False
    return False


def opens_scope(line):
    return bool(re.match(r'(class|struct|union|namespace|extern)\b.*\{$', line))


def examine_header(path):
    """(number of public declarations, those without a comment as 'path:line: name')."""
    text = path.read_text()
    lines = text.splitlines()
    entries = [e for e in cpp_scan.scan(text) if needs_comment(e)]
    bare = [f'{path}:{e.first}: {e.name}: no comment says what it does'
            for e in entries if not has_comment(lines, e.first)]
    return len(entries), bare


def anchors(text):
    """The names by which links mean the headings of a page, as GitHub makes them."""
    heads = re.findall(r'^#+ (.+)$', text, re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', head.lower()).replace(' ', '-') for head in heads}


def links(path):
    """(file, anchor) of each relative link of a page outside of code."""
    text = re.sub(r'^    .*$|`[^`\n]*`', '', path.read_text(), flags=re.MULTILINE)
    for target in LINK.findall(text):
        if not re.match(r'[a-z]+:', target):
            file, _, anchor = target.partition('#')
            yield (path.parent / file if file else path), anchor


def check_pages(root):
    bad = []
    for page in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        for target, anchor in links(page):
            if not target.exists():
                bad.append(f'{page}: links to {target}, which does not exist')
            elif anchor and anchor not in anchors(target.read_text()):
                bad.append(f'{page}: links to #{anchor}, which {target} does not have')
    for folder, index in INDEXES.items():
        linked = {target.resolve() for target, _ in links(root / index)} if (root / index).exists() else set()
        bad += [f'{page}: {index} does not link it' for page in sorted((root / folder).glob('*.md'))
                if page.name != 'README.md' and page.resolve() not in linked]
    readme = root / 'README.md'
    lines = len(readme.read_text().splitlines()) if readme.exists() else 0
    if lines > TOP_README_LINES:
        bad.append(f'{readme}: {lines} lines, the limit is {TOP_README_LINES}')
    return bad


def check(root, table):
    bad, total, bare = check_pages(root), 0, []
    for module in read_table(table):
        bad += check_readme(module)
        for header in sorted((module.root / 'include').rglob('*.h')):
            count, missing = examine_header(header)
            total += count
            bare += missing
    for part in PARTS:
        for path in sorted((root / part).rglob('*')):
            if path.suffix in CODE:
                bad += check_opening(path)
    if total and 1 - len(bare) / total < SHARE:
        bad += bare
    return bad, total, bare


def main():
    bad, total, bare = check(pathlib.Path(sys.argv[1]), sys.argv[2])
    print('\n'.join(bad), end='\n' if bad else '')
    print(f'docs: {total - len(bare)} of {total} public declarations are explained, '
          f'{len(bad)} violations')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
