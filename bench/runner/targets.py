# SPDX-License-Identifier: BSD-2-Clause
# Which figures weft aims at, and whether a run reached them.
from dataclasses import dataclass

from .cases import KIB, MIB, Case, size_text

RIVALS = ("shm", "UCX")


@dataclass(frozen=True)
class Target:
    """WEFT is to be FACTOR times better than the best of RIVALS in CASE."""

    text: str
    case: Case
    factor: float
    rivals: tuple = RIVALS


@dataclass(frozen=True)
class Bar:
    """A figure of today's UCX (2026, posix and cma) measured on another day: no ratio of a run."""

    text: str
    case: Case
    figure: float


TARGETS = (
    Target("8 B tagged latency", Case("tagged", "latency", 8), 1.5),
    Target("64 B tagged latency", Case("tagged", "latency", 64), 1.5),
    Target("64 B tagged message rate", Case("tagged", "rate", 64), 2.0),
    *(Target(f"{size_text(size)} tagged bandwidth", Case("tagged", "bandwidth", size), 1.5)
      for size in (64 * KIB, 256 * KIB, MIB, 4 * MIB)),
    Target("8 B RMA write, each completion awaited", Case("rma_write", "latency", 8), 2.0,
           ("shm",)),
    Target("8 B atomic fetch-add, each completion awaited", Case("fetch_add", "latency", 8), 2.0,
           ("shm",)),
)

BARS = (
    Bar("8 B tagged latency", Case("tagged", "latency", 8), 0.175),
    Bar("64 B tagged message rate", Case("tagged", "rate", 64), 15.8),
)


def verdict(is_met):
    return "-" if is_met is None else ("yes" if is_met else "no")
