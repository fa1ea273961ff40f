#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do datagrams of a peer that is not Weft's reach each of a host's endpoints through port 4791?
"""The peer is this script, on another host: it makes its packets from the specification (IBTA 9.2 to 9.6, annex A17) with
nothing of Weft in it, and sends them as rdma_rxe does, from any port to port 4791."""
import queue
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import hosts

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))
from program import require, setup  # noqa: E402

ROCE_PORT, QUEUE_PAIR, QUEUE_KEY = 4791, 0x11, 0x01234567
SEND_ONLY, SEND_ONLY_WITH_IMMEDIATE = 0x64, 0x65
PATIENCE = 30
AGAIN = 2  # seconds after which a datagram is taken for lost
# Runs on the peer's host: reads `FROM TO HEXBYTES` and sends them.
SENDER = """
import socket, sys
sockets = {}
for line in sys.stdin:
    source, port, to, data = line.split()
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    if (source, port) not in sockets:
        made = sockets[source, port] = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET:
            made.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
        made.bind((source, int(port)))
    sockets[source, port].sendto(bytes.fromhex(data), (to, 4791))
"""


def icrc(source, port, to, packet):
    """The invariant CRC over the headers as they are on the wire, with all that routers may change set to ones."""
    udp = struct.pack(">HHHH", port, ROCE_PORT, 8 + len(packet) + 4, 0xFFFF)
    if ":" in source:
        ip = struct.pack(">IHBB", 0x6FFFFFFF, len(udp) + len(packet) + 4, 17, 0xFF)
        ip += socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, to)
    else:
        length = 20 + len(udp) + len(packet) + 4
        ip = struct.pack(">BBHHHBBH", 0x45, 0xFF, length, 0, 0x4000, 0xFF, 17, 0xFFFF)
        ip += socket.inet_pton(socket.AF_INET, source) + socket.inet_pton(socket.AF_INET, to)
    masked = packet[:4] + b"\xff" + packet[5:]
    return zlib.crc32(b"\xff" * 8 + ip + udp + masked)


class Peer:
    """Sends from a host that has no Weft."""

    def __init__(self, host):
        self._sender = subprocess.Popen(host.words(sys.executable, "-u", "-c", SENDER), text=True, bufsize=1,
                                        stdin=subprocess.PIPE)

    def send(self, source, to, port, text, immediate=0, own_port=0xC123):
        """One UD SEND for the endpoint of that port."""
        data = text.encode()
        padding = -len(data) % 4
        opcode = SEND_ONLY_WITH_IMMEDIATE if immediate else SEND_ONLY
        packet = struct.pack(">BBHIIII", opcode, 0x40 | padding << 4, 0xFFFF, port << 8 | 1, 7, QUEUE_KEY, QUEUE_PAIR)
        packet += (struct.pack(">I", immediate) if immediate else b"") + data + bytes(padding)
        packet += struct.pack("<I", icrc(source, own_port, to, packet))
        self._sender.stdin.write(f"{source} {own_port} {to} {packet.hex()}\n")


class Listener:
    """A process with one datagram endpoint."""

    def __init__(self, test, host, address, peer, **environment):
        command = host.words(str(test.build / "bin" / "weft_datagram_listener"), address, peer)
        self.process = subprocess.Popen(command, env={**test.env, **environment}, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self._lines = queue.Queue()
        self._last = ""
        threading.Thread(target=self._read, daemon=True).start()
        self.port = int(self._lines.get(timeout=PATIENCE).split()[1])

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def hears(self, send, immediate, text):
        """It hears this next, and nothing else. Datagrams may be lost: send() is called until one is heard."""
        expected = f"{len(text)} {immediate} peer {text}"
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            send()
            try:
                heard = self._lines.get(timeout=AGAIN)
                while heard == self._last:  # it was only late
                    heard = self._lines.get(timeout=AGAIN)
            except queue.Empty:
                continue
            require(heard == expected, f"heard '{heard}' instead of '{text}'")
            self._last = heard
            return
        require(False, f"'{text}' is never heard")

    def kill(self):
        """Ends as a crash would."""
        self.process.kill()
        self.process.wait()


def has_door(host):
    """How many sockets the host has at port 4791."""
    table = hosts.call(*host.words("cat", "/proc/net/udp", "/proc/net/udp6"))
    return sum(line.split()[1].endswith(f":{ROCE_PORT:04X}") for line in table.splitlines() if ":" in line)


def wait_for(what, holds):
    """Until that holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        require(time.monotonic() < end, f"waited in vain for {what}")
        time.sleep(0.02)


def exchange(test, wire, family, links):
    """Three processes of one host hear the peer, whichever of them has the port."""
    here, there = getattr(wire[0], family), getattr(wire[1], family)
    peer = Peer(wire[1])
    listeners = [Listener(test, wire[0], here, there, FI_WEFT_LINKS=links) for _ in range(3)]
    while True:
        wait_for("a holder of port 4791", lambda: has_door(wire[0]) == 1)
        for number, each in enumerate(listeners):
            text = f"to-{number}-of-{len(listeners)}-" + "x" * number * 300
            data = 4_000_000_000 + number
            each.hears(lambda: peer.send(there, here, each.port, text), 0, text)
            each.hears(lambda: peer.send(there, here, each.port, text, immediate=data, own_port=0xC000 + number), data, text)
        print(f"{family}: {len(listeners)} endpoints hear a foreign peer", flush=True)
        if len(listeners) == 1:
            break
        # The first of those that are left has it, or one of the others after the first has gone.
        listeners.pop(0).kill()
    listeners.pop().kill()
    require(has_door(wire[0]) == 0, "port 4791 is still bound")


def nothing_of_it(test, wire, **environment):
    """An endpoint that does not want foreign peers leaves the port alone."""
    listener = Listener(test, wire[0], wire[0].ipv4, wire[1].ipv4, **environment)
    require(has_door(wire[0]) == 0, f"port 4791 is bound in spite of {environment}")
    listener.kill()


def main():
    hosts.enter()
    test, _ = setup(__doc__)
    wire = hosts.Hosts(2)
    for family, links in (("ipv4", "all"), ("ipv6", "udp")):
        exchange(test, wire, family, links)
    nothing_of_it(test, wire, FI_WEFT_FOREIGN_PEERS="no")
    nothing_of_it(test, wire, FI_WEFT_LINKS="shm")


main()
