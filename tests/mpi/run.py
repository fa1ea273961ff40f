#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does our MPI program get the right data in every rank, over Debian's Open MPI on the provider?
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))
import open_mpi  # noqa: E402
from program import require, setup  # noqa: E402

TIMEOUT_S = 280


def main():
    test, arguments = setup(__doc__, ("--ranks", {"type": int, "default": 2}),
                            ("--one-sided", {"action": "store_true"}))
    program = test.build / "bin" / "weft_mpi"
    require(program.exists(), f"no program at {program}: build it first")
    if arguments.one_sided:
        open_mpi.check_one_sided_really_used(test, program)
    else:
        open_mpi.check_really_used(test, program)
    way = open_mpi.ONE_SIDED if arguments.one_sided else open_mpi.MESSAGES
    result = open_mpi.run(test, arguments.ranks, [str(program)], TIMEOUT_S, way=way)
    require(result.returncode == 0 and result.stdout.endswith("every value was right\n"),
            f"weft_mpi on {arguments.ranks} ranks: status {result.returncode}\n"
            f"{result.stdout[-2000:]}\n{result.stderr[-4000:]}")
    print(f"weft_mpi: every value was right on {arguments.ranks} ranks")


main()
