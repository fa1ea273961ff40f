#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does one end of a connection get its event when the other end is killed, whatever both are doing?
"""Two processes connect, exchange messages, and end their connections, in all ways and without a pause. One of them is killed
(SIGKILL) at a random moment. The other one gets the end of the connection, or the error of the attempt, and has no descriptor
and no shared file more than before. The next process at the same address is connected to. The times are printed."""
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import hosts
from connecting import ConnectingPeer
from hostile import PATIENCE, QUIET, report, wait_until
from program import require, setup

EARLY = 0.25  # of the moments are before the first connection has ended
RELAY = 1  # descriptor: port 4791 of the host, when the process has ended that has had it
OWN_FILES = 3  # of a victim: its region table, its counters, a port
MOMENT = {False: 0.03, True: 0.06}  # seconds: many times the life of a connection


class ThisHost:
    """This one, without a namespace."""
    ipv4 = "127.0.0.1"

    @staticmethod
    def words(*command):
        """What runs a command there."""
        return list(command)


class Lane:
    """A survivor, which listens or asks, and the victims that are killed one after the other."""

    def __init__(self, test, places, number, seed):
        self.test, self.listens = test, number % 2 == 0
        self.between_hosts = places[0] is not places[1]
        self.here, self.there = places
        self.random = random.Random(f"{seed} {number}")
        self.directory = f"/dev/shm/weft-kills-{os.getpid()}-{number}"
        self.env = {**test.env, "WEFT_RUNTIME_DIR": self.directory, "FI_PROVIDER": "weft"}
        for place in set(places):
            hosts.call(*place.words("mkdir", "-m", "700", self.directory))
        self.survivor = self.start(self.here, self.listens)
        self.victim, self.before = None, None
        self.port = 0  # of victims that listen
        self.waits, self.reached, self.failures = [], [], []

    def start(self, host, listens, port=0):
        """A process of that role."""
        return ConnectingPeer(self.test, host, port if listens else None, self.env)

    def files(self, host):
        """How many are in the runtime directory."""
        return len(hosts.call(*host.words("find", self.directory, "-not", "-type", "d")).splitlines())

    def held_at_rest(self):
        """Descriptors of the survivor and shared files on its host, once they are the same in two looks."""
        seen = []

        def is_steady():
            time.sleep(QUIET)
            seen.append((self.survivor.descriptors(), self.files(self.here)))
            return len(seen) > 1 and seen[-1] == seen[-2]
        wait_until(is_steady, PATIENCE, "the last connection leaves nothing")
        return seen[-1]

    def begin(self):
        """Starts a victim, and the connections between both; returns the process that asks."""
        self.victim = self.start(self.there, not self.listens, self.port)
        if self.before is not None:
            # Files of a victim to which the survivor was not connected are removed by the next process.
            files = self.files(self.here) - (0 if self.between_hosts else OWN_FILES)
            require(files <= self.before[1], f"shared files {self.before[1]}, beside a new process {files}")
        listener, asker = (self.survivor, self.victim) if self.listens else (self.victim, self.survivor)
        self.port = self.victim.end[1]
        asker.tell("cycle", *listener.end, self.random.getrandbits(60))
        return asker

    def talk(self, asker):
        """Until the first connection has ended as planned."""
        begin = time.monotonic()
        asker.require_line("talks")
        self.reached.append(time.monotonic() - begin)

    def rehearse(self):
        """Nothing is killed."""
        asker = self.begin()
        self.talk(asker)
        asker.tell("rest")
        asker.require_line("rests")
        wait_until(lambda: self.survivor.ask().open == 0, PATIENCE, "the last connection ends")
        self.victim.close()

    def settle(self):
        """The survivor has no more descriptors than before. (Between hosts a port waits 8 s for the answer of a dead peer to its DREQ or
        REP.)"""
        wait_until(lambda: self.survivor.descriptors() <= self.before[0] + RELAY, PATIENCE,
                   f"descriptors {self.before[0]}, then {self.survivor.descriptors()}")

    def hear_of_end(self):
        """What a survivor that asks says of it."""
        if self.listens:
            return "acceptor"
        line = self.survivor.line()
        return line if line.startswith("ended") else self.survivor.require_line("ended")

    def kill_one(self):
        """One moment."""
        asker = self.begin()
        early = self.random.random() < EARLY
        if not early:
            self.talk(asker)
        time.sleep(self.random.uniform(0, MOMENT[self.between_hosts] / (4 if early else 1)))
        begin = time.monotonic()
        self.victim.kill()
        reason = self.hear_of_end()
        counts = self.survivor.ask()
        while counts.open:
            require(time.monotonic() - begin < PATIENCE, f"{counts.open} endpoints get no event")
            counts = self.survivor.ask()
        waited = time.monotonic() - begin
        if not self.listens:  # a connection may have ended before the last attempt began
            last = int(reason.split()[1]) / 1000
            waited = max(waited - last, min(waited, last))
        self.waits.append(waited)
        if counts.broken:
            self.failures.append(f"{counts.broken} messages are damaged")

    def kill(self, moments):
        """All of them, and a last victim that ends in order."""
        self.rehearse()
        self.before = self.held_at_rest()
        for _ in range(moments):
            self.kill_one()
            self.settle()
        self.rehearse()
        self.survivor.close()
        for place in {self.here, self.there}:
            left = self.files(place)
            require(left == 0, f"{left} files are left in the runtime directory")

    def run(self, moments):
        """The whole test of these two."""
        try:
            self.kill(moments)
        finally:
            for place in {self.here, self.there}:
                hosts.call(*place.words("rm", "-rf", self.directory))

    def describe(self):
        """In one line."""
        waits, reached = sorted(self.waits), max(self.reached)
        return (f"{'listener' if self.listens else 'requester'} survives {len(waits)} kills: the event comes after "
                f"{waits[len(waits) // 2] * 1000:.0f} ms (median), {waits[-1] * 1000:.0f} ms (longest); "
                f"a new process is reached within {reached * 1000:.0f} ms")


def main():
    between_hosts = "--between-hosts" in sys.argv
    if between_hosts:
        hosts.enter()
    test, arguments = setup(__doc__, ("--between-hosts", {"action": "store_true", "help": "instead of within this one"}),
                            ("--moments", {"type": int, "default": 40}),
                            ("--lanes", {"type": int, "default": 2, "help": "pairs of processes at once"}),
                            ("--seed", {"type": int, "default": 1}))
    # Each pair has hosts of its own: a host sends one ICMP error a second to another one.
    places = list(hosts.Hosts(2 * arguments.lanes)) if between_hosts else [ThisHost] * 2 * arguments.lanes
    lanes = [Lane(test, places[2 * number:2 * number + 2], number, arguments.seed) for number in range(arguments.lanes)]
    with ThreadPoolExecutor(len(lanes)) as threads:
        for run in [threads.submit(lane.run, arguments.moments // len(lanes)) for lane in lanes]:
            run.result()
    failures = [failure for lane in lanes for failure in lane.failures]
    for lane in lanes:
        print(lane.describe(), flush=True)
    report(failures)


main()
