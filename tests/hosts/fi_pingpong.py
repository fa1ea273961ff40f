#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does Debian's fi_pingpong complete with verified data between two hosts, whatever the wire does to packets?
import subprocess
import sys
import threading
from pathlib import Path

import hosts

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))
from pingpong import SIZES_OF_ALL, check_table, finish, free_port, wait_for_listener  # noqa: E402
from program import require, setup  # noqa: E402

# When a cable is pulled there are so many messages, which takes a second at least, and this is how they are reported.
MANY, REPORTED_AS = "1000", "1k"
PACKETS_BEFORE_CUT = 200
# Bytes of an IP packet that some router hands on without a word about larger ones.
LONGEST = 1300


def start(test, host, iterations, options):
    command = ["fi_pingpong", "-p", test.provider, "-c", "-I", iterations, *options]
    return subprocess.Popen(host.words(*command), env=test.env, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


def exchange(test, wire, family, options, iterations="2", sizes=SIZES_OF_ALL, reported=None):
    """Runs both sides, each on its own host, to their end."""
    port = str(free_port())
    words = [*options, "-6"] if family == "ipv6" else options
    server = start(test, wire[0], iterations, [*words, "-B", port])
    wait_for_listener(int(port), server)
    client = start(test, wire[1], iterations, [*words, "-P", port, getattr(wire[0], family)])
    for name, side in (("client", client), ("server", server)):
        name = f"fi_pingpong {' '.join(words)}, {name}"
        check_table(name, finish(name, side), sizes, reported or iterations)


def main():
    hosts.enter()
    test, arguments = setup(__doc__, ("--mtu", {"type": int, "default": 1500}),
                            ("--lose", {"type": int, "nargs": "+", "default": [1, 5], "help": "so many of a hundred packets"}))
    wire = hosts.Hosts(2, arguments.mtu)
    kinds = (["-e", "rdm"], ["-e", "msg"])
    for options in kinds:
        for family in ("ipv4", "ipv6"):
            exchange(test, wire, family, [*options, "-S", "all"])
            print(f"{' '.join(options)}, {family}: every size is verified", flush=True)
    for percent in arguments.lose:
        wire.lose(percent)
        for options in kinds:
            exchange(test, wire, "ipv4", [*options, "-S", "all"])
        passed, lost = wire.counts()
        require(lost > 0, f"nothing was lost of {passed} packets")
        print(f"{lost} packets were lost beside {passed}: every size is verified", flush=True)
    wire.lose(0)
    for options in kinds:
        with wire.cut_off(wire[1], PACKETS_BEFORE_CUT, seconds=1):
            exchange(test, wire, "ipv4", [*options, "-S", "65536"], MANY, sizes=1, reported=REPORTED_AS)
        print(f"{' '.join(options)}: the cable was pulled for a second, and every message is verified", flush=True)
    if arguments.mtu > 1500:
        large_packets_vanish(test, wire)


def large_packets_vanish(test, wire):
    """In the middle of something, and from the beginning."""
    for family in ("ipv4", "ipv6"):
        over = threading.Event()
        start_at = wire.counts()[0] + PACKETS_BEFORE_CUT

        def wait_and_swallow(start_at=start_at, over=over):
            while wire.counts()[0] < start_at and not over.wait(0.01):
                pass
            wire.swallow(LONGEST)

        with hosts.beside(wait_and_swallow, over):
            exchange(test, wire, family, ["-e", "rdm", "-S", "65536"], MANY, sizes=1, reported=REPORTED_AS)
        require(wire.swallowed() > 0, "no packet was large")
        exchange(test, wire, family, ["-e", "msg", "-S", "all"])
        print(f"{family}: {wire.swallowed()} large packets vanished, and every message is verified", flush=True)
        wire.end_swallowing()


main()
