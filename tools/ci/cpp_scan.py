# SPDX-License-Identifier: BSD-2-Clause
"""Which functions, classes and data members does a C++ file declare, and on which lines?

A scanner of braces and semicolons, not a parser: good enough for code that clang-format laid out.
"""
import re
from dataclasses import dataclass, field

_SKIP = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\s\\]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.S)
_PREPROCESSOR = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.M)
_ATTRIBUTE = re.compile(r'\[\[.*?\]\]|\balignas\s*\([^()]*\)|__attribute__\s*\(\(.*?\)\)', re.S)
_ACCESS = re.compile(r'^\s*(public|protected|private)\s*:(?!:)')


@dataclass
class Entry:
    """A class, function definition ('function') or declaration ('prototype'), data member or friend."""
    kind: str
    name: str
    first: int  # line of the first word, counted from 1
    last: int
    head: str  # the text up to the brace or semicolon
    scope: tuple = ()  # kinds of the scopes around it, outermost first
    public: bool = True
    inside: tuple = field(default=())  # names of the scopes around it


def without_comments(text):
    """The text with comments replaced by spaces; literals and preprocessor lines stay."""
    def spaces(match):
        return re.sub(r'[^\n]', ' ', match[0]) if match[0].startswith('/') else match[0]
    return _SKIP.sub(spaces, text)


def blank(text, keep_preprocessor=False):
    """The text with comments, literals and preprocessor lines replaced by spaces."""
    def spaces(match):
        return re.sub(r'[^\n]', ' ', match[0])
    text = _SKIP.sub(spaces, text)
    return text if keep_preprocessor else _PREPROCESSOR.sub(spaces, text)


def _without_templates(head):
    """The head without `template <...>` prefixes."""
    while True:
        match = re.match(r'\s*template\s*<', head)
        if not match:
            return head
        depth, at = 1, match.end()
        while at < len(head) and depth:
            depth += {'<': 1, '>': -1}.get(head[at], 0)
            at += 1
        head = head[at:]


def without_arguments(head):
    """The head without the arguments of templates, in which function types may stand."""
    while True:
        shorter = re.sub(r'(?<!operator)<[^<>]*>', '', head)
        if shorter == head:
            return head
        head = shorter


def _function_name(head):
    """Name of the function that `head` declares, or None."""
    head = without_arguments(head)
    match = re.search(r'(operator\s*(?:\(\s*\)|[^\s\w(]+|[\w:<>* ]+?)|[~\w]+)\s*\(', head)
    if not match:
        return None
    before = head[:match.start()]
    if '=' in before or re.search(r'\b(return|using|typedef|static_assert)\b', head):
        return None
    if re.match(r'\s*(\w+::)*\*', head[match.end():]):  # of a pointer to a function
        return None
    if match[1] in ('static_assert', 'decltype', 'if', 'while', 'for', 'switch'):
        return None
    return re.sub(r'\s+', ' ', match[1])


def _members(head):
    """Names of the non-static data members that `head`, which is in a class, declares."""
    if not head or re.match(r'(using|typedef|static|static_assert|enum|class|struct|union)\b', head):
        return []
    plain = re.sub(r'\(\s*[\w:]*\*\s*(\w+)\s*\)', r' \1', without_arguments(head))
    while re.search(r'\{[^{}]*\}|\([^()]*\)', plain):
        plain = re.sub(r'\{[^{}]*\}|\([^()]*\)', '', plain)
    declarators = (re.sub(r'((?<!:):(?!:)|[=\[]).*', '', each, flags=re.S) for each in plain.split(','))
    return [re.findall(r'\w+', each)[-1] for each in declarators if re.search(r'\w', each)]


def _opens_member_initializer(head):
    """True for the brace of `a_{1}` in `X() : a_{1}, b_(2) {`."""
    match = re.search(r'\)[\s\w]*:(?!:)(.*)$', head, re.S)
    return bool(match) and bool(re.search(r'[\w>]\s*$', match[1]))


