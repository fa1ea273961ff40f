#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do both sides of each verbs program end well on the drop-in libibverbs, over the loopback or between hosts?
"""Runs Debian's programs and weft_move_patterns under `weft run`, as server and as client."""
import sys
import time

import sides

CHECKED = [f"weft_move_patterns {transport}" for transport in ("rc", "uc", "ud", "xrc")]
PINGPONGS = ["ibv_rc_pingpong -g 0 -c", *(f"ibv_rc_pingpong -g 0 -c {more}" for more in
                                          ("-e", "-N", "-t", "-o", "-s 1048576 -m 4096 -n 200")),
             "ibv_uc_pingpong -g 0 -c", "ibv_ud_pingpong -g 0 -c -s 1000", "ibv_srq_pingpong -g 0 -c -q 16",
             "ibv_xsrq_pingpong -g 0"]
PERFTEST = [f"ib_{name} -F -n 1000" for name in (
    "send_bw", "send_bw -e", "send_bw --use-srq", "write_bw", "write_bw -c UC", "write_bw -c XRC", "read_bw",
    "atomic_bw", "send_lat", "send_lat -c UD", "write_lat", "read_lat", "atomic_lat")]
PERFTEST += ["ib_write_bw -F -n 100 -q 64"]
# Index 1 is the first IPv6 address where an interface has one address of each family.
IPV6 = ["ibv_rc_pingpong -g 1 -c", "ibv_ud_pingpong -g 1 -c -s 1000", "ib_write_bw -F -n 1000 -x 1"]
# Repetitions make good for losses; perftest's defaults give up after 8 of them in a row.
LOSSES = ["weft_move_patterns rc", "weft_move_patterns xrc", "ibv_rc_pingpong -g 0 -c", "ib_write_bw -F -n 1000", "ib_read_bw -F -n 1000",
          "ib_send_bw -F -n 1000", "ib_atomic_bw -F -n 1000"]


def lines_of(arguments):
    """The programs that the command line chooses."""
    lines = LOSSES if arguments.lose else [*CHECKED, *PINGPONGS, *PERFTEST, *IPV6]
    return [line for line in lines if not arguments.words or any(word in line for word in arguments.words)]


def main():
    arguments = sides.arguments_of_rows(__doc__, "run programs whose line contains one of these")
    wire = sides.wire_of(arguments)
    programs = sides.Programs(arguments.build, wire or (sides.ThisHost, sides.ThisHost))
    failed = []
    for line in lines_of(arguments):
        begin = time.monotonic()
        server, client = programs.run(line.split())
        passed = server[0] == 0 and client[0] == 0
        print(f"{line}: {'passed' if passed else 'FAILED'}, {time.monotonic() - begin:.1f} s", flush=True)
        if not passed:
            failed.append(line)
            print(sides.describe(server, client), flush=True)
    return sides.conclude(failed, wire, arguments)


if __name__ == "__main__":
    sys.exit(main())
