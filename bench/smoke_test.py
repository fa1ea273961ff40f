#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does weft_bench measure in every mode, with data that it has compared, and refuse what it cannot?
"""usage: smoke_test.py BUILD_DIR

Asks for no speed: few operations, and of the figures only that they are there."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

from runner.cases import PLANS

LIMIT = 120
ITERATIONS = 600
REPETITIONS = 2
RUN = pathlib.Path(__file__).resolve().parent / "run.py"
SKIPPED = 77  # where no namespaces may be made
MESH = int(os.environ.get("WEFT_SMOKE_MESH", "5"))  # processes that connect to each other at once


def program(build):
    return str(build / "bin" / "weft_bench")


def environment(build):
    """Of a process that finds weft, whatever the caller's own environment chooses."""
    kept = {name: value for name, value in os.environ.items() if name != "FI_PROVIDER"}
    return kept | {"FI_PROVIDER_PATH": str(build / "lib")}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Bench(unittest.TestCase):
    build = None

    def start(self, *arguments):
        command = [program(self.build), "--provider", "weft", "--iterations", str(ITERATIONS),
                   "--repetitions", str(REPETITIONS), "--time-limit", str(LIMIT), *arguments]
        return subprocess.Popen(command, env=environment(self.build), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, process):
        """(exit status, output, errors)"""
        output, errors = process.communicate(timeout=LIMIT)
        return process.returncode, output, errors

    def measure(self, *arguments):
        return self.judge(self.finish(self.start(*arguments)))

    def meet(self, common, of_server, of_client):
        """The client of two processes that were started apart."""
        port = free_port()
        server = self.start(*common, *of_server, "--listen", port)
        client = self.start(*common, *of_client, "--connect", f"127.0.0.1:{port}")
        outcome = self.finish(client)
        self.finish(server)
        return outcome

    def judge(self, outcome):
        """What was printed, after the checks that hold for every measurement."""
        status, output, errors = outcome
        self.assertEqual(status, 0, errors)
        said = json.loads(output)
        self.assertEqual(said["provider"], "weft")
        self.assertEqual(said["iterations"], ITERATIONS)
        self.assertIs(said["verified"], True)
        self.assertEqual(len(said["samples"]), REPETITIONS)
        self.assertTrue(all(each > 0 for each in said["samples"]))
        return said

    def assert_refused(self, word, *arguments):
        status, output, errors = self.finish(self.start(*arguments))
        self.assertNotEqual(status, 0)
        self.assertEqual(output, "")
        self.assertIn(word, errors)


class EveryModeMeasures(Bench):
    def test_messages_and_remote_accesses(self):
        for operation in ("msg", "tagged", "rma_write", "rma_read", "fetch_add", "compare_swap"):
            with self.subTest(operation):
                self.assertEqual(self.measure("--operation", operation)["unit"], "us")

    def test_a_stream_over_a_connection(self):
        said = self.measure("--endpoint", "msg", "--metric", "bandwidth", "--size", "65536")
        self.assertEqual((said["endpoint"], said["unit"]), ("msg", "GB/s"))

    def test_datagrams(self):
        for metric in ("latency", "rate"):
            with self.subTest(metric):
                said = self.measure("--endpoint", "dgram", "--operation", "msg", "--metric", metric)
                self.assertIn("lost", said)

    def test_datagrams_that_are_lost(self):
        """On one core the client sends a whole window before the server can receive its few. The ring and
        the endpoint keep about 350 of that length."""
        core = str(min(os.sched_getaffinity(0)))
        common = ("--endpoint", "dgram", "--operation", "msg", "--metric", "rate", "--size", "1000",
                  "--cores", f"{core},{core}")
        said = self.judge(self.meet(common, ("--window", "4"), ("--window", "1024")))
        self.assertGreater(said["lost"], 0)
        self.assertLess(said["lost"], ITERATIONS * REPETITIONS)

    def test_buffers_that_take_many_messages(self):
        for endpoint in ("rdm", "msg"):
            with self.subTest(endpoint):
                said = self.measure("--receive", "multi", "--operation", "msg", "--metric", "rate",
                                    "--size", "65536", "--endpoint", endpoint)
                self.assertEqual(said["receive"], "multi")

    def test_counters_in_place_of_a_queue(self):
        for operation in ("tagged", "rma_write"):
            with self.subTest(operation):
                said = self.measure("--count-by", "counters", "--operation", operation)
                self.assertEqual(said["count_by"], "counters")

    def test_peers_that_are_idle(self):
        for endpoint in ("rdm", "msg"):
            with self.subTest(endpoint):
                said = self.measure("--peers", "4", "--endpoint", endpoint)
                self.assertEqual(said["peers"], 4)
                self.assertIn("private_kib_per_peer", said)
                self.assertIn("shared_kib_per_peer", said)

    def test_the_first_message_takes_some_time(self):
        self.assertGreater(self.measure()["first_message_ms"], 0)

    def test_one_thread_with_itself(self):
        for metric in ("latency", "rate"):
            with self.subTest(metric):
                self.measure("--self", "--metric", metric)

    def test_one_thread_under_each_threading_model(self):
        for model in ("safe", "fid", "endpoint", "completion", "domain"):
            with self.subTest(model):
                self.assertEqual(self.measure("--threading", model)["threading"], model)

    def test_threads_with_endpoints_of_their_own(self):
        for model in ("safe", "completion"):
            with self.subTest(model):
                said = self.measure("--self", "--threads", "3", "--threading", model, "--metric", "rate")
                self.assertEqual((said["threads"], said["unit"]), (3, "M/s"))


