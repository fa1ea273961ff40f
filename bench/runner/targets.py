# SPDX-License-Identifier: BSD-2-Clause
# Which figures weft aims at, and whether a run reached them.
from dataclasses import dataclass

from .cases import KIB, MIB, Case, connections, size_text

WEFT, VERBS = "weft", "verbs"
UCX, OTHER_UCX = "UCX", "other UCX"
BARE = "bare"
# Figures of the system alone, without a protocol: no contestant is held against them but by a goal.
FLOORS = ("datagrams", BARE)

# Queue pairs are to reach that share of what connections of libfabric do over the same sockets.
VERBS_SHARE = 0.9

# A goal of queue pairs within a host counts as met at that share of the floor of the same run, too.
FLOOR_SHARE = 0.8

# Figures that ought to be equal scatter by so much.
AS_GOOD = 0.95


@dataclass(frozen=True)
class Target:
    """Weft is to be FACTOR times better in CASE than the best of the others; or, if another case
    is named, than Weft itself is in that."""

    text: str
    case: Case
    factor: float
    itself_in: Case = None


@dataclass(frozen=True)
class Bar:
    """A figure of today's UCX (2026, posix and cma) measured on another day: no ratio of a run."""

    text: str
    case: Case
    figure: float


def like_rdm(text, operation, metric, size):
    """A connection is to be as good as reliable datagrams."""
    return Target(f"FI_EP_MSG as fast as FI_EP_RDM: {text}",
                  Case(operation, metric, size, endpoint="msg"), AS_GOOD,
                  Case(operation, metric, size))


def as_fast_connections():
    """Connections are made as fast as by the best of the others."""
    texts = {"first_connect": "the first connection of a process", "connect": "each of 1,024 connections",
             "mesh": "100 processes that connect to each other"}
    return [Target(texts[case.metric], case, 1.0) for case in connections(1024, 100) if case.metric in texts]


TARGETS = (
    Target("8 B tagged latency", Case("tagged", "latency", 8), 1.5),
    Target("64 B tagged latency", Case("tagged", "latency", 64), 1.5),
    Target("64 B tagged message rate", Case("tagged", "rate", 64), 2.0),
    *(Target(f"{size_text(size)} tagged bandwidth", Case("tagged", "bandwidth", size), 1.5)
      for size in (64 * KIB, 256 * KIB, MIB, 4 * MIB)),
    Target("8 B RMA write, each completion awaited", Case("rma_write", "latency", 8), 2.0),
    Target("8 B atomic fetch-add, each completion awaited", Case("fetch_add", "latency", 8), 2.0),
    like_rdm("8 B latency", "msg", "latency", 8),
    like_rdm("64 B message rate", "msg", "rate", 64),
    like_rdm("1 MiB bandwidth", "msg", "bandwidth", MIB),
    Target("latency beside 63 idle peers within 10 % of that with one peer",
           Case("tagged", "latency", peers=64), 1 / 1.1, Case("tagged", "latency", peers=1)),
    *as_fast_connections(),
)

BARS = (
    Bar("8 B tagged latency", Case("tagged", "latency", 8), 0.175),
    Bar("64 B tagged message rate", Case("tagged", "rate", 64), 15.8),
)


@dataclass(frozen=True)
class Goal:
    """Queue pairs within a host are to be FACTOR times better in CASE than the best of AGAINST is there, or in IN_CASE. The floor is the bare
    figure of CASE; where there is none, the figure that the goal is held against."""

    text: str
    case: Case
    factor: float
    against: tuple = (BARE,)
    in_case: Case = None


def goals_of_each_size(program, operation, factor, *against):
    return [Goal(f"{program}, {size_text(size)}", Case(operation, "bandwidth", size), factor, against) for size in (64 * KIB, MIB)]


GOALS = (
    Goal("ib_send_lat, 8 B", Case("tagged", "latency", 8), 1.1, (UCX, OTHER_UCX)),
    Goal("ib_write_lat, 8 B", Case("rma_write", "poll_latency", 8), 1 / 1.25),
    Goal("ib_read_lat, 8 B", Case("rma_read", "latency", 8), 1 / 1.3),
    Goal("ib_atomic_lat", Case("fetch_add", "latency", 8), 1 / 1.3, (WEFT,)),
    *goals_of_each_size("ib_send_bw", "tagged", 0.9, WEFT),
    *goals_of_each_size("ib_write_bw", "rma_write", 0.9, BARE),
    *goals_of_each_size("ib_read_bw", "rma_read", 0.9, BARE),
    Goal("ib_send_bw, 64 B", Case("tagged", "rate", 64), 0.6, (WEFT,)),
    Goal("ib_write_bw -l 16, 64 B", Case("rma_write", "list_rate", 64), 0.8),
    Goal("ib_send_lat -e, 8 B", Case("tagged", "event_latency", 8), 1 / 1.3),
    Goal("a poll beside 1,000 idle queue pairs", Case("poll", "poll", endpoint="idle", queue_pairs=1000), 1 / 1.2, (VERBS,),
         Case("poll", "poll", endpoint="idle", queue_pairs=1)),
)


def verdict(is_met):
    return "-" if is_met is None else ("yes" if is_met else "no")
