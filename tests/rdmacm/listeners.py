# SPDX-License-Identifier: BSD-2-Clause
# How does a test start both sides of an rdma_cm program, and know that the server listens?
"""Lines of programs have {address} and {own} for the addresses of the server and of the client, and {port} for a port that is new for
each run."""
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "verbs"))
import sides  # noqa: E402

UDADDY_PORT = 7174  # of udaddy, which has no option for it


def free_port():
    """A UDP port of this host on which no process listens: other tests may run here."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def is_bound(process, port):
    """True when a socket of the process is bound to that UDP port, as that of a listener is."""
    return any(int(fields[1].rpartition(":")[2], 16) == port for fields in sides.sockets_of(process, "udp", "udp6"))


def sleeps_of(process):
    """How often its main thread has gone to sleep; None while it runs, and after its end."""
    try:
        lines = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/status").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["voluntary_ctxt_switches"]) if fields["State"].split()[0] == "S" else None


class Listener:
    """Tells when a server listens: its main thread has gone to sleep since its UDP port was bound, and has not run since the last look."""

    def __init__(self, port):
        self._port = port
        self._sleeps = None  # of that thread until the last look, where it slept

    def waits(self, process):
        """True once it does. A server binds its port and then listens."""
        if not is_bound(process, self._port):
            return False
        before, self._sleeps = self._sleeps, sleeps_of(process)
        return self._sleeps is not None and self._sleeps == before


class Programs:
    """Both sides of rdma_cm programs, with the server at one address of its host, and with these variables of the environment."""

    def __init__(self, build, places=(sides.ThisHost, sides.ThisHost), family="ipv4", **variables):
        self._programs = sides.Programs(build, places, **variables)
        self._address, self._own = (getattr(place, family) for place in places)

    def _words(self, line, port):
        return line.format(address=self._address, own=self._own, port=port).split()

    def start_server(self, line, port):
        """Returns once the server listens on the port, or has ended."""
        listener = Listener(port if "{port}" in line else UDADDY_PORT)
        return self._programs.start_server(self._words(line, port), listener.waits)

    def start_client(self, line, port):
        """Starts a client of the server on that port."""
        return self._programs.start_client(self._words(line, port))

    def run_client(self, line, port):
        """(status, output) of a client."""
        return sides.end_of(self.start_client(line, port), sides.PATIENCE)

    def run(self, server, client, port=None):
        """Runs both sides to their end: (status, output) of the server and of the client."""
        port = port or free_port()
        serving = self.start_server(server, port)
        of_client = self.run_client(client, port)
        return sides.end_of(serving, 1 if of_client[1].endswith(sides.HUNG) else sides.PATIENCE), of_client
