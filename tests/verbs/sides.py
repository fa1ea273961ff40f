# SPDX-License-Identifier: BSD-2-Clause
# How does a test run both sides of a verbs program under `weft run`?
"""A side is one process of a program that talks to another one, its peer, which it finds by TCP: the server waits for
the client. Each side is on a host of tests/hosts/hosts.py, or on this one."""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "hosts"))

PATIENCE = 100  # seconds, far beyond what any of them takes
LISTENS = "0A"


class ThisHost:
    """The loopback interface of the host that runs the test."""
    ipv4 = "127.0.0.1"
    interface = "lo"

    @staticmethod
    def words(*command):
        """The command itself."""
        return list(command)


def listens(process):
    """True when the process has a listening TCP socket, or has ended."""
    if process.poll() is not None:
        return True
    inodes = set()
    for descriptor in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and fields[9] in inodes:
                return True
    return False


def free_port():
    """A TCP port of this host that no process listens on: other tests may run here."""
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("", 0))
        return str(probe.getsockname()[1])


class Programs:
    """Runs programs beside the command weft, or of the distribution, with the server on hosts[0] and the client on hosts[1]."""

    def __init__(self, prefix, hosts=(ThisHost, ThisHost)):
        self._folder = pathlib.Path(prefix).resolve() / "bin"
        self._hosts = hosts

    def start(self, host, words, **variables):
        """Starts a side there."""
        program, *arguments = words
        own = self._folder / program
        path = str(own) if own.exists() else shutil.which(program)
        if path is None:
            raise FileNotFoundError(f"{program}: not found")
        environment = os.environ | {"WEFT_IFACE": getattr(host, "interface", "eth0")} | variables
        return subprocess.Popen(host.words(str(self._folder / "weft"), "run", path, *arguments), env=environment,
                                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def start_both(self, words, **variables):
        """(server, client), both running."""
        port = free_port()
        if words[0] == "weft_move_patterns":
            variables["WEFT_TEST_PORT"] = port
        else:
            words = [*words, "-p", port]
        server = self.start(self._hosts[0], words, **variables)
        end = time.monotonic() + PATIENCE
        while not listens(server):
            if time.monotonic() > end:
                server.kill()
                raise TimeoutError(f"the server does not listen:\n{server.communicate()[0]}")
            time.sleep(0.005)
        return server, self.start(self._hosts[1], [*words, self._hosts[0].ipv4], **variables)

    def run(self, words, **variables):
        """Runs both sides to their end: (status, output) of the server and of the client."""
        sides = self.start_both(words, **variables)
        outputs, hung = [], False
        for side in reversed(sides):
            try:
                output, _ = side.communicate(timeout=1 if hung else PATIENCE)
            except subprocess.TimeoutExpired:
                hung = True
                side.kill()
                output = side.communicate()[0] + "(does not end)"
            outputs.append((side.returncode, output))
        client, server = outputs
        return server, client


def describe(server, client):
    """Status and output of both sides."""
    return "\n".join(f"{name} ({status}):\n{output}" for name, (status, output) in (("client", client), ("server", server)))
