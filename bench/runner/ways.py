# SPDX-License-Identifier: BSD-2-Clause
# Over what the two sides of a measurement meet: a host's memory, its loopback, or a wire between two hosts.
import pathlib
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "hosts"))
import hosts  # noqa: E402

# weft and those that move data between processes without special hardware. Where tcp and udp have no
# reliable datagrams of their own, libfabric puts ofi_rxm and ofi_rxd above them.
WITHIN_A_HOST = ("weft", "shm", "UCX", "other UCX", "net", "tcp", "sockets", "udp")
OVER_A_NETWORK = ("weft", "net", "tcp", "udp")
# Weft's libfabric path, its queue pairs, and what both stand on.
BESIDE_VERBS = ("weft", "verbs", "datagrams")
BESIDE_VERBS_SHM = ("weft", "verbs", "bare", "shm", "UCX", "other UCX")
# Those that need no thread of their own within a host.
WITH_THREADS = ("weft", "shm")

LOOPBACK = "127.0.0.1"
REAL_TIME = ("chrt", "--fifo", "20")


@dataclass
class Way:
    """How weft_bench is run so that the packets of both sides go this way."""

    name: str = "host"  # of the plan of cases
    options: str = ""  # by which run.py is asked for it
    title: str = "within one host, each by its own way"
    contestants: tuple = WITHIN_A_HOST
    arguments: tuple = ()  # of weft_bench
    environment: dict = field(default_factory=dict)
    prefix: tuple = ()  # what runs weft_bench
    wire: hosts.Hosts = None

    @property
    def takes_packets(self):
        """Weft uses packets only, within a host, too."""
        return self.environment == hosts.NETWORK_ONLY

    def command(self, *words):
        """WORDS, run where the client is."""
        return [*self.prefix, *words]

    def outcome(self):
        """What the wire says after the measurements, to be kept with them."""
        if self.wire is None:
            return {}
        passed, lost = self.wire.counts()
        if passed == 0:
            sys.exit("no packet has crossed the wire: these figures are of something else")
        return {"packets": passed, "lost": lost}


def loopback():
    return Way("network", "--over loopback", f"over the loopback, from {LOOPBACK} to itself", OVER_A_NETWORK,
               ("--address", LOOPBACK), hosts.NETWORK_ONLY)


def beside_verbs():
    return Way("verbs", "--over verbs", f"over the loopback, from {LOOPBACK} to itself; verbs: perftest under weft run; datagrams: bare UDP "
               "sockets", BESIDE_VERBS, ("--address", LOOPBACK), hosts.NETWORK_ONLY)


def beside_verbs_shm():
    return Way("verbs-shm", "--over verbs-shm", "within one host, through its memory; verbs: perftest under weft run --links shm; bare: the system "
               "call, copy or wake-up on which a row rests", BESIDE_VERBS_SHM, environment={"FI_WEFT_LINKS": "shm"})


def threads():
    return Way("threads", "--over threads", "within one host, under each threading model", WITH_THREADS)


def veth(mtu, loss, singly):
    """Two hosts on one wire, which loses so many of a hundred of what crosses it: trains whole, or single packets."""
    wire = hosts.Hosts(2, mtu)
    words, title = f"--over veth --mtu {mtu}", f"between two network namespaces, veth of MTU {mtu} and a bridge"
    if singly:
        for host in wire:
            host.send_singly()
        words += " --singly"
        title += ", packets leave one by one"
    if loss:
        words += f" --loss {loss}"
        title += f", {loss} % of what crosses is lost, TCP's and UDP's alike" + ("" if singly else ", trains whole")
    wire.lose(loss, hosts.UDP_AND_TCP, singly)
    arguments = ("--address", wire[1].ipv4, "--server-address", wire[0].ipv4, "--server-network", wire[0].network)
    return Way("losses" if loss else "network", words, title, OVER_A_NETWORK, arguments, hosts.NETWORK_ONLY,
               tuple(wire[1].words()), wire)


def chosen(options):
    """The way that the command line asks for. Where namespaces are needed this runs in a world of its own."""
    if options.over == "veth":
        hosts.enter()
        way = veth(options.mtu, options.loss, options.singly)
    else:
        way = {"host": Way, "loopback": loopback, "verbs": beside_verbs, "verbs-shm": beside_verbs_shm,
               "threads": threads}[options.over]()
    if options.real_time:
        check_real_time()
        way.prefix += REAL_TIME
    return way


def check_real_time():
    """Ends the program where real-time priority may not be had."""
    complaint = f"there is no program {REAL_TIME[0]} here"
    if shutil.which(REAL_TIME[0]):
        tried = subprocess.run([*REAL_TIME, "true"], text=True, capture_output=True, check=False)
        if tried.returncode == 0:
            return
        complaint = tried.stderr.strip()
    sys.exit(f"--real-time: {shlex.join(REAL_TIME)}: {complaint}")
