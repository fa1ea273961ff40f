#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do the long lists pass whole? CI runs a fixed sample of each.
"""Runs every line, or those whose name contains one of the given words, and appends its result to a log:
date, machine, commit, line, result, seconds."""
import argparse
import datetime
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

BUILD = Path("build/release")
LOG = Path("bench/results/soak.log")
WIRES = ("--mtu 1500", "--mtu 9000 --ipv6", "--mtu 9000 --lose 1", "--mtu 1500 --ipv6 --lose 1", "--mtu 1500 --lose 5",
         "--mtu 9000 --ipv6 --lose 5", "--mtu 9000 --cut 1", "--mtu 1500 --ipv6 --cut 1")

# For 1.5 s in each round, in turn with the flood that the kernel drops.
CONNECTION_FLOODS = [("connection_flood", "--rate", str(rate), "--count", str(24 * rate), "--rounds", "8", "--least", "0.95")
                     for rate in (5_000, 25_000)]

# Jobs of Open MPI between hosts, and within this one.
JOBS = [("open_mpi_job", "hpcc", *words.split()) for words in ("--lose 1", "--lose 5 --mtu 9000", "--cut")]
PROGRAMS = [("programs/hpcc", "--ranks", ranks, *way) for way in ((), ("--transfers",)) for ranks in "24"] + [
    ("verbs/pyverbs_tests", "--gid", gid, "--repeat", "25") for gid in "01"] + [
    ("mpi/run", "--ranks", ranks) for ranks in "2348"] + [("mpi/run", "--one-sided", "--ranks", ranks) for ranks in "24"]
PROGRAMS += [("verbs/programs", "--between-hosts", "--lose", percent) for percent in "15"]
PROGRAMS += [("rdmacm/programs", "--between-hosts", "--lose", "1")]


# Together they make all rows of the matrix of refused accesses possible (tests/conformance/CMakeLists.txt).
BAD_ACCESS_CONTRACTS = ("raw,endpoint,mmu_notify,virt_addr", "rma_event")

# Tests of the conformance suite of verbs that mean packets (tests/verbs/conformance/CMakeLists.txt).
OF_PACKETS = "LocalKey.MustBeValidAtARetransmission:ReadLimit.OfTheTargetEndsTheConnection"
# TSan of gcc 12 needs addresses that are not spread widely.
RACES = """
cmake --preset tsan --log-level=NOTICE
cmake --build --preset tsan --target weft_queue_test
setarch -R ctest --test-dir build/tsan -R '^unit.queue_through_memory$' --repeat until-fail:20 --output-on-failure --no-tests=error
"""


class Line:
    """One entry of the list: a command and the variables that it needs."""

    def __init__(self, name, command, **variables):
        self.name = name
        self.command = [str(word) for word in command]
        self.variables = variables

    def run(self):
        """True when the command succeeds."""
        return subprocess.run(self.command, env=os.environ | self.variables, check=False).returncode == 0


