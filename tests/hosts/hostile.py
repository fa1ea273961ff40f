# SPDX-License-Identifier: BSD-2-Clause
# What do the tests with forged packets have in common: hosts, endpoints that talk, and an attacker?
"""The hosts are 0: the endpoint under attack, 1: its peer, 2: the attacker. Forged sources are in 10.77.0.0/16 and the third
parties in 10.78.0.0/16: what is sent there arrives at the attacker's host, which counts it."""
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import forged
import hosts
from counters import counters_of, file_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))
from program import require  # noqa: E402

PATIENCE = 30
QUIET = 0.2  # seconds between two looks: longer than a retransmission takes within this machine
FORGED, THIRD = "10.77.0.0/16", "10.78.0.0/16"
COUNTERS = f"""
table ip drawn {{
  counter forged {{ }}
  counter third {{ }}
  chain prerouting {{
    type filter hook prerouting priority raw;
    ip daddr {FORGED} counter name forged;
    ip daddr {THIRD} counter name third;
  }}
}}
"""
DROPPED_PORT = 9
DROP = f"""
table ip quiet {{
  chain prerouting {{
    type filter hook prerouting priority raw;
    udp dport {DROPPED_PORT} drop;
  }}
}}
"""


class Program:
    """A process on a host that reads commands and answers each by a line."""

    def __init__(self, host, *words, env=None):
        self.process = subprocess.Popen(host.words(*map(str, words)), env=env, text=True, bufsize=1, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self._name = Path(str(words[0])).name
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def tell(self, *words):
        """A command without an answer."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")

    def line(self, patience=PATIENCE):
        """Its next line."""
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            line = None
        require(line is not None, f"{self._name} says nothing, or has ended ({self.process.poll()})")
        return line

    def kill(self):
        """Ends it as a crash would."""
        self.process.kill()
        self.process.wait()

    def close(self):
        """Ends it in order."""
        self.process.stdin.close()
        require(self.process.wait(PATIENCE) == 0, f"{self._name} failed")


class Process:
    """What /proc says of a Program."""

    def descriptors(self):
        """How many it has."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def memory_kib(self):
        """Resident anonymous memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"RssAnon:\s*(\d+) kB", status)[1])

    def processor_seconds(self):
        """That it has used up to now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def statistics(self, end=None):
        """The counters of its port at that end, or at `self.end` (docs/formats/statistics.md)."""
        file = file_of(self.process.pid)
        require(file is not None, "no file of counters")
        address, port = end or self.end
        owner = f"{address}:{port}"
        for found in counters_of(file.read_bytes(), owner):
            return found
        raise RuntimeError(f"no counters of {owner}")


class Figures:
    """What an endpoint has said of itself."""

    def __init__(self, sent, received, broken, ended):
        self.time = time.monotonic()
        self.sent, self.received, self.broken, self.ended = sent, received, broken, ended


class Endpoint(Program, Process):
    """A reliable-datagram endpoint in a process of its own (reliable_peer.cc)."""

    def __init__(self, test, host, port=0):
        super().__init__(host, test.build / "bin" / "weft_reliable_peer", host.ipv4, port, env=test.env)
        said = self.line()
        require(re.fullmatch(r"at \d+", said), said)
        self.end = host.ipv4, int(said.split()[1])

    def ask(self):
        """Its figures."""
        self.tell("ask")
        return Figures(*map(int, self.line().split()))


class Attacker(Program):
    """attacker.py on a host."""

    def __init__(self, host):
        super().__init__(host, sys.executable, "-u", Path(__file__).with_name("attacker.py"))
        self._host = host
        hosts.call(*host.words("nft", "-f", "-"), text=COUNTERS)

    def do(self, *words, patience=PATIENCE):
        """A command and its answer."""
        self.tell(*words)
        return json.loads(self.line(patience))

    def send(self, *packets):
        """In order."""
        for first in range(0, len(packets), 64):
            self.do("send", *(packet.hex() for packet in packets[first:first + 64]))

    def listen(self, address, port):
        """As that address."""
        self._host.ip(f"address add {address}/32 dev lo")
        self.do("bind", address, port)

    def heard(self, address, port):
        """What has come there since the last time."""
        return [forged.Heard(bytes.fromhex(payload)) for payload in self.do("heard", address, port)]

    def watch(self):
        """From now on, for watched()."""
        self.do("watch")

    def watched(self):
        """Connection messages that this host has sent and received since the last time."""
        return [forged.Heard.of_packet(bytes.fromhex(packet)) for packet in self.do("watched")]

    def sent(self):
        """Packets that its interface has sent."""
        lines = hosts.call(*self._host.words("cat", "/proc/net/dev")).splitlines()
        line = next(line for line in lines if line.strip().startswith("eth0:"))
        return int(line.split(":")[1].split()[9])

    def drawn(self, where="forged"):
        """How many packets have come there."""
        listed = json.loads(hosts.call(*self._host.words("nft", "-j", "list", "counter", "ip", "drawn", where)))["nftables"]
        return next(entry["counter"]["packets"] for entry in listed if "counter" in entry)


def three_hosts():
    """With the routes that lead forged addresses to the attacker's host."""
    wire = hosts.Hosts(3)
    for host in wire:
        if host is not wire[2]:
            host.ip(f"route add {FORGED} via {wire[2].ipv4}", f"route add {THIRD} via {wire[2].ipv4}")
    hosts.call(*wire[0].words("nft", "-f", "-"), text=DROP)
    return wire


def wait_until(holds, patience, what):
    """Returns the seconds that it took."""
    begin = time.monotonic()
    while not holds():
        require(time.monotonic() - begin < patience, f"{what}: not within {patience} s")
        time.sleep(0.02)
    return time.monotonic() - begin


def talk(one, other):
    """Both send to each other from now on. Returns when messages have arrived at both."""
    before = one.ask().received, other.ask().received
    one.tell("to", *other.end)
    other.tell("to", *one.end)
    wait_until(lambda: one.ask().received > before[0] and other.ask().received > before[1], PATIENCE, "the first messages")


def settle(*peers):
    """Waits until nothing is under way: in two looks, one after the other, they have received the same."""
    seen = []

    def is_quiet():
        time.sleep(QUIET)
        seen.append([each.ask().received for each in peers])
        return len(seen) > 1 and seen[-1] == seen[-2]
    wait_until(is_quiet, PATIENCE, "nothing is under way")


def rest(*endpoints):
    """They send nothing further, and nothing is under way."""
    for each in endpoints:
        each.tell("rest")
    settle(*endpoints)


class Siege:
    """Two processes that exchange messages, and an attacker by which they lose nothing. `ends` are those of their packets, `watch` the
    seconds in which a packet may take effect."""

    FEWEST = 20  # messages that arrive at each end after each attack

    def __init__(self, attacker, both, ends, watch):
        self.attacker, self.both, self.ends, self.watch = attacker, both, ends, watch
        self.failures = []

    def damage(self, before):
        """(messages that each has received, how many were broken, failed sends) since then."""
        pairs = [(new.ask(), old) for new, old in zip(self.both, before)]
        return ([new.received - old.received for new, old in pairs], sum(new.broken - old.broken for new, old in pairs),
                sum(new.ended - old.ended for new, old in pairs))

    def survive(self, name, packets, counter=None, of=0):
        """Both live, and data go on, after packets to one of them. They are valid: its `counter` counts them."""
        victim, end = self.both[of], self.ends[of]
        before, known = [each.ask() for each in self.both], victim.statistics(end)
        self.attacker.send(*packets)
        time.sleep(self.watch)
        if counter:
            wait_until(lambda: victim.statistics(end)[counter] - known[counter] >= len(packets) / 2, PATIENCE,
                       f"{name}: {counter} grows for {len(packets)} packets")
        later = [each.ask().received for each in self.both]
        wait_until(lambda: all(each.ask().received >= count + self.FEWEST for each, count in zip(self.both, later)), PATIENCE,
                   f"{name}: messages at both ends")
        (moved, broken, ended), counters = self.damage(before), victim.statistics(end)
        print(f"{name}: {moved[0]} and {moved[1]} messages, {broken} broken, {ended} failed", flush=True)
        if broken or ended:
            self.failures.append(f"{name}: {broken} messages are damaged or missing, {ended} sends or connections fail")
        for untouched in ("icrc_errors", "malformed_packets", "rp_cnp_handled"):
            if counters[untouched] != known[untouched]:
                self.failures.append(f"{name}: {untouched} grows by {counters[untouched] - known[untouched]}")

    def survive_at_rest(self, attacks, stop, start):
        """The same while nothing is under way, between `stop` and `start`."""
        stop()
        before = [each.ask() for each in self.both]
        for _, packets, *_ in attacks:
            self.attacker.send(*packets)
        time.sleep(self.watch)
        start()
        _, broken, ended = self.damage(before)
        print(f"all of them at rest: {broken} broken, {ended} failed", flush=True)
        if broken or ended:
            self.failures.append(f"all of them at rest: {broken} messages are damaged or missing, {ended} sends or connections fail")


def icmp_errors(host):
    """(port unreachable messages, damaged messages) that the host has received."""
    lines = hosts.call(*host.words("cat", "/proc/net/snmp")).splitlines()
    names, values = (line.split() for line in lines if line.startswith("Icmp:"))
    found = dict(zip(names, values))
    return int(found["InDestUnreachs"]), int(found["InErrors"])


def report(failures):
    """Ends the test when rules are broken."""
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    require(not failures, f"{len(failures)} rules are broken")
