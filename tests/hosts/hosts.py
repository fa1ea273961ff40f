# SPDX-License-Identifier: BSD-2-Clause
# How does a test get hosts and a wire between them that loses packets or is cut, on any machine and without a trace?
"""A host is a network namespace with a host name and shared memory of its own, one interface `eth0`, an IPv4 and an
IPv6 address. The wire is a bridge in one more namespace. All of them live in the namespace for processes that enter()
begins: when the test ends, however it ends, the kernel ends all that is in there. Nothing of it has a name outside."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time

SKIPPED = 77
INSIDE = "WEFT_TEST_INSIDE_HOSTS"
NETWORK_ONLY = {"FI_WEFT_LINKS": "udp"}
TOOLS = ("unshare", "nsenter", "setpriv", "ip", "nft", "hostname", "mount")
WORLD = ["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
# An unprivileged user may make all of that as root of a user namespace.
USER_NAMESPACE = "--map-root-user"
# What hosts are made of, as a first try that leaves nothing behind.
PROBE = """
mount -t tmpfs none /dev/shm && ip link add bridge0 type bridge && ip link add eth0 type veth peer name eth1 &&
ip rule add pref 9 lookup local && ip -6 rule add pref 9 lookup local &&
nft add table bridge t && nft 'add chain bridge t c { type filter hook forward priority 0 ; }' &&
nft add rule bridge t c numgen random mod 100 '<' 5 drop
"""
# Losses are the packets' that are under test. In tests, what starts programs and lets them meet (TCP) stays whole.
UDP, UDP_AND_TCP = "udp", "{ tcp, udp }"
RULES = """
flush ruleset
table bridge losses {{
  counter passed {{ }}
  counter lost {{ }}
  counter swallowed {{ }}
  chain forward {{
    type filter hook forward priority 0;
    {hole}
    meta l4proto {protocols} numgen random mod 100 < {percent} counter name lost drop;
    meta l4proto {protocols} counter name passed;
  }}
}}
"""
COPIES = """
table inet copies {{
  chain prerouting {{
    type filter hook prerouting priority raw;
    iifname != eth0 accept;
    ether saddr {card} accept;
    ip daddr 224.0.0.0/4 udp dport >= 1024 drop;
    ip6 daddr ff00::/8 udp dport >= 1024 drop;
  }}
}}
"""


def skip(reason):
    """Ends the test as one that could not be done here."""
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def enter():
    """Starts the running script again where it is root of its own small world, or returns if this is it."""
    if os.environ.get(INSIDE):
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for tool in TOOLS:
        if shutil.which(tool) is None:
            skip(f"there is no program {tool} here")
    complaint = ""
    for user in ([], [USER_NAMESPACE]) if os.geteuid() == 0 else ([USER_NAMESPACE],):
        command = ["unshare", *user, *WORLD]
        probe = subprocess.run([*command, "sh", "-c", PROBE], text=True, capture_output=True, check=False)
        if probe.returncode == 0:
            # unshare(1) does not heed SIGTERM. This process does, and takes it along.
            inside = ["setpriv", "--pdeathsig", "KILL", *command, sys.executable, *sys.argv]
            sys.exit(subprocess.call(inside, env={**os.environ, INSIDE: "1", **NETWORK_ONLY}))
        complaint = probe.stderr.strip()
    skip(f"namespaces with interfaces of their own may not be made here: {complaint}")


def call(*words, text=None):
    """Runs one of the tools, which has to do what it is told; returns what it printed."""
    done = subprocess.run(words, input=text, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}\n{text or ''}")
    return done.stdout


@contextlib.contextmanager
def beside(work, over):
    """Runs that in a thread while the body runs; sets the event `over` when the body has ended, and waits for it."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Place:
    """Namespaces of one name, which a process holds that does nothing else."""

    def __init__(self, name):
        self.name = name
        start = f"hostname {name} && mount -t tmpfs -o mode=1777 none /dev/shm && echo ready && exec sleep infinity"
        self._holder = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sh", "-c", start], text=True,
                                        stdout=subprocess.PIPE)
        if self._holder.stdout.readline() != "ready\n":
            raise RuntimeError(f"no namespaces for {name}")

    @property
    def network(self):
        """The file that setns(2) takes to move there."""
        return f"/proc/{self._holder.pid}/ns/net"

    def words(self, *command):
        """What runs a command there, in the present folder."""
        return ["nsenter", f"--target={self._holder.pid}", "--net", "--uts", "--mount", f"--wdns={os.getcwd()}", *command]

    def ip(self, *lines, options=()):
        """Runs commands of ip(8) there."""
        call(*self.words("ip", *options, "-batch", "-"), text="\n".join(lines) + "\n")


