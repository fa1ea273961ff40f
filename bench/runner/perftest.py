# SPDX-License-Identifier: BSD-2-Clause
# How queue pairs are measured, and what they rest on: perftest under `weft run`, and our own programs.
import json
import os
import pathlib

from . import bounded
from .cases import KIB, MIB, Case
from .ucx import await_listener, free_port

# The words of perftest for an operation; its programs end in _lat and _bw.
TESTS = {"msg": "send", "tagged": "send", "rma_write": "write", "rma_read": "read", "fetch_add": "atomic"}
METRICS = {"latency": "lat", "poll_latency": "lat", "event_latency": "lat", "rate": "bw", "list_rate": "bw", "bandwidth": "bw"}
INLINE = 64  # bytes: from there on fi_inject is not used, either, by weft_bench
LIST = 16  # requests of one post
POLLS = "weft_idle_queue_pairs"
LOOPBACK = "127.0.0.1"
TYPICAL, AVERAGE, RATE = 4, 3, 4  # columns


def window(size):
    """Operations in flight, as weft_bench has them."""
    return 256 if size <= 8 * KIB else 64 if size <= 512 * KIB else 16


class Perftest:
    """perftest of the distribution on the verbs front end, each process pinned to a core."""

    name = "verbs"

    def __init__(self, build, way, time_limit, seconds, cores):
        self._way = way
        self._weft = str(pathlib.Path(build, "bin", "weft").resolve())
        self._polls = str(pathlib.Path(build, "bin", POLLS).resolve())
        self._time_limit = time_limit
        self._seconds = seconds
        self._environment = dict(os.environ, WEFT_IFACE="lo", **way.environment)
        self._cores = cores

    def supports(self, case):
        """A write of ib_write_lat is seen by a target that watches memory; each other latency is that of a completion."""
        if case.metric == "poll":
            return True
        if case.metric not in METRICS or case.operation not in TESTS:
            return False
        if case.endpoint == "dgram" and (case.operation != "msg" or case.metric != "latency"):
            return False  # ib_send_bw -c UD hangs when a datagram is lost
        return (case.operation, case.metric) != ("rma_write", "latency")

    def run(self, case):
        """The output of one run of CASE; bounded.Failed if it gave no figure."""
        if case.metric == "poll":
            return self._finish(self._start(self._cores[1], self._polls, case.queue_pairs, self._seconds, self._cores[1]))
        test = f"ib_{TESTS[case.operation]}_{METRICS[case.metric]}"
        port = free_port()
        words = [test, "-F", "-p", port, "-n", self._iterations(case), *self._manner(case)]
        # A program that watches memory leaves its core to the background thread, which takes packets, only if it has another one.
        needs_thread = case.metric == "poll_latency" and self._way.takes_packets
        server_core, client_core = (None, None) if needs_thread else self._cores
        server = self._start(server_core, *words)
        try:
            await_listener(port)
            return self._finish(self._start(client_core, *words, LOOPBACK))
        finally:
            bounded.end(server)

    def figure(self, case, output):
        """What CASE asks for, in its unit, of what run() returned."""
        return figure(case, output)

    def _start(self, core, *words):
        command = [self._weft, "run", *words]
        if core is not None:
            command = self._way.command("taskset", "-c", core, *command)
        return bounded.start([str(word) for word in command], self._environment)

    def _finish(self, process):
        return bounded.finish(process, self._time_limit)[0]

    def _manner(self, case):
        words = [] if case.operation == "fetch_add" else ["-s", case.size]
        if case.metric == "list_rate":
            return [*words, "-l", LIST, "-N"]
        if TESTS[case.operation] in ("send", "write") and case.size <= INLINE:
            words += ["-I", INLINE]
        if case.metric == "event_latency":
            words += ["-e"]
        if case.endpoint == "dgram":
            words += ["-c", "UD"]
        if METRICS[case.metric] == "bw":
            depth = window(case.size)
            words += ["-t", depth, "-Q", 1, "-N"] + (["-r", 2 * depth] if TESTS[case.operation] == "send" else [])
        return words

    def _iterations(self, case):
        """About as long as weft_bench takes, for a device that moves 4 GB/s."""
        seconds = (5e-6 if METRICS[case.metric] == "lat" else 1e-6) + case.size / 4e9
        if case.metric == "poll_latency":
            seconds *= 10
        return max(int(self._seconds / seconds), 4 * window(case.size)) // LIST * LIST


def figure(case, output):
    """Reads the table of perftest. t_typical is the median, which is what weft_bench reports."""
    if case.metric == "poll":
        return json.loads(output)["value"]
    rows = [line.split() for line in output.splitlines() if line.split() and line.split()[0].isdigit()]
    if not rows:
        raise bounded.Failed("no table")
    column = {"lat": TYPICAL, "bw": AVERAGE if case.metric == "bandwidth" else RATE}[METRICS[case.metric]]
    value = float(rows[-1][column])
    return value * MIB / 1e9 if case.metric == "bandwidth" else value


class Bare:
    """The system alone, measured by a program of ours."""

    program = None

    def __init__(self, build, way, time_limit, seconds, cores):
        self._way = way
        self._program = str(pathlib.Path(build, "bin", self.program).resolve())
        self._time_limit = time_limit
        self._seconds = seconds
        self._cores = ",".join(map(str, cores))

    def run(self, case):
        """What it says of one run of CASE."""
        words = self._way.command(self._program, *self._asked(case), case.size, self._seconds, self._cores)
        return json.loads(bounded.finish(bounded.start([str(word) for word in words], None), self._time_limit)[0])

    def figure(self, _, outcome):
        """Its one figure."""
        return outcome["value"]

    def _asked(self, case):
        """The words of the program that say what it measures."""
        raise NotImplementedError


class BareDatagrams(Bare):
    """UDP sockets."""

    name, program = "datagrams", "weft_bare_datagrams"

    def supports(self, case):
        """One row each; a datagram knows no operation."""
        return case == Case("msg", case.metric, case.size, endpoint="msg") and case.metric in ("latency", "rate", "bandwidth")

    def _asked(self, case):
        return [case.metric]


class BareCopies(Bare):
    """Copies between processes, and wake-ups."""

    name, program = "bare", "weft_bare_copies"

    def supports(self, case):
        """Every operation has a floor; a poll is none."""
        return not case.queue_pairs

    def _asked(self, case):
        return [case.operation, case.metric]
