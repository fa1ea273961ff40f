#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does one side of rping end rightly when the other one is killed, and is nothing left behind?
"""Kills (SIGKILL) one side at a random moment: while the client starts and connects, or once so many packets have passed. The survivor
ends with an event that says so, or with a completion in error; a server that has not heard of its client serves the next one. Then rping
runs undisturbed on the same port, and neither a socket nor a file of a runtime directory is left."""
import random
import re
import sys
import time
from collections import Counter

from listeners import Programs, free_port
import sides
import hosts

SERVER, CLIENT = "rping -s -a {address} -p {port} -V", "rping -c -a {address} -p {port} -V"
BOUNDED = " -C 100"
STARTING = 0.08  # seconds within which a client starts and connects; moments are among them
FIRST_PACKETS = 2000  # or among these
QUIET = 0.5  # seconds after which a message of a dead client has been received, if there was one
LIMIT = 30  # seconds, more than twice as long as a peer takes to notice
NOTICES = re.compile(r"DISCONNECT EVENT|cq completion failed status 1[23]|RDMA_CM_EVENT_REJECTED, error 8|RDMA_CM_EVENT_UNREACHABLE, error -\d+")
SIDES = ("server", "client")


def hears(process):
    """True once its connection manager has received a message, or it has ended by what it heard; false if none arrives."""
    end = time.monotonic() + QUIET
    while time.monotonic() < end:
        if sides.counted(process, "connection managers", ("rx_connection_messages",)) != 0 or process.poll() is not None:
            return True
        time.sleep(0.01)
    return False


class Lane:
    """Kills on one or two hosts, one after the other, over these links."""

    def __init__(self, build, count, links, seed):
        wire = hosts.Hosts(count, 9000)
        self._places = list(wire)
        self._where = f"{'between hosts' if count > 1 else 'within a host'} ({links})"
        self._programs = Programs(build, (wire[0], wire[count - 1]), FI_WEFT_LINKS=links)
        self._random = random.Random(f"{seed} {count} {links}")
        self._notices = {}  # by side and moment: how often survivors had which
        self._longest = {}  # seconds that one of them took

    def kill(self, victim, is_early):
        """At a random moment of that kind."""
        if is_early:
            time.sleep(self._random.uniform(0, STARTING))
        else:
            packets = self._random.randint(1, FIRST_PACKETS)
            while victim.poll() is None and sides.packets_of(victim) < packets:
                time.sleep(0.0005)
        if victim.poll() is not None:
            raise sides.Failure(f"ends by itself ({victim.returncode}):\n{victim.communicate()[0]}")
        victim.kill()
        victim.communicate()

    def end_survivor(self, server, survivor, port):
        """Its notices. Waits for the survivor's end, or lets a server that has not heard of its client serve another one."""
        if survivor is server and not hears(server):
            client = self._programs.run_client(CLIENT + BOUNDED, port)
            status, output = sides.end_of(server, LIMIT)
            if client[0] != 0 or status != 0:
                raise sides.Failure(f"a client of a server that heard of none before:\n{sides.describe((status, output), client)}")
            return ["none"]
        status, output = sides.end_of(survivor, LIMIT)
        notices = NOTICES.findall(output)
        if output.endswith(sides.HUNG) or not notices:
            raise sides.Failure(f"the survivor ({status}):\n{output}")
        return notices

    def run_one(self, number, is_early):
        """One moment: (notices of the survivor, after how many seconds)."""
        port = free_port()
        server = self._programs.start_server(SERVER, port)
        client = self._programs.start_client(CLIENT, port)
        both = (server, client)
        try:
            self.kill(both[number], is_early)
            begin = time.monotonic()
            notices = self.end_survivor(server, both[1 - number], port)
            seconds = time.monotonic() - begin
        finally:
            for side in both:
                side.kill()
        self.check_aftermath(port)
        return notices, seconds

    def check_aftermath(self, port):
        """The next run on that port is right, and leaves nothing."""
        server, client = self._programs.run(SERVER, CLIENT + BOUNDED, port)
        if server[0] != 0 or client[0] != 0:
            raise sides.Failure(f"the next run:\n{sides.describe(server, client)}")
        for place in self._places:
            if left := sides.left_on(place):
                raise sides.Failure(f"is left behind:\n{left}")

    def run(self, moments):
        """All of them; returns the failure, if there is one."""
        for moment in range(moments):
            number, is_early = moment % 2, moment // 2 % 2 == 1
            name = f"{SIDES[number]} killed {self._where} while {'it connects' if is_early else 'it works'}"
            try:
                notices, seconds = self.run_one(number, is_early)
            except sides.Failure as failure:
                return f"moment {moment}, {name}: {failure}"
            self._notices.setdefault(name, Counter())[" + ".join(sorted(set(notices)))] += 1
            self._longest[name] = max(seconds, self._longest.get(name, 0))
        return None

    def describe(self):
        """Some lines for each kind of moment."""
        return "\n".join(f"{name}: within {self._longest[name]:.1f} s" + "".join(
            f"\n  {count} times {notice}" for notice, count in notices.items()) for name, notices in self._notices.items())


if __name__ == "__main__":
    sys.exit(sides.run_lanes(__doc__, Lane))
