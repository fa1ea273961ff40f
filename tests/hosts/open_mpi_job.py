#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does a job of Debian's Open MPI with one rank on each of several hosts get the right data, whatever the wire does?
import contextlib
import sys
import tempfile
from pathlib import Path

import hosts

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "programs"))
import hpcc  # noqa: E402
import open_mpi  # noqa: E402
import program  # noqa: E402

TIMEOUT_S = 200
PACKETS_BEFORE_CUT = 2000
HPCC_ORDER = 200  # of HPL's matrix, which sizes all other tests


def mpirun(test, wire, folder, words):
    """Runs an MPI program, one rank on each host; the first is where mpirun runs. Its daemons and they talk by TCP."""
    ranks = len(list(wire))
    for host in wire:
        Path(folder, host.ipv4).write_text(" ".join(host.words()), encoding="utf-8")
    command = open_mpi.command(test, ranks, words, open_mpi.MESSAGES)
    # All hosts have the same cores: bound, each would choose the first one.
    command[1:1] = ["--bind-to", "none", "--mca", "plm_rsh_agent", str(HERE / "launch_agent.sh"), "--mca", "oob_tcp_if_include", "eth0",
                    "--wdir", str(folder), "-host", ",".join(f"{host.ipv4}:1" for host in wire)]
    for name in ("FI_PROVIDER_PATH", "FI_WEFT_LINKS"):
        command[1:1] = ["-x", f"{name}={test.env[name]}"]
    environment = {**open_mpi.environment(test.env), "WEFT_TEST_HOSTS": str(folder)}
    result = program.run(wire[0].words(*command), environment, TIMEOUT_S)
    open_mpi.require_uses(test, open_mpi.MESSAGES, ranks, result)
    return result


def run_own_program(test, wire, folder):
    result = mpirun(test, wire, folder, [str(test.build / "bin" / "weft_mpi"), "quickly"])
    program.require(result.returncode == 0 and result.stdout.endswith("every value was right\n"),
                    f"weft_mpi: status {result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}")


def run_hpcc(test, wire, folder):
    ranks = len(list(wire))
    hpcc.check(hpcc.run_hpcc(ranks, HPCC_ORDER, folder, lambda: mpirun(test, wire, folder, ["hpcc"])), ranks)


JOBS = {"weft_mpi": run_own_program, "hpcc": run_hpcc}


def main():
    hosts.enter()
    test, arguments = program.setup(__doc__, ("job", {"choices": JOBS}), ("--hosts", {"type": int, "default": 2}),
                                    ("--mtu", {"type": int, "default": 1500}),
                                    ("--lose", {"type": int, "default": 0, "help": "so many of a hundred packets"}),
                                    ("--cut", {"action": "store_true", "help": "pull a cable for a second"}))
    wire = hosts.Hosts(arguments.hosts, arguments.mtu)
    wire.lose(arguments.lose)
    cut = wire.cut_off(wire[1], PACKETS_BEFORE_CUT, seconds=1) if arguments.cut else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder, cut:
        JOBS[arguments.job](test, wire, folder)
    passed, lost = wire.counts()
    program.require((lost > 0) == (arguments.lose > 0), f"{lost} packets were lost beside {passed}")
    print(f"{arguments.job}: all is verified on {arguments.hosts} hosts; {lost} packets were lost beside {passed}")


main()