def classify(head):
    """What a brace after `head` opens: (kind, name)."""
    head = _without_templates(_ATTRIBUTE.sub(' ', head)).strip()
    if re.match(r'(inline\s+)?namespace\b', head):
        return 'namespace', head.split('namespace', 1)[1].strip()
    if re.match(r'extern\s*$', head):
        return 'namespace', ''
    if re.match(r'(typedef\s+)?enum\b', head):
        return 'enum', ''
    match = re.match(r'(?:typedef\s+)?(class|struct|union)\b\s*([\w:]*)[^()=]*$', head)
    if match:
        return 'class', match[2]
    name = _function_name(head)
    if name and not _opens_member_initializer(head):
        return 'function', name
    return 'initializer', ''


class _Scanner:
    def __init__(self, text):
        self.text = blank(text)
        self.line = 1
        self.start = None  # offset of the first character of the current statement
        self.start_line = 1
        self.stack = []  # (kind, name, entry, access)
        self.entries = []
        self.parens = 0

    def scan(self):
        for at, char in enumerate(self.text):
            if char == '\n':
                self.line += 1
            elif char in '{};':
                self._punctuation(at, char)
            elif not char.isspace():
                self._word(at, char)
        return self.entries

    def _word(self, at, char):
        if self.start is None:
            self.start, self.start_line = at, self.line
        self.parens += {'(': 1, ')': -1}.get(char, 0)
        if char == ':' and self.text[at + 1:at + 2] != ':':
            access = _ACCESS.match(self.text[self.start:at + 1])
            if access and self.stack:
                self.stack[-1][3] = access[1]
                self.start = None

    def _punctuation(self, at, char):
        if char == '{':
            self._open(at)
        elif char == '}':
            self._close()
        elif not self.parens:
            self._semicolon(at)

    def _in_code(self):
        return any(kind in ('function', 'initializer') for kind, *_ in self.stack)

    def _head(self, at):
        return '' if self.start is None else self.text[self.start:at]

    def _entry(self, kind, name, head):
        public = all(access == 'public' for _, _, _, access in self.stack)
        return Entry(kind, name, self.start_line, self.line, head,
                     tuple(frame[0] for frame in self.stack), public,
                     tuple(frame[1] for frame in self.stack))

    def _open(self, at):
        head = self._head(at)
        if self._in_code() or self.parens:
            self.stack.append(['initializer', '', None, 'public'])
            return
        kind, name = classify(head)
        entry = None
        if kind in ('function', 'class'):
            entry = self._entry(kind, name, head)
            self.entries.append(entry)
        is_class = re.search(r'\bclass\b[^()]*$', _without_templates(_ATTRIBUTE.sub(' ', head)))
        access = 'private' if kind == 'class' and is_class else 'public'
        self.stack.append([kind, name, entry, access])
        if kind != 'initializer':
            self.start = None

    def _close(self):
        if not self.stack:
            return
        kind, _, entry, _ = self.stack.pop()
        if entry:
            entry.last = self.line
        if kind != 'initializer':
            self.start = None

    def _semicolon(self, at):
        head = self._head(at)
        if not self._in_code():
            plain = _without_templates(_ATTRIBUTE.sub(' ', head)).strip()
            name = _function_name(plain)
            if re.match(r'friend\b', plain):
                self.entries.append(self._entry('friend', name or plain.split()[-1], head))
            elif name and not re.match(r'extern\b', plain):
                self.entries.append(self._entry('prototype', name, head))
            elif self.stack and self.stack[-1][0] == 'class':
                self.entries += [self._entry('member', member, head) for member in _members(plain)]
            self.start = None
        elif self.stack[-1][0] == 'function':
            self.start = None


def scan(text):
    """Every class, function, prototype, data member and friend outside function bodies, in order."""
    return _Scanner(text).scan()
