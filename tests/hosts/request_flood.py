#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# What does a flood of REQs with forged sources take from the honest peers of a reliable-datagram endpoint?
"""During the flood a new peer gets through, and an established flow goes on without losing anything; its throughput and its longest
pause are printed. What the flood draws, and the endpoint's memory, are bounded. The measure of the established flow is the same flood to a port where the kernel of
the attacked host drops it, in turn: so the ratio is the cost to the endpoint, without that of the attacker's processor. Messages per
second of processor time change less with the load of the machine than those per second."""
import threading
import time

import hosts
from hostile import DROPPED_PORT, Attacker, Endpoint, report, rest, talk, three_hosts
from program import require, setup

MOST_PACKETS = 4  # that one REQ draws
LOOK = 0.25  # seconds between two looks
NEWCOMER = 0.5  # seconds after the beginning of the flood
DEADLINE = 9  # seconds: 8 of the replies, and one more
MEMORY_KIB = 12288  # 2 KiB for each of 4,096 half-open requests, and room


class Moved:
    """Messages of the established flow, in both directions, during floods."""

    def __init__(self):
        self.messages, self.seconds, self.processor, self.pause = 0, 0, 0, 0

    def add(self, messages, seconds, processor):
        """In so many seconds, of which both processes ran for `processor` seconds."""
        self.messages, self.seconds, self.processor = self.messages + messages, self.seconds + seconds, self.processor + processor

    def rates(self):
        """Messages per second, and per second of processor time."""
        return self.messages / self.seconds, self.messages / self.processor


class Flood:
    """An endpoint, its peer and the attacker."""

    def __init__(self, test, rate):
        self.test, self.rate = test, rate
        self.wire = three_hosts()
        self.attacker = Attacker(self.wire[2])
        self.victim, self.peer = Endpoint(test, self.wire[0]), Endpoint(test, self.wire[1])
        self.failures = []
        self.peak_kib = 0
        self.waited = None

    def processor_seconds(self):
        """Of both ends of the established flow."""
        return self.victim.processor_seconds() + self.peer.processor_seconds()

    def run(self, port, count, moved_messages, meanwhile=lambda _: None):
        """Floods that port of the attacked host; returns the seconds that the flood took."""
        done = []
        words = "flood", self.victim.end[0], port, count, self.rate
        thread = threading.Thread(target=lambda: done.append(self.attacker.do(*words, patience=60 + count / self.rate * 4)))
        made = self.attacker.sent()
        thread.start()
        while self.attacker.sent() < made + count / 100 and not done:  # the attacker makes the packets first
            time.sleep(0.02)
        begin = at = self.victim.ask(), self.peer.ask()
        used = self.processor_seconds()
        moved = begin[0].time
        while not done:
            time.sleep(LOOK)
            now = self.victim.ask(), self.peer.ask()
            self.peak_kib = max(self.peak_kib, self.victim.memory_kib())
            if all(new.received > old.received for new, old in zip(now, at)):
                at, moved = now, now[0].time
            moved_messages.pause = max(moved_messages.pause, now[0].time - moved)
            meanwhile(now[0].time - begin[0].time)
        thread.join()
        end = self.victim.ask(), self.peer.ask()
        received = sum(new.received - old.received for new, old in zip(end, begin))
        moved_messages.add(received, end[0].time - begin[0].time, self.processor_seconds() - used)
        return done[0]

    def newcomer(self, endpoint):
        """Called during the flood: `endpoint` begins to send, and is heard."""
        started = []

        def look(seconds):
            if seconds < NEWCOMER:
                return
            if not started:
                endpoint.tell("to", *self.victim.end)
                started.append(seconds)
            elif self.waited is None and endpoint.ask().sent > 0:
                self.waited = seconds - started[0]
                endpoint.tell("rest")  # it would take its share of the established flow's throughput
        return look


def main():
    hosts.enter()
    test, arguments = setup(__doc__, ("--count", {"type": int, "default": 100_000}),
                            ("--rate", {"type": int, "default": 25_000, "help": "REQs a second"}),
                            ("--rounds", {"type": int, "default": 2, "help": "with a part of the REQs each, to either port"}))
    flood = Flood(test, arguments.rate)
    victim, attacker, failures = flood.victim, flood.attacker, flood.failures
    endpoint = Endpoint(test, flood.wire[1])
    talk(victim, flood.peer)
    usual, under_flood = Moved(), Moved()
    flood.run(DROPPED_PORT, arguments.rate, Moved())
    usual_kib, descriptors = flood.peak_kib, victim.descriptors()
    require(not failures, f"without a flood: {failures}")
    seconds, part = 0, arguments.count // (2 * arguments.rounds)
    for _ in range(arguments.rounds):
        flood.run(DROPPED_PORT, part, usual)
        seconds += flood.run(victim.end[1], part, under_flood)
    seconds += flood.run(victim.end[1], arguments.count // 2, Moved(), flood.newcomer(endpoint))
    rest(victim, flood.peer, endpoint)
    time.sleep(DEADLINE)
    drawn = attacker.drawn()
    most = MOST_PACKETS * arguments.count
    counters = victim.statistics()
    if under_flood.messages == 0:
        failures.append("the established flow stands still during the flood")
    ratios = [new / old for new, old in zip(under_flood.rates(), usual.rates())]
    print(f"{arguments.count} REQs in {seconds:.1f} s, of which {counters['rx_connection_messages']} connection messages were taken, "
          f"{counters.get('cm_requests_held_back', 0)} held back and {counters['socket_overflows']} dropped by the socket, draw {drawn} "
          f"packets (at most {most})\n"
          f"established flow: {usual.rates()[0]:.0f} messages/s without the flood, {under_flood.rates()[0]:.0f} with it, ratio "
          f"{ratios[0]:.3f}; for each second of processor time {ratios[1]:.3f}; longest pause {under_flood.pause:.1f} s\n"
          f"new peer: {'not heard during the flood' if flood.waited is None else f'heard after {flood.waited:.2f} s'}\n"
          f"resident memory: at most {usual_kib} KiB without the flood, {flood.peak_kib} with it, after the deadlines {victim.memory_kib()}; "
          f"descriptors {descriptors}, then {victim.descriptors()}", flush=True)
    require(drawn > 100, "the flood draws nothing: the test does not speak the endpoint's language")
    if drawn > most:
        failures.append(f"the flood draws {drawn} packets")
    if flood.waited is None:
        failures.append("a new peer does not get through during the flood")
    if flood.peak_kib > usual_kib + MEMORY_KIB:
        failures.append(f"the flood costs {flood.peak_kib - usual_kib} KiB")
    if victim.descriptors() != descriptors:
        failures.append(f"{victim.descriptors() - descriptors} descriptors are left")
    for name, figures in (("endpoint", victim.ask()), ("peer", flood.peer.ask()), ("new peer", endpoint.ask())):
        if figures.broken or figures.ended:
            failures.append(f"{name}: {figures.broken} messages are damaged or missing, {figures.ended} sends fail")
    report(failures)


main()
