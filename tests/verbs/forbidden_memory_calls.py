#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do programs use packets, after one warning, where a seccomp filter forbids process_vm_readv(2) and process_vm_writev(2)?
"""Both sides would use shared memory. Filters of containers answer EPERM or ENOSYS, to one side or to both of them."""
import sys

import sides

NAME = "process_vm_readv"
# A program, and the error that the calls of the server and of the client end with; none where they are allowed.
ROWS = (("weft_move_patterns rc", "EPERM", "ENOSYS"), ("ib_send_lat -F -n 100", "EPERM", "EPERM"),
        ("ib_write_bw -F -n 100", "", "EPERM"), ("ib_read_lat -F -n 100", "ENOSYS", ""))


class Filtered(sides.ThisHost):
    """This host, for a program whose calls end with that error."""

    def __init__(self, build, error):
        self._words = [f"{build}/bin/weft_forbid_memory_calls", error] if error else []

    def words(self, *command):
        """The command behind its filter."""
        return [*self._words, *command]


def complaints(side, error, end):
    """What is wrong with the end of a side."""
    status, output = end
    found = [] if status == 0 else [f"the {side} ends with {status}"]
    warnings = sum(NAME in line for line in output.splitlines())
    wanted = 1 if error else 0
    if warnings != wanted:
        found.append(f"{warnings} lines of the {side} name {NAME}, not {wanted}")
    return found


def run(build, row):
    """Both sides of a row: what is wrong, with their output."""
    line, *errors = row
    places = tuple(Filtered(build, error) for error in errors)
    ends = sides.Programs(build, places).run(line.split(), FI_WEFT_LINKS="shm")
    found = [each for side, error, end in zip(("server", "client"), errors, ends) for each in complaints(side, error, end)]
    name = f"{line}, server {errors[0] or 'allowed'}, client {errors[1] or 'allowed'}"
    return f"{name}: " + (f"FAILED: {'; '.join(found)}\n{sides.describe(*ends)}" if found else "passed"), bool(found)


def main():
    results = [run(sys.argv[1], row) for row in ROWS]
    print("\n".join(text for text, _ in results))
    return 1 if any(failed for _, failed in results) else 0


if __name__ == "__main__":
    sys.exit(main())
