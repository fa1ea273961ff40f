#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does Weft's header, as installed, serve C and C++ alone, and does the example of its page run?
import os
import tempfile
from pathlib import Path

from program import PROVIDER, require, run, setup

PAGE = Path(__file__).parents[2] / "docs/user/statistics.md"
HEADER = "rdma/fi_ext_weft.h"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
SAYS = "0 of 128 entries wait\n"


def main():
    test, _ = setup("Installs Weft's header, compiles it alone and with the example of its page, and runs that.")
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder, "prefix")

        def call(*command, env=os.environ):
            done = run(command, dict(env), 120, cwd=folder)
            require(done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr}")
            return done.stdout

        call("cmake", "--install", test.build, "--prefix", prefix, "--strip")
        [header] = prefix.rglob(HEADER)
        include = f"-I{header.parents[1]}"
        Path(folder, "alone.c").write_text(f"#include <{HEADER}>\n")
        for language in ("c -std=c99", "c++ -std=c++11"):
            call("cc", "-fsyntax-only", "-x", *language.split(), *WARNINGS, include, "alone.c")
        example = PAGE.read_text().split("```c\n")[1].split("```")[0]
        Path(folder, "example.c").write_text(example)
        around = Path(__file__).with_suffix(".c")
        call("cc", *WARNINGS, include, "-o", "statistics", "example.c", around, "-lfabric")
        [provider] = prefix.rglob("libweft-fi.so")
        said = call(Path(folder, "statistics"),
                    env=test.env | {"FI_PROVIDER_PATH": str(provider.parent), "FI_PROVIDER": PROVIDER})
        require(said == SAYS, f"the example says {said!r}")


main()
