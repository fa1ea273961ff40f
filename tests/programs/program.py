# SPDX-License-Identifier: BSD-2-Clause
# How does a test run a program of another project on the provider of one build?
"""Shared by the scripts of this folder. Each of them is called as SCRIPT BUILD_DIR [--provider NAME]
and exits 0 when all that it checks holds, else 1 with one line that names what did not.

BUILD_DIR is the CMake build directory; its lib/ holds the provider. Another NAME (sockets, say) runs
the same checks on a provider of the installed libfabric, to tell a fault of the test from one of ours.
"""
import argparse
import os
import subprocess
import sys
from pathlib import Path

PROVIDER = "weft"


class Setup:
    """The build under test and the environment that makes libfabric load it."""

    def __init__(self, build, provider):
        self.build = Path(build).resolve()
        self.provider = provider
        self.env = dict(os.environ)
        # An inherited choice of providers would decide the outcome instead of the program's arguments.
        for name in ("FI_PROVIDER", "FI_PROVIDER_PATH"):
            self.env.pop(name, None)
        # Only the program under test may run with a sanitizer's runtime in front, not this interpreter.
        preload = self.env.pop("WEFT_TEST_PRELOAD", "")
        if preload:
            self.env["LD_PRELOAD"] = preload
        self.env_without_provider = dict(self.env)
        self.env["FI_PROVIDER_PATH"] = str(self.build / "lib")


def fail(text):
    """Ends the test with the reason."""
    print(f"FAILED: {text}", file=sys.stderr)
    sys.exit(1)


def require(condition, text):
    """Ends the test with `text` unless `condition` holds."""
    if not condition:
        fail(text)


def setup(description, *extra):
    """Reads the command line: returns (Setup, parsed arguments). `extra` are (name, keywords) pairs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("build", help="CMake build directory, whose lib/ holds the provider")
    parser.add_argument("--provider", default=PROVIDER)
    for name, keywords in extra:
        parser.add_argument(name, **keywords)
    arguments = parser.parse_args()
    result = Setup(arguments.build, arguments.provider)
    library = result.build / "lib" / f"lib{PROVIDER}-fi.so"
    if arguments.provider == PROVIDER:
        require(library.exists(), f"no provider at {library}: build it first")
    return result, arguments


def run(command, env, timeout, cwd=None):
    """Runs `command` to its end; returns the finished process with text output. A program that
    does not end within `timeout` seconds fails the test."""
    try:
        return subprocess.run(command, env=env, cwd=cwd, timeout=timeout, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except subprocess.TimeoutExpired as expired:
        fail(f"{' '.join(map(str, command))}: no end within {timeout} s; "
             f"last output: {(expired.stdout or b'')[-600:]!r} {(expired.stderr or b'')[-600:]!r}")
