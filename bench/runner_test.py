#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does the runner ask for each figure as often as it should, and show what it got?
import argparse
import math
import pathlib
import tempfile
import unittest
import unittest.mock

from runner import bounded, cases, contestants, document, perftest, rounds, tables, ways
from runner.cases import FULL, PLANS, Case
from runner.targets import BARS, GOALS, TARGETS
from runner.ucx import Ucx

LATENCY = Case("tagged", "latency")
MANY_PEERS = Case("tagged", "latency", peers=64)
MEMORY = Case("tagged", "private_memory", peers=64)
RATE = Case("tagged", "rate", 64)
EVERY_PLAN = [plan for both in PLANS.values() for plan in both]


class Scripted:
    """A contestant that says what it was told to say, and notes what it was asked."""

    def __init__(self, name, *outcomes):
        self.name = name
        self.asked = []
        self._outcomes = list(outcomes)

    def supports(self, case):
        return True

    def run(self, case):
        self.asked.append(case)
        outcome = self._outcomes[min(len(self.asked), len(self._outcomes)) - 1]
        if outcome is None:
            raise bounded.Failed("as scripted")
        return outcome

    def figure(self, case, outcome):
        return outcome[case.metric] if isinstance(outcome, dict) else outcome


def results_of(cases_asked, contestants, count):
    return rounds.run(cases_asked, contestants, count, budget=math.inf)[0]


class RunsAreCounted(unittest.TestCase):
    def test_the_median_of_all_rounds_counts(self):
        [result] = results_of([LATENCY], [Scripted("weft", 3, 1, 2)], 3)
        self.assertEqual(result.median("weft"), 2)

    def test_no_round_is_begun_that_would_end_too_late(self):
        for budget, wanted in ((math.inf, 3), (0, 1)):
            contestant = Scripted("weft", 1)
            [result], number = rounds.run([LATENCY], [contestant], 3, budget)
            self.assertEqual((number, len(result.values["weft"])), (wanted, wanted))

    def test_one_run_gives_the_figures_of_several_cases(self):
        contestant = Scripted("shm", {"latency": 1, "private_memory": 4})
        time, memory = results_of([MANY_PEERS, MEMORY], [contestant], 2)
        self.assertEqual(contestant.asked, [MANY_PEERS, MANY_PEERS])
        self.assertEqual((time.median("shm"), memory.median("shm")), (1, 4))

    def test_a_contestant_far_behind_is_measured_once(self):
        best, far, weft = Scripted("shm", 2), Scripted("udp", 7), Scripted("weft", 7)
        [result] = results_of([LATENCY], [best, far, weft], 3)
        self.assertEqual([len(each.asked) for each in (best, far, weft)], [3, 1, 3])
        self.assertEqual(result.median("udp"), 7)

    def test_far_behind_in_one_figure_of_a_run_is_not_enough(self):
        good = Scripted("shm", {"latency": 1, "private_memory": 4})
        mixed = Scripted("net", {"latency": 9, "private_memory": 4})
        results_of([MANY_PEERS, MEMORY], [good, mixed], 3)
        self.assertEqual(len(mixed.asked), 3)

    def test_a_floor_leaves_no_contestant_behind(self):
        verbs, shm, bare = Scripted("verbs", 9), Scripted("shm", 8), Scripted("bare", 1)
        results_of([LATENCY], [verbs, shm, bare], 3)
        self.assertEqual([len(each.asked) for each in (verbs, shm, bare)], [3, 3, 3])

    def test_queue_pairs_and_floors_are_always_measured(self):
        best, verbs, bare = Scripted("shm", 1), Scripted("verbs", 9), Scripted("bare", 9)
        results_of([LATENCY], [best, verbs, bare], 3)
        self.assertEqual([len(each.asked) for each in (verbs, bare)], [3, 3])

    def test_higher_rates_are_better(self):
        slow, fast = Scripted("udp", 1), Scripted("shm", 4)
        results_of([RATE], [slow, fast], 3)
        self.assertEqual([len(slow.asked), len(fast.asked)], [1, 3])

    def test_a_failure_leaves_no_figure(self):
        [result] = results_of([LATENCY], [Scripted("shm", 1, None, 1)], 3)
        self.assertIsNone(result.median("shm"))

    def test_a_run_that_failed_is_not_made_again_for_its_other_figures(self):
        contestant = Scripted("tcp", None)
        results = results_of([MANY_PEERS, MEMORY], [contestant], 1)
        self.assertEqual(len(contestant.asked), 1)
        self.assertTrue(all(result.failures["tcp"] for result in results))

    def test_a_contestant_that_fails_twice_is_not_run_in_that_table_again(self):
        contestant = Scripted("shm", None)
        in_table = [Case("tagged", "latency", size) for size in (8, 64, 256)]
        results = results_of([*in_table, RATE], [contestant], 1)
        self.assertEqual(contestant.asked, [*in_table[:2], RATE])
        self.assertTrue(all(result.failures["shm"] for result in results))


