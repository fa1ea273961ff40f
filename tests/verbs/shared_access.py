#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Is a shared region one memory, by whatever process's key peers access it, from its host and from another one?
"""A creator and two attachers, which share a host, serve an initiator on that host and one on another host."""
import sys

import sides  # noqa: I001  (finds the next one)
import hosts

PORTS = [18600, 18610, 18620]


def line_of(process):
    """The next line of a side."""
    return process.stdout.readline().strip()


def main():
    hosts.enter()
    wire = hosts.Hosts(2, 9000)
    programs = sides.Programs(sys.argv[1], (wire[0], wire[1]))

    def start(host, *words):
        return programs.start(host, ["weft_shared_access", *words], WEFT_LOG="off")

    holders = [start(wire[0], "hold", str(PORTS[0]))]
    identity = line_of(holders[0])
    holders += [start(wire[0], "hold", str(port), identity) for port in PORTS[1:]]
    attached = [line_of(holder) for holder in holders[1:]]
    initiators = [start(wire[number], "drive", str(number), wire[0].ipv4, *map(str, PORTS)) for number in (0, 1)]
    ends = [sides.end_of(side, sides.PATIENCE) for side in [*initiators, *holders]]
    print(identity, attached, ends)
    counts = [output.split() for status, output in ends if status == 0]
    if len(counts) != len(ends):
        return 1
    sums = [str(sum(int(count[word]) for count in counts[:2])) for word in (0, 1)]
    print(f"{sums[0]} additions, {sums[1]} exchanges; {wire.counts()[0]} packets crossed the wire")
    left = sides.left_on(wire[0]) + sides.left_on(wire[1])
    return 0 if counts[2:] == [sums] * 3 and int(sums[1]) > 0 and not left else 1


if __name__ == "__main__":
    sys.exit(main())
