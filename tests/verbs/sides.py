# SPDX-License-Identifier: BSD-2-Clause
# How does a test run both sides of a verbs program under `weft run`?
"""A side is one process of a program that talks to another one, its peer, which it finds by TCP: the server waits for
the client. Each side is on a host of tests/hosts/hosts.py, or on this one."""
import argparse
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "hosts"))
import hosts  # noqa: E402
from counters import counters_of, file_of  # noqa: E402

PATIENCE = 100  # seconds, far beyond what any of them takes
LISTENS = "0A"
HUNG = "(does not end)"
# Hosts that sides are killed on, and the links of their queue pairs.
LANES = ((1, "shm"), (1, "udp"), (2, "udp"))


class Failure(Exception):
    """What a run has shown."""


class ThisHost:
    """The loopback interface of the host that runs the test."""
    ipv4, ipv6 = "127.0.0.1", "::1"
    interface = "lo"

    @staticmethod
    def words(*command):
        """The command itself."""
        return list(command)


def target_of(descriptor):
    """What that link of /proc/PID/fd names; nothing if it is gone."""
    try:
        return os.readlink(descriptor)
    except OSError:
        return ""


def sockets_of(process, *tables):
    """Those of its sockets that these tables of /proc/net have, as the fields of their lines; none of a process that has ended."""
    folder = pathlib.Path(f"/proc/{process.pid}")
    try:
        targets = {target_of(descriptor) for descriptor in (folder / "fd").iterdir()}
        lines = [line for table in tables for line in (folder / "net" / table).read_text().splitlines()[1:]]
    except OSError:
        return []
    return [fields for fields in map(str.split, lines) if f"socket:[{fields[9]}]" in targets]


def listens(process):
    """True when the process has a listening TCP socket."""
    return any(fields[3] == LISTENS for fields in sockets_of(process, "tcp", "tcp6"))


def counted(process, owner, names):
    """The sum of these counters in the blocks of that owner; 0 before there are any, and after the end of the process."""
    try:
        file = file_of(process.pid)
        return sum(block[name] for block in counters_of(file.read_bytes(), owner) for name in names) if file else 0
    except (FileNotFoundError, ProcessLookupError):
        return 0


def packets_of(process):
    """How many packets, or messages through shared memory, its queue pairs have sent or received; acknowledgements are not in tx_packets."""
    return counted(process, "queue pairs", ("rx_requests", "rx_responses", "tx_packets", "shm_messages", "shm_operations"))


def left_on(host):
    """Sockets and files of that host that no living process should need."""
    sockets = hosts.call(*host.words("sh", "-c", "tail -q -n +2 /proc/net/udp /proc/net/udp6"))
    files = hosts.call(*host.words("find", "/dev/shm", "-not", "-type", "d"))
    return sockets + files


def end_of(process, patience):
    """(status, output) of a process that ends within so many seconds, or is killed."""
    try:
        output, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        output = process.communicate()[0] + HUNG
    return process.returncode, output


def free_port():
    """A TCP port of this host that no process listens on: other tests may run here."""
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("", 0))
        return str(probe.getsockname()[1])


class Programs:
    """Runs programs beside the command weft, or of the distribution, with the server on hosts[0] and the client on hosts[1], and with
    these variables of the environment."""

    def __init__(self, prefix, hosts=(ThisHost, ThisHost), **variables):
        self._folder = pathlib.Path(prefix).resolve() / "bin"
        self._hosts = hosts
        self._variables = variables

    def start(self, host, words, **variables):
        """Starts a side there."""
        program, *arguments = words
        own = self._folder / program
        path = str(own) if own.exists() else shutil.which(program)
        if path is None:
            raise FileNotFoundError(f"{program}: not found")
        environment = os.environ | {"WEFT_IFACE": getattr(host, "interface", "eth0")} | self._variables | variables
        return subprocess.Popen(host.words(str(self._folder / "weft"), "run", path, *arguments), env=environment,
                                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def start_both(self, words, **variables):
        """(server, client), both running."""
        port = free_port()
        if words[0] == "weft_move_patterns":
            variables["WEFT_TEST_PORT"] = port
        else:
            words = [*words, "-p", port]
        return self.start_server(words, listens, **variables), self.start_client([*words, self._hosts[0].ipv4], **variables)

    def start_server(self, words, is_ready, **variables):
        """Starts the server's side, and waits until that function of it is true or it has ended."""
        server = self.start(self._hosts[0], words, **variables)
        end = time.monotonic() + PATIENCE
        while server.poll() is None and not is_ready(server):
            if time.monotonic() > end:
                server.kill()
                raise TimeoutError(f"the server does not listen:\n{server.communicate()[0]}")
            time.sleep(0.005)
        return server

    def start_client(self, words, **variables):
        """Starts the client's side."""
        return self.start(self._hosts[1], words, **variables)

    def run(self, words, **variables):
        """Runs both sides to their end: (status, output) of the server and of the client."""
        server, client = self.start_both(words, **variables)
        of_client = end_of(client, PATIENCE)
        return end_of(server, 1 if of_client[1].endswith(HUNG) else PATIENCE), of_client


def describe(server, client):
    """Status and output of both sides."""
    return "\n".join(f"{name} ({status}):\n{output}" for name, (status, output) in (("client", client), ("server", server)))


def arguments_of_rows(description, words):
    """The command line of a test of many programs; `words` says what its words choose."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("build", help="CMake build directory")
    parser.add_argument("words", nargs="*", help=f"{words} (default: all)")
    parser.add_argument("--between-hosts", action="store_true", help="over a wire in place of the loopback")
    parser.add_argument("--mtu", type=int, default=9000, help="of that wire")
    parser.add_argument("--lose", type=int, default=0, metavar="PERCENT", help="of the packets on that wire: reliable services only")
    return parser.parse_intermixed_args()


def wire_of(arguments):
    """The hosts that such a test runs between; none over the loopback."""
    if not arguments.between_hosts:
        return None
    hosts.enter()
    wire = hosts.Hosts(2, arguments.mtu)
    if arguments.lose:
        wire.lose(arguments.lose)
    return wire


def conclude(failed, wire, arguments):
    """Its exit status. Packets must have crossed the wire, and some of them be lost where they should."""
    if wire is not None:
        passed, lost = wire.counts()
        print(f"{passed} packets crossed the wire, {lost} were lost")
        if passed == 0 or (lost > 0) != (arguments.lose > 0):
            failed.append("the wire was not what it should be")
    print("".join(f"FAILED: {line}\n" for line in failed), end="")
    return 1 if failed else 0


def run_lanes(description, lane_class):
    """The exit status of a test that kills sides on each of LANES at once."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("build", help="CMake build directory")
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    hosts.enter()
    lanes = [lane_class(arguments.build, *lane, arguments.seed) for lane in LANES]
    with ThreadPoolExecutor(len(lanes)) as threads:
        failures = list(threads.map(lambda lane: lane.run(arguments.moments // len(lanes)), lanes))
    for lane, failure in zip(lanes, failures):
        print(lane.describe())
        if failure:
            print(f"FAILED: {failure}")
    return 1 if any(failures) else 0