class PerftestIsAskedForEachCase(unittest.TestCase):
    def words(self, way, case):
        """The words of the client, and whether it was bound to a core."""
        asked = []
        device = perftest.Perftest("build", way, 20, 0.2, (3, 5))
        device._finish = lambda process: ""
        with unittest.mock.patch.object(perftest, "await_listener"), \
                unittest.mock.patch.object(bounded, "start", lambda words, environment: asked.append((words, environment))), \
                unittest.mock.patch.object(bounded, "end"):
            device.run(case)
        words, environment = asked[-1]
        return " ".join(words), environment

    def test_events_and_lists(self):
        way = ways.beside_verbs_shm()
        self.assertRegex(self.words(way, Case("tagged", "event_latency"))[0], "ib_send_lat .* -s 8 -I 64 -e ")
        words, _ = self.words(way, Case("rma_write", "list_rate", 64))
        self.assertRegex(words, "ib_write_bw .* -s 64 -l 16 ")
        self.assertEqual(int(words.split(" -n ")[1].split()[0]) % 16, 0)

    def test_the_way_says_which_links_are_used(self):
        for way, link in ((ways.beside_verbs(), "udp"), (ways.beside_verbs_shm(), "shm")):
            self.assertEqual(self.words(way, LATENCY)[1]["FI_WEFT_LINKS"], link)

    def test_a_target_that_watches_memory_is_bound_unless_packets_arrive(self):
        for way, bound in ((ways.beside_verbs(), False), (ways.beside_verbs_shm(), True)):
            self.assertEqual("taskset" in self.words(way, Case("rma_write", "poll_latency"))[0], bound)


class ContestantsAreFound(unittest.TestCase):
    def test_another_ucx_is_measured_if_it_is_named(self):
        for path, wanted in ((None, []), ("/opt/ucx/bin/ucx_perftest", ["/opt/ucx/bin/ucx_info"])):
            options = argparse.Namespace(providers=["other UCX"], ucx=path, time_limit=20, seconds=0.2, cores=None)
            with unittest.mock.patch.object(contestants.Bench, "listed", return_value=set()):
                found = contestants.find("build", options, ways.Way())
            self.assertEqual([each.info for each in found], wanted)


class CasesSayHowTheyAreMeasured(unittest.TestCase):
    def test_every_word_reaches_the_program(self):
        arguments = " ".join(Case("msg", "shared_memory", 64, "msg", "multi", "counters", 8,
                                  "delivery").arguments)
        self.assertEqual(arguments, "--operation msg --metric latency --size 64 --endpoint msg "
                                    "--receive multi --count-by counters --peers 8 "
                                    "--completion delivery")

    def test_sizes_that_do_not_apply_are_not_named(self):
        connect, mesh = (case for case in cases.connections(64, 8) if case.metric in ("connect", "mesh"))
        self.assertIn("--connections 64", " ".join(connect.arguments))
        self.assertNotIn("--processes", connect.arguments)
        self.assertIn("--processes 8", " ".join(mesh.arguments))
        self.assertEqual((connect.row, mesh.row), ("64 connections", "8 processes"))

    def test_one_run_gives_all_figures_of_connections(self):
        *of_connections, mesh = cases.connections(64, 8)
        self.assertEqual(len({case.run for case in of_connections}), 1)
        self.assertNotEqual(mesh.run, of_connections[0].run)

    def test_threads_of_one_process_send_to_themselves(self):
        alone = Case("tagged", "rate", 64, threading="safe", threads=2).arguments
        self.assertIn("--threading safe --threads 2", " ".join(alone))
        self.assertIn("--self", alone)
        self.assertNotIn("--self", Case("tagged", "rate", 64, threading="safe").arguments)
        self.assertNotIn("--threading", Case("tagged", "rate", 64).arguments)

    def test_a_part_of_the_plan_is_found_by_its_title(self):
        chosen = cases.cases("network", False, "connect")
        self.assertEqual({case.run.metric for case in chosen}, {"connect", "mesh"})
        self.assertEqual(cases.cases("network", False), PLANS["network"][0])

    def test_no_case_is_there_twice(self):
        for plan in EVERY_PLAN:
            self.assertEqual(len(set(plan)), len(plan))

    def test_what_targets_are_about_is_measured(self):
        wanted = {target.case for target in TARGETS} | {bar.case for bar in BARS}
        wanted |= {target.itself_in for target in TARGETS if target.itself_in}
        self.assertLessEqual(wanted, set(FULL))

    def test_the_cases_of_goals_are_measured_within_the_host(self):
        wanted = {goal.case for goal in GOALS} | {goal.in_case for goal in GOALS if goal.in_case}
        self.assertEqual(wanted, set(PLANS["verbs-shm"][0]))
        self.assertLessEqual(set(PLANS["verbs-shm"][1]), wanted)

    def test_ucx_is_asked_only_for_what_it_can(self):
        asked = [case for case in FULL if Ucx.supports(None, case)]
        self.assertIn(LATENCY, asked)
        self.assertTrue(all(case == Case(case.operation, case.metric, case.size)
                            for case in asked))

    def test_the_rows_of_a_table_differ(self):
        for plan in EVERY_PLAN:
            rows = [(case.table, case.row) for case in plan]
            self.assertEqual(len(set(rows)), len(rows))

    def test_tables_have_titles_of_their_own(self):
        for plan in EVERY_PLAN:
            tables_of_plan = {case.table for case in plan}
            self.assertEqual(len({case.title for case in plan}), len(tables_of_plan))

    def test_sizes_and_peers_name_rows(self):
        self.assertEqual([Case("msg", "rate", 64 * cases.KIB).row, MANY_PEERS.row,
                          Case("tagged", "latency", peers=1).row], ["64 KiB", "64 peers", "1 peer"])


