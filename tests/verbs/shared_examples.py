#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do the installed examples of shared regions compile as their README says, and do what it says?
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import sides

READERS = 3
VERSIONS = "1000000"
ROWS = [  # options, what the client says
    ([], "attached 4096 bytes\n"),
    (["-n"], "attached 4096 bytes, without a key\n"),
    (["-a", "0x500000000000"], "attached 4096 bytes\n"),
    (["-a", "0x500000000001"], "attached 4096 bytes, at another address\n"),
    (["-s", str(3 * 1024 * 1024)], "attached 3145728 bytes\n"),
]


def install(build, prefix):
    """Installs Weft, and compiles the examples by the commands of their README."""
    subprocess.run(["cmake", "--install", build, "--prefix", prefix, "--strip"], check=True, stdout=subprocess.DEVNULL)
    [folder] = Path(prefix).rglob("examples/shared_regions")
    [pc] = Path(prefix).rglob("weft-ofed.pc")
    commands = [line.strip() for line in (folder / "README.md").read_text().splitlines() if line.startswith("    cc ")]
    for command in commands:
        subprocess.run(["sh", "-c", command], cwd=folder, check=True, env=os.environ | {"PKG_CONFIG_PATH": str(pc.parent)})
    for program in ("ibv_shared_mr", "one_writer"):
        shutil.copy(folder / program, Path(prefix, "bin"))


def run_pair(programs, options, said):
    """A server and a client."""
    length = int(said.split()[1])
    server, client = programs.run(["ibv_shared_mr", *options], WEFT_LOG="off")
    print(options, sides.describe(server, client))
    return server == (0, f"{length} of {length} bytes written, {length} are right\n") and client == (0, said)


def run_readers(prefix):
    """One writer, and its readers, which go on when it has ended."""
    words = [f"{prefix}/bin/weft", "run", f"{prefix}/bin/one_writer"]
    environment = os.environ | {"WEFT_LOG": "off", "WEFT_IFACE": "lo"}

    def start(*more):
        return subprocess.Popen([*words, *more], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    writer = start("-n", VERSIONS)
    identity = writer.stdout.readline().strip()
    readers = [start(identity) for _ in range(READERS)]
    attached = [reader.stdout.readline() for reader in readers]
    ends = [process.communicate("\n" if process is writer else None, sides.PATIENCE)[0] for process in (writer, *readers)]
    statuses = [process.returncode for process in (writer, *readers)]
    print(identity, attached, ends, statuses)
    return attached == ["attached\n"] * READERS and statuses == [0] * (READERS + 1) and \
        ends == [f"{VERSIONS} versions written\n"] + [f"the last version is {VERSIONS}\n"] * READERS


def main():
    before = list(Path("/dev/shm").glob("weft-mr.*"))
    with tempfile.TemporaryDirectory() as prefix:
        install(sys.argv[1], prefix)
        programs = sides.Programs(prefix)
        passed = [run_pair(programs, *row) for row in ROWS] + [run_readers(prefix)]
    return 0 if all(passed) and list(Path("/dev/shm").glob("weft-mr.*")) == before else 1


sys.exit(main())