class ConnectionsAreMeasured(Bench):
    def run_bench(self, *arguments, link="shm", before=()):
        command = [*before, program(self.build), "--provider", "weft", "--endpoint", "msg", "--operation", "msg",
                   "--time-limit", str(LIMIT), *arguments]
        return subprocess.run(command, env=environment(self.build) | {"FI_WEFT_LINKS": link}, text=True,
                              capture_output=True, timeout=LIMIT, check=False)

    def connect(self, *arguments, link):
        """What was printed of a measurement of connections."""
        ended = self.run_bench(*arguments, link=link)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        said = json.loads(ended.stdout)
        self.assertIs(said["verified"], True)
        self.assertGreater(said["value"], 0)
        return said

    def test_of_one_process_over_each_link(self):
        for link in ("shm", "udp"):
            with self.subTest(link):
                said = self.connect("--metric", "connect", "--connections", "8", "--under-way", "4",
                                    link=link)
                self.assertEqual((said["connections"], said["unit"]), (8, "us"))
                for name in ("first_ms", "median_ms", "slow_ms", "last_to_first_quarter"):
                    self.assertGreater(said[name], 0)
                for name in ("private_kib", "shared_kib", "descriptors", "threads"):
                    self.assertIn(name + "_per_connection", said)

    def test_of_many_processes_over_each_link(self):
        for link in ("shm", "udp"):
            with self.subTest(link):
                said = self.connect("--metric", "mesh", "--processes", str(MESH), link=link)
                self.assertEqual(said["reach"], MESH // 2)
                self.assertEqual((said["connections"], said["unit"]), (MESH * said["reach"], "ms"))

    def test_too_few_descriptors_are_named(self):
        few = ("sh", "-c", "ulimit -n 10 && exec \"$@\"", "sh")
        ended = self.run_bench("--metric", "connect", "--connections", "64", link="udp", before=few)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("10 descriptors", ended.stderr)


class EveryWayIsMeasured(Bench):
    """By run.py, which is what makes the wires."""

    def run_all(self, *arguments, contestant="weft"):
        """What run.py kept of that one's figures, every one of which must be there."""
        with tempfile.TemporaryDirectory() as folder:
            kept = pathlib.Path(folder, "kept.json")
            ended = subprocess.run(
                [sys.executable, str(RUN), str(self.build), "--quick", "--providers", contestant,
                 "--rounds", "1", "--seconds", "0.02", "--out", str(kept), *arguments],
                env=environment(self.build), text=True, capture_output=True, timeout=LIMIT,
                check=False)
            if ended.returncode == SKIPPED:
                self.skipTest(ended.stdout.strip())
            self.assertEqual(ended.returncode, 0, ended.stderr)
            data = json.loads(kept.read_text())
        for result in data["results"]:
            with self.subTest(str(result["case"])):
                self.assertEqual(result["failures"], {})
                self.assertEqual(len(result["values"].get(contestant, [])), 1)
        return data["run"]

    def test_the_loopback(self):
        self.assertEqual(self.run_all("--over", "loopback")["way"], "network")

    def test_queue_pairs(self):
        self.assertEqual(self.run_all("--over", "verbs", contestant="verbs")["way"], "verbs")

    def test_queue_pairs_within_a_host(self):
        self.assertEqual(self.run_all("--over", "verbs-shm", "--about", "in lists", contestant="verbs")["way"], "verbs-shm")

    def test_floors_of_queue_pairs_within_a_host(self):
        cores = sorted(os.sched_getaffinity(0))
        for case in (case for case in PLANS["verbs-shm"][0] if not case.queue_pairs):
            with self.subTest(str(case)):
                words = [case.operation, case.metric, str(case.size), "0.01", f"{cores[0]},{cores[-1]}"]
                said = subprocess.run([self.build / "bin" / "weft_bare_copies", *words], capture_output=True, text=True,
                                      timeout=LIMIT, check=True)
                self.assertGreater(json.loads(said.stdout)["value"], 0)

    def test_threading_models(self):
        self.assertEqual(self.run_all("--over", "threads")["way"], "threads")

    def test_a_wire_that_loses_packets(self):
        run = self.run_all("--over", "veth", "--mtu", "9000", "--singly", "--loss", "5")
        self.assertGreater(run["lost"], 0)
        self.assertGreater(run["packets"], run["lost"])


class WhatCannotBeMeasuredIsRefused(Bench):
    def test_combinations(self):
        self.assert_refused("dgram", "--endpoint", "dgram", "--operation", "tagged")
        self.assert_refused("multi", "--receive", "multi", "--operation", "tagged")
        self.assert_refused("counter", "--receive", "multi", "--operation", "msg", "--count-by",
                            "counters")
        self.assert_refused("--peers", "--self", "--peers", "2")
        self.assert_refused("connect and mesh", "--metric", "connect", "--operation", "msg")
        self.assert_refused("--reach", "--metric", "mesh", "--endpoint", "msg", "--operation", "msg",
                            "--processes", "4", "--reach", "4")
        self.assert_refused("--self", "--threads", "2", "--threading", "safe", "--metric", "rate")
        self.assert_refused("models", "--self", "--threads", "2", "--metric", "rate")
        self.assert_refused("forked", "--self", "--server-address", "127.0.0.1")

    def test_wrong_bytes(self):
        """The server compares twice as many bytes as the client writes."""
        status, _, errors = self.meet(("--operation", "rma_write"), ("--size", "16"),
                                      ("--size", "8"))
        self.assertNotEqual(status, 0)
        self.assertIn("wrong bytes", errors)


if __name__ == "__main__":
    Bench.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
