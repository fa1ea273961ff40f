#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does fi_info run on the provider without an invalid access, an undefined value, a lost block or an open file?
import re

from program import require, run, setup

TIMEOUT_S = 240
ERROR_STATUS = 99  # no status of fi_info


def valgrind(test, *arguments):
    command = ["valgrind", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible",
               "--errors-for-leak-kinds=definite,indirect", "--track-fds=yes", "--num-callers=30",
               f"--error-exitcode={ERROR_STATUS}", "fi_info", *arguments]
    return run(command, test.env, TIMEOUT_S)


def check_clean(test, *arguments):
    result = valgrind(test, *arguments)
    require(result.returncode == 0,
            f"fi_info {arguments} under valgrind: status {result.returncode}\n{result.stderr}")
    require("ERROR SUMMARY: 0 errors" in result.stderr, f"valgrind found errors:\n{result.stderr}")
    # Blocks only reachable from inside (possible leaks) are libfabric's own at times; ours are not allowed.
    require("libweft" not in result.stderr, f"valgrind names our library:\n{result.stderr}")
    opened = re.findall(r"Open file descriptor \d+:.*(?:weft|/dev/shm).*", result.stderr)
    require(not opened, f"left open at exit: {opened}")


def main():
    test, _ = setup(__doc__)
    for arguments in (["-p", test.provider], ["-p", test.provider, "-v"], ["-e"]):
        check_clean(test, *arguments)
    print("fi_info: clean under valgrind")


main()
