#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# What does a flood of requests for connections (FI_EP_MSG) with forged sources take from the honest peers of a listener?
"""The program of the listener accepts each request that is reported to it. During the flood a connection that exists goes on, and new
ones are made. The requests that are taken, the packets that they draw and the endpoints that they leave are bounded."""
import threading
import time

import hosts
from connecting import ConnectingPeer
from hostile import Attacker, report, three_hosts
from program import require, setup

LOOK = 0.1  # seconds between two looks
LONGEST_PAUSE = 1.5  # seconds in which the connection moves at least one message
AT_ONCE, PER_SECOND = 1024, 250  # requests that are taken (docs/design/connection_manager.md)
MOST_PACKETS = 4  # that one of them draws
NEWCOMER = 5.0  # seconds until a new peer has made its first connections
DEADLINE = 12  # seconds: 8 of the replies, and the time to close the endpoints


class Siege:
    """A listener with a connection, and the attacker."""

    def __init__(self, test):
        wire = three_hosts()
        self.test, self.wire, self.attacker, self.failures = test, wire, Attacker(wire[2]), []
        self.listener, self.peer = ConnectingPeer(test, wire[0], 0), ConnectingPeer(test, wire[1])
        self.newcomer = ConnectingPeer(test, wire[1])
        self.peer.tell("stream", *self.listener.end)

    def require(self, holds, text):
        """Remembers a broken rule."""
        if not holds:
            self.failures.append(text)

    def moved(self, seconds):
        """Messages of the connection in a second of that time."""
        before, begin = self.peer.ask().received, time.monotonic()
        time.sleep(seconds)
        return (self.peer.ask().received - before) / (time.monotonic() - begin)

    def flood(self, count, rate):
        """Returns (its seconds, messages a second, seconds until the new peer has made connections or None)."""
        done = []
        words = "flood", *self.listener.end, count, rate, "connections"
        thread = threading.Thread(target=lambda: done.append(self.attacker.do(*words, patience=60 + count / rate * 4)))
        thread.start()
        requests = self.listener.ask().requests
        while self.listener.ask().requests < requests + AT_ONCE / 4 and not done:  # the attacker makes the packets first
            time.sleep(0.02)
        begin = moved_at = time.monotonic()
        first = last = self.peer.ask().received
        connected = self.newcomer.ask().connected
        self.newcomer.tell("cycle", *self.listener.end, 1)
        waited = None
        while not done:
            time.sleep(LOOK)
            now, received = time.monotonic(), self.peer.ask().received
            if received > last:
                last, moved_at = received, now
            elif now - moved_at > LONGEST_PAUSE and not done:
                self.require(False, f"the connection stands still for {now - moved_at:.1f} s")
                moved_at = now
            if waited is None and self.newcomer.ask().connected > connected:
                waited = now - begin
        thread.join()
        return done[0], (last - first) / (time.monotonic() - begin), waited

    def end_newcomer(self):
        """Its last connection ends as planned."""
        self.newcomer.require_line("talks")
        self.newcomer.tell("rest")
        self.newcomer.require_line("rests")


def main():
    hosts.enter()
    test, arguments = setup(__doc__, ("--count", {"type": int, "default": 100_000}),
                            ("--rate", {"type": int, "default": 25_000, "help": "REQs a second"}))
    siege = Siege(test)
    usual, descriptors = siege.moved(2), siege.listener.descriptors()
    before = siege.listener.ask()
    seconds, under_flood, waited = siege.flood(arguments.count, arguments.rate)
    siege.end_newcomer()
    flooded, accepted = siege.listener.ask(), siege.newcomer.ask()
    time.sleep(DEADLINE)
    after, drawn = siege.listener.ask(), siege.attacker.drawn()
    taken = flooded.requests - before.requests - accepted.connected - accepted.failed
    most = AT_ONCE + PER_SECOND * (seconds + 5)
    print(f"{arguments.count} REQs in {seconds:.1f} s, of which {taken} are accepted (at most {most:.0f}), draw {drawn} packets\n"
          f"a connection moves {usual:.0f} messages a second without the flood, {under_flood:.0f} with it\n"
          f"a new peer makes its first connection after {'the flood' if waited is None else f'{waited:.2f} s'}, and {accepted.connected} in all\n"
          f"endpoints: {before.open}, then {flooded.open}, then {after.open}; descriptors {descriptors}, then {siege.listener.descriptors()}",
          flush=True)
    require(drawn > 100, "the flood draws nothing: the test does not speak the listener's language")
    siege.require(taken <= most, f"{taken} forged requests are taken")
    siege.require(drawn <= MOST_PACKETS * most, f"{drawn} packets are drawn")
    siege.require(waited is not None and waited < NEWCOMER, "a new peer does not get through during the flood")
    siege.require(after.open <= before.open, f"{after.open - before.open} endpoints are left")
    siege.require(siege.listener.descriptors() <= descriptors, "descriptors are left")
    siege.require(siege.peer.ask().ended + siege.peer.ask().failed == 0, "the connection has ended")
    siege.require(siege.peer.ask().broken + after.broken == 0, "messages are damaged")
    report(siege.failures)


main()
