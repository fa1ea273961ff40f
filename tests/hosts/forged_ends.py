#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Can a host that sees none of the packets between two endpoints end their flows?
"""Forged messages and ICMP errors that suggest a new instance, a dead peer or an end leave live flows alone, even with the true
communication ids. A peer that has really restarted at the same address is reachable again, and the end of a peer's process is
noticed; the seconds are printed."""
import itertools
import time

import forged
import hosts
from hostile import PATIENCE, Attacker, Endpoint, Siege, icmp_errors, report, rest, talk, three_hosts, wait_until
from program import require, setup

GUESSES = 16  # communication ids of each end
MESSAGES = "rx_connection_messages"


class Flows(Siege):
    """Two endpoints that send to each other without a pause, and the attacker."""

    def __init__(self, test, watch):
        self.test = test
        self.wire = three_hosts()
        self.victim, self.peer = Endpoint(test, self.wire[0]), Endpoint(test, self.wire[1])
        super().__init__(Attacker(self.wire[2]), (self.victim, self.peer), (self.victim.end, self.peer.end), watch)
        witness = Attacker(self.wire[0])
        witness.watch()
        talk(self.victim, self.peer)
        replies = [packet for packet in witness.watched() if packet.attribute == forged.REP and {packet.source, packet.to} == set(self.ends)]
        witness.close()
        require({reply.source for reply in replies} == set(self.ends), "the REPs of the flows are not seen")
        self.near = self.true_ids(replies)
        print(f"communication ids of the flows, and those near them: {self.near}", flush=True)
        # What the victim's requests carry. The peer, and hosts that it tells, can quote them.
        self.named = [(reply.context, reply.queue_key) for reply in replies if reply.source == self.peer.end]

    def true_ids(self, replies):
        """16 ids of each end: those of its live flows, as the REPs name them, and others near them. An off-path host cannot see these
        ids; it is helped here, because 16 bits can be guessed."""
        near = {}
        for end in self.ends:
            true = sorted({reply.local_id if reply.source == end else reply.remote_id for reply in replies})
            others = (given + step & 0xFFFFFFFF for step in range(1, GUESSES) for given in true)
            near[end] = (true + [each for each in others if each not in true])[:GUESSES]
        return near

    def forge(self):
        """Everything that an off-path host can say to the first endpoint in the name of its peer, or of its host: a name, packets, and
        the counter of the endpoint that grows."""
        here, there = self.victim.end, self.peer.end
        ids = list(itertools.product(self.near[there], self.near[here]))
        # The context of a flow has 16 bits of small numbers and 8 random ones.
        yield "512 REJs of stale connections", [
            forged.rejection(there, here, remote_id, forged.STALE, (part << 16 | number).to_bytes(4, "big"))
            for number in (1, 2) for part, remote_id in zip(range(256), [0] + self.near[here] * 16)], MESSAGES
        yield "a REQ of another instance", [forged.request(there, here)], MESSAGES
        yield "16 REQs of other instances", [forged.request(there, here) for _ in range(16)], MESSAGES
        yield "16 REQs with ids of living connections", [
            forged.request(there, here, local_id=mine) for mine in self.near[there]], MESSAGES
        yield "512 REJs of known ids", [forged.rejection(there, here, yours, forged.CONSUMER) for _, yours in ids * 2], MESSAGES
        yield "256 DREQs", [forged.disconnect(there, here, *pair) for pair in ids], MESSAGES
        for name, attribute in (("DREP", forged.DREP), ("RTU", forged.RTU), ("LAP", forged.LAP)):
            yield f"256 {name}s", [forged.with_ids(there, here, attribute, *pair) for pair in ids], MESSAGES
        yield "256 APRs", [forged.unknown_connection(there, here, *pair) for pair in ids], MESSAGES
        quoted = {"a request of a flow": [forged.flow_request(here, there)], "a REQ": [forged.request(here, there)],
                  "a request of each flow with its Q_Key": [forged.flow_request(here, there, *named) for named in self.named]}
        for count, (name, packets) in itertools.product((3, 30), quoted.items()):
            yield f"{count} ICMP errors that quote {name}", [forged.port_unreachable(there[0], each) for each in packets] * count, None
        yield "100 CNPs", [forged.congestion_notification(there, here) for _ in range(100)], "unknown_flow"

    def restart(self):
        """The peer's process is killed and another one takes its address: both find each other."""
        self.peer.kill()
        self.peer = Endpoint(self.test, self.wire[1], self.peer.end[1])
        self.peer.tell("to", *self.victim.end)
        begin = self.victim.ask()
        seconds = wait_until(lambda: self.peer.ask().received > 0 and self.peer.ask().sent > 0, PATIENCE,
                             "a restarted peer is heard and hears")
        later = self.victim.ask()
        print(f"a restarted peer is reachable after {seconds:.2f} s ({later.ended - begin.ended} failed sends)", flush=True)

    def death(self):
        """The peer's process is killed while packets are sent to it, which its host answers by ICMP errors."""
        before = self.victim.ask().ended
        self.peer.kill()
        seconds = wait_until(lambda: self.victim.ask().ended > before, PATIENCE, "the end of the peer's process is noticed")
        print(f"the end of the peer's process is noticed after {seconds:.2f} s", flush=True)


def main():
    hosts.enter()
    test, arguments = setup(__doc__, ("--watch", {"type": float, "default": 0.1, "help": "seconds after each kind of packets"}),
                            ("--settle", {"type": float, "default": 2, "help": "seconds after all of them"}))
    flows = Flows(test, arguments.watch)
    before = icmp_errors(flows.wire[0])
    for attack in flows.forge():
        flows.survive(*attack)
    after = icmp_errors(flows.wire[0])
    require(after[0] >= before[0] + 99 and after[1] == before[1], f"ICMP errors do not arrive: {before}, then {after}")
    flows.watch = arguments.settle
    flows.survive("all of them", [])
    flows.survive_at_rest(flows.forge(), lambda: rest(*flows.both), lambda: talk(*flows.both))
    flows.restart()
    talk(flows.victim, flows.peer)
    flows.death()
    report(flows.failures)


main()
