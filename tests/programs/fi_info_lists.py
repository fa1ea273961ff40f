#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does fi_info list the provider, it alone where it was asked for, and leave the others as they were?
import re

from program import fail, require, run, setup

TIMEOUT_S = 60
TYPES = ("FI_EP_RDM", "FI_EP_MSG", "FI_EP_DGRAM")
NO_DATA = 61  # FI_ENODATA, the exit status of fi_info when nothing fits


def fi_info(env, *arguments):
    return run(["fi_info", *arguments], env, TIMEOUT_S)


def entries(output):
    """The entries of fi_info's listing, each as a dict of its `name: value` lines."""
    found = []
    for line in output.splitlines():
        name, separator, value = line.strip().partition(": ")
        if not separator:
            fail(f"fi_info printed an unknown line: {line!r}")
        if name == "provider":
            found.append({})
        found[-1][name] = value
    return found


def check_listed_alone(test, env, arguments):
    result = fi_info(env, *arguments)
    require(result.returncode == 0, f"fi_info {arguments}: status {result.returncode} {result.stderr}")
    listed = entries(result.stdout)
    require(listed, f"fi_info {arguments} printed nothing")
    strangers = {entry["provider"] for entry in listed} - {test.provider}
    require(not strangers, f"fi_info {arguments} lists {sorted(strangers)} besides {test.provider}")
    return listed


def check_entries(test):
    listed = check_listed_alone(test, test.env, ["-p", test.provider])
    for entry in listed:
        require(entry["type"] in TYPES, f"endpoint type {entry['type']} is not offered: {entry}")
        require(re.fullmatch(rf"{test.provider}\d+", entry["domain"]), f"odd domain name: {entry}")
        require(re.fullmatch(r"[0-9a-f.:]+/\d+", entry["fabric"]), f"fabric is no subnet: {entry}")
    require({entry["type"] for entry in listed} == set(TYPES), f"not every type is listed: {listed}")
    require(listed[0]["type"] == TYPES[0], f"another type than {TYPES[0]} comes first: {listed}")
    require(not listed[0]["fabric"].startswith("127.") or
            all(entry["fabric"].startswith(("127.", "::1/")) for entry in listed),
            f"loopback comes first although another interface is there: {listed}")


def check_refusals(test):
    for hint in (["-t", "FI_EP_DGRAM", "-c", "FI_TAGGED"], ["-c", "FI_COLLECTIVE"],
                 ["-d", "no-such-domain"], ["-f", "no-such-fabric"]):
        result = fi_info(test.env, "-p", test.provider, *hint)
        require(result.returncode == NO_DATA, f"fi_info {hint} ended with {result.returncode}, "
                f"not {NO_DATA}: {result.stdout}{result.stderr}")


def check_others_undisturbed(test):
    """Every other provider must list exactly what it lists where Weft is not installed."""
    def others(env):
        return [entry for entry in entries(fi_info(env).stdout)
                if entry["provider"] != test.provider]
    require(others(test.env) == others(test.env_without_provider),
            "the entries of other providers change when the provider is there")


def check_known_by_name(test):
    listing = fi_info(test.env, "-l").stdout
    require(re.search(rf"^{test.provider}:$", listing, re.M), f"fi_info -l does not know it: {listing}")
    require(f"FI_{test.provider.upper()}_" in fi_info(test.env, "-e").stdout,
            "fi_info -e shows no parameter of the provider")


def main():
    test, _ = setup(__doc__)
    check_entries(test)
    check_listed_alone(test, {**test.env, "FI_PROVIDER": test.provider}, [])
    check_refusals(test)
    check_others_undisturbed(test)
    check_known_by_name(test)
    print("fi_info: listed, alone where asked for, others undisturbed")


main()
