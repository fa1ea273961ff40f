# SPDX-License-Identifier: BSD-2-Clause
# What is measured: operations, metrics, sizes and manners, in full and in short.
from dataclasses import asdict, dataclass, replace

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Metric:
    """What a figure says, and where it stands in what weft_bench prints."""

    title: str
    unit: str
    smaller_is_better: bool = True
    measured_as: str = ""  # the --metric of weft_bench, if that is another word
    member: str = "value"
    by_bench: bool = True  # weft_bench knows it


METRICS = {
    "latency": Metric("latency (us)", "us"),
    "poll_latency": Metric("latency, the target watches memory (us)", "us"),
    "rate": Metric("rate (millions per second)", "M/s", False),
    "bandwidth": Metric("bandwidth (GB/s)", "GB/s", False),
    "first_message": Metric("time to the first message (ms)", "ms", True, "latency",
                            "first_message_ms"),
    "private_memory": Metric("private memory for each further peer (KiB)", "KiB", True, "latency",
                             "private_kib_per_peer"),
    "shared_memory": Metric("shared memory for each further peer (KiB)", "KiB", True, "latency",
                            "shared_kib_per_peer"),
    "sockets": Metric("sockets for each further peer", "", True, "latency", "sockets_per_peer"),
    "threads": Metric("threads for each further peer", "", True, "latency", "threads_per_peer"),
    "first_connect": Metric("the first connection of a process, to the first answer (ms)", "ms", True, "connect",
                            "first_ms"),
    "connect": Metric("each of many connections, 32 made at once, to its first answer (us)", "us"),
    "connect_growth": Metric("time of the last quarter of the connections over that of the first", "", True, "connect",
                             "last_to_first_quarter"),
    "connect_descriptors": Metric("descriptors for each connection", "", True, "connect",
                                  "descriptors_per_connection"),
    "connect_threads": Metric("threads for each connection", "", True, "connect", "threads_per_connection"),
    "connect_private": Metric("private memory for each connection (KiB)", "KiB", True, "connect",
                              "private_kib_per_connection"),
    "connect_shared": Metric("shared memory for each connection (KiB)", "KiB", True, "connect",
                             "shared_kib_per_connection"),
    "poll": Metric("a poll that finds nothing (ns)", "ns", by_bench=False),
    "event_latency": Metric("latency, each side sleeps until a completion event (us)", "us", by_bench=False),
    "list_rate": Metric("rate (millions per second), posted in lists of 16", "M/s", False, by_bench=False),
    "mesh": Metric("many processes connect to each other at once, until all have their answers (ms)", "ms"),
}

ENDPOINTS = {"rdm": "FI_EP_RDM", "msg": "FI_EP_MSG", "dgram": "FI_EP_DGRAM", "idle": "idle queue pairs"}


