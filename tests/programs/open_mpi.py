# SPDX-License-Identifier: BSD-2-Clause
# How is Debian's Open MPI made to send through one libfabric provider, and how do we know that it did?
"""Debian's configuration switches the OFI transports off, so all of the choice is made on the command
line. The matching layer `cm` with the transport `ofi` has no other way to move a byte: with a provider
that is not there mpirun must fail, and with one that is each rank says which domain it opened."""
import os

import program

PROBE_TIMEOUT_S = 60
MPI_ERR_WIN = 53  # of Open MPI's mpi.h: no window can be made


# By messages of the transport `ofi` (windows are made of them, too), with windows by remote memory access and atomic
# operations of the provider instead, or all by the byte transfer layer `ofi`: there small messages are the provider's
# and the data of large ones are moved by remote memory access. Nothing else is left to any of them.
MESSAGES = {"pml": "cm", "mtl": "ofi", "osc": "pt2pt", "mtl_base_verbose": "1"}
ONE_SIDED = {**MESSAGES, "osc": "rdma", "btl": "ofi,self", "osc_rdma_btls": "ofi"}
TRANSFERS = {"pml": "ob1", "osc": "rdma", "btl": "ofi,self", "osc_rdma_btls": "ofi",
             "btl_ofi_mode": "2",  # for messages as well as for remote memory access
             "btl_base_verbose": "1"}


def command(test, ranks, program_and_arguments, way):
    choose = {**way, "mpi_yield_when_idle": "1" if ranks > os.cpu_count() else "0"}
    if "mtl" in way:
        choose["mtl_ofi_provider_include"] = test.provider
    if "btl" in way:
        choose["btl_ofi_provider_include"] = test.provider
    options = [word for name, value in choose.items() for word in ("--mca", name, value)]
    return ["mpirun", "-n", str(ranks), "--oversubscribe", *options, *program_and_arguments]


def environment(base):
    # Continuous integration runs as root in a container, which mpirun refuses unless told twice.
    return {**base, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def uses(test, way, ranks, log):
    """How often the log says that the provider is used, and how often it should."""
    if "mtl" in way:
        wanted = f"mtl:ofi:provider: {test.provider}" if test.provider == program.PROVIDER else "mtl:ofi:provider:"
        return log.count(wanted), ranks
    return log.count("Using ofi btl for send to"), ranks * (ranks - 1)


def require_uses(test, way, ranks, result):
    """Each rank of the finished process must have used the provider under test."""
    count, wanted = uses(test, way, ranks, result.stderr)
    program.require(count == wanted, f"{test.provider} is used {count} times instead of {wanted}; status "
                    f"{result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}")


def run(test, ranks, program_and_arguments, timeout, cwd=None, way=MESSAGES):
    """Runs an MPI program to its end and requires that each rank uses the provider under test; returns the finished
    process."""
    result = program.run(command(test, ranks, program_and_arguments, way), environment(test.env), timeout, cwd)
    require_uses(test, way, ranks, result)
    return result


def check_really_used(test, mpi_program, way=MESSAGES):
    """`mpi_program`, which any test runs with the provider, must find no way to start without it."""
    if test.provider != program.PROVIDER:
        return
    result = program.run(command(test, 2, ["true"], way), environment(test.env), PROBE_TIMEOUT_S)
    program.require(result.returncode == 0, f"mpirun itself fails: {result.stderr}")
    # Printed by the ranks themselves. mpirun's own explanations get lost in one of ten runs ("Data unpack would read
    # past end of buffer"), so they are no evidence.
    complaint = "cannot be selected" if "mtl" in way else "An error occurred in MPI_Init"
    for _ in range(5):
        result = program.run(command(test, 2, [str(mpi_program)], way), environment(test.env_without_provider),
                             PROBE_TIMEOUT_S, cwd="/")
        complains = complaint in " ".join((result.stdout + result.stderr).split())
        if result.returncode == 0 or complains:
            break
    program.require(result.returncode != 0 and complains and uses(test, way, 2, result.stderr)[0] == 0,
                    "Open MPI found another way than the provider, so that the run proves nothing, or did not say that it "
                    f"found none: status {result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}")


def check_one_sided_really_used(test, mpi_program):
    """The same for one-sided communication alone: messages still have the provider."""
    words = command(test, 2, [str(mpi_program)], ONE_SIDED)
    words[words.index("btl_ofi_provider_include") + 1] = "nobody"
    # The status of the job is the error of the call; its text may get lost, as above.
    result = program.run(words, environment(test.env), PROBE_TIMEOUT_S, cwd="/")
    program.require(result.returncode == MPI_ERR_WIN,
                    f"windows without the provider: status {result.returncode}\n{result.stdout[-2000:]}\n"
                    f"{result.stderr[-4000:]}")
