#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does the conformance suite pass when each of its packets crosses a wire, which may lose some?
"""Both sides of a test live on one host that reaches itself over the wire only: what it sends to its own address
leaves by its interface, goes through the bridge and comes in by the interface, at the interface's MTU."""
import subprocess
import sys
from pathlib import Path

import hosts

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))
from program import require, setup  # noqa: E402

FEWEST_PACKETS = 100


def main():
    hosts.enter()
    test, arguments = setup(__doc__, ("--mtu", {"type": int, "default": 1500}),
                            ("--lose", {"type": int, "default": 0, "help": "so many of a hundred packets"}),
                            ("--ipv6", {"action": "store_true"}), ("--filter", {"default": "*"}))
    wire = hosts.Hosts(1, arguments.mtu)
    wire[0].reach_itself_over_the_wire()
    wire.lose(arguments.lose)
    environment = {**test.env, "FI_PROVIDER": test.provider, "FI_WEFT_IFACE": "eth0",
                   "WEFT_TEST_ADDRESSES": "ipv6" if arguments.ipv6 else "ipv4"}
    words = [str(test.build / "bin" / "weft_conformance"), "--gtest_brief=1", f"--gtest_filter={arguments.filter}"]
    ended = subprocess.run(wire[0].words(*words), env=environment, check=False)
    passed, lost = wire.counts()
    print(f"{passed} packets crossed the wire, {lost} were lost")
    require(ended.returncode == 0, f"the suite ended with status {ended.returncode}")
    require(passed > FEWEST_PACKETS and (lost > 0) == (arguments.lose > 0), "the wire was not what it should be")


main()