@dataclass(frozen=True)
class Case:
    """One figure that every contestant is asked for; the words are those of weft_bench, and of
    METRICS."""

    operation: str  # msg, tagged, rma_write, rma_read, fetch_add, compare_swap
    metric: str
    size: int = 8  # bytes
    endpoint: str = "rdm"
    receive: str = "single"  # or multi
    count_by: str = "queue"  # or counters
    peers: int = 0  # of which one is active; 0: one, in a table that is not about peers
    completion: str = "default"  # or delivery: not before the data are at the target
    connections: int = 0  # of metric connect
    processes: int = 0  # of metric mesh
    queue_pairs: int = 0  # of metric poll
    threading: str = ""  # safe, fid, endpoint, completion or domain; empty: domain, in a table that is not about models
    threads: int = 0  # of one process, each of which sends to itself; 0: one thread in each of two processes

    @property
    def smaller_is_better(self):
        return METRICS[self.metric].smaller_is_better

    @property
    def unit(self):
        return METRICS[self.metric].unit

    @property
    def run(self):
        """The case whose run of weft_bench gives this figure, too."""
        return replace(self, metric=METRICS[self.metric].measured_as or self.metric)

    @property
    def arguments(self):
        """How weft_bench is told."""
        words = asdict(self.run) | {"peers": max(self.peers, 1)}
        told = [text for name, value in words.items() if value
                for text in ("--" + name.replace("_", "-"), str(value))]
        return told + ["--self"] * bool(self.threads)

    @property
    def least_time_limit(self):
        """Seconds that a run may take, whatever the limit of other runs is."""
        return 120 if self.connections or self.processes else 0

    @property
    def table(self):
        """Equal for all cases that are the rows of one table."""
        size = self.size if self.threading else 0
        return replace(self, size=size, threading="*" if self.threading else "", threads=min(self.threads, 1), peers=min(self.peers, 1), connections=min(self.connections, 1),
                       processes=min(self.processes, 1), queue_pairs=min(self.queue_pairs, 1))

    @property
    def title(self):
        """Of that table."""
        manner = {"multi": ", multi-receive"}.get(self.receive, "")
        manner += {"counters": ", seen by counters"}.get(self.count_by, "")
        manner += {"delivery": ", complete when delivered"}.get(self.completion, "")
        manner += ", one active peer and the others idle" if self.peers else ""
        manner += f", {size_text(self.size)} under each threading model" if self.threading else ""
        manner += ", each thread sends to itself" if self.threads else ""
        about = ENDPOINTS[self.endpoint] if self.queue_pairs else f"{ENDPOINTS[self.endpoint]}, {self.operation}"
        return f"{about}{manner}: {METRICS[self.metric].title}"

    @property
    def row(self):
        """What stands before the figures."""
        if self.threading:
            return self.threading + (f", {self.threads} thread{'s' * (self.threads > 1)}" if self.threads else "")
        if self.connections:
            return f"{self.connections} connections"
        if self.processes:
            return f"{self.processes} processes"
        if self.queue_pairs:
            return f"{self.queue_pairs} queue pair{'s' * (self.queue_pairs > 1)}"
        return f"{self.peers} peer{'s' * (self.peers > 1)}" if self.peers else size_text(self.size)

    def __str__(self):
        return f"{self.title}, {self.row}"


def size_text(size):
    if size >= MIB and size % MIB == 0:
        return f"{size // MIB} MiB"
    if size >= KIB and size % KIB == 0:
        return f"{size // KIB} KiB"
    return f"{size} B"


def sizes(operation, metric, *each, **manner):
    return [Case(operation, metric, size, **manner) for size in each]


def peers(operation, metric, *each):
    return [Case(operation, metric, peers=count) for count in each]


def connections(count, processes):
    """What connections cost: the first one, each of COUNT, and PROCESSES that connect all to all."""
    metrics = [name for name, metric in METRICS.items() if "connect" in (name, metric.measured_as)]
    return [*(Case("msg", name, endpoint="msg", connections=count) for name in metrics),
            Case("msg", "mesh", endpoint="msg", processes=processes)]


FULL = [
    *sizes("tagged", "latency", 8, 64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, MIB, 16 * MIB),
    *sizes("msg", "latency", 8, 64, 4 * KIB),
    *sizes("rma_write", "latency", 8, 64, 4 * KIB, 64 * KIB, MIB),
    *sizes("rma_write", "poll_latency", 8, 64, 4 * KIB, 64 * KIB),
    *sizes("rma_read", "latency", 8, 4 * KIB, 64 * KIB, MIB),
    *sizes("tagged", "rate", 8, 64, 256, KIB),
    *sizes("msg", "rate", 8, 64),
    *sizes("rma_write", "rate", 64),
    *sizes("rma_read", "rate", 64),
    *sizes("fetch_add", "latency", 8),
    *sizes("fetch_add", "rate", 8),
    *sizes("compare_swap", "latency", 8),
    *sizes("tagged", "bandwidth", 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB),
    *sizes("msg", "bandwidth", MIB),
    *sizes("rma_write", "bandwidth", 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB),
    *sizes("rma_read", "bandwidth", 64 * KIB, MIB, 4 * MIB),
    *sizes("msg", "latency", 8, 64, 4 * KIB, endpoint="msg"),
    *sizes("msg", "rate", 8, 64, endpoint="msg"),
    *sizes("msg", "bandwidth", MIB, endpoint="msg"),
    *sizes("rma_write", "latency", 8, endpoint="msg"),
    *sizes("fetch_add", "latency", 8, endpoint="msg"),
    *sizes("msg", "latency", 8, 64, KIB, endpoint="dgram"),
    *sizes("msg", "rate", 8, 64, endpoint="dgram"),
    *sizes("msg", "rate", 8, 64, receive="multi"),
    *sizes("tagged", "latency", 8, count_by="counters"),
    *sizes("rma_write", "latency", 8, count_by="counters"),
    *peers("tagged", "latency", 1, 2, 8, 64),
    *peers("tagged", "private_memory", 8, 64),
    *peers("tagged", "shared_memory", 8, 64),
    *sizes("msg", "first_message", 8),
    *sizes("msg", "first_message", 8, endpoint="msg"),
    *sizes("msg", "first_message", 8, endpoint="dgram"),
    *connections(1024, 100),
]

