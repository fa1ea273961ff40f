#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do both sides of a verbs program end well on the drop-in libibverbs, over the loopback interface?
"""usage: two_sides.py BUILD PROGRAM [ARGUMENTS...]

Runs PROGRAM under `weft run` twice: as server, then as client with the host 127.0.0.1 behind the
arguments. PROGRAM is one of the build, or of the distribution."""
import os
import pathlib
import shutil
import subprocess
import sys
import time

HANG = 50  # seconds, far beyond what any of them takes


def listens(process):
    """True when the process has a listening TCP socket, or has ended."""
    if process.poll() is not None:
        return True
    inodes = set()
    for descriptor in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                return True
    return False


def main():
    build = pathlib.Path(sys.argv[1])
    program, *words = sys.argv[2:]
    own = build / "bin" / program
    path = str(own) if own.exists() else shutil.which(program)
    if path is None:
        print(f"{program}: not found")
        return 1
    command = [str(build / "bin/weft"), "run", path, *words]
    environment = os.environ | {"WEFT_IFACE": "lo"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
    with subprocess.Popen(command, **pipes) as server:
        end = time.monotonic() + HANG
        while not listens(server) and time.monotonic() < end:
            time.sleep(0.02)
        try:
            client = subprocess.run([*command, "127.0.0.1"], timeout=HANG, check=False, **pipes)
            text, _ = server.communicate(timeout=HANG)
        except subprocess.TimeoutExpired as hang:
            server.kill()
            print(f"{program}: hangs; client: {hang.output}; server: {server.communicate()[0]}")
            return 1
    print(f"client ({client.returncode}):\n{client.stdout}\nserver ({server.returncode}):\n{text}")
    return 0 if client.returncode == 0 and server.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
