# SPDX-License-Identifier: BSD-2-Clause
"""Does the end of a CI log name the failed test and show where the sanitizer's report begins?

run: python3 -m unittest discover -s tools/ci -p '*_test.py'
"""
import unittest

import failures


class Excerpt(unittest.TestCase):
    def test_a_short_output_is_kept_whole(self):
        self.assertEqual(failures.excerpt("one\ntwo"), ["one", "two"])

    def test_of_a_long_output_the_end_is_kept(self):
        output = [f"line {number}" for number in range(1000)]
        self.assertEqual(failures.excerpt("\n".join(output)), output[-failures.LINES:])

    def test_the_begin_of_a_report_is_kept_with_the_line_that_names_the_test(self):
        report = ["[ RUN      ] Suite.Name", "=====", "==7==ERROR: AddressSanitizer: heap-use-after-free"]
        stacks = [f"#{number} frame" for number in range(500)]
        kept = failures.excerpt("\n".join(["before"] * 100 + report + stacks))
        self.assertEqual(kept[:2 + len(report)], ["before"] * 2 + report)
        self.assertIn("[...]", kept)
        self.assertEqual(kept[-failures.LINES:], stacks[-failures.LINES:])

    def test_a_report_just_before_the_end_is_kept_in_one_piece(self):
        output = ["x.cc:1: runtime error: overflow"] + [str(number) for number in range(failures.LINES)]
        self.assertEqual(failures.excerpt("\n".join(output)), output)

    def test_tests_that_passed_are_left_out_and_the_one_that_hangs_is_named(self):
        passed = ["[----------] 2 tests from Suite", "[ RUN      ] Suite.Passes", "noise", "[       OK ] Suite.Passes (3 ms)"]
        broken = ["[ RUN      ] Suite.Breaks", "x_test.cc:7: Failure", "[  FAILED  ] Suite.Breaks (0 ms)"]
        hanging = ["[ RUN      ] Suite.Hangs"]
        self.assertEqual(failures.excerpt("\n".join(["begin"] + passed * 40 + broken + passed * 40 + hanging)), ["begin"] + broken + hanging)


if __name__ == "__main__":
    unittest.main()
