#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Which event does a requester (FI_EP_MSG) get when packets do not reach the listener's port?
"""A host without a listener sends ICMP errors: FI_ECONNREFUSED. A host is silent: FI_ETIMEDOUT after FI_WEFT_REQUEST_TIMEOUT_MS, and not
before. A listener whose port is filtered is reached by port 4791 of its host. The seconds are printed."""
import hosts
from connecting import ConnectingPeer
from hostile import PATIENCE, report, wait_until
from program import setup

TIMEOUT = 1.5  # seconds: that of the request
FREE_PORT = 9  # no listener has it
FILTER = """
table ip filter {{
  chain prerouting {{
    type filter hook prerouting priority raw;
    iifname eth0 meta l4proto udp {match} drop;
  }}
}}
"""


class Requester:
    """A process that asks for connections, and what is wrong with its events."""

    def __init__(self, test, host):
        env = {**test.env, "FI_WEFT_REQUEST_TIMEOUT_MS": str(int(TIMEOUT * 1000))}
        self.peer = ConnectingPeer(test, host, env=env)
        self.failures = []

    def expect(self, name, end, error, earliest=0):
        """The error event of a request, which takes so many seconds or more."""
        self.peer.tell("stream", *end)
        said = self.peer.require_line("ended").split(maxsplit=2)
        seconds = int(said[1]) / 1000
        print(f"{name}: {said[2]} after {seconds:.3f} s", flush=True)
        if said[2] != error or seconds < earliest:
            self.failures.append(f"{name}: {said[2]} after {seconds:.3f} s")

    def expect_connection(self, name, end):
        """The request succeeds."""
        connected = self.peer.ask().connected
        self.peer.tell("stream", *end)
        seconds = wait_until(lambda: self.peer.ask().connected > connected, PATIENCE, f"{name}: a connection")
        print(f"{name}: connected after {seconds:.3f} s", flush=True)


def drop(host, match):
    """From now on the host does not receive such packets of UDP, and says nothing about them."""
    hosts.call(*host.words("nft", "-f", "-"), text="flush ruleset\n" + FILTER.format(match=match))


def main():
    hosts.enter()
    test, _ = setup(__doc__)
    wire = hosts.Hosts(2)
    listener, requester = ConnectingPeer(test, wire[0], 0), Requester(test, wire[1])
    for host in (wire[0], wire[1]):
        requester.expect(f"no listener at {host.name}", (host.ipv4, FREE_PORT), "Connection refused")
    drop(wire[0], f"udp dport {listener.end[1]}")
    requester.expect_connection("a listener behind a filter", listener.end)
    drop(wire[0], "udp dport >= 0")
    requester.expect("a silent host", listener.end, "Connection timed out", TIMEOUT)
    report(requester.failures)


main()
