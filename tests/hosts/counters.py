# SPDX-License-Identifier: BSD-2-Clause
# What do the counters of another process say? (docs/formats/statistics.md)
import struct
from pathlib import Path

FIRST_NAME, NAME_BYTES = 64, 32
FIRST_BLOCK, OWNER_BYTES = 0x1000, 60


def text_at(data, offset, length):
    """Text that is padded with zeros."""
    return data[offset:offset + length].rstrip(b"\0").decode()


def file_of(pid):
    """The file of counters of a process, on its host; None if there is none."""
    found = list(Path(f"/proc/{pid}/root/dev/shm").glob(f"weft-*/net-*/stats-{pid}"))
    return found[0] if found else None


def counters_of(data, owner):
    """The counters of each block that belongs to that owner."""
    count, blocks, size = struct.unpack_from("<III", data, 12)
    names = [text_at(data, FIRST_NAME + NAME_BYTES * number, NAME_BYTES) for number in range(count)]
    return [dict(zip(names, struct.unpack_from(f"<{count}Q", data, block + 64)))
            for block in range(FIRST_BLOCK, min(len(data), FIRST_BLOCK + blocks * size), size)
            if text_at(data, block + 4, OWNER_BYTES) == owner]
