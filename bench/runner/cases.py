# SPDX-License-Identifier: BSD-2-Clause
# What is measured: operations, metrics and sizes, in full and in short.
from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Case:
    """One figure that every contestant is asked for; the words are those of weft_bench."""

    operation: str  # msg, tagged, rma_write, rma_read, fetch_add, compare_swap
    metric: str  # latency, poll_latency, rate, bandwidth
    size: int  # bytes

    @property
    def smaller_is_better(self):
        return self.metric in ("latency", "poll_latency")

    @property
    def unit(self):
        return {"rate": "M/s", "bandwidth": "GB/s"}.get(self.metric, "us")

    def __str__(self):
        return f"{self.operation} {self.metric} {size_text(self.size)}"


def size_text(size):
    if size >= MIB and size % MIB == 0:
        return f"{size // MIB} MiB"
    if size >= KIB and size % KIB == 0:
        return f"{size // KIB} KiB"
    return f"{size} B"


FULL = {
    ("tagged", "latency"): (8, 64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, MIB, 16 * MIB),
    ("msg", "latency"): (8, 64, 4 * KIB),
    ("rma_write", "latency"): (8, 64, 4 * KIB, 64 * KIB, MIB),
    ("rma_write", "poll_latency"): (8, 64, 4 * KIB, 64 * KIB),
    ("rma_read", "latency"): (8, 64, 4 * KIB, 64 * KIB, MIB),
    ("tagged", "rate"): (8, 64, 256, KIB),
    ("msg", "rate"): (64,),
    ("rma_write", "rate"): (64,),
    ("rma_read", "rate"): (64,),
    ("fetch_add", "latency"): (8,),
    ("fetch_add", "rate"): (8,),
    ("compare_swap", "latency"): (8,),
    ("tagged", "bandwidth"): (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB),
    ("msg", "bandwidth"): (MIB,),
    ("rma_write", "bandwidth"): (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB),
    ("rma_read", "bandwidth"): (64 * KIB, MIB, 4 * MIB),
}

QUICK = {
    ("tagged", "latency"): (8, 64, 64 * KIB),
    ("rma_write", "latency"): (8,),
    ("rma_write", "poll_latency"): (8,),
    ("rma_read", "latency"): (8,),
    ("fetch_add", "latency"): (8,),
    ("tagged", "rate"): (64,),
    ("tagged", "bandwidth"): (64 * KIB, 256 * KIB, MIB, 4 * MIB),
}


def cases(quick):
    plan = QUICK if quick else FULL
    return [Case(operation, metric, size) for (operation, metric), sizes in plan.items()
            for size in sizes]
