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


class World:
    """Two hosts. Processes that share a region are on the first one."""

    def __init__(self, build):
        self.wire = hosts.Hosts(2, 9000)
        self._programs = sides.Programs(build, (self.wire[0], self.wire[1]))

    def start(self, host, *words):
        """A side on that host."""
        return self._programs.start(self.wire[host], ["weft_shared_access", *words], WEFT_LOG="off")

    def hold(self, role, ports):
        """(holders, id): a creator, and attachers."""
        creator = self.start(0, role, str(ports[0]))
        identity = line_of(creator)
        attachers = [self.start(0, role, str(port), identity) for port in ports[1:]]
        for attacher in attachers:
            line_of(attacher)
        return [creator, *attachers], identity

    def run(self, role, ports, holders):
        """(status, output) of an initiator on each host, and of the holders."""
        initiators = [self.start(number, role, str(number), self.wire[0].ipv4, *map(str, ports)) for number in (0, 1)]
        return [sides.end_of(side, sides.PATIENCE) for side in [*initiators, *holders]]


def counts(world):
    """True when all find the sum of what both initiators have counted."""
    holders, identity = world.hold("hold", PORTS)
    ends = world.run("drive", PORTS, holders)
    print(identity, ends)
    if any(status != 0 for status, _ in ends):
        return False
    words = [output.split() for _, output in ends]
    sums = [str(sum(int(count[word]) for count in words[:2])) for word in (0, 1)]
    print(f"{sums[0]} additions, {sums[1]} exchanges; {world.wire.counts()[0]} packets crossed the wire")
    return words[2:] == [sums] * 3 and int(sums[1]) > 0


def survives_truncation(world):
    """True when accesses to a region whose file was cut end with an error, and its holders go on."""
    holders, identity = world.hold("keep", PORTS[:2])
    [file] = hosts.call(*world.wire[0].words("find", "/dev/shm", "-name", f"weft-mr.{identity}.*")).split()
    hosts.call(*world.wire[0].words("truncate", "--size", "0", file))
    ends = world.run("fail", PORTS[1::-1], holders)
    print(identity, ends)
    return ends == [(0, "remote operation error\n")] * 2 + [(0, "")] * 2


def main():
    hosts.enter()
    world = World(sys.argv[1])
    passed = counts(world) and survives_truncation(world)
    return 0 if passed and not sides.left_on(world.wire[0]) + sides.left_on(world.wire[1]) else 1


if __name__ == "__main__":
    sys.exit(main())
