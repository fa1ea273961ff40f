#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# What do requests for connections (FI_EP_MSG) with forged sources draw from a listener whose program accepts each of them?
"""One REQ draws at most 4 packets in all. One whose private data name another address than its source is refused, and nothing is
sent there. Each accepting endpoint whose RTU never comes gets FI_ECONNABORTED within its deadline, and nothing is left of 1,000 of
them."""
import time

import forged
import hosts
from connecting import ConnectingPeer
from hostile import Attacker, report, three_hosts, wait_until
from program import require, setup

MOST_PACKETS = 4  # that one REQ draws
# Of forged REQs 512 are taken at once, and 250 a second (docs/design/connection_manager.md): more come than are taken.
PART, PAUSE, PARTS = 100, 0.2, 60  # REQs, seconds until the next ones, at most so many
DEADLINE = 12  # seconds: 8 of the replies, and the time to close the endpoints
QUIET = 2.5  # seconds without a packet: longer than the longest pause between two replies
ONE, LIAR, THIRD = ("10.77.255.1", 7001), ("10.77.255.2", 7002), ("10.78.0.1", 7002)


class Requests:
    """A listener and the forged requests to it."""

    def __init__(self, test):
        wire = three_hosts()
        self.attacker, self.listener = Attacker(wire[2]), ConnectingPeer(test, wire[0], 0)
        self.peer = ConnectingPeer(test, wire[1])
        self.failures, self.next = [], 0  # the number of the next source
        for end in (ONE, LIAR):
            self.attacker.listen(*end)

    def connect(self, seed):
        """A true peer makes connections; returns when it has left."""
        self.peer.tell("cycle", *self.listener.end, seed)
        self.peer.require_line("talks")
        self.peer.tell("rest")
        self.peer.require_line("rests")

    def require(self, holds, text):
        """Remembers a broken rule."""
        if not holds:
            self.failures.append(text)

    def one_each(self):
        """One REQ, and one that names a third party."""
        self.attacker.send(forged.connection_request(ONE, self.listener.end),
                           forged.connection_request(LIAR, self.listener.end, name=THIRD))

    def judge_each(self):
        """What the two have drawn."""
        of_one, of_liar = self.attacker.heard(*ONE), self.attacker.heard(*LIAR)
        third = self.attacker.drawn("third")
        print(f"a REQ draws {of_one}; one that names another address draws {of_liar}, and {third} packets go there", flush=True)
        require(forged.REP in [packet.attribute for packet in of_one],
                "the REQ is not accepted: the test does not speak the listener's language")
        self.require(len(of_one) <= MOST_PACKETS, f"a REQ draws {len(of_one)} packets")
        self.require(third == 0, f"{third} packets go to an address that only the private data name")
        self.require([packet.attribute for packet in of_liar] == [forged.REJ],
                     f"a request that names another address is not refused: {of_liar}")

    def flood(self, accepted):
        """From as many sources as REQs, until so many are accepted; returns how many were sent."""
        before, sent = self.listener.ask().accepted, 0
        while self.listener.ask().accepted < before + accepted:
            require(sent < PART * PARTS, f"{self.listener.ask().accepted - before} of {sent} requests are accepted")
            sources = [(f"10.77.{number >> 8}.{number & 0xFF}", 1024 + number) for number in range(self.next, self.next + PART)]
            self.attacker.send(*(forged.connection_request(source, self.listener.end) for source in sources))
            self.next, sent = self.next + PART, sent + PART
            time.sleep(PAUSE)
        return sent

    def many(self, accepted, begin=lambda: None):
        """Accepted ones, beside those of `begin`; ends behind the deadlines of all."""
        before, known, drawn = self.listener.descriptors(), self.listener.ask(), self.attacker.drawn()
        begin()
        sent = self.flood(accepted)
        held, begin = self.listener.descriptors(), time.monotonic()
        while self.listener.ask().open and time.monotonic() - begin < DEADLINE:
            time.sleep(0.1)
        seconds, counts = time.monotonic() - begin, self.listener.ask().since(known)
        drawn = self.attacker.drawn() - drawn
        after = self.listener.descriptors()
        print(f"of {sent} requests {counts.requests} are reported and {counts.accepted} accepted, of which {counts.aborted} end by "
              f"FI_ECONNABORTED and {counts.failed - counts.aborted} by other errors; {counts.open} endpoints are open after {seconds:.1f} s; "
              f"{drawn} packets are drawn; descriptors {before}, then {held}, then {after}", flush=True)
        self.require(counts.accepted >= accepted, f"{counts.accepted} requests are accepted")
        self.require(counts.requests == counts.accepted, f"fi_accept fails for {counts.requests - counts.accepted} requests")
        self.require(counts.failed == counts.aborted == counts.accepted,
                     f"{counts.accepted} endpoints accept and get {counts.failed} error events, of which {counts.aborted} say FI_ECONNABORTED")
        self.require(counts.open == 0, f"{counts.open} endpoints hear nothing")
        self.require(counts.connected == 0, f"{counts.connected} forged connections are established")
        self.require(drawn <= MOST_PACKETS * (counts.accepted + 2), f"{drawn} packets are drawn")
        self.require(after <= before, f"{after - before} descriptors are left")

    def quiet(self):
        """Nothing more is sent to any of the sources."""
        before = self.attacker.drawn()
        time.sleep(QUIET)
        later = self.attacker.drawn() - before
        self.require(later == 0, f"{later} packets are sent after the deadlines")


def main():
    hosts.enter()
    test, arguments = setup(__doc__, ("--accepted", {"type": int, "default": 1000, "help": "requests in a round"}),
                            ("--rounds", {"type": int, "default": 1}))
    requests = Requests(test)
    requests.connect(1)
    requests.many(arguments.accepted, requests.one_each)
    requests.judge_each()
    for _ in range(1, arguments.rounds):
        requests.many(arguments.accepted)
    requests.quiet()
    requests.connect(2)
    requests.listener.close()
    report(requests.failures)


main()
