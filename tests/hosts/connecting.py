# SPDX-License-Identifier: BSD-2-Clause
# How does a test use processes that make connections (FI_EP_MSG)?
import re

from hostile import PATIENCE, Process, Program
from program import require


class Counts:
    """What such a process has said of itself."""

    FIELDS = "requests", "accepted", "connected", "open", "ended", "failed", "aborted", "received", "broken"

    def __init__(self, values):
        for name, value in zip(self.FIELDS, values, strict=True):
            setattr(self, name, value)

    def since(self, before):
        """What was counted since then; what is open is not."""
        return Counts(getattr(self, name) - (0 if name == "open" else getattr(before, name)) for name in self.FIELDS)


class ConnectingPeer(Program, Process):
    """A process that connects to a listener, or that listens (connecting_peer.cc)."""

    def __init__(self, test, host, port=None, env=None):
        self._said = []  # what it has said before the answer to a command
        words = (0,) if port is None else (port, "listen")
        super().__init__(host, test.build / "bin" / "weft_connecting_peer", host.ipv4, *words, env=env or test.env)
        said = self.line()
        require(re.fullmatch(r"at \d+", said), said)
        self.end = host.ipv4, int(said.split()[1])

    def ask(self):
        """Its counts."""
        self.tell("ask")
        while not re.fullmatch(r"(\d+ ){8}\d+", line := super().line()):
            self._said.append(line)
        return Counts(map(int, line.split()))

    def line(self, patience=PATIENCE):
        return self._said.pop(0) if self._said else super().line(patience)

    def require_line(self, start, patience=PATIENCE):
        """Its next line, which begins like that."""
        line = self.line(patience)
        require(line.startswith(start), f"{start} is expected: {line}")
        return line
