#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Have our libibverbs.so.1 and librdmacm.so.1 the symbols of rdma-core 44, each on its version, and do loaders find them?
import re
import sys
from pathlib import Path

from program import require, run, setup

TIMEOUT_S = 30
SYMBOLS = {"libibverbs": "verbs_symbols.txt", "librdmacm": "rdmacm_symbols.txt"}
OWN_NODE = "WEFT_PRIVATE"  # C++ names that our libraries share

# NCCL asks for these of version IBVERBS_1.1, and for the others of their own (nccl/src/misc/ibvsymbols.cc).
LOAD = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
dlvsym = ctypes.CDLL(None).dlvsym
dlvsym.restype = ctypes.c_void_p
def found(name, version):
    return dlvsym(ctypes.c_void_p(library._handle), name.encode(), version.encode())
for name in '''get_device_list free_device_list get_device_name open_device close_device get_async_event
    ack_async_event query_device query_port query_gid query_qp alloc_pd dealloc_pd reg_mr dereg_mr create_cq
    destroy_cq create_qp modify_qp destroy_qp fork_init event_type_str'''.split():
    assert found('ibv_' + name, 'IBVERBS_1.1'), name
for name, version in (('reg_mr_iova2', '1.8'), ('reg_dmabuf_mr', '1.12'), ('query_ece', '1.10'), ('set_ece', '1.10')):
    assert found('ibv_' + name, 'IBVERBS_' + version), name
assert found('ibv_create_comp_channel', 'IBVERBS_1.0') and not found('ibv_create_comp_channel', 'IBVERBS_1.1')
assert found('ibv_query_device', 'IBVERBS_1.0') != found('ibv_query_device', 'IBVERBS_1.1')
assert not found('ibv_query_port_speed', 'IBVERBS_1.16')
"""


def exported(library, env):
    """name@version (name@@version for the default one) of each symbol that the library defines."""
    listing = run(["readelf", "--dyn-syms", "--wide", library], env, TIMEOUT_S).stdout
    names = set()
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[6] not in ("UND", "ABS", "Ndx") and "@" in fields[7]:
            names.add(fields[7])
    return {name for name in names if not name.endswith("@" + OWN_NODE)}


def check(folder, name, env):
    """The symbols and the names of one library; returns how many symbols it has."""
    library = folder / f"{name}.so.1"
    wanted = set((Path(__file__).parent / SYMBOLS[name]).read_text(encoding="ascii").split())
    names = exported(library, {k: v for k, v in env.items() if k != "LD_PRELOAD"})
    require(names == wanted, f"missing: {sorted(wanted - names)}; too many: {sorted(names - wanted)}")
    dynamic = run(["readelf", "-d", library], {"PATH": env["PATH"]}, TIMEOUT_S).stdout
    require(f"[{library.name}]" in re.search("SONAME.*", dynamic)[0], f"another soname: {dynamic}")
    require((folder / f"{name}.so").resolve() == library.resolve(), f"no {name}.so beside it")
    return len(names)


def main():
    test, _ = setup(__doc__)
    env = test.env_without_provider
    folder = test.build / "lib" / "verbs"
    for name in SYMBOLS:
        print(f"{name}.so.1: {check(folder, name, env)} symbols on their versions")
    ours = {name + end for name in SYMBOLS for end in (".so", ".so.1")}
    others = {each.name for each in folder.iterdir()} - ours
    require(not others, f"programs would find other libraries in the same folder: {others}")
    for name in ("libibverbs.so", "libibverbs.so.1"):
        result = run([sys.executable, "-c", LOAD, folder / name], env, TIMEOUT_S)
        require(result.returncode == 0, f"dlvsym in {name}: {result.stderr}")


main()
