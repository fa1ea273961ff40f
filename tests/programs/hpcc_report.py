#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Did every one of hpcc's own checks run and pass, according to its report?
"""HPC Challenge 1.5 appends hpccoutf.txt section by section. Called alone as `hpcc_report.py FILE`, this
says whether the report is complete and every verification in it passed. `verdict` is for other scripts."""
import math
import re
import sys

EPSILON = 2.0 ** -52
RESIDUAL_LIMIT = 16.0  # hpccinf.txt's threshold, and the one that hpcc compiles in for its FFT and DGEMM
RANDOM_ACCESS = ("MPIRandomAccess", "StarRandomAccess", "MPIRandomAccess_LCG", "StarRandomAccess_LCG")
NODE_CHECKED = ("StarRandomAccess", "SingleRandomAccess", "StarRandomAccess_LCG", "SingleRandomAccess_LCG",
                "StarDGEMM", "SingleDGEMM", "StarSTREAM", "SingleSTREAM", "StarFFT", "SingleFFT")
SECTIONS = (*RANDOM_ACCESS, *NODE_CHECKED, "PTRANS", "MPIFFT", "LatencyBandwidth", "HPL", "Summary")


class Refused(Exception):
    """The report lacks a check or one did not pass; the text says which."""


def need(pattern, text, where):
    found = re.search(pattern, text, re.M)
    if not found:
        raise Refused(f"{where}: no line like {pattern!r}")
    return found


def section(report, name):
    return need(rf"^Begin of {name} section\.\n((?:.*\n)*?)End of {name} section\.", report, name).group(1)


def check_random_access(report):
    for name in RANDOM_ACCESS:
        need(r"^Found 0 errors in [1-9]\d* locations \(passed\)\.$", section(report, name), name)
    summary = section(report, "Summary")
    for name in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
        need(rf"^{name}_Errors=0$", summary, "Summary")


def check_nodes(report):
    for name in NODE_CHECKED:
        need(r"^Node\(s\) with error 0$", section(report, name), name)


def check_tally(text, name, tests):
    """PTRANS and HPL end with a count of tests by outcome."""
    for wanted, outcome in ((tests, "completed and passed residual checks"),
                            (0, "completed and failed residual checks"),
                            (0, "skipped because of illegal input values")):
        need(rf"^\s+{wanted} tests {outcome}[.,]$", text, name)


def check_ptrans(report):
    text = section(report, "PTRANS")
    rows = re.findall(r"^(?:WALL|CPU) .*$", text, re.M)
    if not rows:
        raise Refused("PTRANS: no result")
    for row in rows:
        fields = row.split()
        if fields[8] != "PASSED" or not float(fields[10]) < RESIDUAL_LIMIT:
            raise Refused(f"PTRANS: {row}")
    # Rows don't count the tests: hpcc leaves out a time that its clock measured as zero.
    check_tally(text, "PTRANS", int(need(r"^Finished\s+([1-9]\d*) tests, ", text, "PTRANS").group(1)))
    need(r"^PTRANS_residual=0(\.\d+)?$", section(report, "Summary"), "Summary")


def check_hpl(report):
    text = section(report, "HPL")
    rows = re.findall(r"^\|\|Ax-b\|\|.*=\s+(\S+) \.+ (\w+)$", text, re.M)
    if not rows:
        raise Refused("HPL: no residual")
    for residual, verdict_of_hpl in rows:
        if verdict_of_hpl != "PASSED" or not float(residual) < RESIDUAL_LIMIT:
            raise Refused(f"HPL: residual {residual} {verdict_of_hpl}")
    check_tally(text, "HPL", len(rows))


def check_numerics(report):
    residual = float(need(r"^Scaled residual: (\S+)$", section(report, "StarDGEMM"), "StarDGEMM").group(1))
    if not residual < RESIDUAL_LIMIT:
        raise Refused(f"StarDGEMM: scaled residual {residual}")
    need(r"^Solution Validates: avg error less than ", section(report, "StarSTREAM"), "StarSTREAM")


