#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# What do REQs with forged sources draw from a reliable-datagram endpoint, and what do they leave behind?
"""One REQ draws at most 4 packets in all. A REQ whose private data name another address than its source is refused, and
nothing is sent there. Requests whose RTU never comes end after their deadline and leave nothing of 1,000 that were accepted."""
import time

import forged
import hosts
from hostile import PATIENCE, Attacker, Endpoint, report, three_hosts, wait_until
from program import require, setup

MOST_PACKETS = 4
ACCEPTED = 1000  # requests in a round
# Of forged REQs 512 are taken at once, and 250 a second (docs/design/connection_manager.md): at this rate all of these are.
MANY, RATE = 1100, 400
DEADLINE = 9  # seconds: 8 of the replies (docs/design/connection_manager.md), and one more
QUIET = 2.5  # seconds without a packet: longer than the longest pause between two replies
MEMORY_KIB = 1024
ONE, LIAR, THIRD = ("10.77.255.1", 7001), ("10.77.255.2", 7002), ("10.78.0.1", 7002)


def kinds(packets):
    """For a message."""
    names = [repr(packet) for packet in packets]
    return ", ".join(f"{names.count(name)} of {name}" for name in sorted(set(names))) or "none"


class Requests:
    """An endpoint, and the forged requests to it."""

    def __init__(self, test):
        wire = three_hosts()
        self.attacker, self.witness = Attacker(wire[2]), Attacker(wire[0])
        self.witness.watch()
        self.warm = False
        self.victim = Endpoint(test, wire[0])
        for end in (ONE, LIAR):
            self.attacker.listen(*end)

    def first_round(self, seconds):
        """One REQ, one that names a third party, and many more."""
        self.attacker.send(forged.request(ONE, self.victim.end), forged.request(LIAR, self.victim.end, name=THIRD))
        failures = self.many(seconds)
        of_one, of_liar = self.attacker.heard(*ONE), self.attacker.heard(*LIAR)
        said = [packet.attribute for packet in of_one]
        third = self.attacker.drawn("third")
        print(f"in {seconds} s a REQ draws {len(of_one)} packets (at most {MOST_PACKETS}); one that names another address draws "
              f"{kinds(of_liar)}, and {third} packets go there", flush=True)
        require(forged.REP in said, "the REQ is not accepted: the test does not speak the endpoint's language")
        if len(of_one) > MOST_PACKETS:
            failures.append(f"a REQ draws {len(of_one)} packets")
        if third != 0:
            failures.append(f"{third} packets go to an address that only the private data name")
        if [packet.attribute for packet in of_liar] != [forged.REJ]:
            failures.append(f"a REQ that names another address is not refused: {kinds(of_liar)}")
        self.require_gone(next(packet for packet in of_one if packet.attribute == forged.REP))
        return failures

    def require_gone(self, rep):
        """Requires that a request of the flow that the REP has opened is one of an unknown flow."""
        before = self.victim.statistics()["unknown_flow"]
        self.attacker.send(forged.flow_request(ONE, self.victim.end, rep.context, rep.queue_key))
        wait_until(lambda: self.victim.statistics()["unknown_flow"] > before, PATIENCE, "the flow of a request without an RTU is gone")

    def many(self, seconds):
        """Many of them, each from another source, and the end of their deadlines."""
        before = self.victim.memory_kib(), self.victim.descriptors(), self.attacker.drawn()
        self.witness.watched()
        self.attacker.do("flood", *self.victim.end, MANY, RATE)
        time.sleep(0.5)
        at_once = self.victim.memory_kib()
        time.sleep(seconds)
        after = self.victim.memory_kib(), self.victim.descriptors(), self.attacker.drawn()
        drawn = after[2] - before[2]
        # An entry of the endpoint has one communication id, which each repetition of its REP names.
        accepted = len({packet.local_id for packet in self.witness.watched() if packet.attribute == forged.REP})
        print(f"{MANY} REQs, of which {accepted} are accepted, draw {drawn} packets; resident memory {before[0]}, then {at_once}, "
              f"after the deadlines {after[0]} KiB; descriptors {before[1]}, after the deadlines {after[1]}", flush=True)
        failures = []
        require(accepted >= ACCEPTED, f"{accepted} of the requests are accepted: the test does not flood")
        if drawn > MOST_PACKETS * (accepted + 2):
            failures.append(f"{accepted} accepted REQs draw {drawn} packets")
        if after[1] != before[1]:
            failures.append(f"{after[1] - before[1]} descriptors are left")
        # The first time the process learns how much memory such a flood takes: no later one takes more.
        if self.warm and after[0] > before[0] + MEMORY_KIB:
            failures.append(f"{after[0] - before[0]} KiB are left")
        self.warm = True
        return failures

    def quiet(self):
        """Nothing more is sent to any of the sources."""
        before = self.attacker.drawn()
        time.sleep(QUIET)
        later = self.attacker.drawn() - before
        print(f"{later} packets in {QUIET} s after the deadlines", flush=True)
        return [f"{later} packets are sent after the deadlines"] if later else []


def main():
    hosts.enter()
    test, arguments = setup(__doc__, ("--seconds", {"type": int, "default": 9, "help": "to count the packets of one REQ"}),
                            ("--rounds", {"type": int, "default": 2, "help": f"of {MANY} requests"}))
    requests = Requests(test)
    failures = requests.first_round(arguments.seconds)
    for _ in range(1, arguments.rounds):
        failures += requests.many(DEADLINE)
    failures += requests.quiet()
    report(failures)
    requests.victim.close()


main()