def lines(seed, fuzz_seconds):
    """The whole list."""
    provider = {"FI_PROVIDER_PATH": str((BUILD / "lib").resolve()), "FI_WEFT_PEER_TIMEOUT_MS": "5000"}
    yield Line(f"simulator, 100,000 seeds from {seed}",
               [BUILD / "bin/weft_transport_test", "--gtest_filter=Simulator.AllWork*"],
               WEFT_SIMULATOR_SEED=str(seed), WEFT_SIMULATOR_RUNS="100000")
    yield Line(f"simulator of rdm, 100,000 seeds from {seed}",
               [BUILD / "bin/weft_rdm_test", "--gtest_filter=Seeds/RdmSimulations*/0"],
               WEFT_SIMULATOR_SEED=str(seed), WEFT_SIMULATOR_RUNS="100000")
    yield Line(f"simulator of cm, 1,000,000 seeds from {seed}",
               [BUILD / "bin/weft_cm_test", "--gtest_filter=Seeds/CmSimulations*/0"],
               WEFT_SIMULATOR_SEED=str(seed), WEFT_SIMULATOR_RUNS="1000000")
    # Each takes 11 ms, all of them half an hour.
    yield Line(f"simulator of connections in rdm, 150,000 seeds from {seed}",
               [BUILD / "bin/weft_rdm_test", "--gtest_filter=Seeds/ConnectionSimulations*/0"],
               WEFT_SIMULATOR_SEED=str(seed), WEFT_SIMULATOR_RUNS="150000")
    for wire in WIRES:
        yield Line(f"conformance {wire}", [sys.executable, "tests/hosts/conformance.py", BUILD, *wire.split(),
                                           "--filter=*-*EachEndpointHearsAllOthers/5"])
    yield Line("many_endpoints, 10,000 endpoints", [BUILD / "bin/weft_conformance", "--gtest_filter=ManyEndpoints/*"], **provider)
    for contract in BAD_ACCESS_CONTRACTS:
        yield Line(f"bad accesses, every one, contract {contract}",
                   [BUILD / "bin/weft_conformance", "--gtest_brief=1", "--gtest_filter=Accesses/*"],
                   WEFT_TEST_MATRIX="full", FI_WEFT_CONTRACT=contract, **provider)
    for link in ("shm", "udp"):
        yield Line(f"bad local descriptors, every one, {link}",
                   [BUILD / "bin/weft_conformance", "--gtest_brief=1", "--gtest_filter=Local/*"],
                   WEFT_TEST_MATRIX="full", FI_WEFT_CONTRACT="local,allocated", FI_WEFT_LINKS=link, **provider)
        yield Line(f"region hammer, 10 minutes, {link}",
                   [BUILD / "bin/weft_conformance", "--gtest_filter=RegionHammer*"],
                   WEFT_TEST_HAMMER_S="600", FI_WEFT_LINKS=link, **provider)
    for script, *words in (("forged_requests", "--seconds", "15", "--rounds", "10"), ("request_flood", "--count", "500000"),
                           ("forged_ends", "--watch", "5", "--settle", "15"), ("forged_disconnections", "--watch", "5"),
                           ("forged_connections", "--rounds", "5"), *CONNECTION_FLOODS,
                           ("fi_pingpong",), ("stopped_ends",), ("connection_kills", "--moments", "200", "--seed", seed, "--lanes", "2"),
                           ("connection_kills", "--between-hosts", "--moments", "200", "--seed", seed, "--lanes", "4"), *JOBS):
        yield Line(" ".join(map(str, (script, *words))), [sys.executable, f"tests/hosts/{script}.py", BUILD, *words])
    for program, *words in PROGRAMS:
        yield Line(" ".join((program, *words)), [sys.executable, f"tests/{program}.py", BUILD, *words])
    yield from lines_of_queue_pairs()
    for kind, folder in (("verbs", "verbs"), ("rdma_cm", "rdmacm")):
        yield Line(f"kill -9 of {kind} programs, 200 moments",
                   [sys.executable, f"tests/{folder}/kills.py", BUILD, "--moments", "200", "--seed", seed])
    yield Line("kill -9 of processes that share regions, 200 moments",
               [BUILD / "bin/weft_shared_memory_test", "--gtest_filter=Lifetime.ProcessesThatAreKilled*"],
               WEFT_SIMULATOR_SEED=str(seed), WEFT_SIMULATOR_RUNS="200")
    yield Line("kill -9, 20,000 moments", [BUILD / "bin/weft_faults", "kill"], WEFT_FAULTS_KILLS="20000", **provider)
    yield Line("kill -9 with connections, 5,000 moments", [BUILD / "bin/weft_faults", "kill-connections"],
               WEFT_FAULTS_KILLS="5000", FI_WEFT_FOREIGN_PEERS="no", **provider)
    yield Line("queue pairs through memory, thread sanitizer, 20 times", ["sh", "-ec", RACES],
               TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1")
    yield Line(f"fuzzers, {fuzz_seconds} s each", ["./dev", "fuzz", fuzz_seconds])


def lines_of_queue_pairs():
    """Programs and tests over each path within a host."""
    libraries = {"WEFT_IFACE": "lo", "LD_LIBRARY_PATH": str((BUILD / "lib/verbs").resolve())}
    for link in ("shm", "udp"):
        for folder in ("verbs", "rdmacm"):
            yield Line(f"programs of {folder} within a host, {link}",
                       [sys.executable, f"tests/{folder}/programs.py", BUILD], FI_WEFT_LINKS=link)
        yield Line(f"pyverbs 10 times, {link}", [sys.executable, "tests/verbs/pyverbs_tests.py", BUILD, "--repeat", "10"],
                   FI_WEFT_LINKS=link)
        for suite, skipped in (("verbs", OF_PACKETS if link == "shm" else ""), ("rdmacm", "")):
            yield Line(f"conformance suite of {suite} 10 times, {link}",
                       [BUILD / f"bin/weft_{suite}_conformance", "--gtest_brief=1", "--gtest_repeat=10", "--gtest_shuffle",
                        f"--gtest_filter=*-{skipped}"], FI_WEFT_LINKS=link, **libraries)


def machine():
    """The processor's name and the kernel's release."""
    names = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()} x {len(names)}, Linux {platform.release()}"


def commit():
    """The commit that is tested, marked when files differ from it."""
    def git(*words):
        return subprocess.run(["git", *words], text=True, stdout=subprocess.PIPE, check=True).stdout.strip()
    return git("rev-parse", "--short", "HEAD") + ("-changed" if git("status", "--porcelain", "-uno") else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="run lines whose name contains one of these (default: all)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="first seed of the simulator")
    parser.add_argument("--fuzz-seconds", type=int, default=600)
    parser.add_argument("--list", action="store_true", help="name the lines and run none")
    arguments = parser.parse_args()
    chosen = [line for line in lines(arguments.seed, arguments.fuzz_seconds)
              if not arguments.words or any(word in line.name for word in arguments.words)]
    if not chosen:
        parser.error("no line has such a name")
    if arguments.list:
        print("\n".join(line.name for line in chosen))
        return 0
    failed = []
    for line in chosen:
        print(f"\n== soak: {line.name}", flush=True)
        begin = time.monotonic()
        passed = line.run()
        if not passed:
            failed.append(line.name)
        fields = (datetime.datetime.now().isoformat("T", "minutes"), machine(), commit(), line.name,
                  "passed" if passed else "FAILED", f"{time.monotonic() - begin:.0f} s")
        with LOG.open("a", encoding="utf-8") as log:
            log.write(" | ".join(fields) + "\n")
    print(f"\n== soak: {len(chosen) - len(failed)} of {len(chosen)} lines passed"
          + "".join(f"\n   failed: {name}" for name in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
