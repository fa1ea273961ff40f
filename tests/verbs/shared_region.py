#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do programs of experimental verbs compile against what is installed, and share memory between processes?
"""Compiles with the flags of the installed weft-ofed.pc, as users do."""
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "experimental"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
SHARING = [f"{users}_{right}" for users in ("USER", "GROUP", "OTHER") for right in ("READ", "WRITE")]
DIALECTS = ["cc -x c -std=gnu99", "cc -x c -std=gnu11", "c++ -x c++ -std=c++11", "c++ -x c++ -std=c++20"]


def say(*command):
    """What a command prints; it must succeed."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


class Process:
    """A process of the program, which answers each command by a line."""

    def __init__(self, prefix, *arguments, **variables):
        self._process = subprocess.Popen([prefix / "bin/weft", "run", prefix / "bin/shared_region", *arguments], text=True,
                                         env=os.environ | {"WEFT_IFACE": "lo", "WEFT_LOG": "off"} | variables,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.first = self._answer()

    def _answer(self):
        return self._process.stdout.readline().rstrip("\n")

    def do(self, command):
        """The answer."""
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self):
        """What it has printed on stderr; it must end well."""
        _, said = self._process.communicate()
        expect(self._process.returncode, 0, "status")
        return said


def expect(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r}, not {wanted!r}")


def regions():
    return sorted(Path("/dev/shm").glob("weft-mr.*"))


def share(prefix):
    """The creator leaves while the others are attached."""
    before = regions()
    creator = Process(prefix, "create")
    writer = Process(prefix, "attach", creator.first, "write")
    expect(writer.first, str(3 * 4096), "length of an attached region")
    expect(writer.do("put seen"), "done", "write of an attacher")
    expect(creator.do("get"), "seen", "word that the creator reads")
    reader = Process(prefix, "attach", creator.first)
    expect(creator.do("leave"), "done", "deregistration of the creator")
    expect(regions(), before, "names after the creator has left")
    expect(writer.do("put still"), "done", "write after the creator has left")
    expect(reader.do("get"), "still", "word that a reader finds after the creator has left")
    late = Process(prefix, "attach", creator.first)
    expect(late.first, "No such file or directory", "attaching after the creator has left")
    for each in (creator, writer, reader, late):
        expect(each.end(), "", "words on stderr")


def obey_variables(prefix):
    """They count from the moment when the device is opened; what makes no sense is reported, what was obtained logged."""
    anonymous = Process(prefix, "create", MLX_MR_ALLOC_TYPE="anon")
    expect(anonymous.first, "Invalid argument", "sharing anonymous memory")
    anonymous.end()
    creator = Process(prefix, "create", MLX_MR_ALLOC_TYPE="some", WEFT_LOG="on")
    said = creator.end().splitlines()
    expect(len(said), 2, "lines on stderr")
    for line, word in zip(said, ("MLX_MR_ALLOC_TYPE=some", f"region {int(creator.first, 16):#x}: 12288 bytes")):
        if word not in line:
            raise AssertionError(f"{line!r} has no {word!r}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder)
        say("cmake", "--install", sys.argv[1], "--prefix", folder, "--strip")
        [pc] = prefix.rglob("weft-ofed.pc")
        os.environ["PKG_CONFIG_PATH"] = str(pc.parent)
        flags = shlex.split(say("pkg-config", "--cflags", "--libs", "weft-ofed"))
        for dialect in DIALECTS:
            say(*dialect.split(), *STRICT, "-fsyntax-only", SOURCES / "names.c", *flags)
        say("cc", "-std=gnu99", *STRICT, "-o", prefix / "bin/shared_region", SOURCES / "shared_region.c", *flags)
        share(prefix)
        obey_variables(prefix)
        pages = sorted(prefix.rglob("man3/ibv_exp_*.3"))
        expect([page.name for page in pages], ["ibv_exp_reg_mr.3", "ibv_exp_reg_shared_mr.3"], "manual pages")
        text = pages[0].read_text()
        expect([bit for bit in SHARING if f"IBV_EXP_ACCESS_SHARED_MR_{bit}" not in text], [], "sharing bits that the page lacks")
    return 0


sys.exit(main())
