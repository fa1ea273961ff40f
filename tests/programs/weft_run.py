#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do programs of the distribution find Weft's devices under `weft run`, and nothing else?
import re
import shlex
import tempfile
from pathlib import Path

from program import require, run, setup

TIMEOUT_S = 60
USAGE, CANNOT_RUN, NOT_FOUND = 2, 126, 127


class Weft:
    def __init__(self, test):
        self.command = str(test.build / "bin" / "weft")
        self.env = {name: value for name, value in test.env_without_provider.items()
                    if name not in ("LD_LIBRARY_PATH", "WEFT_DEVICE_NAME", "WEFT_IFACE", "FI_WEFT_IFACE")}

    def __call__(self, *words, **variables):
        return run([self.command, *words], {**self.env, **variables}, TIMEOUT_S)

    def output(self, *words, **variables):
        """The output of a call that must succeed and print no warning."""
        result = self(*words, **variables)
        require(result.returncode == 0 and not result.stderr,
                f"weft {words} with {variables}: {result.returncode} {result.stdout} {result.stderr}")
        return result.stdout


def device_names(weft, **variables):
    lines = weft.output("run", "ibv_devices", **variables).splitlines()[2:]
    guids = [line.split()[1] for line in lines]
    require(all(int(guid, 16) for guid in guids) and len(set(guids)) == len(guids), f"GUIDs: {lines}")
    return [line.split()[0] for line in lines]


def check_devices(weft):
    names = device_names(weft)
    listing = weft.output("run", "fi_info")
    require(set(re.findall(r"provider: (\S+)", listing)) == {"weft"}, f"another provider: {listing}")
    domains = list(dict.fromkeys(re.findall(r"domain: (\S+)", listing)))
    require(names == domains, f"ibv_devices lists {names}, fi_info {domains}")
    one = device_names(weft, WEFT_IFACE="lo")
    require(one == names[-1:], f"WEFT_IFACE=lo: {one} of {names}")
    require(device_names(weft, FI_WEFT_IFACE="absent") == [], "a device on an interface that is absent")
    renamed = device_names(weft, WEFT_DEVICE_NAME="mlx5_%d")
    require(renamed == [name.replace("weft", "mlx5_") for name in names], f"renamed: {renamed}")
    result = weft("run", "ibv_devices", WEFT_DEVICE_NAME="mlx5")
    require("WEFT_DEVICE_NAME=mlx5:" in result.stderr and names[0] in result.stdout, "no warning, or no default")


def check_description(weft, **variables):
    listing = weft.output("run", "ibv_devinfo", "-v", **variables)
    for device in listing.split("hca_id:")[1:]:
        for line in ("transport:\t+InfiniBand", "state:\t+PORT_ACTIVE", "link_layer:\t+Ethernet",
                     "max_qp_wr:\t+16384", "max_cqe:\t+1048576", "atomic_cap:\t+ATOMIC_HCA", "phys_state:\t+LINK_UP"):
            require(re.search(line, device), f"no {line!r} in {device}")
        gids = re.findall(r"GID\[ +(\d+)\]:\t+(\S+), RoCE v2", device)
        length = int(re.search(r"gid_tbl_len:\t+(\d+)", device)[1])
        require(len(gids) == length >= 4 and gids[0][1].startswith("::ffff:"), f"GIDs: {gids} of {length}")


def check_environment(weft):
    lines = weft.output("env", "--links", "udp", FI_PROVIDER="tcp", LD_LIBRARY_PATH="/it's/here").splitlines()
    values = {}
    for line in lines:
        word, assignment = shlex.split(line)
        require(word == "export", line)
        values.update([assignment.split("=", 1)])
    require(values["LD_LIBRARY_PATH"].endswith(":/it's/here") and "FI_PROVIDER" not in values, f"{values}")
    require(values["FI_WEFT_LINKS"] == "udp", f"{values}")
    require(weft.output("run", "--", "echo", "--links").strip() == "--links", "an option of the program was taken")


def check_refusals(weft):
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain"
        plain.write_text("", encoding="ascii")
        static = Path(folder) / "static"
        header = bytearray(Path("/proc/self/exe").read_bytes()[:64])
        header[56:58] = bytes(2)  # no segments
        static.write_bytes(header)
        static.chmod(0o755)
        for words, status, text in (
                (["run", "no-such-program"], NOT_FOUND, "not found"), (["run", str(plain)], CANNOT_RUN, "execute"),
                (["run", str(static)], CANNOT_RUN, "statically"), (["run"], USAGE, "PROGRAM"),
                (["run", "--links", "tcp", "true"], USAGE, "--links")):
            result = weft(*words)
            require(result.returncode == status and text in result.stderr,
                    f"weft {words}: {result.returncode} {result.stderr}")
    require(weft("run", "sh", "-c", "exit 7").returncode == 7, "the status of the program is lost")


def main():
    test, _ = setup(__doc__)
    weft = Weft(test)
    check_devices(weft)
    check_description(weft)
    check_description(weft, WEFT_IFACE="lo")
    check_environment(weft)
    check_refusals(weft)
    require("weft0: interface" in weft.output("info"), "weft info names no device")
    print("weft run: devices, descriptions and refusals are right")


main()
