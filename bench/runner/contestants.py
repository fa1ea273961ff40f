# SPDX-License-Identifier: BSD-2-Clause
# Who takes part: weft, the other software providers of libfabric, and UCX.
import json
import os
import pathlib
import shutil

from . import bounded
from .cases import ENDPOINTS, METRICS
from .ucx import Ucx

# weft and those that move data between processes without special hardware; UCX stands among them
# in the tables. Where tcp and udp have no reliable datagrams of their own, libfabric puts ofi_rxm
# and ofi_rxd above them.
PROVIDERS = ("weft", "shm", Ucx.name, "net", "tcp", "sockets", "udp")
LISTING_LIMIT = 30

REPETITIONS = 10  # of weft_bench, which reports their median


class Provider:
    """A libfabric provider, measured by weft_bench."""

    def __init__(self, name, endpoints, program, environment, options):
        self.name = name
        self._endpoints = endpoints
        self._program = program
        self._environment = environment
        self._options = options

    def supports(self, case):
        return case.endpoint in self._endpoints

    def run(self, case):
        """What weft_bench says of one run of CASE; bounded.Failed if it gave no figure."""
        limit = self._options.time_limit
        command = [self._program, "--provider", self.name, *case.arguments, "--repetitions",
                   str(REPETITIONS), "--seconds", str(self._options.seconds / REPETITIONS),
                   "--time-limit", str(limit)]
        if self._options.cores:
            command += ["--cores", ",".join(map(str, self._options.cores))]
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


def find(build, options):
    """All contestants that can run here; only those of options.providers, if any."""
    program, weft_environment = program_of(build), environment_for_weft(build)
    listed = {endpoint: list_providers(program, weft_environment, endpoint)
              for endpoint in ENDPOINTS}
    found = []
    for name in PROVIDERS:
        if name not in (options.providers or PROVIDERS):
            continue
        endpoints = {endpoint for endpoint, names in listed.items() if name in names}
        environment = weft_environment if name == "weft" else dict(os.environ)
        if endpoints:
            found.append(Provider(name, endpoints, program, environment, options))
        elif name == Ucx.name and shutil.which("ucx_perftest"):
            found.append(Ucx(options))
    return found


def list_providers(program, environment, endpoint):
    """Those with endpoints of that type; "tcp" for "tcp;ofi_rxm", too."""
    listing = bounded.start([program, "--list-providers", "--endpoint", endpoint, "--operation",
                             "msg"], environment)
    return {line.partition(";")[0]
            for line in bounded.finish(listing, LISTING_LIMIT)[0].splitlines()}
