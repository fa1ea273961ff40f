#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# How does a host send forged packets, and which packets does it receive?
"""Runs on the attacker's host, or on one whose packets are watched, and reads commands, one a line; each is answered by a line of JSON:

    send HEX...                     sends packets with their IP headers
    flood TO PORT COUNT RATE [connections]
                                    sends so many REQs a second, each from another source in 10.77.0.0/16, for flows or for
                                    connections (FI_EP_MSG): the seconds that it took
    bind ADDRESS PORT               listens at an address of this host
    heard ADDRESS PORT              the payload of each packet that has come there since the last time
    watch                           from now on packets that this host sends and receives are kept
    watched                         connection messages among them, with their IP headers, since the last time
"""
import itertools
import json
import select
import socket
import sys
import threading
import time

import forged

CHUNK = 0.002  # seconds
ETH_P_ALL = 3
listening = {}
sources = itertools.count()  # of floods


def raw_socket():
    """For packets with their IP headers."""
    made = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    return made


def send(out, *packets):
    """One after the other."""
    for packet in packets:
        data = bytes.fromhex(packet)
        out.sendto(data, (socket.inet_ntoa(data[16:20]), 0))


def flood(out, to, port, count, rate, kind="flows"):
    """At an even rate, as far as this host manages it. The packets are made before."""
    count, rate = int(count), float(rate)
    make = forged.connection_request if kind == "connections" else forged.request
    packets = [make((f"10.77.{number >> 8 & 0xFF}.{number & 0xFF}", 1024 + number % 60_000), (to, int(port)))
               for number in itertools.islice(sources, count)]
    sent, begin = 0, time.monotonic()
    while sent < count:
        due = min(count, int((time.monotonic() - begin) * rate) + 1)
        for packet in packets[sent:due]:
            out.sendto(packet, (to, 0))
        sent = due
        time.sleep(CHUNK)
    return time.monotonic() - begin


def bind(_, address, port):
    """From now on packets that come there are kept."""
    made = listening[address, port] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    made.bind((address, int(port)))
    made.setblocking(False)


def heard(_, address, port):
    """Since the last time."""
    came = []
    while True:
        try:
            came.append(listening[address, port].recv(4096).hex())
        except BlockingIOError:
            return came


class Watch:
    """Connection messages among the packets that the host's interface sends and receives. A thread takes them at once: the socket has
    room for a few hundred."""

    def __init__(self):
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        self._socket.bind(("eth0", ETH_P_ALL))
        self._socket.setblocking(False)
        self._kept, self._lock = [], threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            select.select([self._socket], [], [])
            with self._lock:
                self._drain()

    def _drain(self):
        while True:
            try:
                packet = self._socket.recv(4096)
            except BlockingIOError:
                return
            if len(packet) > 28 and packet[0] == 0x45 and packet[9] == forged.UDP and packet[28] == forged.UD_SEND_ONLY:
                self._kept.append(packet.hex())

    def taken(self):
        """Those since the last time."""
        with self._lock:
            self._drain()
            kept, self._kept = self._kept, []
        return kept


def watch(_):
    """Packets that are sent and received by the host's interface."""
    listening["eth0"] = Watch()


def watched(_):
    """Since the last time."""
    return listening["eth0"].taken()


def main():
    out = raw_socket()
    commands = {"send": send, "flood": flood, "bind": bind, "heard": heard, "watch": watch, "watched": watched}
    for line in sys.stdin:
        name, *words = line.split()
        print(json.dumps(commands[name](out, *words)), flush=True)


if __name__ == "__main__":
    main()
