#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# How fast weft is beside its peers: runs them in turn and prints tables.
"""Runs weft, every other software provider of libfabric and UCX side by side.

Prints Markdown. A run that fails or hangs is ended and shown as "-"."""
import argparse
import pathlib
import sys

from runner import contestants, document, instructions, rounds
from runner.cases import cases

PERFORMANCE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "PERFORMANCE.md"


def core_pair(text):
    server, client = text.split(",")
    return int(server), int(client)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path,
                        help="build directory: bin/weft_bench and lib/libweft-fi.so")
    parser.add_argument("--quick", action="store_true", help="fewer cases")
    parser.add_argument("--providers", type=lambda text: text.split(","),
                        help="only these, separated by commas (UCX is one)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each case (default 3), as far as --budget allows")
    parser.add_argument("--seconds", type=float, default=0.2,
                        help="timed part of each run (default 0.2)")
    parser.add_argument("--budget", type=int,
                        help="seconds: no round is begun that would end later (default 720, with "
                        "--quick 180)")
    parser.add_argument("--time-limit", type=int, default=20, help="seconds of one run")
    parser.add_argument("--cores", type=core_pair, help="SERVER,CLIENT (default: first and last)")
    parser.add_argument("--out", type=pathlib.Path, help="keep the raw figures in this file")
    parser.add_argument("--from", type=pathlib.Path, dest="kept",
                        help="measure nothing: show the figures that --out kept")
    parser.add_argument("--write-docs", action="store_true",
                        help="replace the generated section of docs/PERFORMANCE.md")
    parser.add_argument("--instructions", action="store_true",
                        help="also count instructions per message, with valgrind")
    return parser.parse_args()


def measure(options):
    found = contestants.find(options.build, options)
    if not found:
        sys.exit("none of the providers asked for is there")
    run = document.describe_run(found)
    budget = options.budget or (180 if options.quick else 720)
    results, run["rounds"] = rounds.run(cases(options.quick), found, options.rounds, budget)
    return run, results


def main():
    options = parse_arguments()
    if options.kept:
        run, results = document.from_json(options.kept.read_text())
    else:
        run, results = measure(options)
    if options.out:
        options.out.write_text(document.to_json(run, results))
    text = document.report(run, results)
    if options.instructions:
        text += "\n" + instructions.report(contestants.program_of(options.build),
                                           contestants.environment_for_weft(options.build))
    print(text)
    if options.write_docs:
        document.write_section(PERFORMANCE, text)


if __name__ == "__main__":
    main()
