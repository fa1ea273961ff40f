# SPDX-License-Identifier: BSD-2-Clause
# Who takes part: weft, the other software providers of libfabric, and UCX.
import json
import os
import pathlib
import shutil

from . import bounded
from .ucx import Ucx

# weft and those that move data between processes without special hardware; UCX stands among them
# in the tables.
PROVIDERS = ("weft", "shm", Ucx.name, "net", "tcp", "tcp;ofi_rxm", "sockets", "udp;ofi_rxd")
LISTING_LIMIT = 30

REPETITIONS = 10  # of weft_bench, which reports their median


class Provider:
    """A libfabric provider, measured by weft_bench."""

    def __init__(self, name, program, environment, options):
        self.name = name
        self._program = program
        self._environment = environment
        self._options = options

    def supports(self, _):
        return True

    def measure(self, case):
        """The figure of one run of CASE in its unit; bounded.Failed if there is none."""
        limit = self._options.time_limit
        command = [self._program, "--provider", self.name, "--operation", case.operation,
                   "--metric", case.metric, "--size", str(case.size), "--repetitions",
                   str(REPETITIONS), "--seconds", str(self._options.seconds / REPETITIONS),
                   "--time-limit", str(limit)]
        if self._options.cores:
            command += ["--cores", ",".join(map(str, self._options.cores))]
        process = bounded.start(command, self._environment)
        output, _ = bounded.finish(process, limit + bounded.GRACE_SECONDS)
        return json.loads(output)["value"]


def environment_for_weft(build):
    return dict(os.environ, FI_PROVIDER_PATH=str(pathlib.Path(build, "lib").resolve()))


def program_of(build):
    return str(pathlib.Path(build, "bin", "weft_bench").resolve())


def find(build, options):
    """All contestants that can run here; only those of options.providers, if any."""
    program, weft_environment = program_of(build), environment_for_weft(build)
    listing = bounded.start([program, "--list-providers"], weft_environment)
    available = bounded.finish(listing, LISTING_LIMIT)[0].splitlines()
    if shutil.which("ucx_perftest"):
        available.append(Ucx.name)
    wanted = options.providers or PROVIDERS
    return [contestant(name, program, weft_environment, options) for name in PROVIDERS
            if name in available and name in wanted]


def contestant(name, program, weft_environment, options):
    if name == Ucx.name:
        return Ucx(options)
    environment = weft_environment if name == "weft" else dict(os.environ)
    return Provider(name, program, environment, options)
