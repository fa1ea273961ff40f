# SPDX-License-Identifier: BSD-2-Clause
# How a program is run so that it ends: a time limit, its own process group, no files left.
import os
import pathlib
import re
import signal
import subprocess

GRACE_SECONDS = 5


class Failed(Exception):
    """A run that gave no figure; the text says why."""


def start(command, environment):
    """Starts COMMAND in a process group of its own, its output captured."""
    return subprocess.Popen(command, env=environment, text=True, start_new_session=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def end(process):
    """Ends what start() started, and its children; first politely."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.communicate(timeout=GRACE_SECONDS)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def finish(process, limit):
    """The standard output and error of PROCESS when it ends well within LIMIT seconds."""
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        end(process)
        sweep_shared_memory()
        raise Failed(f"no end within {limit} s") from None
    if process.returncode != 0:
        sweep_shared_memory()
        lines = errors.strip().splitlines() or [f"exit status {process.returncode}"]
        raise Failed(lines[-1])
    return output, errors


def sweep_shared_memory():
    """Removes what libfabric's shm leaves when it is ended: PID:DOMAIN:ENDPOINT of dead PIDs."""
    for path in pathlib.Path("/dev/shm").glob("*:*:*"):
        name = re.fullmatch(r"(\d+):\d+:\d+", path.name)
        if name and not pathlib.Path("/proc", name[1]).exists():
            path.unlink(missing_ok=True)
