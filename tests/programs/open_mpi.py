# SPDX-License-Identifier: BSD-2-Clause
# How is Debian's Open MPI made to send through one libfabric provider, and how do we know that it did?
"""Debian's configuration switches the OFI transports off, so all of the choice is made on the command
line. The matching layer `cm` with the transport `ofi` has no other way to move a byte: with a provider
that is not there mpirun must fail, and with one that is each rank says which domain it opened."""
import os

import program

PROBE_TIMEOUT_S = 60


# Windows are made of messages (`pt2pt`) unless one_sided asks for more.
# One-sided communication by remote memory access and atomic operations of the provider: the only ways that
# the layer `rdma` is left with.
ONE_SIDED = {"osc": "rdma", "btl": "ofi,self", "osc_rdma_btls": "ofi"}


def command(test, ranks, program_and_arguments, one_sided=False):
    windows = dict(ONE_SIDED, btl_ofi_provider_include=test.provider) if one_sided else {"osc": "pt2pt"}
    choose = {**windows,
              "pml": "cm", "mtl": "ofi", "mtl_ofi_provider_include": test.provider,
              "mtl_base_verbose": "1", "mpi_yield_when_idle": "1" if ranks > os.cpu_count() else "0"}
    options = [word for name, value in choose.items() for word in ("--mca", name, value)]
    return ["mpirun", "-n", str(ranks), "--oversubscribe", *options, *program_and_arguments]


def environment(base):
    # Continuous integration runs as root in a container, which mpirun refuses unless told twice.
    return {**base, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(test, ranks, program_and_arguments, timeout, cwd=None, one_sided=False):
    """Runs an MPI program to its end and requires that each rank has opened a domain of the provider
    under test; returns the finished process."""
    result = program.run(command(test, ranks, program_and_arguments, one_sided), environment(test.env),
                         timeout, cwd)
    opened = [line for line in result.stderr.splitlines() if "mtl:ofi:provider:" in line]
    if test.provider == program.PROVIDER:
        opened = [line for line in opened if f"mtl:ofi:provider: {test.provider}" in line]
    program.require(len(opened) == ranks, f"{len(opened)} of {ranks} ranks opened {test.provider}; status "
                    f"{result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}")
    return result


def check_really_used(test, mpi_program):
    """`mpi_program`, which any test runs with the provider, must find no way to start without it."""
    if test.provider != program.PROVIDER:
        return
    result = program.run(command(test, 2, ["true"]), environment(test.env), PROBE_TIMEOUT_S)
    program.require(result.returncode == 0, f"mpirun itself fails: {result.stderr}")
    result = program.run(command(test, 2, [str(mpi_program)]), environment(test.env_without_provider),
                         PROBE_TIMEOUT_S, cwd="/")
    program.require(result.returncode != 0 and "cannot be selected" in result.stderr,
                    "Open MPI found another way than the provider: the run proves nothing")


def check_one_sided_really_used(test, mpi_program):
    """The same for one-sided communication alone: messages still have the provider."""
    words = command(test, 2, [str(mpi_program)], one_sided=True)
    words[words.index("btl_ofi_provider_include") + 1] = "nobody"
    result = program.run(words, environment(test.env), PROBE_TIMEOUT_S, cwd="/")
    program.require(result.returncode != 0 and "MPI_Win_create" in result.stdout + result.stderr,
                    f"windows without the provider: status {result.returncode}, and no complaint about them")
