#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do Debian's rdma_cm programs do what they should on the drop-in librdmacm, over the loopback or between hosts?
"""Runs them under `weft run`, as servers and as clients. A server that does not end by itself is killed once its clients have ended."""
import contextlib
import sys
import time
from dataclasses import dataclass

from listeners import Programs, free_port
import sides

RPING_SERVER, RPING_CLIENT = "rping -s -a {address} -p {port} ", "rping -c -a {address} -p {port} "
NO_LISTENER = 8  # as a reason of REJECTED
FAILED = 255
CROWD, PAUSE, VICTIM = 16, 0.1, 7
SOME_PACKETS = 1000  # after which the victim dies


def require(condition, text):
    """Raises Failure unless the condition holds."""
    if not condition:
        raise sides.Failure(text)


@dataclass(frozen=True)
class Pair:
    """A server and a client which both end well."""
    server: str
    client: str
    family: str = "ipv4"

    @property
    def name(self):
        return self.client + (" over IPv6" if self.family == "ipv6" else "")

    def run(self, programs):
        """Raises Failure."""
        server, client = programs[self.family].run(self.server, self.client)
        require(server[0] == 0 and client[0] == 0, sides.describe(server, client))


@contextlib.contextmanager
def serving(programs, line, port):
    """A server that does not end before the body does."""
    server = programs.start_server(line, port)
    failure = None
    try:
        yield server
    except sides.Failure as raised:
        failure = raised
    lives = server.poll() is None
    server.kill()
    output = server.communicate()[0]
    if failure or not lives:
        raise sides.Failure(f"{failure or ''}\nserver ({'lives' if lives else server.returncode}):\n{output}")


def require_end(end, status, *texts):
    """That (status, output) of a program."""
    require(end[0] == status and all(text in end[1] for text in texts), f"client ({end[0]}):\n{end[1]}")


@dataclass(frozen=True)
class EndlessServer:
    """A client of a server that serves on."""
    server: str
    client: str

    @property
    def name(self):
        return self.client

    def run(self, programs):
        """Raises Failure."""
        port = free_port()
        with serving(programs["ipv4"], self.server, port):
            require_end(programs["ipv4"].run_client(self.client, port), 0)


def await_packets(process, count):
    """Waits until its queue pairs have seen so many packets, or it has ended."""
    while process.poll() is None and sides.packets_of(process) < count:
        time.sleep(0.005)


@dataclass(frozen=True)
class Crowd:
    """Clients of a persistent server, of which one is killed while it works. The server serves on. rping forgets a request if the next one
    comes before it has begun with that: each client waits for the one before."""
    name = f"{RPING_SERVER}-P with {CROWD} clients, one killed"

    def run(self, programs):
        """Raises Failure."""
        programs, port = programs["ipv4"], free_port()
        line = RPING_CLIENT + "-V"
        clients = []
        with serving(programs, RPING_SERVER + "-P -V", port):
            try:
                for number in range(CROWD):
                    clients.append(programs.start_client(line if number == VICTIM else f"{line} -C 1000", port))
                    time.sleep(PAUSE)
                    await_packets(clients[-1], 1)
                self.kill(clients[VICTIM])
                for each in clients[:VICTIM] + clients[VICTIM + 1:]:
                    require_end(sides.end_of(each, sides.PATIENCE), 0)
                require_end(programs.run_client(f"{line} -C 100", port), 0)
            finally:
                for each in clients:
                    each.kill()

    @staticmethod
    def kill(victim):
        """While it works."""
        await_packets(victim, SOME_PACKETS)
        require(victim.poll() is None, "the client that was to be killed has ended")
        victim.kill()
        victim.communicate()


