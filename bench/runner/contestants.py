# SPDX-License-Identifier: BSD-2-Clause
# The contestants: weft, the other software providers of libfabric, and UCX.
import functools
import json
import os
import pathlib
import shutil

from . import bounded
from .cases import METRICS
from .perftest import BareCopies, BareDatagrams, Perftest
from .targets import OTHER_UCX, UCX
from .ucx import Ucx

LISTING_LIMIT = 30

REPETITIONS = 10  # of weft_bench, which reports their median
SECONDS, SECONDS_WITH_LOSSES = 0.2, 1.0

BESIDE = {each.name: each for each in (Perftest, BareDatagrams, BareCopies)}


class Bench:
    """weft_bench of one build, and how it is run."""

    def __init__(self, build, options, way):
        self.program = program_of(build)
        self.way = way
        self.options = options
        self._listing_environment = environment_for_weft(build) | way.environment

    @property
    def pace(self):
        """Of a run: repetitions and seconds. Where packets are lost stalls belong to the figure: no median hides them."""
        if self.way.name == "losses":
            return 1, self.options.seconds or SECONDS_WITH_LOSSES
        return REPETITIONS, (self.options.seconds or SECONDS) / REPETITIONS

    @functools.cache
    def listed(self, endpoint, operation, completion="default", receive="single", threading="domain"):
        """Names of the providers that can do this; "tcp" for "tcp;ofi_rxm", too."""
        listing = bounded.start(self.way.command(
            self.program, "--list-providers", "--endpoint", endpoint, "--operation", operation,
            "--completion", completion, "--receive", receive, "--threading", threading), self._listing_environment)
        return {line.partition(";")[0]
                for line in bounded.finish(listing, LISTING_LIMIT)[0].splitlines()}


class Provider:
    """A libfabric provider, measured by weft_bench."""

    def __init__(self, name, bench, environment):
        self.name = name
        self._bench = bench
        self._environment = environment | bench.way.environment

    def supports(self, case):
        return METRICS[case.metric].by_bench and self.name in self._bench.listed(
            case.endpoint, case.operation, case.completion, case.receive, case.threading or "domain")

    def run(self, case):
        """What weft_bench says of one run of CASE; bounded.Failed if it gave no figure."""
        options, (repetitions, seconds) = self._bench.options, self._bench.pace
        limit = max(options.time_limit, case.least_time_limit)
        command = self._bench.way.command(
            self._bench.program, "--provider", self.name, *case.arguments, *self._bench.way.arguments,
            "--repetitions", str(repetitions), "--seconds", str(seconds), "--time-limit", str(limit))
        if options.cores:
            command += ["--cores", ",".join(map(str, options.cores))]
        process = bounded.start(command, self._environment)
        output, _ = bounded.finish(process, limit + bounded.GRACE_SECONDS)
        return json.loads(output)

    def figure(self, case, outcome):
        """What CASE asks for, of what run() returned for a case with the same run."""
        return outcome[METRICS[case.metric].member]


def environment_for_weft(build):
    return dict(os.environ, FI_PROVIDER_PATH=str(pathlib.Path(build, "lib").resolve()))


def program_of(build):
    return str(pathlib.Path(build, "bin", "weft_bench").resolve())


def cores_of(options):
    """Of the server and the client, as weft_bench chooses them."""
    allowed = sorted(os.sched_getaffinity(0))
    return options.cores or (allowed[0], allowed[-1])


def find(build, options, way):
    """All contestants that can run on this WAY; only those of options.providers, if any."""
    bench = Bench(build, options, way)
    listed = bench.listed("rdm", "msg") | bench.listed("dgram", "msg")
    ucx = {UCX: shutil.which("ucx_perftest"), OTHER_UCX: options.ucx}
    found = []
    for name in way.contestants:
        if name not in (options.providers or way.contestants):
            continue
        environment = environment_for_weft(build) if name == "weft" else dict(os.environ)
        if name in BESIDE:
            found.append(BESIDE[name](build, way, options.time_limit, options.seconds or SECONDS, cores_of(options)))
        elif ucx.get(name):
            found.append(Ucx(name, ucx[name], options.time_limit, options.seconds or SECONDS, options.cores, way))
        elif name in listed:
            found.append(Provider(name, bench, environment))
    return found
