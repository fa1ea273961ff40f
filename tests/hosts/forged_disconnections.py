#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Can a host that sees none of the packets of a connection (FI_EP_MSG) end it?
"""Forged messages and ICMP errors that suggest a new instance, a dead peer or an end leave a connection alone, even with the true
communication ids: transaction ids, contexts and Q_Keys are drawn at random. A listener that has really restarted at the same
port is reachable again, and the end of the former one is reported; the seconds are printed."""
import time

import forged
import hosts
from connecting import ConnectingPeer
from hostile import PATIENCE, Attacker, Siege, icmp_errors, report, settle, three_hosts, wait_until
from program import require, setup

MESSAGES = "rx_connection_messages"


class Connection(Siege):
    """One between a listener's process and a requester, which send to each other without a pause, and the attacker."""

    def __init__(self, test, watch):
        self.test = test
        self.wire = three_hosts()
        self.listener, self.requester = ConnectingPeer(test, self.wire[0], 0), ConnectingPeer(test, self.wire[1])
        witness = Attacker(self.wire[0])
        witness.watch()
        self.requester.tell("stream", *self.listener.end)
        wait_until(lambda: self.requester.ask().received > 0, PATIENCE, "the first messages")
        replies = [packet for packet in witness.watched() if packet.attribute == forged.REP]
        require(replies, "no REP is seen")
        witness.close()
        own = [packet for packet in replies if packet.source[0] == self.wire[0].ipv4]
        # Communication ids: the acceptor's and the requester's.
        self.ids = [(each.local_id, each.remote_id) if each in own else (each.remote_id, each.local_id) for each in replies]
        super().__init__(Attacker(self.wire[2]), (self.listener, self.requester), (own[-1].source, own[-1].to), watch)
        print(f"the ends are {self.ends}, communication ids {self.ids}", flush=True)

    def forge(self, of):
        """Everything that an off-path host can say to one end in the name of the other one, or of its host: a name, packets, and the
        counter of the end that grows."""
        here, there = self.ends[of], self.ends[1 - of]
        mine_and_yours = [(pair[of], pair[1 - of]) for pair in self.ids]
        many = [pair for pair in mine_and_yours for _ in range(256 // len(mine_and_yours))]
        for reason in (forged.STALE, forged.CONSUMER):
            yield f"REJs with reason {reason}", [forged.rejection(there, here, mine, reason) for mine, _ in many], MESSAGES
        yield "REJs that quote packets", [forged.rejection(there, here, 0, forged.STALE, (part << 16 | 1).to_bytes(4, "big"))
                                          for part in range(256)], MESSAGES
        yield "REQs of other instances", [forged.connection_request(there, here) for _ in range(16)], MESSAGES
        yield "REQs with known ids", [forged.connection_request(there, here, local_id=yours) for _, yours in mine_and_yours], MESSAGES
        listener = self.listener.end
        yield "REQs to the listener", [forged.connection_request(self.ends[1], listener, local_id=each)
                                       for each in (None, self.ids[-1][1])], None
        yield "DREQs", [forged.disconnect(there, here, yours, mine) for mine, yours in many], MESSAGES
        for name, attribute in (("DREPs", forged.DREP), ("RTUs", forged.RTU), ("LAPs", forged.LAP)):
            yield name, [forged.with_ids(there, here, attribute, yours, mine) for mine, yours in many], MESSAGES
        yield "APRs", [forged.unknown_connection(there, here, yours, mine) for mine, yours in many], MESSAGES
        for name, quoted in (("a request", forged.flow_request(here, there)), ("a REQ", forged.connection_request(here, there)),
                             ("a REQ to the listener", forged.connection_request(here, listener))):
            yield f"ICMP errors that quote {name}", [forged.port_unreachable(there[0], quoted)] * 30, None
        yield "CNPs", [forged.congestion_notification(there, here) for _ in range(100)], "unknown_flow"

    def besiege(self):
        """Both ends, with messages under way and without."""
        for of, role in enumerate(("acceptor", "requester")):
            before = icmp_errors(self.wire[of])
            for name, packets, counter in self.forge(of):
                self.survive(f"{name} to the {role}", packets, counter, of)
            after = icmp_errors(self.wire[of])
            require(after[0] >= before[0] + 90 and after[1] == before[1], f"ICMP errors do not arrive: {before}, then {after}")
            self.survive_at_rest(self.forge(of), self.hold, self.go)

    def hold(self):
        """Nothing is under way any more."""
        self.requester.tell("hold")
        settle(*self.both)

    def go(self):
        """Messages arrive again."""
        self.requester.tell("go")
        before = self.requester.ask().received
        wait_until(lambda: self.requester.ask().received > before, PATIENCE, "messages after a rest")

    def restart(self):
        """The listener's process is killed and another one takes its port."""
        connected = self.requester.ask().connected
        begin = time.monotonic()
        self.listener.kill()
        self.listener = ConnectingPeer(self.test, self.wire[0], self.listener.end[1])
        self.requester.tell("stream", *self.listener.end)
        reachable = wait_until(lambda: self.requester.ask().connected > connected, PATIENCE, "a restarted listener accepts")
        said = self.requester.require_line("ended")
        noticed = time.monotonic() - begin
        print(f"a restarted listener accepts after {reachable:.2f} s; the former connection ends after {noticed:.2f} s: {said}", flush=True)
        if not said.endswith("FI_SHUTDOWN"):
            self.failures.append(f"the end of a connection is reported as: {said}")


def main():
    hosts.enter()
    test, arguments = setup(__doc__, ("--watch", {"type": float, "default": 0.1, "help": "seconds after each kind of packets"}))
    connection = Connection(test, arguments.watch)
    connection.besiege()
    connection.restart()
    report(connection.failures)


main()