@dataclass(frozen=True)
class Refusals:
    """Ports on which no process listens, or already one does."""
    name = "refused ports"

    def run(self, programs):
        """Raises Failure."""
        programs = programs["ipv4"]
        self.find_no_listener(programs)
        port = free_port()
        with serving(programs, RPING_SERVER + "-P -V", port):
            for line, texts in (("rping -s -p {port}", ["rdma_bind_addr: Address already in use"]),
                                (RPING_SERVER, ["rdma_bind_addr: Address already in use"]),
                                ("ucmatose -p {port}", ["bind address failed: Address already in use", "return status -1"])):
                second = programs.start_server(line, port)
                require_end(sides.end_of(second, sides.PATIENCE), FAILED, *texts)
            self.find_no_listener(programs)
            require_end(programs.run_client(RPING_CLIENT + "-V -C 100", port), 0)

    @staticmethod
    def find_no_listener(programs):
        """The host of the server answers at once."""
        for line, status, text in (
                (RPING_CLIENT, FAILED, f"cma event RDMA_CM_EVENT_REJECTED, error {NO_LISTENER}"),
                ("ucmatose -s {address} -p {port}", NO_LISTENER, f"event: RDMA_CM_EVENT_REJECTED, error: {NO_LISTENER}"),
                ("rdma_client -s {address} -p {port}", FAILED, "rdma_connect: Connection refused")):
            begin = time.monotonic()
            require_end(programs.run_client(line, free_port()), status, text)
            print(f"  no listener for {line.split()[0]}: {time.monotonic() - begin:.1f} s")


ROWS = [Pair(RPING_SERVER + options, RPING_CLIENT + options) for options in ("-C 100 -V", "-C 100 -V -S 65535", "-C 100 -V -q")]
ROWS += [Pair(RPING_SERVER + options, RPING_CLIENT + options, "ipv6") for options in ("-C 100 -V", "-C 100 -V -q")]
ROWS += [Pair("rping -s -a ::0 -p {port} -C 100 -V", RPING_CLIENT + "-C 100 -V -I {own}")]
ROWS += [Pair(f"ucmatose -p {{port}} {options}", f"ucmatose -s {{address}} -p {{port}} {options}")
         for options in ("", "-c 20 -C 50", "-m", "-P ib")]
ROWS += [Pair("ucmatose -b {address} -p {port}", "ucmatose -s {address} -p {port}", "ipv6"),
         Pair("udaddy -c 10", "udaddy -s {address} -c 10"), Pair("udaddy -b {address} -c 10", "udaddy -s {address} -c 10", "ipv6"),
         Pair("rdma_server -p {port}", "rdma_client -s {address} -p {port}"),
         Pair("rdma_server -s {address} -p {port}", "rdma_client -s {address} -p {port}", "ipv6")]
ROWS += [Pair(f"rdma_xserver -p {{port}} -c {kind}", f"rdma_xclient -s {{address}} -p {{port}} -c {kind}") for kind in "rx"]
ROWS += [Pair(f"ib_{name} -R -F -n 1000 -p {{port}}", f"ib_{name} -R -F -n 1000 -p {{port}} {{address}}")
         for name in ("send_bw", "write_bw", "read_bw", "send_lat -c UD")]
ROWS += [EndlessServer("cmtime -c 100 -p {port}", "cmtime -s {address} -c 100 -p {port}"), Crowd(), Refusals()]
UNRELIABLE = ("udaddy", "-c UD")  # wait for a lost datagram for ever


def rows_of(arguments):
    """The rows that the command line chooses."""
    rows = [row for row in ROWS if not (arguments.lose and any(word in row.name for word in UNRELIABLE))]
    return [row for row in rows if not arguments.words or any(word in row.name for word in arguments.words)]


def main():
    arguments = sides.arguments_of_rows(__doc__, "run rows whose client's line contains one of these")
    wire = sides.wire_of(arguments)
    places = wire or (sides.ThisHost, sides.ThisHost)
    programs = {family: Programs(arguments.build, places, family) for family in ("ipv4", "ipv6")}
    failed = []
    for row in rows_of(arguments):
        begin = time.monotonic()
        try:
            row.run(programs)
            outcome = "passed"
        except sides.Failure as failure:
            outcome = f"FAILED\n{failure}\n"
            failed.append(row.name)
        print(f"{row.name}: {outcome}, {time.monotonic() - begin:.1f} s", flush=True)
    return sides.conclude(failed, wire, arguments)


if __name__ == "__main__":
    sys.exit(main())
