#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# How fast weft is beside its peers: runs them in turn and prints tables.
"""Runs weft, every other software provider of libfabric and UCX side by side: within a host, or over a
network (--over), where UCX and shm do not take part and weft uses UDP.

Prints Markdown. A run that fails or hangs is ended and shown as "failed"."""
import argparse
import dataclasses
import pathlib
import shutil
import sys

from runner import contestants, document, instructions, rounds, ways
from runner.cases import cases

RESULTS = pathlib.Path(__file__).resolve().parent / "results"

MTU = 1500


def core_pair(text):
    server, client = text.split(",")
    return int(server), int(client)


def percentage(text):
    number = int(text)  # nftables draws one of a hundred
    if not 0 <= number <= 50:
        raise ValueError(text)
    return number


def executable(text):
    found = shutil.which(text)
    if not found:
        raise ValueError(text)
    return found


def add_way(parser):
    """Options that say over what the two sides meet."""
    parser.add_argument("--over", choices=("host", "loopback", "veth", "verbs", "verbs-shm", "threads"), default="host",
                        help="host: each by its own way within this one (the default); loopback; veth: "
                        "two network namespaces that are made for it; verbs: queue pairs beside weft's connections and bare datagrams, "
                        "over the loopback; verbs-shm: queue pairs within this host, beside bare copies and wake-ups, weft, shm and UCX; "
                        "threads: within this host, under each threading model")
    parser.add_argument("--mtu", type=int, default=MTU, help=f"of veth (default {MTU})")
    parser.add_argument("--loss", type=percentage, default=0,
                        help="so many of a hundred of what crosses veth are lost, trains of packets whole")
    parser.add_argument("--singly", action="store_true",
                        help="packets of veth leave, and are lost, one by one")
    parser.add_argument("--real-time", action="store_true",
                        help="real-time priority for the measuring processes, on a machine that does other things")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path,
                        help="build directory: bin/weft_bench and lib/libweft-fi.so")
    add_way(parser)
    parser.add_argument("--quick", action="store_true", help="fewer cases")
    parser.add_argument("--about", default="", metavar="TEXT",
                        help="only the tables with this text in their title, such as connect")
    parser.add_argument("--connections", type=int, help="of the rows about them, in place of the plan's number")
    parser.add_argument("--processes", type=int, help="that connect to each other, likewise")
    parser.add_argument("--providers", type=lambda text: text.split(","),
                        help="only these, separated by commas (UCX is one)")
    parser.add_argument("--ucx", type=executable, metavar="PATH",
                        help="ucx_perftest of another UCX, which is measured, too, where UCX is")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each case (default 3), as far as --budget allows")
    parser.add_argument("--seconds", type=float,
                        help=f"timed part of each run (default {contestants.SECONDS}, with --loss "
                        f"{contestants.SECONDS_WITH_LOSSES})")
    parser.add_argument("--budget", type=int,
                        help="seconds: no round is begun that would end later (default 720, with "
                        "--quick 180)")
    parser.add_argument("--time-limit", type=int, default=20, help="seconds of one run")
    parser.add_argument("--cores", type=core_pair, help="SERVER,CLIENT (default: first and last)")
    parser.add_argument("--out", type=pathlib.Path, help="keep the raw figures in this file")
    parser.add_argument("--from", type=pathlib.Path, dest="kept",
                        help="measure nothing: show the figures that --out kept")
    parser.add_argument("--write-results", action="store_true",
                        help="replace the generated section of bench/results/within-a-host.md, or with --over of "
                        "bench/results/over-a-network.md")
    parser.add_argument("--instructions", action="store_true",
                        help="also count instructions per message, with valgrind")
    options = parser.parse_args()
    if options.over != "veth" and (options.mtu != MTU or options.loss or options.singly):
        parser.error("--mtu, --loss and --singly are for --over veth")
    if options.over == "threads" and options.write_results:
        parser.error("--over threads has no page of results: take what is printed")
    return options


def planned(way, options):
    """The cases of that WAY, of the sizes that the command line asks for."""
    sizes = {name: value for name, value in vars(options).items() if name in ("connections", "processes") and value}
    return [dataclasses.replace(case, **{name: value for name, value in sizes.items() if getattr(case, name)})
            for case in cases(way.name, options.quick, options.about)]


def measure(options):
    way = ways.chosen(options)
    found = contestants.find(options.build, options, way)
    if not found:
        sys.exit("none of the providers asked for is there")
    run = document.describe_run(found, way, options.real_time)
    budget = options.budget or (180 if options.quick else 720)
    results, run["rounds"] = rounds.run(planned(way, options), found, options.rounds, budget)
    return run | way.outcome(), results


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
    if options.write_results:
        page = "verbs.md" if run["way"].startswith("verbs") else "over-a-network.md" if run.get("options") else "within-a-host.md"
        document.write_section(RESULTS / page, text, run.get("options", ""))


if __name__ == "__main__":
    main()
