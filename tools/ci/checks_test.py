# SPDX-License-Identifier: BSD-2-Clause
"""Does each check refuse the tree that it exists to refuse?

run: python3 -m unittest discover -s tools/ci -p '*_test.py'
"""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import check_classes
import check_conformance
import check_cycles
import check_docs
import check_layers
import check_names
import check_sentences
import check_sizes
import check_subject
import check_types
import check_words
import cpp_scan
import module_table
import product

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
OPENING = '// SPDX-License-Identifier: BSD-2-Clause\n// What is this?\n'


class Tree(unittest.TestCase):
    """A throw-away repository with the modules base (0), os (1), top (2) and frontend_fabric (7)."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.table = self.root / 'layers.txt'
        self.declare([('base', 0, ''), ('os', 1, 'base'), ('top', 2, 'base'),
                      ('frontend_fabric', 7, 'base')])

    def declare(self, modules):
        self.table.write_text(''.join(
            f'{name}\t{rank}\t{self.root}/src/{name.replace("_", "/")}\t{deps}\n'
            for name, rank, deps in modules))

    def write(self, path, text, opening=OPENING):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(opening + text)

    def explain(self, *modules):
        for module in modules:
            self.write(f'src/{module}/README.md', f'# {module}\n', '')


class Layers(Tree):
    def refusals(self):
        return check_layers.check(self.table)[1]

    def assert_refused(self, words):
        found = self.refusals()
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_a_clean_tree_passes(self):
        self.write('src/base/include/base/a.h', '#include <vector>\n')
        self.write('src/top/a.cc', '#include "base/a.h"\n#include "own.h"\n')
        self.write('src/os/a.cc', '#include <sys/mman.h>\n#include <unistd.h>\n')
        self.write('src/frontend/fabric/a.cc', '#include <rdma/fi_cm.h>\n#include <netinet/in.h>\n')
        self.assertEqual(self.refusals(), [])

    def test_an_undeclared_module_is_refused(self):
        self.write('src/top/a.cc', '#include "os/file.h"\n')
        self.assert_refused('does not declare a dependency on os')

    def test_a_test_must_declare_its_modules_too(self):
        self.write('src/top/a_test.cc', '#include "os/file.h"\n')
        self.assert_refused('does not declare a dependency on os')

    def test_a_system_header_outside_os_is_refused(self):
        for header in ('unistd.h', 'sys/mman.h', 'linux/futex.h', 'arpa/inet.h', 'signal.h'):
            self.write('src/top/a.cc', f'#include <{header}>\n')
            self.assert_refused('only os talks to the system')

    def test_a_front_end_may_use_address_structures_only(self):
        self.write('src/frontend/fabric/a.cc', '#include <sys/socket.h>\n#include <sys/mman.h>\n')
        self.assert_refused('sys/mman.h')

    def test_libfabric_outside_its_front_end_is_refused(self):
        for header in ('rdma/fabric.h', 'rdma/fi_errno.h', 'rdma/providers/fi_prov.h'):
            self.write('src/os/a.cc', f'#  include <{header}>\n')
            self.assert_refused('only frontend_fabric')

    def test_a_test_may_use_the_system(self):
        for name in ('a_test.cc', 'a_support.cc'):
            self.write(f'src/top/{name}', '#include <sys/wait.h>\n')
        self.assertEqual(self.refusals(), [])

    def test_a_climbing_path_is_refused(self):
        self.write('src/top/a.cc', '#include "../os/private.h"\n')
        self.assert_refused('climb')

    def test_a_header_under_a_foreign_root_is_refused(self):
        self.write('src/top/include/base/more.h', '')
        self.assert_refused('belongs under include/top/')

    def test_code_outside_modules_is_refused(self):
        self.write('src/common/a.cc', '')
        self.assert_refused('belongs to no declared module')

    def test_an_upward_declaration_is_refused(self):
        self.declare([('base', 0, 'os'), ('os', 1, '')])
        self.assert_refused('not downward')


class Configuring(Tree):
    def configure(self, modules):
        shutil.copy(REPOSITORY / 'cmake/Layer.cmake', self.root)
        self.write('CMakeLists.txt', 'cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\n'
                   f'include(Layer.cmake)\n{modules}\n', '')
        done = subprocess.run(['cmake', '-S', self.root, '-B', self.root / 'b'],
                              capture_output=True, text=True, check=False)
        return done.returncode, re.sub(r'\s+', ' ', done.stderr)

    def test_downward_dependencies_configure(self):
        code, errors = self.configure('weft_module(NAME base LAYER 0)\n'
                                      'weft_module(NAME os LAYER 1 DEPS base)')
        self.assertEqual(code, 0, errors)

    def test_a_sideways_dependency_stops_configuring(self):
        code, errors = self.configure('weft_module(NAME a LAYER 1)\n'
                                      'weft_module(NAME b LAYER 1 DEPS a)')
        self.assertNotEqual(code, 0)
        self.assertIn('dependencies point strictly down', errors)

    def test_an_unknown_dependency_stops_configuring(self):
        code, errors = self.configure('weft_module(NAME a LAYER 1 DEPS b)')
        self.assertNotEqual(code, 0)
        self.assertIn('not declared yet', errors)


def body(lines):
    return 'int f() {\n' + '  g();\n' * (lines - 2) + '}\n'


class Sizes(Tree):
    def refusals(self):
        return check_sizes.check(self.root)

    def waive(self, line):
        self.write(check_sizes.WAIVERS, line + '\n', '')

    def test_what_is_within_the_limits_passes(self):
        self.write('src/base/a.cc', body(70))
        self.assertEqual(self.refusals(), [])

    def test_a_long_file_is_refused(self):
        self.write('src/base/a.cc', 'int x;\n' * 699)
        self.assertIn('701 lines, the limit is 700', self.refusals()[0])

    def test_a_long_function_is_refused(self):
        self.write('src/base/a.cc', 'namespace weft {\n' + body(71) + '}\n')
        self.assertIn('f() has 71 lines, the limit is 70', self.refusals()[0])

    def test_a_long_python_function_is_refused(self):
        self.write('bench/a.py', 'def f():\n' + '    g()\n' * 70, '')
        self.assertIn('f() has 71 lines', self.refusals()[0])

    def test_a_waiver_admits_its_function(self):
        self.write('src/base/a.cc', body(80))
        self.waive('src/base/a.cc f 80 # a flat table')
        self.assertEqual(self.refusals(), [])

    def test_a_waiver_that_is_too_generous_is_refused(self):
        self.write('src/base/a.cc', body(75))
        self.waive('src/base/a.cc f 80 # a flat table')
        self.assertIn('lower its waiver', self.refusals()[0])

    def test_a_waiver_without_need_is_refused(self):
        self.waive('src/base/a.cc f 80 # a flat table')
        self.assertIn('needs its waiver no more', self.refusals()[0])

    def test_a_waiver_without_reason_is_refused(self):
        self.waive('src/base/a.cc f 80')
        self.assertRaises(ValueError, self.refusals)

    def test_the_list_of_waivers_may_only_shrink(self):
        key = ('a.cc', 'f')
        self.assertIn('only shrink', check_sizes.compare({key: 80}, {key: 80}, {})[0])
        self.assertIn('only shrink', check_sizes.compare({key: 80}, {key: 80}, {key: 79})[0])
        self.assertEqual(check_sizes.compare({key: 80}, {key: 80}, {key: 81}), [])


class Docs(Tree):
    def refusals(self):
        return check_docs.check(self.root, self.table)[0]

    def test_an_explained_tree_passes(self):
        self.explain('base')
        self.write('src/base/include/base/a.h',
                   'namespace weft {\n// Doubles.\nint f(int x);\nint f(long x);\n}\n')
        self.assertEqual(self.refusals(), [])

    def test_a_module_without_readme_is_refused(self):
        self.write('src/base/a.cc', '')
        self.assertIn('README.md: missing', self.refusals()[0])

    def test_a_file_without_opening_is_refused(self):
        self.explain('base')
        self.write('src/base/a.cc', 'int x;\n', '')
        self.assertIn('SPDX', self.refusals()[0])
        self.write('src/base/a.cc', 'int x;\n', OPENING.splitlines()[0] + '\n')
        self.assertIn('which question', self.refusals()[0])

    def test_bare_declarations_are_refused(self):
        self.explain('base')
        self.write('src/base/include/base/a.h',
                   '// A pair.\nclass Pair {\n public:\n  int first();\n\n  void set(int x) {}\n'
                   ' private:\n  void hidden();\n};\n')
        found = self.refusals()
        self.assertEqual(len(found), 2, found)
        self.assertIn('first', found[0])
        self.assertIn('set', found[1])


class Pages(Tree):
    """Links, indexes and the length of the first page."""

    def refusals(self):
        return check_docs.check_pages(self.root)

    def test_links_that_lead_somewhere_pass(self):
        self.write('README.md', '[a](docs/user/a.md#two-words-x) [b](https://x.org/b)\n', '')
        self.write('docs/user/a.md', '# One\n## Two `words` (x)\n[top](../../README.md) [here](#one)\n    [code](none)\n', '')
        self.assertEqual(self.refusals(), [])

    def test_a_link_to_nowhere_is_refused(self):
        self.write('README.md', '[a](a.md) [b](#there)\n', '')
        self.assertEqual(len(self.refusals()), 2)

    def test_a_page_outside_its_index_is_refused(self):
        self.write('docs/design/README.md', '', '')
        self.write('docs/design/a.md', '', '')
        self.assertIn('does not link it', self.refusals()[0])

    def test_a_long_first_page_is_refused(self):
        self.write('README.md', 'line\n' * 60, '')
        self.assertIn('60 lines', self.refusals()[0])


class Conformance(Tree):
    """Tests that tables of sentences name."""

    HEAD = '# A manual\n\n| sentence | tests |\n|---|---|\n'

    def refusals(self, rows, tests=('a.b', 'a.c')):
        self.write('docs/conformance/a.md', self.HEAD + rows, '')
        return check_conformance.check(self.root, set(tests))

    def test_rows_with_tests_or_a_reason_pass(self):
        self.assertEqual(self.refusals('| One. | `a.b`, `a.c` |\n| `See` also | none: a list |\n\nText: `d`.\n'), [])

    def test_a_test_that_does_not_exist_is_refused(self):
        self.assertEqual(self.refusals('| One. | `a.b`, `a.d` |\n'), ['docs/conformance/a.md:5: there is no test a.d'])

    def test_a_sentence_without_test_is_refused(self):
        for cell in ('', 'none', 'none: ', 'a.b'):
            self.assertIn('neither a test nor', self.refusals(f'| `a.b` | {cell} |\n')[0])

    def test_a_page_without_sentences_is_refused(self):
        self.assertEqual(self.refusals(''), ['docs/conformance/a.md: no table of tests'])

    def test_tests_of_a_configured_build_are_known(self):
        self.write('CMakeLists.txt', 'cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\nenable_testing()\n'
                   'add_test(NAME a.b COMMAND not_built)\n', '')
        subprocess.run(['cmake', '-S', self.root, '-B', self.root / 'b'], capture_output=True, check=True)
        self.assertEqual(check_conformance.tests_of(self.root / 'b'), {'a.b'})


class Names(Tree):
    """Files and functions that documents name."""

    def test_names_that_exist_pass(self):
        self.write('src/base/ring.h', 'class Ring {\n  void push();\n};\n')
        self.write('docs/a.md', '`Ring::push` (ring.h, base/ring.h), `*_test.cc`, <stdio.h>, `std::move`\n', '')
        self.assertEqual(check_names.check(self.root), [])

    def test_a_missing_file_or_function_is_refused(self):
        self.write('src/base/ring.h', 'class Ring {\n  void push();\n};\n')
        self.write('docs/a.md', '`Ring::pop` and os/ring.h\n', '')
        found = check_names.check(self.root)
        self.assertEqual(len(found), 2, found)
        self.assertIn('os/ring.h', found[0])
        self.assertIn('Ring::pop', found[1])


class Scanner(unittest.TestCase):
    def names(self, text):
        return [(e.kind, e.name) for e in cpp_scan.scan(text)]

    def test_functions_classes_and_prototypes_are_told_apart(self):
        self.assertEqual(self.names('''
            namespace a::b { template <class T> struct [[nodiscard]] S { int f() const noexcept; };
            enum class E : int { kA, kB }; auto g(int x) -> decltype(x) { if (x) { return 1; } }
            }'''), [('class', 'S'), ('prototype', 'f'), ('function', 'g')])

    def test_member_initializers_do_not_hide_the_body(self):
        self.assertEqual(self.names('X::X(int a) : a_{a}, b_(2), c_{} { call(); }\nvoid f() {}'),
                         [('function', 'X'), ('function', 'f')])

    def test_literals_and_comments_are_not_code(self):
        self.assertEqual(self.names('const char* s = "void f() {"; // void g() {\n'
                                    "char c = '{'; int big = 1'000; void h() {}"),
                         [('function', 'h')])

    def test_data_members_are_told_from_functions(self):
        self.assertEqual(self.names('''
            class C { int a = f(1), b[2]; std::function<void(int)> c; std::atomic<int> d{0};
              static constexpr int kE = g(2); using F = int; enum class G { kH }; class I;
              std::function<void(int)> j(int x = 1); bool operator<(const C& o) const;
              friend class K; std::array<int, sizeof(int)> l{}; void (*m)(int) = nullptr; };'''),
                         [('class', 'C'), ('member', 'a'), ('member', 'b'), ('member', 'c'),
                          ('member', 'd'), ('prototype', 'j'), ('prototype', 'operator<'),
                          ('friend', 'K'), ('member', 'l'), ('member', 'm')])

    def test_variables_and_lambdas_are_not_functions(self):
        self.assertEqual(self.names('int x{3}; auto l = [](int a) { return a; }; int y = f(2);'), [])


class Words(Tree):
    """Comments and documents that speak of persons."""

    def test_comments_literals_and_names_of_tests_are_searched(self):
        self.write('src/base/a.h', '// Tells whoever waits.\nconst char* a = "// nobody";\nint who = 0;\n'
                                   'TEST(Whole, WhoseHeadIsForNobody)\nTEST_F(Who, Waits)\n')
        self.assertEqual(check_words.check(self.root), [
            f'src/base/a.h:{line}: "{word}" names a person'
            for line, word in ((3, 'whoever'), (4, 'nobody'), (6, 'Nobody'), (7, 'Who'))])

    def test_documents_are_searched(self):
        for path in ('README.md', 'docs/user/a.md', 'src/base/README.md', 'tests/faults/README.md'):
            self.write(path, 'Nobody waits.\n', '')
        self.assertEqual(len(check_words.check(self.root)), 4)


class Subject(Tree):
    """Subjects of commits."""

    def judge(self, subject):
        self.write('src/frontend/fabric/a.cc', '')
        self.write('src/link_udp/a.cc', '')
        return check_subject.judge(subject, check_subject.names(self.root))

    def test_module_and_imperative_pass(self):
        for subject in ('link_udp: repeat a datagram', 'fabric, docs: bring the key back', 'all: take names',
                        'ci: ' + 'a' * (72 - len('ci: '))):
            self.assertEqual(self.judge(subject), [], subject)

    def test_one_character_too_many_is_refused(self):
        self.assertIn('73 characters', self.judge('ci: ' + 'a' * (73 - len('ci: ')))[0])

    def test_an_unknown_module_is_refused(self):
        self.assertIn('link_tcp is neither', self.judge('link_udp, link_tcp: send')[0])
        self.assertIn('module: imperative', self.judge('send more')[0])

    def test_a_statement_is_refused(self):
        for text in ('the table is read', 'Read the table', 'added a table', 'adding a table', ''):
            self.assertIn('must be an imperative', self.judge(f'docs: {text}')[0])
        self.assertIn('full stop', self.judge('docs: read the table.')[0])

    def test_words_for_persons_are_refused(self):
        self.assertIn('names a person', self.judge('docs: tell whoever waits')[0])

    def test_the_last_commit_is_judged(self):
        git = ['git', '-C', str(self.root), '-c', 'user.name=x', '-c', 'user.email=x@x']
        self.assertEqual(check_subject.check(self.root), [])
        subprocess.run(git + ['init', '-q'], check=True)
        subprocess.run(git + ['commit', '-q', '--allow-empty', '-m', 'A table'], check=True)
        self.assertEqual(len(check_subject.check(self.root)), 1)


class ModuleTable(Tree):
    """The table of src/README.md."""

    def setUp(self):
        super().setUp()
        self.declare([('top', 2, 'base,os'), ('base', 0, '')])
        for name in ('base', 'top'):
            self.write(f'src/{name}/a.cc', '')
            self.write(f'src/{name}/README.md', f'# {name}: does {name}\n', '')
        self.write(module_table.PAGE, f'# Modules\n{module_table.BEGIN}\n{module_table.END}\nEnd.\n', '')

    def test_the_table_follows_the_declarations_by_rank(self):
        self.assertIn('is old', module_table.check(self.root, self.table)[0])
        self.assertEqual(module_table.check(self.root, self.table, write=True), [])
        self.assertEqual(module_table.check(self.root, self.table), [])
        lines = (self.root / module_table.PAGE).read_text().splitlines()
        self.assertEqual(lines[4:6], ['| [base](base/README.md) | 0 | - | does base |',
                                      '| [top](top/README.md) | 2 | base, os | does top |'])
        self.assertEqual(lines[-1], 'End.')
        self.declare([('top', 3, 'base'), ('base', 0, '')])
        self.assertIn('is old', module_table.check(self.root, self.table)[0])

    def test_a_module_without_a_responsibility_is_refused(self):
        self.write('src/top/README.md', '# The top\n', '')
        self.assertIn('what it is responsible for', module_table.check(self.root, self.table)[0])

    def test_a_page_without_markers_is_refused(self):
        self.write(module_table.PAGE, '# Modules\n', '')
        self.assertIn('lacks the markers', module_table.check(self.root, self.table)[0])


class Types(Tree):
    """Type names with several meanings."""

    def test_a_name_of_two_modules_is_found(self):
        self.write('src/base/include/base/a.h', 'struct Drop final {\n};\n')
        self.write('src/os/b.cc', 'class B {\n  enum class Drop : int { kOne };\n};\n')
        self.write('src/top/include/top/c.h', 'struct Drop;\ntemplate <class Drop>\nvoid f(struct Drop& d);\n')
        self.write('src/top/for_tests.h', 'struct Drop {\n};\n')
        self.write('src/top/c_test.cc', '#include "for_tests.h"\nstruct Drop {\n};\n')
        self.assertEqual(check_types.measure(self.root), {'Drop': {'base', 'os'}})
        self.assertEqual(len(check_types.check(self.root)), 1)

    def test_aliases_count_and_comments_do_not(self):
        self.write('src/base/include/base/a.h', 'using Time = int;\n// struct Other {\n')
        self.write('src/os/include/os/b.h', 'using Time = long;\nstruct Other {\n};\n')
        self.assertEqual(check_types.measure(self.root), {'Time': {'base', 'os'}})


def a_class(functions, members, more=''):
    return ('class A {\n A();\n A(int x);\n A(const A&) = delete;\n' +
            '  void f() { int local; }\n' * (functions - 2) + '  int a_ = 0;\n' * members +
            f'  class B {{ int b_; }};\n{more}}};\n')


class Classes(Tree):
    """Large classes, and friends of other files."""

    PATH = 'src/base/include/base/a.h'

    def test_a_class_of_usual_size_is_not_mentioned(self):
        self.write(self.PATH, a_class(35, 20))
        self.write('src/base/a_test.cc', a_class(36, 21))
        self.write('src/base/for_tests.h', a_class(36, 21))
        self.assertEqual(check_classes.check(self.root), ([], []))

    def test_a_large_class_is_a_hint_and_no_failure(self):
        self.write(self.PATH, a_class(36, 0))
        self.write('src/base/a.cc', '#include "private.h"\n')
        self.write('src/base/private.h', a_class(2, 21))
        self.assertEqual(check_classes.check(self.root), (
            [f'{self.PATH}: A has 36 functions and 0 data members',
             'src/base/private.h: A has 2 functions and 21 data members'], []))

    def test_a_friend_of_another_file_is_refused(self):
        self.write(self.PATH, a_class(2, 0, 'friend class D;\nfriend class E;\n'
                                      'friend bool operator==(A, A) = default;\n') +
                   'class D {\n int d_;\n};\n')
        self.assertEqual(check_classes.check(self.root),
                         ([], [f'{self.PATH}: A has a friend in another file: E']))

    def test_product_code_is_counted_without_tests_comments_and_blanks(self):
        self.write('src/base/a.cc', '#include "b.h"\n\nconst char* a =\n    "// text";  // more\n')
        self.write('src/base/b.h', 'int b;\n')
        self.write('src/base/a_test.cc', 'int t;\n')
        self.write('src/frontend/fabric/f.cc', '/* one\n two */\nint f;\n')
        self.assertEqual(product.counts(self.root), {'base': 4, 'frontend/fabric': 1})


class Cycles(Tree):
    """Cycles of includes between the pairs of a module."""

    def cycle(self, pairs):
        """Writes pairs x0 to xN, each of which includes the next one: in its header, or in its source."""
        for at in range(pairs):
            include = f'#include "base/x{(at + 1) % pairs}.h"\n'
            self.write(f'src/base/include/base/x{at}.h', include * (at % 2))
            self.write(f'src/base/x{at}.cc', f'#include "base/x{at}.h"\n' + include * (1 - at % 2))

    def waive(self, line):
        self.write(check_cycles.WAIVERS, line + '\n', '')

    def refusals(self):
        return check_cycles.check(self.root, check_cycles.measure(self.root))

    def test_includes_in_one_direction_are_no_cycle(self):
        self.write('src/base/a.h', '#include "b.h"\n')
        self.write('src/base/a.cc', '#include "a.h"\n#include "b.h"\n#include <os/c.h>\n')
        self.write('src/base/b.h', '// #include "a.h"\n')
        self.write('src/base/b_test.cc', '#include "a.h"\n#include "b.h"\n')
        self.write('src/os/include/os/c.h', '')
        self.assertEqual(check_cycles.measure(self.root), {'base': [], 'os': []})

    def test_header_and_source_are_one_pair(self):
        self.cycle(3)
        self.write('src/frontend/fabric/a.cc', '#include "a.h"\n#include "b.h"\n')
        self.write('src/frontend/fabric/a.h', '')
        self.write('src/frontend/fabric/b.h', '#include "a.h"\n')
        self.assertEqual(check_cycles.measure(self.root),
                         {'base': [['x0', 'x1', 'x2']], 'frontend/fabric': [['a', 'b']]})
        self.assertEqual(self.refusals(), [])

    def test_a_cycle_of_four_pairs_is_refused(self):
        self.cycle(4)
        self.assertEqual(self.refusals(), [
            'src/base: a cycle of 4 pairs, the limit is 3: x0, x1, x2, x3'])

    def test_a_waiver_admits_the_cycle_of_its_module_and_no_larger_one(self):
        self.cycle(5)
        self.waive('base 5 # why')
        self.assertEqual(self.refusals(), [])
        self.waive('base 4 # why')
        self.assertIn('the limit is 4', self.refusals()[0])
        self.waive('base 6 # why')
        self.assertIn('lower its waiver from 6', self.refusals()[0])
        self.waive('base 5')
        self.assertRaises(ValueError, self.refusals)

    def test_a_waiver_without_need_is_refused(self):
        self.cycle(3)
        self.waive('base 3 # why\ngone 7 # why')
        found = self.refusals()
        self.assertEqual(len(found), 2, found)
        self.assertIn('src/base needs its waiver no more', found[0])
        self.assertIn('src/gone needs its waiver no more', found[1])

    def test_the_list_of_waivers_may_only_shrink(self):
        found = {'base': [['a', 'b', 'c', 'd']]}
        self.assertIn('only shrink', check_cycles.compare(found, {'base': 4}, {})[0])
        self.assertEqual(check_cycles.compare(found, {'base': 4}, {'base': 5}), [])


class Sentences(Tree):
    """Sentences of comments that begin with What, Of or That."""

    def counts(self, text):
        self.write(check_sentences.COUNTS, text, '')

    def refusals(self):
        return check_sentences.check(self.root)

    def test_questions_and_other_sentences_pass(self):
        self.write('src/base/a.h', '// What is a queue? fi_cq(3)\n// The bound. The port\n// of a peer, 4.0 What.\n'
                                   'int a;  // of the peer\nauto b = "// What came in.";\nint What;\n')
        self.assertEqual(self.refusals(), [])

    def test_the_beginning_of_a_comment_and_of_its_later_sentences_count(self):
        self.write('src/base/a.h', '// What came in.\nint a;  // Of the peer\n\n'
                                   '// One. That\n// is lost! What is it? Of it.\n//\n// That\n', OPENING)
        self.assertEqual(check_sentences.sentences((self.root / 'src/base/a.h').read_text()), [
            (2, 'What came in.'), (4, 'Of the peer'), (6, 'That is lost!'), (6, 'Of it.'), (9, 'That')])
        self.assertIn('src/base/a.h: 5 sentences begin with What, Of or That, the limit is 0', self.refusals())

    def test_the_counts_admit_the_sentences_of_their_file_and_no_more(self):
        self.write('tests/a.cc', '// That one.\n')
        self.counts('# why\ntests/a.cc 1\n')
        self.assertEqual(self.refusals(), [])
        self.write('tests/a.cc', '// That one. Of it.\n')
        self.assertIn('2 sentences begin with What, Of or That, the limit is 1', self.refusals()[0])
        self.write('tests/a.cc', '')
        self.assertIn('has 0 of 1 sentences', self.refusals()[0])

    def test_the_sum_of_the_counts_may_only_shrink(self):
        found = {'b.h': [(3, 'That.'), (5, 'That.')]}
        self.assertIn('only shrink', check_sentences.compare(found, {'b.h': 2}, {'a.h': 1})[0])
        self.assertEqual(check_sentences.compare(found, {'b.h': 2}, {'a.h': 2}), [])

    def test_the_list_is_made_of_what_there_is(self):
        self.write('src/base/a.h', '// That one.\n')
        self.counts('src/base/gone.h 1\n')
        self.assertEqual(check_sentences.check(self.root, write=True), [])
        self.assertEqual(check_sentences.parse((self.root / check_sentences.COUNTS).read_text()),
                         {'src/base/a.h': 1})


if __name__ == '__main__':
    unittest.main()
