#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# When does one end of a connection (FI_EP_MSG) report that the process of the other end is stopped?
"""After FI_WEFT_PEER_TIMEOUT_MS of its own process, which has 4 s here, and not before: the end that requested the connection and the
one that accepted it, while messages are exchanged and while there are none. A connection whose process goes on before that time survives
without a loss. A process that continues later reports the end, too, and makes connections again."""
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import hosts
from connecting import ConnectingPeer
from hostile import PATIENCE, report, wait_until
from program import setup

TIMEOUT = 4.0  # seconds
# Seconds that a connection survives. An idle one was heard last up to the interval of the probes, 2 s, before its process is stopped.
SHORT = {"busy": 2.0, "idle": 0.75}


class Pair:
    """A requester and an acceptor with a connection. One of them is stopped, the other one has the shorter timeout."""

    def __init__(self, test, wire, stopped, state):
        patient, brief = test.env, {**test.env, "FI_WEFT_PEER_TIMEOUT_MS": str(int(TIMEOUT * 1000))}
        is_requester = stopped == "requester"
        self.name, self.idle, self.failures = f"{state}, the {stopped} is stopped", state == "idle", []
        self.acceptor = ConnectingPeer(test, wire[0], 0, env=brief if is_requester else patient)
        self.requester = ConnectingPeer(test, wire[1], env=patient if is_requester else brief)
        self.stopped, self.other = (self.requester, self.acceptor) if is_requester else (self.acceptor, self.requester)
        self.short = SHORT[state]

    def signal(self, number):
        """To the process that is stopped and goes on."""
        os.kill(self.stopped.process.pid, number)

    def moves(self):
        """Waits until messages have arrived at both ends."""
        before = [each.ask().received for each in (self.requester, self.acceptor)]
        wait_until(lambda: all(each.ask().received > count for each, count in zip((self.requester, self.acceptor), before)),
                   PATIENCE, f"{self.name}: messages")

    def connect(self):
        """A new connection, in the state that is under test."""
        self.requester.tell("stream", *self.acceptor.end)
        self.moves()
        if self.idle:
            self.requester.tell("hold")

    def rest(self):
        """Probes keep an idle connection."""
        time.sleep(TIMEOUT + 1)
        events = self.events(self.requester) + self.events(self.acceptor)
        if events:
            self.failures.append(f"{self.name}: {events} events before that")

    def events(self, peer):
        """The ends and errors that it was told."""
        counts = peer.ask()
        return counts.ended + counts.failed

    def stop_briefly(self):
        """The connection survives."""
        self.signal(signal.SIGSTOP)
        time.sleep(self.short)
        early = self.events(self.other)
        self.signal(signal.SIGCONT)
        self.requester.tell("go")
        self.moves()
        events = early + self.events(self.requester) + self.events(self.acceptor)
        broken = self.requester.ask().broken + self.acceptor.ask().broken
        if events or broken:
            self.failures.append(f"{self.name} for {self.short} s: {events} events, {broken} damaged messages")
        if self.idle:
            self.requester.tell("hold")
            self.rest()

    def stop(self):
        """The other end gets FI_SHUTDOWN, and not before the time that a connection survives."""
        self.signal(signal.SIGSTOP)
        waited = wait_until(lambda: self.events(self.other), PATIENCE, f"{self.name}: the event")
        if waited < self.short:
            self.failures.append(f"{self.name}: the event comes after {waited:.2f} s")
        self.signal(signal.SIGCONT)
        late = wait_until(lambda: self.events(self.stopped), PATIENCE, f"{self.name}: the event at the end that goes on")
        print(f"{self.name}: FI_SHUTDOWN after {waited:.2f} s, at the end that goes on after {late:.2f} s\n", end="", flush=True)
        for each in (self.requester, self.acceptor):
            counts = each.ask()
            if counts.ended != 1 or counts.failed or counts.open:
                self.failures.append(f"{self.name}: {counts.ended} ends, {counts.failed} errors, {counts.open} open endpoints")

    def run(self):
        """The whole test of these two."""
        self.connect()
        if self.idle:
            self.rest()
        self.stop_briefly()
        self.stop()
        self.requester.tell("go")
        self.connect()
        for each in (self.requester, self.acceptor):
            each.close()
        return self.failures


def main():
    hosts.enter()
    test, _ = setup(__doc__)
    wire = hosts.Hosts(2)
    pairs = [Pair(test, wire, stopped, state) for state in SHORT for stopped in ("requester", "acceptor")]
    with ThreadPoolExecutor(len(pairs)) as threads:
        report([failure for failures in threads.map(Pair.run, pairs) for failure in failures])


main()
