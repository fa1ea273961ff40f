#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does tshark find in captures of real programs their operations, each packet and record well formed?
"""Runs fi_pingpong and a few tests of the conformance program with WEFT_CAPTURE, over both links, and reads
what they leave behind: by tshark, with the dissector of tools/wireshark, and by the definitions of the ICRC and
of a record (docs/formats/capture.md).
"""
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from captured import (ARRIVED, ATOMICS, MANAGEMENT, PENDING, READS, REFUSED, RELIABLE, SENT, TIMEOUT_S, UD_SEND_ONLY, WRITES,
                      contents_of)
from program import fail, require, setup

SEND, WRITE, READ = {0x04}, {0x0A}, {0x0C, 0x10}
LONG = {0x00, 0x01, 0x02}  # a message of several packets
LARGE = {0x06, 0x07, 0x08}  # the write of a message that was offered
ACK = {0x11}
RESYNC = {0x15}  # behind a refused access


def run_pair(test, directory, link, options):
    """fi_pingpong's two sides; the name of the server's port goes over a TCP connection of their own."""
    env = {**test.env, "FI_WEFT_IFACE": "lo", "FI_WEFT_LINKS": link,
           "WEFT_CAPTURE": str(directory / "%p.pcapng")}
    command = ["fi_pingpong", "-p", test.provider, "-I", "5", *options]
    server = subprocess.Popen([*command, "-B", "47411"], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for _ in range(200):  # until the server listens
        client = subprocess.run([*command, "-P", "47411", "127.0.0.1"], env=env, text=True, check=False,
                                capture_output=True, timeout=TIMEOUT_S)
        if client.returncode != 111:  # ECONNREFUSED
            break
        time.sleep(0.02)
    output, _ = server.communicate(timeout=TIMEOUT_S)
    require(client.returncode == 0, f"fi_pingpong {options}: {client.returncode}\n{client.stderr}{output}")


def run_conformance(test, directory, link, pattern):
    env = {**test.env, "FI_PROVIDER": test.provider, "FI_WEFT_LINKS": link,
           "WEFT_CAPTURE": str(directory / "%p.pcapng")}
    done = subprocess.run([test.build / "bin/weft_conformance", "--gtest_brief=1", f"--gtest_filter={pattern}"],
                          env=env, text=True, check=False, capture_output=True, timeout=TIMEOUT_S)
    require(done.returncode == 0 and " 0 tests" not in done.stdout, f"{pattern}:\n{done.stdout}{done.stderr}")


def check(test, name, expected, run):
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))
        captures = sorted(Path(folder).iterdir())
        require(captures, f"{name}: no capture")
        total = Counter()
        for path in captures:
            require(path.stat().st_mode & 0o777 == 0o600, f"{path}: others may read it")
            total += contents_of(path, test.env)
    missing = sorted(hex(opcode) for opcode in expected if not total[opcode])
    require(not missing, f"{name}: no packet or record of {missing}, of {dict(total)}")
    print(f"{name}: {dict(total)} in {len(captures)} files")


def reliable(*groups):
    return {RELIABLE + operation for group in groups for operation in group} | {UD_SEND_ONLY}


def main():
    test, _ = setup(__doc__)
    version = subprocess.run(["tshark", "--version"], text=True, check=False, capture_output=True)
    if "Lua" not in version.stdout:
        fail("tshark cannot run the dissector: it was built without Lua")
    for kind, size, network, host in (
            ("rdm", "8192", reliable(SEND, ACK), {SENT, ARRIVED}),
            ("rdm", "262144", reliable(LARGE), {SENT, PENDING, ARRIVED}),
            ("rdm", "65536", reliable(LONG), {SENT, PENDING, ARRIVED}),
            ("msg", "64", reliable(SEND, ACK), {SENT, ARRIVED, MANAGEMENT}),
            ("dgram", "1024", None, {SENT, ARRIVED})):
        options = ["-e", kind, "-S", size]
        for link, expected in (("shm", host), ("udp", network)):
            if expected is not None:
                check(test, f"{link}: fi_pingpong {' '.join(options)}", expected,
                      lambda folder, options=options, link=link: run_pair(test, folder, link, options))
    for pattern, network, host in (
            ("Operations/WriteTransfer*/write_Default_TwoProcesses", reliable(WRITE, ACK), {WRITES}),
            ("Operations/ReadTransfer*/read_Default_TwoProcesses", reliable(READ), {READS}),
            ("Refusal/Access.UnknownKey/*_Default_TwoProcesses", reliable(ACK, RESYNC), {REFUSED}),
            ("Atomics/AtomicCounters*TwoProcesses:Atomics/AtomicSelective*TwoProcesses", reliable(SEND, ACK),
             {ATOMICS})):
        for link, expected in (("shm", host), ("udp", network)):
            check(test, f"{link}: conformance {pattern}", expected,
                  lambda folder, pattern=pattern, link=link: run_conformance(test, folder, link, pattern))


main()
