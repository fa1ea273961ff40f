# SPDX-License-Identifier: BSD-2-Clause
# How does a test read a capture?
"""By tshark, with the dissector of tools/wireshark, and by the definitions of the ICRC and of a record
(docs/formats/capture.md)."""
import functools
import struct
import subprocess
import zlib
from collections import Counter
from pathlib import Path

from program import require

SCRIPT = Path(__file__).resolve().parents[2] / "tools/wireshark/weft.lua"
TIMEOUT_S = 120
FIRST_PORT = 32768  # that is drawn at random, not chosen
RELIABLE, UD_SEND_ONLY = 0x40, 0x64  # the latter of datagrams, and of messages of the connection manager
RECORD_HEADER, MAX_RECORD_BYTES = 64, 8192
RECORD = 0x100  # and the kind of the record
SENT, ARRIVED, READS, WRITES, ATOMICS, MANAGEMENT = (RECORD + kind for kind in (1, 2, 4, 5, 6, 7))
OUTCOME = 0x200  # and the outcome of the record
PENDING, REFUSED = OUTCOME + 1, OUTCOME + 2


def blocks(data):
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        yield kind, data[at + 8:at + length - 4]
        at += length


def ip_packets(path):
    for kind, body in blocks(path.read_bytes()):
        if kind == 6:  # enhanced packet block
            length = struct.unpack_from("<I", body, 12)[0]
            yield body[20:20 + length]


def icrc_is_right(ip):
    """The CRC of everything from the IP header on, with ones for what may change on the way."""
    masked = bytearray(ip)
    v4 = ip[0] >> 4 == 4
    header = 20 if v4 else 40
    if v4:
        masked[1] = masked[8] = 0xFF
        masked[10:12] = b"\xff\xff"
    else:
        masked[0:4] = b"\x6f\xff\xff\xff"
        masked[7] = 0xFF
    masked[header + 6:header + 8] = b"\xff\xff"
    masked[header + 12] = 0xFF
    return zlib.crc32(b"\xff" * 8 + bytes(masked[:-4])) == struct.unpack("<I", ip[-4:])[0]


@functools.cache
def other_protocols():
    """The options that keep tshark from taking packets for those of protocols which it knows by ports that Weft may draw; and rpcordma,
    which takes the bytes of some messages for its own."""
    done = subprocess.run(["tshark", "-G", "decodes"], text=True, check=True, capture_output=True, timeout=TIMEOUT_S)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    known = {row[2] for row in rows if row[0] == "udp.port" and int(row[1]) >= FIRST_PORT}
    require(len(known) > 10, f"tshark names few protocols: {known}")
    return [word for name in sorted(known | {"rpcordma"}) for word in ("--disable-protocol", name)]


def dissect(path, env):
    """One row for each packet: its opcode or the record, and what tshark has against it."""
    fields = ["_ws.col.Protocol", "infiniband.bth.opcode", "weft.opcode", "_ws.malformed", "_ws.expert.severity",
              "ip.checksum.status", "udp.checksum.status", "frame.comment", "weft.record.kind",
              "weft.record.outcome", "weft.record.length", "weft.record.bytes"]
    command = ["tshark", "-X", f"lua_script:{SCRIPT}", "-r", str(path), "-T", "fields", "-E", "separator=;",
               "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", *other_protocols()]
    for field in fields:
        command += ["-e", field]
    plain = {name: value for name, value in env.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, env=plain, text=True, check=False, capture_output=True, timeout=TIMEOUT_S)
    require(done.returncode == 0, f"tshark on {path}: {done.returncode}\n{done.stderr}")
    return [line.split(";") for line in done.stdout.splitlines()]


def check_record(where, packet, row):
    """Refuses a record that is not sound or that tshark does not show; its kind and outcome."""
    datagram = datagram_of(packet)
    kind, outcome, length = datagram[4], datagram[9], struct.unpack_from(">Q", datagram, 32)[0]
    data = datagram[RECORD_HEADER:]
    require(row[0] == "Weft" and row[7] == "within the host", f"{where}: a record, but {row}")
    require((int(row[8]), int(row[9]), int(row[10]), bytes.fromhex(row[11])) == (kind, outcome, length, data),
            f"{where}: not the record's fields: {row}")
    if RECORD + kind in (SENT, WRITES):
        require(len(data) == min(length, MAX_RECORD_BYTES), f"{where}: {len(data)} of {length} bytes")
    return RECORD + kind, OUTCOME + outcome


def datagram_of(packet):
    """What is behind its IP and UDP headers."""
    return packet[(20 if packet[0] >> 4 == 4 else 40) + 8:]


def is_record(packet):
    return datagram_of(packet).startswith(b"WFT1")


def contents_of(path, env):
    """How often each opcode and each kind of record is in a capture, all of whose packets are as they should be."""
    packets = list(ip_packets(path))
    rows = dissect(path, env)
    require(len(rows) == len(packets), f"{path}: {len(packets)} packets, {len(rows)} rows")
    found = Counter()
    for number, (packet, row) in enumerate(zip(packets, rows), 1):
        protocol, other, reliable, malformed, severity, ip_sum, udp_sum = row[:7]
        require(not malformed and "8388608" not in severity, f"{path}, packet {number}: malformed: {row}")
        require(ip_sum in ("", "1") and udp_sum == "1", f"{path}, packet {number}: wrong checksum: {row}")
        if is_record(packet):
            found.update(check_record(f"{path}, packet {number}", packet, row))
            continue
        require("within the host" not in row[7], f"{path}, packet {number}: a packet within the host: {row}")
        # A REP comes from another port than the REQ went to: tshark then takes its private data for those of SDP.
        of_manager = protocol == "SDP" and other and int(other, 0) == UD_SEND_ONLY
        require(protocol in ("RRoCE", "Weft") or of_manager, f"{path}, packet {number}: no RoCEv2 but {protocol}")
        require(icrc_is_right(packet), f"{path}, packet {number}: wrong ICRC")
        found[int(reliable, 0) % 0x20 + RELIABLE if reliable else int(other)] += 1
    return found