NETWORK_RUN = {"date": "2026-01-01", "cpu": "x", "cores": 2, "kernel": "6", "libfabric": "1.17",
               "ucx": "1", "load": 0.0, "rounds": 1, "contestants": ["weft", "tcp"],
               "way": "network", "options": "--over veth", "over": "between hosts",
               "real_time": False, "packets": 1000, "lost": 9}


def result_of(case, **figures):
    return rounds.Result(case, {name: [figure] for name, figure in figures.items()})


def last_goal(*results):
    """The last row of the table of goals."""
    return tables.goals_table(results).splitlines()[-1]


LATENCY_TABLE = """
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 8       20000          8.82          112.26       9.86    	       11.61       	3.37   		30.78   		55.20
"""
RATE_TABLE = """
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      5000             0.00               1000.00 		   0.016000
"""


class PerftestIsRead(unittest.TestCase):
    def test_the_median_of_a_latency(self):
        self.assertEqual(perftest.figure(Case("msg", "latency", endpoint="msg"), LATENCY_TABLE), 9.86)

    def test_rate_and_bandwidth(self):
        self.assertEqual(perftest.figure(Case("msg", "rate", endpoint="msg"), RATE_TABLE), 0.016)
        self.assertAlmostEqual(perftest.figure(Case("msg", "bandwidth", endpoint="msg"), RATE_TABLE), 1.048576)

    def test_without_a_table_there_is_no_figure(self):
        with self.assertRaises(bounded.Failed):
            perftest.figure(Case("msg", "rate", endpoint="msg"), "Unable to connect")

    def test_a_share_of_connections_is_judged(self):
        case = Case("msg", "rate", 64, endpoint="msg")
        for share, verdict in ((0.95, "yes"), (0.85, "no")):
            row = tables.verbs_table([result_of(case, weft=1.0, verbs=share)]).splitlines()[-1]
            self.assertTrue(row.endswith(f"| {share:.2f} | {verdict} |"), row)


