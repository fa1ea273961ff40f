# SPDX-License-Identifier: BSD-2-Clause
# How UCX is measured: ucx_perftest over shared memory and cross-memory attach.
import os
import pathlib
import socket
import time

from . import bounded
from .cases import Case

TESTS = {
    ("tagged", "latency"): "tag_lat",
    ("tagged", "rate"): "tag_bw",
    ("tagged", "bandwidth"): "tag_bw",
    ("rma_write", "poll_latency"): "ucp_put_lat",
    ("rma_write", "rate"): "ucp_put_bw",
    ("rma_write", "bandwidth"): "ucp_put_bw",
}

TCP_LISTEN = "0A"
LISTEN_SECONDS = 5
MIB = 1 << 20


class Ucx:
    """UCX between two processes: UCX_TLS=posix,cma, each pinned to a core."""

    def __init__(self, name, program, time_limit, seconds, cores, way):
        self.name = name
        self.info = str(pathlib.Path(program).with_name("ucx_info"))
        self._program = program
        self._time_limit = time_limit
        self._seconds = seconds
        self._way = way
        self._environment = dict(os.environ, UCX_TLS="posix,cma", UCX_WARN_UNUSED_ENV_VARS="n")
        allowed = sorted(os.sched_getaffinity(0))
        self._cores = cores or (allowed[0], allowed[-1])

    def supports(self, case):
        plain = Case(case.operation, case.metric, case.size)
        return case == plain and (case.operation, case.metric) in TESTS

    def run(self, case):
        """The output of one run of CASE; bounded.Failed if it gave no figure."""
        test = TESTS[case.operation, case.metric]
        iterations = self._iterations(case)
        common = [self._program, "-p", str(free_port()), "-t", test, "-s", str(case.size),
                  "-n", str(iterations), "-w", str(max(iterations // 10, 2)), "-f", "-v"]
        server = bounded.start(self._way.command(*common, "-c", str(self._cores[0])),
                               self._environment)
        try:
            await_listener(int(common[2]))
            client = bounded.start(self._way.command(common[0], "127.0.0.1", *common[1:], "-c",
                                                     str(self._cores[1])), self._environment)
            output, _ = bounded.finish(client, self._time_limit)
        finally:
            bounded.end(server)
        return output

    def figure(self, case, output):
        """What CASE asks for, in its unit, of what run() returned."""
        return figure(case, output)

    def _iterations(self, case):
        """About as long as weft_bench takes, for a machine that copies 8 GB/s."""
        seconds = 0.3e-6 + case.size / 8e9
        if case.smaller_is_better:
            seconds *= 2
        return max(int(self._seconds / seconds), 10)


def figure(case, output):
    """Reads the CSV of ucx_perftest -f -v. For a latency the median, which is what
    weft_bench reports: the mean has every interruption in it."""
    names, values = (line.split(",") for line in output.strip().splitlines()[-2:])
    row = dict(zip(names, map(float, values)))
    if case.smaller_is_better:
        return row["50.0_percentile_lat"]
    if case.metric == "rate":
        return row["overall_mr"] / 1e6
    return row["overall_bw"] * MIB / 1e9


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_listener(port):
    """Until a process listens on PORT. Trying to connect would use up the server's one accept."""
    deadline = time.monotonic() + LISTEN_SECONDS
    while time.monotonic() < deadline:
        if any(is_listener(line, port) for table in ("tcp", "tcp6")
               for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]):
            return
        time.sleep(0.01)
    raise bounded.Failed(f"no process listens on port {port}")


def is_listener(line, port):
    _, local, _, state, *_ = line.split()
    return state == TCP_LISTEN and int(local.rpartition(":")[2], 16) == port
