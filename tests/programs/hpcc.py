#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does Debian's hpcc, over Debian's Open MPI on the provider, end with all of its own checks passed?
import tempfile
from pathlib import Path

import open_mpi
from hpcc_report import Refused, unnoticed_damages, verdict
from program import fail, require, setup

TIMEOUT_S = 420
# Rows x columns of HPL's process grid.
GRIDS = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 6: (2, 3), 8: (2, 4)}

# HPL's matrix order sizes all other tests too. 1000 gives tables and vectors of a megabyte and seconds of run time,
# 500 a quarter of both;
# one extra PTRANS size and blocking make its messages uneven.
INPUT = """HPLinpack benchmark input file
written by Weft's test
HPL.out      output file name (ignored)
8            device out (ignored)
1            number of matrix orders
{order:<12} Ns
1            number of block sizes
80           NBs
0            process mapping: by row
1            number of process grids
{rows}       Ps
{columns}    Qs
16.0         threshold of the residual
1            number of panel factorisations
2            right-looking
1            number of stopping criteria
4            NBMINs
1            number of panels in the recursion
2            NDIVs
1            number of recursive factorisations
1            Crout
1            number of broadcasts
1            ring, modified
1            number of lookahead depths
1            DEPTHs
2            swapping: mixed
64           swapping threshold
0            L1 transposed
0            U transposed
1            equilibration
8            memory alignment in doubles
---
1            additional orders for PTRANS
613          values of N
1            additional block sizes for PTRANS
37           values of NB
"""


def run_hpcc(ranks, order, folder, run):
    """Has hpcc run in the folder by run(), as subprocess.run() would; returns all that it said."""
    rows, columns = GRIDS[ranks]
    Path(folder, "hpccinf.txt").write_text(INPUT.format(order=order, rows=rows, columns=columns), encoding="ascii")
    result = run()
    report = Path(folder, "hpccoutf.txt")
    require(report.exists(), f"hpcc wrote no report; it printed\n{result.stdout}{result.stderr}")
    text = report.read_text(encoding="ascii", errors="replace")
    require(result.returncode == 0, f"hpcc: status {result.returncode}\n{result.stderr}\n{text[-2000:]}")
    return text + "\n" + result.stdout + result.stderr


def check(report, ranks):
    try:
        verdict(report, ranks)
    except Refused as refused:
        print(report)
        fail(str(refused))


def main():
    test, arguments = setup(__doc__, ("--ranks", {"type": int, "choices": GRIDS, "default": 2}),
                            ("--transfers", {"action": "store_true", "help": "all by the layer btl/ofi"}))
    way = open_mpi.TRANSFERS if arguments.transfers else open_mpi.MESSAGES
    open_mpi.check_really_used(test, "hpcc", way)
    order = 500 if arguments.transfers else 1000
    with tempfile.TemporaryDirectory() as folder:
        report = run_hpcc(arguments.ranks, order, folder,
                          lambda: open_mpi.run(test, arguments.ranks, ["hpcc"], TIMEOUT_S, folder, way))
    check(report, arguments.ranks)
    missed = unnoticed_damages(report, arguments.ranks)
    require(not missed, f"the reading of hpcc's report would not notice damage to {missed}")
    print(f"hpcc: every check of {arguments.ranks} processes passed")


if __name__ == "__main__":
    main()