# The cases that targets are about, and one of every other kind.
QUICK = [
    *sizes("tagged", "latency", 8, 64),
    *sizes("msg", "latency", 8),
    *sizes("rma_write", "latency", 8),
    *sizes("rma_write", "poll_latency", 8),
    *sizes("rma_read", "latency", 8),
    *sizes("fetch_add", "latency", 8),
    *sizes("tagged", "rate", 64),
    *sizes("tagged", "bandwidth", 64 * KIB, 256 * KIB, MIB, 4 * MIB),
    *sizes("msg", "rate", 64),
    *sizes("msg", "latency", 8, endpoint="msg"),
    *sizes("msg", "rate", 64, endpoint="msg"),
    *sizes("msg", "latency", 8, endpoint="dgram"),
    *sizes("msg", "rate", 64, endpoint="dgram"),
    *sizes("msg", "rate", 64, receive="multi"),
    *sizes("tagged", "latency", 8, count_by="counters"),
    *peers("tagged", "latency", 1, 64),
    *peers("tagged", "private_memory", 64),
    *peers("tagged", "shared_memory", 64),
    *sizes("msg", "first_message", 8),
    *sizes("msg", "first_message", 8, endpoint="msg"),
    *sizes("msg", "first_message", 8, endpoint="dgram"),
    *connections(128, 16),
]

# Between hosts. A write that is over when it has left is not held against one that has arrived.
NETWORK = [
    *sizes("tagged", "latency", 8, 64, KIB, 4 * KIB, 64 * KIB, MIB),
    *sizes("msg", "latency", 8),
    *sizes("rma_write", "latency", 8, 4 * KIB, completion="delivery"),
    *sizes("rma_write", "latency", 8),
    *sizes("rma_read", "latency", 8, 4 * KIB),
    *sizes("fetch_add", "latency", 8),
    *sizes("tagged", "rate", 8, 64, KIB),
    *sizes("rma_write", "rate", 64, completion="delivery"),
    *sizes("rma_read", "rate", 64),
    *sizes("fetch_add", "rate", 8),
    *sizes("tagged", "bandwidth", 64 * KIB, 256 * KIB, MIB, 4 * MIB),
    *sizes("rma_write", "bandwidth", 64 * KIB, 256 * KIB, MIB, 4 * MIB, completion="delivery"),
    *sizes("rma_read", "bandwidth", 64 * KIB, 256 * KIB, MIB, 4 * MIB),
    *sizes("msg", "latency", 8, endpoint="msg"),
    *sizes("msg", "rate", 64, endpoint="msg"),
    *sizes("msg", "bandwidth", MIB, endpoint="msg"),
    *sizes("msg", "latency", 8, endpoint="dgram"),
    *sizes("msg", "rate", 64, endpoint="dgram"),
    *peers("tagged", "latency", 1, 64),
    *peers("tagged", "private_memory", 64),
    *peers("tagged", "sockets", 64),
    *peers("tagged", "threads", 64),
    *sizes("msg", "first_message", 8),
    *connections(1024, 100),
]

QUICK_NETWORK = [
    *sizes("tagged", "latency", 8),
    *sizes("rma_write", "latency", 8, completion="delivery"),
    *sizes("rma_read", "latency", 8),
    *sizes("fetch_add", "latency", 8),
    *sizes("tagged", "rate", 64),
    *sizes("tagged", "bandwidth", 64 * KIB, MIB),
    *sizes("rma_write", "bandwidth", MIB, completion="delivery"),
    *sizes("rma_read", "bandwidth", MIB),
    *peers("tagged", "private_memory", 8),
    *peers("tagged", "sockets", 8),
    *peers("tagged", "threads", 8),
    *connections(128, 16),
]

