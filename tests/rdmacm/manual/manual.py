#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do both processes of weft_rdma_memory pass the checks of the manual, on one host or between two?
"""The server prints the ports of its services, which the client then gets. Without names all checks are done."""
import argparse
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "hosts"))
import hosts  # noqa: E402

PATIENCE = 100  # seconds, far beyond what all checks take
GRACE = 2  # for the other process, once one has failed


class ThisHost:
    """The loopback interface of the host that runs the test."""
    ipv4 = "127.0.0.1"
    interfaces = "lo"

    @staticmethod
    def words(*command):
        """The command itself."""
        return list(command)


class Program:
    """Both processes of one run."""

    def __init__(self, build, places):
        self._program = str(pathlib.Path(build).resolve() / "bin" / "weft_rdma_memory")
        self._libraries = str(pathlib.Path(build).resolve() / "lib" / "verbs")
        self._places = places

    def list(self):
        """The names of all checks."""
        return subprocess.run([self._program, "list"], env=self._environment(ThisHost), text=True, check=True,
                              stdout=subprocess.PIPE).stdout.split()

    def _environment(self, place):
        return os.environ | {"WEFT_IFACE": getattr(place, "interfaces", "eth0,lo"), "LD_LIBRARY_PATH": self._libraries}

    def _start(self, place, *words):
        return subprocess.Popen(place.words(self._program, *words), env=self._environment(place), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, checks):
        """[(status, output)] of the server and the client."""
        server_place, client_place = self._places
        server = self._start(server_place, "server", server_place.ipv4, *checks)
        first = server.stdout.readline()
        if not first.startswith("ports "):
            server.kill()
            return [(1, first + server.communicate()[0]), (1, "(is not started)")]
        sides = [server, self._start(client_place, "client", server_place.ipv4, *first.split()[1:], *checks)]
        wait(sides)
        return [finish(side) for side in sides]


def wait(sides):
    """Returns when both have ended, or one has failed and the other had its time, or both did not end."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and any(side.poll() is None for side in sides):
        if any(side.poll() not in (None, 0) for side in sides):
            end = min(end, time.monotonic() + GRACE)
        time.sleep(0.002)


def finish(side):
    """(status, output) of a process, which is killed where it has not ended."""
    hung = side.poll() is None
    if hung:
        side.kill()
    return side.returncode if not hung else "hung", side.communicate()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="CMake build directory")
    parser.add_argument("checks", nargs="*", help="their names (default: all)")
    parser.add_argument("--between-hosts", action="store_true", help="over a wire in place of the loopback")
    parser.add_argument("--named", default="", help="fails unless these, separated by commas, are the checks")
    arguments = parser.parse_intermixed_args()
    places = (ThisHost, ThisHost)
    if arguments.between_hosts:
        hosts.enter()
        places = hosts.Hosts(2)
    program = Program(arguments.build, places)
    checks = arguments.checks or program.list()
    if arguments.named and sorted(arguments.named.split(",")) != sorted(checks):
        print(f"the tests are {arguments.named}\nthe checks are {','.join(checks)}")
        return 1
    both = program.run(checks)
    passed = True
    for name, (status, output) in zip(("server", "client"), both):
        has_passed = status == 0 and output.splitlines() == [f"passed {check}" for check in checks]
        passed = passed and has_passed
        print(f"{name}: {'passed' if has_passed else f'FAILED ({status})'}\n{output}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
