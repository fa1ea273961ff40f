#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does the installed example compile as its README says, and do what it says, on the installed library?
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import sides

SAYS = ('WRITE of 22 bytes: success\nREAD of 22 bytes: success: "written by the client"\n'
        "WRITE behind the end: status 10 (remote access error), vendor_err ")
SERVER_SAYS = 'the buffer of the server: "written by the client"\n'
COMPILE = "cc -Wall -o write_and_read write_and_read.c "


def main():
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(["cmake", "--install", sys.argv[1], "--prefix", prefix, "--strip"], check=True, stdout=subprocess.DEVNULL)
        [source] = Path(prefix).rglob("examples/verbs/write_and_read.c")
        [command] = [line.strip() for line in (source.parent / "README.md").read_text().splitlines() if COMPILE in line]
        subprocess.run(["sh", "-c", command], cwd=source.parent, check=True)
        shutil.copy(source.parent / "write_and_read", Path(prefix, "bin"))
        server, client = sides.Programs(prefix).run(["write_and_read"], WEFT_LOG="off")
    print(sides.describe(server, client))
    passed = server == (0, SERVER_SAYS) and client[0] == 0 and client[1].startswith(SAYS)
    return 0 if passed else 1


sys.exit(main())