def check_fft(report):
    for name in ("MPIFFT", "StarFFT"):
        text = section(report, name)
        size = int(need(r"^Vector size:\s+(\d+)$", text, name).group(1))
        error = float(need(r"^max\(\|x-x0\|\): (\S+)$", text, name).group(1))
        if not error / math.log(size) / EPSILON < RESIDUAL_LIMIT:
            raise Refused(f"{name}: error {error} over {size} elements")


def check_latency_bandwidth(report):
    text = section(report, "LatencyBandwidth")
    for name in ("Max Ping Pong Latency", "Randomly Ordered Ring Latency", "Min Ping Pong Bandwidth",
                 "Naturally Ordered Ring Bandwidth", r"Randomly  Ordered Ring Bandwidth"):
        value = float(need(rf"^{name}:\s+(\S+) (?:msecs|MB/s)$", text, "LatencyBandwidth").group(1))
        if not value > 0.0:
            raise Refused(f"LatencyBandwidth: {name} is {value}")


def check_whole(report, ranks):
    summary = section(report, "Summary")
    need(r"^Success=1$", summary, "Summary")
    need(rf"^CommWorldProcs={ranks}$", summary, "Summary")
    need(rf"^MPIFFT_Procs={ranks}$", summary, "Summary")
    for name in ("HPLMaxProcs", "HPLMinProcs"):
        need(rf"^{name}={ranks}$", summary, "Summary")
    need(r"^End of HPC Challenge tests\.$", report, "report")
    complaint = re.search(r"^.*(?:\bERROR\b|FAILED|Failed to allocate|Failed Validation|\(failed\)).*$",
                          report, re.M)
    if complaint:
        raise Refused(f"hpcc complains: {complaint.group(0)}")


def verdict(report, ranks):
    """Raises Refused unless `report` shows every check of a run over `ranks` processes passed."""
    for name in SECTIONS:
        section(report, name)
    check_whole(report, ranks)
    for check in (check_random_access, check_nodes, check_ptrans, check_hpl, check_numerics, check_fft,
                  check_latency_bandwidth):
        check(report)


# What a failed run would print in place of what a good one does: each must be noticed.
DAMAGES = (
    (r"(End of MPIRandomAccess section)", r"End of MPIRandomAcces section"),
    (r"Found 0 errors in (\d+) locations \(passed\)", r"Found 7 errors in \1 locations (failed)"),
    (r"Found 0 errors in (\d+) locations \(passed\)", r"Found 7 errors in \1 locations (passed)"),
    (r"Node\(s\) with error 0", r"Node(s) with error 1"),
    (r"( 0\.\d+) PASSED", r"\1 FAILED"),
    (r"\d+ tests completed and passed", r"999 tests completed and passed"),
    (r"\.\.\.\.\.\. PASSED", r"...... FAILED"),
    (r"(\|\|b\|\|_oo\)\*N\)= +)\S+", r"\g<1>nan"),
    (r"Scaled residual: \S+", r"Scaled residual: 17.0"),
    (r"max\(\|x-x0\|\): \S+", r"max(|x-x0|): 1.0e-3"),
    (r"Solution Validates", r"Failed Validation on array a[]"),
    (r"Max Ping Pong Latency: +\S+", r"Max Ping Pong Latency: 0.0"),
    (r"MPIRandomAccess_Errors=0", r"MPIRandomAccess_Errors=3"),
    (r"Success=1", r"Success=0"),
    (r"End of HPC Challenge tests", r"End"),
)


def unnoticed_damages(report, ranks):
    """The damages of a good report that `verdict` would let through: should be none."""
    missed = []
    for pattern, replacement in DAMAGES:
        damaged, count = re.subn(pattern, replacement, report, count=1)
        try:
            verdict(damaged, ranks)
            missed.append(pattern)
        except Refused:
            if count == 0:
                missed.append(pattern)
    return missed


def main():
    report = open(sys.argv[1], encoding="ascii", errors="replace").read()
    ranks = int(need(r"^CommWorldProcs=(\d+)$", report, "report").group(1))
    try:
        verdict(report, ranks)
    except Refused as refused:
        sys.exit(f"FAILED: {refused}")
    print(f"hpcc: every check of {ranks} processes passed")


if __name__ == "__main__":
    main()
