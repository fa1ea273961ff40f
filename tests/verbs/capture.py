#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Do captures of verbs programs have each operation of their queue pairs, with its bytes, on either link?
"""Runs Debian's programs and tests of the conformance program with WEFT_CAPTURE, reads what both sides leave behind as the same events,
whether they are packets or records, and has tshark read all of it."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import sides

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "programs"))
from captured import contents_of, datagram_of, ip_packets, is_record  # noqa: E402

ROUNDS = 5
BYTES = 32
PINGPONG = bytes(1) + b"\x7b" * (BYTES - 1)  # what ibv_rc_pingpong sends when it validates
REQUESTS = {0x0A: "write", 0x0C: "read", 0x13: "compare and swap", 0x14: "fetch and add"}
UNKNOWN_KEY = 1  # the rule
ACCESS_REFUSED = 0x70  # a syndrome, with the rule
REFUSED = "All/RefusedAccess.UnknownKey/*"


def require(holds, text):
    """Ends the test with `text` unless that holds."""
    if not holds:
        raise sides.Failure(text)


def event_of_record(data):
    """What a record says."""
    kind, form, outcome, reason = data[4], data[7], data[9], struct.unpack_from(">H", data, 10)[0]
    tag, key, address = struct.unpack_from(">Q24xQQ", data, 16)[0:1] + struct.unpack_from(">QQ", data, 48)
    content = data[64:]
    if kind in (1, 2):
        return "send", tag >> 32, content
    name = {4: "read", 5: "write", 6: "compare and swap" if form == 2 else "fetch and add"}[kind]
    if outcome == 2:
        return "refused", name, reason
    return name, key, address, content


def headers_of(data):
    """The opcode of a packet, the QPN and the PSN, and what is behind the base header."""
    qpn, psn = struct.unpack(">II", data[4:12])
    return data[0], qpn & 0xFFFFFF, psn & 0xFFFFFF, data[12:len(data) - 4 - (data[1] >> 4 & 3)]


def request_of(opcode, body):
    """The name, key and address of a request that is answered, and what it adds."""
    address, key = struct.unpack_from(">QI", body)
    return REQUESTS[opcode], key, address, struct.pack("<Q", struct.unpack_from(">Q", body, 12)[0]) if opcode == 0x14 else b""


def event_of_packet(opcode, qpn, body, request):
    """The same of a packet, which is that request or is answered by it; nothing of an answer that says neither yes nor no."""
    if opcode == 0x04:
        return "send", qpn, body
    if opcode in REQUESTS:
        return (*request[:3], body[16:]) if opcode == 0x0A else ("request", *request[:2])
    if opcode == 0x11 and body[0] & 0xF0 == ACCESS_REFUSED:
        return "refused", qpn, body[0] & 0x0F
    if opcode == 0x11:
        return ("acknowledged", qpn) if body[0] < 0x20 else None
    if opcode == 0x10:
        return *request[:3], body[4:]
    require(opcode == 0x12, f"opcode {opcode:#x}")
    return *request[:3], request[3] + struct.pack("<Q", struct.unpack_from(">Q", body, 4)[0])


def events_of_packets(packets):
    """An answer may stand before its request, as another thread writes it. A retransmission is the same packet once more."""
    headers = list(dict.fromkeys(headers_of(datagram_of(packet)) for packet in packets))
    requests = {psn: request_of(opcode, body) for opcode, _, psn, body in headers if opcode in REQUESTS}
    events = (event_of_packet(opcode, qpn, body, request_of(opcode, body) if opcode in REQUESTS else requests.get(psn))
              for opcode, qpn, psn, body in headers)
    return [event for event in events if event is not None]


def events_of(path, link):
    """All events in a capture, which has nothing of the other link."""
    packets = list(ip_packets(path))
    others = [packet.hex() for packet in packets if is_record(packet) != (link == "shm")]
    require(not others, f"{path}: of the other link: {others}")
    return [event_of_record(datagram_of(packet)) for packet in packets] if link == "shm" else events_of_packets(packets)


def of_kind(captures, kind):
    """The events of that kind in all these captures, without it."""
    return [event[1:] for events in captures for event in events if event[0] == kind]


def check_sends(captures, link):
    """Both sides have what both have sent."""
    for events in captures:
        sends = of_kind([events], "send")
        targets = {qpn for qpn, _ in sends}
        require(len(targets) == 2 and all(sends.count((qpn, PINGPONG)) == ROUNDS for qpn in targets) and len(sends) == 2 * ROUNDS,
                f"SENDs: {sends}")
        if link == "udp":
            require({qpn for qpn, in of_kind([events], "acknowledged")} == targets, f"acknowledgements: {events}")


def check_writes(captures, link):
    """Each side writes the numbers of the rounds into the last byte of the other one's memory."""
    writes = set(of_kind(captures, "write"))
    keys = {write[:2] for write in writes}
    expected = {(*key, number.to_bytes(BYTES, "big")) for key in keys for number in range(1, ROUNDS + 1)}
    require(len(keys) == 2 and writes == expected, f"WRITEs: {writes}")
    for events in captures:
        require(len(set(of_kind([events], "write"))) == len(writes) // (2 if link == "shm" else 1), f"WRITEs of a side: {events}")


def check_reads(captures, _link):
    """The client reads the same bytes again and again."""
    reads = of_kind(captures, "read")
    require(len(set(reads)) == 1 and len(reads) >= ROUNDS and len(reads[0][2]) == BYTES and any(reads[0][2]), f"READs: {reads}")


def check_atomics(captures, _link):
    """The client adds 1 again and again."""
    values = sorted({struct.unpack("<QQ", content) for _, _, content in of_kind(captures, "fetch and add")})
    first = values[0][1] if values else 0
    require(values == [(1, first + number) for number in range(ROUNDS)], f"FetchAdds: {values}")


def check_refusals(captures, link):
    """One of each kind: a record names it; over packets each is the request of another queue pair."""
    refused = of_kind(captures, "refused")
    names = {name for name, _ in refused} if link == "shm" else {name for name, *_ in of_kind(captures, "request")} | {"write"}
    require(names == set(REQUESTS.values()) and len(set(refused)) == len(names) and {rule for _, rule in refused} == {UNKNOWN_KEY},
            f"refusals: {captures}")
    require(link == "shm" or of_kind(captures, "write"), f"no WRITE: {captures}")


ROWS = ((f"ibv_rc_pingpong -g 0 -c -n {ROUNDS} -s {BYTES}", check_sends),
        (f"ib_write_lat -F -n {ROUNDS} -s {BYTES}", check_writes),
        (f"ib_read_lat -F -n {ROUNDS} -s {BYTES}", check_reads),
        (f"ib_atomic_lat -F -n {ROUNDS}", check_atomics),
        (f"weft_verbs_conformance --gtest_brief=1 --gtest_filter={REFUSED}", check_refusals))


def run(build, line, **variables):
    """A program to its end: both sides, or the tests of the conformance program."""
    if not line.startswith("weft_verbs_conformance"):
        server, client = sides.Programs(build).run(line.split(), **variables)
        require(server[0] == client[0] == 0, sides.describe(server, client))
        return
    program, *arguments = line.split()
    environment = os.environ | {"WEFT_IFACE": "lo", "LD_LIBRARY_PATH": f"{build}/lib/verbs"} | variables
    done = subprocess.run([f"{build}/bin/{program}", *arguments], env=environment, text=True, check=False, timeout=sides.PATIENCE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    require(done.returncode == 0 and " 0 tests" not in done.stdout, f"{line}: {done.returncode}\n{done.stdout}")


def check(build, folder, link):
    """The captures of all rows over that link, one by one and then, for tshark, as one file of many sections."""
    for line, check_row in ROWS:
        name = line.split()[0]
        run(build, line, FI_WEFT_LINKS=link, WEFT_CAPTURE=str(folder / f"{name}-%p.pcapng"))
        check_row([events_of(path, link) for path in folder.glob(f"{name}-*")], link)
        print(f"{link}: {name}: passed", flush=True)
    whole = folder / "whole.pcapng"
    whole.write_bytes(b"".join(path.read_bytes() for path in sorted(folder.iterdir())))
    print(f"{link}: {dict(contents_of(whole, os.environ))}")


def main():
    try:
        for link in ("shm", "udp"):
            with tempfile.TemporaryDirectory() as folder:
                check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder), link)
    except sides.Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
