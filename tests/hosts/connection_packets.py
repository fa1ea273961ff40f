#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Which messages of the connection manager make and end one connection (FI_EP_MSG) between hosts?
"""A connection is one REQ, one REP and one RTU, and nothing else: data and the private data of the program need no flow of their own. Its
end is DREQs and DREPs. A busy processor answers late: repeated messages count once, and those that ask a late peer (MRA, LAP,
APR), or answer its late data (a REJ that names no connection), do not count."""
import hosts
import forged
from connecting import ConnectingPeer
from hostile import PATIENCE, Attacker, report, wait_until
from program import setup

NAMES = {forged.REQ: "REQ", forged.REP: "REP", forged.RTU: "RTU", forged.DREQ: "DREQ", forged.DREP: "DREP"}
LATE = forged.MRA, forged.LAP, forged.APR
BEGIN, END = ["REP", "REQ", "RTU"], {"DREQ", "DREP"}
CONNECTIONS = 3  # each of a process of its own


def is_late(packet):
    """Whether a busy processor is why it is sent."""
    return packet.attribute in LATE or packet.attribute == forged.REJ and packet.reason == forged.STALE


def seen(witness):
    """The names of the messages since the last time, sorted, each once."""
    messages = {(packet.attribute, packet.transaction) for packet in witness.watched() if not is_late(packet)}
    return sorted(NAMES.get(attribute, f"{attribute:#x}") for attribute, _ in messages)


def connect_once(test, wire, listener, witness):
    """Makes one connection that exchanges messages, and ends it: what is wrong with the packets."""
    requester = ConnectingPeer(test, wire[1])
    requester.tell("stream", *listener.end)
    wait_until(lambda: requester.ask().received, PATIENCE, "messages arrive")
    begin = seen(witness)
    ended = listener.ask().ended
    requester.close()
    wait_until(lambda: listener.ask().ended > ended, PATIENCE, "the connection ends")
    end = seen(witness)
    print(f"a connection: {' '.join(begin)}; its end: {' '.join(end)}", flush=True)
    return [f"{' '.join(messages)} {when}" for messages, when, right in (
        (begin, "make a connection", begin == BEGIN), (end, "end it", bool(end) and set(end) <= END)) if not right]


def main():
    hosts.enter()
    test, _ = setup(__doc__)
    wire = hosts.Hosts(2)
    witness = Attacker(wire[0])
    witness.watch()
    listener = ConnectingPeer(test, wire[0], 0)
    report([failure for _ in range(CONNECTIONS) for failure in connect_once(test, wire, listener, witness)])


main()