class FiguresAreShown(unittest.TestCase):
    def test_models_are_held_against_one_thread_in_a_domain(self):
        one = Case("tagged", "rate", 64, threading="domain", threads=1)
        safe, two = (Case("tagged", "rate", 64, threading="safe", threads=count) for count in (1, 2))
        text = tables.threads_table([result_of(one, weft=8), result_of(safe, weft=6), result_of(two, weft=9)])
        ends = [line.rpartition("thread")[2] for line in text.splitlines()[-2:]]
        self.assertEqual(ends, [" | 8.00 | 0.75 |", " | 6.00 | 1.50 |"])

    def test_weft_is_held_against_the_best_of_the_others(self):
        text = tables.figures_table([result_of(LATENCY, weft=0.2, shm=0.6, net=3)],
                                    ["weft", "shm", "net", "tcp"])
        self.assertEqual(text.splitlines()[-1],
                         "| 8 B | 0.200 | 0.600 | 3.00 | - | 3.00 | shm |")

    def test_a_floor_is_no_reference(self):
        text = tables.figures_table([result_of(LATENCY, weft=0.3, shm=0.6, bare=0.1)], ["weft", "shm", "bare"])
        self.assertEqual(text.splitlines()[-1], "| 8 B | 0.300 | 0.600 | 0.100 | 2.00 | shm |")

    def test_a_goal_is_met_by_its_ratio_or_by_its_floor(self):
        figures = {(1.0, 0.5): "| 1.10 (UCX) | 1.10 | 1.10 | 0.500 | 0.50 | yes |", (2.0, 1.7): "| 1.10 (UCX) | 1.10 | 0.55 | 1.70 | 0.85 | yes |",
                   (2.0, 1.5): "| 1.10 (UCX) | 1.10 | 0.55 | 1.50 | 0.75 | no |"}
        for (verbs, bare), wanted in figures.items():
            with self.subTest(verbs=verbs, bare=bare):
                self.assertTrue(last_goal(result_of(LATENCY, weft=0.1, verbs=verbs, UCX=1.1, bare=bare)).endswith(wanted))

    def test_the_better_ucx_counts(self):
        self.assertIn("| 1.00 (other UCX) |", last_goal(result_of(LATENCY, verbs=1.0, UCX=1.1, **{"other UCX": 1.0})))

    def test_one_idle_queue_pair_is_the_floor_of_many(self):
        one, many = (Case("poll", "poll", endpoint="idle", queue_pairs=count) for count in (1, 1000))
        self.assertTrue(last_goal(result_of(one, verbs=90), result_of(many, verbs=100)).endswith("| 90.00 (verbs) | 0.83 | 0.90 | 90.00 | 0.90 | yes |"))

    def test_a_goal_without_figures_is_not_judged(self):
        self.assertTrue(last_goal(result_of(LATENCY, verbs=1.0)).endswith("| 1.00 | - | 1.10 | - | - | - | - |"))
        failed = result_of(LATENCY, UCX=1.1, bare=0.5)
        failed.failures["verbs"] = "as scripted"
        self.assertTrue(last_goal(failed).endswith("| failed | 1.10 (UCX) | 1.10 | - | 0.500 | - | - |"))

    def test_nothing_is_no_reference(self):
        text = tables.figures_table([result_of(MEMORY, weft=4, net=0)], ["weft", "net"])
        self.assertEqual(text.splitlines()[-1], "| 64 peers | 4.00 | 0 | - | net |")

    def test_a_target_of_weft_against_itself(self):
        results = [result_of(Case("tagged", "latency", peers=1), weft=1.0, shm=0.5),
                   result_of(MANY_PEERS, weft=1.2, shm=0.5)]
        [row] = [line for line in tables.targets_table(results).splitlines() if "63 idle" in line]
        self.assertTrue(row.endswith("| 1.20 | 1.00 (weft) | 0.91 | 0.83 | no |"), row)

    def test_what_was_kept_gives_the_same_report(self):
        run = {"date": "2026-01-01", "cpu": "x", "cores": 2, "kernel": "6", "libfabric": "1.17",
               "ucx": "1", "load": 0.0, "rounds": 1, "contestants": ["weft", "shm"]}
        results = [result_of(LATENCY, weft=1, shm=2), result_of(MEMORY, weft=1, shm=2)]
        results[0].failures["shm"] = "as scripted"
        kept = document.from_json(document.to_json(run, results))
        self.assertEqual(document.report(*kept), document.report(run, results))

    def test_a_failure_is_told_from_what_cannot_be_done(self):
        result = result_of(LATENCY, weft=1)
        result.failures["udp"] = "no end within 20 s"
        row = tables.figures_table([result], ["weft", "udp", "net"]).splitlines()[-1]
        self.assertEqual(row, "| 8 B | 1.00 | failed | - | - | - |")

    def test_the_report_says_how_far_rounds_lie_apart(self):
        results = [rounds.Result(LATENCY, {"weft": [10, 9, 11], "shm": [5]}), result_of(RATE, weft=1)]
        self.assertEqual(tables.scatter(results), [0.2])
        self.assertIn("differ by more than 20%", document.conditions(NETWORK_RUN, results))

    def test_the_report_of_a_network_says_what_the_wire_did(self):
        text = document.report(NETWORK_RUN, [result_of(LATENCY, weft=1, tcp=2)])
        self.assertIn("between hosts", text)
        self.assertIn("1000 packets crossed the wire, 9 were lost", text)
        self.assertNotIn("Targets", text)

    def test_the_section_is_replaced_and_nothing_else(self):
        host, veth = document.begin_marker(""), document.begin_marker("--over veth")
        text = f"above\n{host}\nold\n{document.END}\nbetween\n{veth}\nold\n{document.END}\nbelow\n"
        for options, marker in (("", host), ("--over veth", veth)):
            with self.subTest(options), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "page.md")
                path.write_text(text)
                document.write_section(path, "new\n", options)
                self.assertEqual(path.read_text(),
                                 text.replace(f"{marker}\nold\n", f"{marker}\n\nnew\n\n"))


if __name__ == "__main__":
    unittest.main(buffer=True)
