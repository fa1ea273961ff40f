#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# What does a flood of requests for connections (FI_EP_MSG) with forged sources take from the honest peers of a listener?
"""The program of the listener accepts each request that is reported to it. During the flood a connection that exists goes on, and new
ones are made. The requests that are taken, the packets that they draw and the endpoints that they leave are bounded. The measure of
the connection is the same flood to a port where the kernel of the attacked host drops it, in turn: so the ratio is the cost to the listener,
without that of the attacker's processor."""
import math
import statistics
import threading
import time

import hosts
from connecting import ConnectingPeer
from hostile import DROPPED_PORT, Attacker, report, three_hosts
from program import require, setup

LOOK = 0.1  # seconds between two looks
LONGEST_PAUSE = 1.5  # seconds in which the connection moves at least one message
AT_ONCE, PER_SECOND = 1024, 250  # requests that are taken (docs/design/connection_manager.md)
MOST_PACKETS = 4  # that one of them draws
NEWCOMER = 5.0  # seconds until a new peer has made its first connections
ONCE = 1  # descriptor: the relay of port 4791 opens one when it looks for another process for the first time
DEADLINE = 12  # seconds: 8 of the replies, and the time to close the endpoints
DOUBT = 2  # standard errors by which the mean of the ratios may be below the least one


class Siege:
    """A listener with a connection, and the attacker."""

    def __init__(self, test, rate):
        wire = three_hosts()
        self.rate, self.attacker, self.failures = rate, Attacker(wire[2]), []
        self.listener, self.peer = ConnectingPeer(test, wire[0], 0), ConnectingPeer(test, wire[1])
        self.newcomer = ConnectingPeer(test, wire[1])
        self.peer.tell("stream", *self.listener.end)

    def require(self, holds, text):
        """Remembers a broken rule."""
        if not holds:
            self.failures.append(text)

    def flood(self, port, count, meanwhile=lambda _: None):
        """Floods that port of the listener's host; returns the messages of the connection in a second."""
        done = []
        words = "flood", self.listener.end[0], port, count, self.rate, "connections"
        thread = threading.Thread(target=lambda: done.append(self.attacker.do(*words, patience=60 + count / self.rate * 4)))
        sent = self.attacker.sent()
        thread.start()
        while self.attacker.sent() < sent + count / 100 and not done:  # the attacker makes the packets first
            time.sleep(0.02)
        begin = moved_at = time.monotonic()
        first = last = self.peer.ask().received
        while not done:
            time.sleep(LOOK)
            now, received = time.monotonic(), self.peer.ask().received
            if received > last:
                last, moved_at = received, now
            elif now - moved_at > LONGEST_PAUSE and not done:
                self.require(False, f"the connection stands still for {now - moved_at:.1f} s")
                moved_at = now
            meanwhile(now - begin)
        thread.join()
        return (self.peer.ask().received - first) / (time.monotonic() - begin)

    def ratio(self, count):
        """Of what the connection moves during a flood of the listener to that during one of the dropped port."""
        usual = self.flood(DROPPED_PORT, count)
        return self.flood(self.listener.end[1], count) / usual

    def flood_newcomer(self, count):
        """Returns the seconds until a new peer has made its first connection during the flood, or None."""
        connected, waited = self.newcomer.ask().connected, []
        self.newcomer.tell("cycle", *self.listener.end, 1)

        def look(seconds):
            if not waited and self.newcomer.ask().connected > connected:
                waited.append(seconds)
        self.flood(self.listener.end[1], count, look)
        self.newcomer.require_line("talks")
        self.newcomer.tell("rest")
        self.newcomer.require_line("rests")
        return waited[0] if waited else None

    def judge_ratios(self, ratios, least):
        """Their mean may miss the least one by chance only."""
        mean = statistics.mean(ratios)
        error = statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else 0
        print(f"a connection moves {mean:.3f} (standard error {error:.3f}) of the messages that it moves without the flood: "
              f"{' '.join(f'{ratio:.2f}' for ratio in ratios)}", flush=True)
        self.require(mean + DOUBT * error >= least, f"a connection moves {mean:.3f} of its messages during the flood")


def main():
    hosts.enter()
    test, arguments = setup(__doc__, ("--count", {"type": int, "default": 100_000}),
                            ("--rate", {"type": int, "default": 25_000, "help": "REQs a second"}),
                            ("--rounds", {"type": int, "default": 2, "help": "with a part of the REQs each, to either port"}),
                            ("--least", {"type": float, "default": 0, "help": "ratio of messages during the flood that is required"}))
    siege = Siege(test, arguments.rate)
    siege.flood(DROPPED_PORT, arguments.rate)
    before, descriptors, begin = siege.listener.ask(), siege.listener.descriptors(), time.monotonic()
    ratios = [siege.ratio(arguments.count // (2 * arguments.rounds)) for _ in range(arguments.rounds)]
    waited = siege.flood_newcomer(arguments.count // 2)
    seconds, flooded, accepted = time.monotonic() - begin, siege.listener.ask(), siege.newcomer.ask()
    time.sleep(DEADLINE)
    after, drawn = siege.listener.ask(), siege.attacker.drawn()
    taken = flooded.requests - before.requests - accepted.connected - accepted.failed
    most = AT_ONCE + PER_SECOND * (seconds + 5)
    print(f"{arguments.count} REQs in {seconds:.1f} s, of which {taken} are accepted (at most {most:.0f}), draw {drawn} packets\n"
          f"a new peer makes its first connection after {'the flood' if waited is None else f'{waited:.2f} s'}, and {accepted.connected} in all\n"
          f"endpoints: {before.open}, then {flooded.open}, then {after.open}; descriptors {descriptors}, then {siege.listener.descriptors()}",
          flush=True)
    siege.judge_ratios(ratios, arguments.least)
    require(drawn > 100, "the flood draws nothing: the test does not speak the listener's language")
    siege.require(taken <= most, f"{taken} forged requests are taken")
    siege.require(drawn <= MOST_PACKETS * most, f"{drawn} packets are drawn")
    siege.require(waited is not None and waited < NEWCOMER, "a new peer does not get through during the flood")
    siege.require(after.open <= before.open, f"{after.open - before.open} endpoints are left")
    siege.require(siege.listener.descriptors() <= descriptors + ONCE, "descriptors are left")
    siege.require(siege.peer.ask().ended + siege.peer.ask().failed == 0, "the connection has ended")
    siege.require(siege.peer.ask().broken + after.broken == 0, "messages are damaged")
    report(siege.failures)


main()
