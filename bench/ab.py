#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Is one build of weft slower than another?

usage: ab.py OLD_BUILD NEW_BUILD [--rounds N] [--seconds S] [--out FILE] [--connections]

Measures both builds in alternating runs, so that a drift of the machine meets both alike, within the host
and over UDP on the loopback. Prints a Markdown table: of each build the figure that a quarter of its runs beat, the
ratio new to old, where above 1 is better, and the geometric mean of the ratios. --connections measures how fast
connections are made, in place of the data path. Builds are those of the preset `product`.

A quarter, since on a virtual machine figures within the host have two levels (cores that share a cache, and
cores that do not), and a median is on either of them by chance.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

from runner.cases import KIB, MIB, Case

CASES = [
    Case("tagged", "latency"),
    Case("tagged", "rate", 64),
    Case("tagged", "bandwidth", 64 * KIB),
    Case("tagged", "bandwidth", MIB),
    Case("rma_write", "latency"),
    Case("rma_read", "bandwidth", MIB),
    Case("fetch_add", "latency"),
    Case("tagged", "latency", endpoint="msg"),
]
CONNECTIONS = [
    Case("msg", "connect", endpoint="msg", connections=256),
    Case("msg", "mesh", endpoint="msg", processes=20),
]
LINKS = ["shm", "udp"]


def measure(build, link, case, options):
    """One figure; None when the run failed."""
    command = [build / "bin/weft_bench", "--provider", "weft", *case.arguments, "--cores", "0", "1",
               "--seconds", str(options.seconds), "--repetitions", "1", "--time-limit", "60"]
    environment = os.environ | {"FI_PROVIDER_PATH": str(build / "lib"), "FI_WEFT_LINKS": link}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = run.stdout.strip().splitlines()
    if run.returncode != 0 or not lines:
        print(run.stderr, file=sys.stderr)
        return None
    return json.loads(lines[-1])["value"]


def ratio(case, old, new):
    """How many times better NEW is than OLD."""
    return old / new if case.smaller_is_better else new / old


def good(case, figures):
    """The figure that a quarter of the runs beat."""
    best_first = sorted(figures, reverse=not case.smaller_is_better)
    return best_first[len(best_first) // 4]


def collect(options):
    """{(link, number of the case): (figures of OLD, figures of NEW)}"""
    figures = {(link, i): ([], []) for link in LINKS for i in range(len(options.cases))}
    for turn in range(options.rounds):
        for (link, i), pair in figures.items():
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                value = measure(options.builds[which], link, options.cases[i], options)
                if value is not None:
                    pair[which].append(value)
    return figures


def table(figures, cases):
    lines = ["| link | case | size | unit | old | new | new to old |", "|---|---|---|---|---|---|---|"]
    logs = []
    for (link, i), (old, new) in figures.items():
        case = cases[i]
        name = f"{case.operation} {case.metric} {case.endpoint}"
        if not old or not new:
            lines.append(f"| {link} | {name} | {case.size} | {case.unit} | failed | failed | - |")
            continue
        before, after = good(case, old), good(case, new)
        better = ratio(case, before, after)
        logs.append(math.log(better))
        lines.append(f"| {link} | {name} | {case.size} | {case.unit} | {before:.4g} | {after:.4g} | "
                     f"{better:.3f} |")
    mean = math.exp(statistics.mean(logs)) if logs else float("nan")
    return "\n".join(lines + ["", f"Geometric mean of {len(logs)} rows: {mean:.3f}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds", nargs=2, type=pathlib.Path, metavar="BUILD", help="old, then new")
    parser.add_argument("--rounds", type=int, default=16, help="runs of each case and build (default 16)")
    parser.add_argument("--seconds", type=float, default=0.2, help="timed part of a run (default 0.2)")
    parser.add_argument("--out", type=pathlib.Path, help="keep the raw figures in this file")
    parser.add_argument("--connections", action="store_true", help="how fast connections are made")
    options = parser.parse_args()
    options.cases = CONNECTIONS if options.connections else CASES
    options.builds = [build.resolve() for build in options.builds]
    figures = collect(options)
    if options.out:
        named = {f"{link} {options.cases[i]}": pair for (link, i), pair in figures.items()}
        options.out.write_text(json.dumps(named, indent=1), encoding="utf-8")
    print(table(figures, options.cases))


if __name__ == "__main__":
    main()
