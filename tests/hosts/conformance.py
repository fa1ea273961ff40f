#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does the conformance suite pass when each of its packets crosses a wire, which may lose some?
"""Both sides of a test live on one host that reaches itself over the wire only: what it sends to its own address
leaves by its interface, goes through the bridge and comes in by the interface, at the interface's MTU."""
import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

import hosts

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))
from program import require, setup  # noqa: E402

FEWEST_PACKETS = 100
# Between two cuts, in seconds: tests begin and end both while there is a wire and while there is none.
PAUSE = 1.5


def tests_of(program, pattern):
    """The names of the tests that GoogleTest's filter lets through."""
    listed = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={pattern}"], text=True,
                            stdout=subprocess.PIPE, check=True).stdout
    suite, tests = "", []
    for line in listed.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith(" "):
            tests.append(suite + name)
        else:
            suite = name
    require(tests, f"no test is called {pattern}")
    return tests


def part_of(tests, part, parts):
    """Every part has one of them at least."""
    return tests[part::parts] or [tests[part % len(tests)]]


def part_and_parts(text):
    """What 3/64 says: the third of 64 parts, counted from 0."""
    part, parts = map(int, text.split("/"))
    if not 0 <= part < parts:
        raise ValueError(text)
    return part, parts


def main():
    hosts.enter()
    test, arguments = setup(__doc__, ("--mtu", {"type": int, "default": 1500}),
                            ("--lose", {"type": int, "default": 0, "help": "so many of a hundred packets"}),
                            ("--cut", {"type": float, "default": 0, "metavar": "SECONDS",
                                       "help": f"cut the wire for so long, again and again, {PAUSE} s apart"}),
                            ("--swallow", {"type": int, "default": 0, "metavar": "BYTES",
                                           "help": "longer packets are lost without an ICMP error: not for tests of datagrams"}),
                            ("--ipv6", {"action": "store_true"}),
                            ("--filter", {"action": "append", "help": "which tests; each one given makes a group"}),
                            ("--part", {"type": part_and_parts, "default": (0, 1), "metavar": "PART/PARTS",
                                        "help": "that part, from 0, of so many into which each group is divided"}))
    program = str(test.build / "bin" / "weft_conformance")
    chosen = [name for group in arguments.filter or ["*"] for name in part_of(tests_of(program, group), *arguments.part)]
    wire = hosts.Hosts(1, arguments.mtu)
    wire[0].reach_itself_over_the_wire()
    wire[0].complain_often()
    if arguments.swallow:
        wire.swallow(arguments.swallow)
    wire.lose(arguments.lose)
    environment = {**test.env, "FI_PROVIDER": test.provider, "FI_WEFT_IFACE": "eth0",
                   "WEFT_TEST_ADDRESSES": "ipv6" if arguments.ipv6 else "ipv4"}
    if arguments.lose or arguments.cut:
        environment["WEFT_TEST_LOSSES"] = "yes"
    cuts = wire.cut_again_and_again(arguments.cut, PAUSE) if arguments.cut else contextlib.nullcontext()
    with tempfile.NamedTemporaryFile("w") as flags, cuts:
        print("--gtest_brief=1", "--gtest_filter=" + ":".join(chosen), sep="\n", file=flags, flush=True)
        ended = subprocess.run(wire[0].words(program, f"--gtest_flagfile={flags.name}"), env=environment, check=False)
    passed, lost = wire.counts()
    print(f"{passed} packets crossed the wire, {lost} were lost")
    require(ended.returncode == 0, f"the suite ended with status {ended.returncode}")
    require(passed > FEWEST_PACKETS and (lost > 0) == (arguments.lose > 0), "the wire was not what it should be")
    require((wire.swallowed() > 0) == (arguments.swallow > 0), "the wire did not swallow what it should")


main()
