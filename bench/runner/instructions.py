# SPDX-License-Identifier: BSD-2-Clause
# How many instructions one message costs: callgrind over a thread that sends to itself.
import re

from . import bounded, tables
from .cases import size_text

SIZES = (8, 64, 4096)
PROVIDERS = ("weft", "shm")
FEW, MANY = 1000, 6000
LIMIT = 300


def count(program, environment, provider, size, iterations):
    """Instructions of a whole run of ITERATIONS messages."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, "--self",
               "--provider", provider, "--operation", "tagged", "--size", str(size),
               "--iterations", str(iterations), "--repetitions", "1", "--time-limit", str(LIMIT)]
    _, errors = bounded.finish(bounded.start(command, environment), LIMIT)
    return int(re.search(r"Collected : (\d+)", errors)[1])


def per_message(program, environment, provider, size):
    """Posting a receive, sending and reading the completions; the difference of two runs leaves
    out everything that does not grow with the number of messages."""
    try:
        few, many = (count(program, environment, provider, size, n) for n in (FEW, MANY))
        return (many - few) / (MANY - FEW)
    except bounded.Failed:
        return None


def report(program, environment):
    rows = [[size_text(size), *(tables.number(per_message(program, environment, provider, size))
                                for provider in PROVIDERS)] for size in SIZES]
    return ("### Instructions\n\nOf one tagged message from an endpoint to itself: receive posted, "
            "sent, both completed.\n\n" + tables.table(["size", *PROVIDERS], rows) + "\n")
