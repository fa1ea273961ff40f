#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does one side of a verbs program end rightly when the other one is killed, and is nothing left behind?
"""Kills (SIGKILL) one side of a program once both have counted so many packets, messages and one-sided operations. A survivor with work
outstanding ends with the status of exhausted retries, or with flushed work. One that only waits for a message sends nothing more, as on
hardware, and is ended. Afterwards the program runs undisturbed, and neither a socket nor a file of a runtime directory is left."""
import random
import re
import sys
import time
from dataclasses import dataclass

import sides  # noqa: I001  (finds the next one)
import hosts

# A side of these is in the middle of something for as long as the test wants.
ENDLESS = "10000000"
VARIABLES = {"WEFT_TEST_TIMEOUT": "14", "WEFT_TEST_ROUNDS": ENDLESS}  # of our own program; 14 is what the others have: 67 ms
FIRST_PACKETS = 4000  # moments are among them
QUIET = 1.0  # seconds without a packet: fifteen times that timeout
FAILED = re.compile(r"Failed status (12|5)\b|transport retry counter exceeded|Work Request Flushed Error")


@dataclass(frozen=True)
class Program:
    """What is killed, and the same to its end. A survivor without work outstanding sees the end of its TCP connection, or waits for a
    message; the `busy` side always has some."""
    endless: str
    bounded: str
    lost_peer: str = ""
    waits: bool = True
    busy: int = -1  # number of that side

    @property
    def name(self):
        return self.bounded.split()[0]


PROGRAMS = (
    Program(f"ib_write_bw -F -s 4096 -N -n {ENDLESS}", "ib_write_bw -F -n 100", "Couldn't read|Unable to read", waits=False, busy=1),
    Program(f"ibv_rc_pingpong -g 0 -n {ENDLESS}", "ibv_rc_pingpong -g 0 -c -n 100"),
    Program("weft_move_patterns rc", "weft_move_patterns rc", "the other process has ended"),
)
SIDES = ("server", "client")


def has_come_to_rest(process):
    """Waits until the process has ended (false), or has sent nothing for some time (true)."""
    sent, since = sides.packets_of(process), time.monotonic()
    while process.poll() is None:
        time.sleep(0.01)
        now = sides.packets_of(process)
        if now != sent:
            sent, since = now, time.monotonic()
        elif time.monotonic() - since > QUIET:
            return True
    return False


class Lane:
    """Kills on one or two hosts, one after the other, over these links."""

    def __init__(self, build, count, links, seed):
        wire = hosts.Hosts(count, 9000)
        self._places = list(wire)
        self._where = f"{'between hosts' if count > 1 else 'within a host'} ({links})"
        self._programs = sides.Programs(build, (wire[0], wire[count - 1]), FI_WEFT_LINKS=links)
        self._random = random.Random(f"{seed} {count} {links}")
        self._counts = {}  # by program and side: survivors without work outstanding, and with it

    def kill_one(self, program, number):
        """One moment; true if the survivor had work outstanding."""
        both = self._programs.start_both(program.endless.split(), **VARIABLES)
        victim, survivor = both[number], both[1 - number]
        try:
            moment = self._random.randint(1, FIRST_PACKETS)
            while sum(map(sides.packets_of, both)) < moment:
                if victim.poll() is not None or survivor.poll() is not None:
                    raise sides.Failure(f"ends by itself:\n{victim.communicate()[0]}\n{survivor.communicate()[0]}")
            victim.kill()
            victim.communicate()
            rests = has_come_to_rest(survivor)
        finally:
            for side in both:
                side.kill()
        output = survivor.communicate()[0]
        if not rests and FAILED.search(output):
            return True
        ends_idle = program.waits if rests else program.lost_peer and re.search(program.lost_peer, output)
        if ends_idle and program.busy != 1 - number:
            return False
        raise sides.Failure(f"the survivor {'waits' if rests else f'ends with {survivor.returncode}'} after packet {moment}:\n{output}")

    def check_aftermath(self, program):
        """The next run is right, and leaves nothing."""
        server, client = self._programs.run(program.bounded.split())
        if server[0] != 0 or client[0] != 0:
            raise sides.Failure(f"the next run fails:\n{sides.describe(server, client)}")
        for place in self._places:
            if left := sides.left_on(place):
                raise sides.Failure(f"is left behind:\n{left}")

    def run(self, moments):
        """All of them; returns the failure, if there is one."""
        for moment in range(moments):
            program, number = PROGRAMS[moment // 2 % len(PROGRAMS)], moment % 2
            name = f"{program.name} {self._where}, {SIDES[number]} killed"
            try:
                failed = self.kill_one(program, number)
                self.check_aftermath(program)
            except sides.Failure as failure:
                return f"{name}: {failure}"
            self._counts.setdefault(name, [0, 0])[failed] += 1
        return None

    def describe(self):
        """A line for each program and side."""
        return "\n".join(f"{name}: {failed} survivors had work outstanding, {idle} had none"
                         for name, (idle, failed) in self._counts.items())


if __name__ == "__main__":
    sys.exit(sides.run_lanes(__doc__, Lane))