class Host(Place):
    """One host, its addresses, and its cable."""

    def __init__(self, number, mtu, wire):
        super().__init__(f"host{number}")
        self.ipv4 = f"10.9.0.{number + 1}"
        self.ipv6 = f"fd09::{number + 1}"
        self._wire = wire
        wire.ip(f"link add {self.name} mtu {mtu} type veth peer name eth0 mtu {mtu} netns {self._holder.pid}",
                f"link set {self.name} master bridge0 up")
        self.ip("link set lo up", "link set eth0 addrgenmode none", "link set eth0 up",
                f"address add {self.ipv4}/24 dev eth0", f"address add {self.ipv6}/64 dev eth0 nodad")

    def send_singly(self):
        """Packets leave one by one, so that each may be lost alone: otherwise the kernel carries a train as one packet."""
        self.ip("link set eth0 gso_max_segs 1")

    def reach_itself_over_the_wire(self):
        """What is sent from here to here leaves by eth0, too, and comes back from the bridge."""
        call(*self.words("sh", "-c", "cd /proc/sys/net/ipv4/conf && echo 1 >eth0/accept_local && "
                         "echo 0 >eth0/rp_filter && echo 0 >all/rp_filter"))
        card = json.loads(call(*self.words("ip", "-json", "link", "show", "eth0")))[0]["address"]
        for family, address in (("-4", self.ipv4), ("-6", self.ipv6)):
            self.ip("rule add pref 1 iif eth0 lookup local", f"rule add pref 2 iif lo to {address} lookup 100",
                    "rule add pref 3 lookup local", "rule del pref 0",
                    f"route add {address} dev eth0 src {address} table 100",
                    f"neighbour add {address} lladdr {card} dev eth0 nud permanent", options=[family])
        self._wire.ip(f"link set {self.name} type bridge_slave hairpin on")
        self.hear_groups_over_the_wire(card)

    def complain_often(self):
        """Says over IPv4 as often as over IPv6 that a port is closed, ten times in a second: Linux does so once, and it
        takes several of them until a peer is believed to have died."""
        call(*self.words("sh", "-c", "echo 100 >/proc/sys/net/ipv4/icmp_ratelimit"))

    def hear_groups_over_the_wire(self, card):
        """Of what goes to a group Linux gives each member here a copy at once, which has no Ethernet header, beside the
        one that comes back from the wire: that one is not heard."""
        call(*self.words("nft", "-f", "-"), text=COPIES.format(card=card))

    def cut_off(self, seconds):
        """Pulls the cable and plugs it in again."""
        self._wire.ip(f"link set {self.name} down")
        time.sleep(seconds)
        self._wire.ip(f"link set {self.name} up")


class Hosts:
    """Hosts on one wire. `hosts[i]` is a Host."""

    def __init__(self, count, mtu=1500):
        self._wire = Place("wire")
        self._wire.ip("link add bridge0 type bridge forward_delay 0 mcast_snooping 0", "link set bridge0 up")
        self._hole = ""
        self.lose(0)
        self._hosts = [Host(number, mtu, self._wire) for number in range(count)]

    def __getitem__(self, number):
        return self._hosts[number]

    def __iter__(self):
        return iter(self._hosts)

    def lose(self, percent, protocols=UDP, singly=True):
        """From now on the wire drops `percent` % of the packets of these protocols, each independently; a train is dropped whole
        unless packets leave singly."""
        if percent != 0 and singly:
            for host in self:
                host.send_singly()
        call(*self._wire.words("nft", "-f", "-"), text=RULES.format(percent=percent, protocols=protocols, hole=self._hole))

    def swallow(self, longest):
        """From now on packets of UDP that are longer than that do not arrive, as behind a router whose ICMP is filtered: no
        host is told. Packets leave singly: the kernel would carry a train as one packet, which is longer than those in it."""
        for host in self:
            host.send_singly()
        self._hole = f"meta l4proto udp meta length > {longest} counter name swallowed drop;"
        self.lose(0)

    def counts(self):
        """How many packets of those protocols the wire has passed on, and how many lost, since lose()."""
        listed = json.loads(call(*self._wire.words("nft", "-j", "list", "counters")))["nftables"]
        counters = {entry["counter"]["name"]: entry["counter"]["packets"] for entry in listed if "counter" in entry}
        return counters["passed"], counters["lost"]

    def end_swallowing(self):
        """From now on packets of all sizes arrive."""
        self._hole = ""
        self.lose(0)

    def swallowed(self):
        """How many packets were too long since swallow(), or lose()."""
        listed = json.loads(call(*self._wire.words("nft", "-j", "list", "counter", "bridge", "losses", "swallowed")))["nftables"]
        return sum(entry["counter"]["packets"] for entry in listed if "counter" in entry)

    @contextlib.contextmanager
    def cut_off(self, host, after_packets, seconds):
        """While the body runs, and once so many packets more have passed, `host` is cut off for that long. Packets must
        pass afterwards, too: else there was nothing to disturb."""
        start = self.counts()[0]
        over = threading.Event()
        passed_when_back = []

        def wait_and_cut():
            while self.counts()[0] < start + after_packets:
                if over.wait(0.01):
                    return
            host.cut_off(seconds)
            passed_when_back.append(self.counts()[0])

        with beside(wait_and_cut, over):
            yield
        if not passed_when_back or self.counts()[0] <= passed_when_back[0]:
            raise RuntimeError(f"{host.name} was not cut off in the middle of something")

    @contextlib.contextmanager
    def cut_again_and_again(self, seconds, pause):
        """While the body runs the wire carries nothing for so long, after each pause. Interfaces do not notice, as if a
        cable behind the next switch were pulled: those without a carrier cannot be chosen by a program that starts."""
        over = threading.Event()

        def cut_until_over():
            while not over.wait(pause):
                self._wire.ip("link set bridge0 down")
                time.sleep(seconds)
                self._wire.ip("link set bridge0 up")

        with beside(cut_until_over, over):
            yield