# Where packets are lost: throughput.
LOSSES = [
    *sizes("tagged", "rate", 64, KIB),
    *sizes("tagged", "bandwidth", 64 * KIB, 256 * KIB, MIB, 4 * MIB),
    *sizes("rma_write", "bandwidth", 64 * KIB, MIB, 4 * MIB, completion="delivery"),
    *sizes("rma_read", "bandwidth", 64 * KIB, MIB, 4 * MIB),
    *sizes("msg", "bandwidth", MIB, endpoint="msg"),
]

QUICK_LOSSES = [
    *sizes("tagged", "rate", 64),
    *sizes("tagged", "bandwidth", 64 * KIB, MIB),
    *sizes("rma_write", "bandwidth", MIB, completion="delivery"),
]

# Queue pairs beside connections of libfabric.
VERBS = [
    *sizes("msg", "latency", 8, 4 * KIB, endpoint="msg"),
    *sizes("msg", "latency", 8, endpoint="dgram"),
    *sizes("rma_write", "poll_latency", 8, endpoint="msg"),
    *sizes("rma_read", "latency", 8, endpoint="msg"),
    *sizes("fetch_add", "latency", 8, endpoint="msg"),
    *sizes("msg", "rate", 64, endpoint="msg"),
    *sizes("rma_write", "rate", 64, endpoint="msg"),
    *sizes("rma_read", "rate", 64, endpoint="msg"),
    *sizes("fetch_add", "rate", 8, endpoint="msg"),
    *sizes("msg", "bandwidth", 64 * KIB, MIB, endpoint="msg"),
    *sizes("rma_write", "bandwidth", 64 * KIB, MIB, endpoint="msg"),
    *sizes("rma_read", "bandwidth", 64 * KIB, MIB, endpoint="msg"),
    *(Case("poll", "poll", endpoint="idle", queue_pairs=count) for count in (1, 1000)),
]

QUICK_VERBS = [
    *sizes("msg", "latency", 8, endpoint="msg"),
    *sizes("fetch_add", "latency", 8, endpoint="msg"),
    *sizes("msg", "rate", 64, endpoint="msg"),
    *sizes("rma_write", "bandwidth", MIB, endpoint="msg"),
    *(Case("poll", "poll", endpoint="idle", queue_pairs=count) for count in (1, 100)),
]

# Queue pairs within a host, where WRITEs stand beside RMA writes and SENDs beside tagged messages.
VERBS_SHM = [
    *sizes("tagged", "latency", 8),
    *sizes("rma_write", "poll_latency", 8),
    *sizes("rma_read", "latency", 8),
    *sizes("fetch_add", "latency", 8),
    *sizes("tagged", "bandwidth", 64 * KIB, MIB),
    *sizes("rma_write", "bandwidth", 64 * KIB, MIB),
    *sizes("rma_read", "bandwidth", 64 * KIB, MIB),
    *sizes("tagged", "rate", 64),
    *sizes("rma_write", "list_rate", 64),
    *sizes("tagged", "event_latency", 8),
    *(Case("poll", "poll", endpoint="idle", queue_pairs=count) for count in (1, 1000)),
]

QUICK_VERBS_SHM = [
    *sizes("tagged", "latency", 8),
    *sizes("rma_write", "poll_latency", 8),
    *sizes("rma_read", "latency", 8),
    *sizes("rma_write", "bandwidth", 64 * KIB),
    *sizes("rma_write", "list_rate", 64),
    *sizes("tagged", "event_latency", 8),
]

# What the threading models cost one thread, and what two threads with endpoints and queues of their own reach.
MODELS = ("domain", "completion", "endpoint", "fid", "safe")
THREADS = [
    *(Case("tagged", "latency", 8, threading=model) for model in MODELS),
    *(Case("tagged", "rate", 64, threading=model) for model in MODELS),
    Case("tagged", "rate", 64, threading="domain", threads=1),
    *(Case("tagged", "rate", 64, threading=model, threads=count) for model in ("completion", "safe") for count in (1, 2)),
]

# By the name of the way: in full, in short.
PLANS = {"host": (FULL, QUICK), "network": (NETWORK, QUICK_NETWORK), "losses": (LOSSES, QUICK_LOSSES), "verbs": (VERBS, QUICK_VERBS),
         "verbs-shm": (VERBS_SHM, QUICK_VERBS_SHM), "threads": (THREADS, THREADS)}


def cases(way, quick, about=""):
    """What is measured on the way of that name, as far as ABOUT stands in its title."""
    return [case for case in PLANS[way][1 if quick else 0] if about in case.title]
