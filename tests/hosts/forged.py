# SPDX-License-Identifier: BSD-2-Clause
# Which packets can a host forge that sees none of the packets between two others?
"""Packets of RoCEv2 and of InfiniBand's connection manager, made from the specification (IBTA 9.2 to 9.6, 12.6, 12.7, annex
A17) and docs/formats/rdm.md, with any source address and port, valid checksums and ICRC. IPv4 only. Addresses are text, an
end is (address, port). What an off-path host cannot know is drawn at random: transaction ids, GUIDs, Q_Keys."""
import os
import socket
import struct
import zlib

CM_QPN, CM_QUEUE_KEY = 1, 0x80010000
UD_SEND_ONLY, RD_SEND_ONLY, CONGESTION_NOTIFICATION = 0x64, 0x44, 0x81
REQ, MRA, REJ, REP, RTU, DREQ, DREP, LAP, APR = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x19, 0x1A
STALE, CONSUMER = 10, 28
INVALID_ID = 1  # status of an APR
MAD_BYTES = 256
RELIABLE_DATAGRAM_SERVICE = 0x5765667400000001
CONNECTION_SERVICES = 0x5765667400030000  # and the port of the listener
PRIVATE_DATA_VERSION = 6
UDP, ICMP = 17, 1


def random_number(bits):
    """Not 0."""
    return int.from_bytes(os.urandom(bits // 8), "big") | 1


def qpn_of(port):
    """Of the endpoint at that port."""
    return port << 8 | 1


def ipv4(source, to, protocol, payload):
    """A whole packet; a raw socket adds the checksum."""
    # A raw socket draws another identification, which the ICRC covers, only in the place of 0.
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0x4000, 64, protocol, 0,
                         socket.inet_aton(source), socket.inet_aton(to))
    return header + payload


def roce(source, to, transport):
    """A packet of UDP: `transport` is BTH to payload, of a multiple of 4 bytes. `source` and `to` are ends."""
    length = 8 + len(transport) + 4
    udp = struct.pack(">HHHH", source[1], to[1], length, 0xFFFF)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0xFF, 20 + length, 1, 0x4000, 0xFF, UDP, 0xFFFF,
                     socket.inet_aton(source[0]), socket.inet_aton(to[0]))
    masked = transport[:4] + b"\xff" + transport[5:]
    icrc = struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + masked))
    return ipv4(source[0], to[0], UDP, udp[:6] + b"\0\0" + transport + icrc)


def message(source, to, attribute, fields, transaction=None):
    """A MAD for queue pair 1; `fields` stand behind its header."""
    if transaction is None:
        transaction = random_number(64)
    mad = struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, transaction, attribute, 0, 0) + fields
    headers = struct.pack(">BBHIIII", UD_SEND_ONLY, 0x40, 0xFFFF, CM_QPN, 0, CM_QUEUE_KEY, CM_QPN)
    return roce(source, to, headers + mad.ljust(MAD_BYTES, b"\0"))


def request(source, to, name=None, local_id=None, service=RELIABLE_DATAGRAM_SERVICE):
    """A REQ of a new instance, for a flow of reliable datagrams. `name` is the end that the private data name: `source`."""
    address, port = name or source
    mtu = 1408 // 64
    private = struct.pack(">BBxxIBxHI4s12x", PRIVATE_DATA_VERSION, mtu, 425984, 4, port, 0, socket.inet_aton(address))
    fields = struct.pack(">IIQQIIII", local_id or random_number(32), 0, service, random_number(64), 0,
                         random_number(32), qpn_of(source[1]) << 8 | 16, random_number(24) << 8 | 16)
    # Transport service 2; 7 retries; path MTU 1024, 7 RNR retries; of the path the hop limit.
    fields += struct.pack(">IIHBB41xB2x44x", 4, 7, 0xFFFF, 0x37, 0, 64)
    return message(source, to, REQ, fields + private)


def connection_request(source, to, name=None, local_id=None):
    """The same for a connection (FI_EP_MSG) with the listener `to`."""
    return request(source, to, name, local_id, CONNECTION_SERVICES | to[1])


def rejection(source, to, remote_id, reason, data=b""):
    """A REJ, of no message in particular."""
    return message(source, to, REJ, struct.pack(">IIBBH72x", 0, remote_id, 2 << 6, 0, reason) + data)


def disconnect(source, to, local_id, remote_id):
    """A DREQ."""
    return message(source, to, DREQ, struct.pack(">III", local_id, remote_id, qpn_of(to[1]) << 8))


def with_ids(source, to, attribute, local_id, remote_id):
    """A message of which only the communication ids matter: RTU, DREP, LAP."""
    return message(source, to, attribute, struct.pack(">II", local_id, remote_id))


def unknown_connection(source, to, local_id, remote_id):
    """An APR of an instance that does not know the connection."""
    return message(source, to, APR, struct.pack(">IIBBHQ", local_id, remote_id, 8, INVALID_ID, 0, random_number(64)))


def congestion_notification(source, to):
    """A CNP with a token that is drawn at random."""
    headers = struct.pack(">BBHBBHI", CONGESTION_NOTIFICATION, 0, 0xFFFF, 0x40, to[1] >> 8, (to[1] & 0xFF) << 8 | 1, 0)
    return roce(source, to, headers + os.urandom(16))


def port_unreachable(host, quoted):
    """An ICMP error of `host`, which quotes a packet, to the source of that packet."""
    return ipv4(host, socket.inet_ntoa(quoted[12:16]), ICMP, with_checksum(struct.pack(">BBHI", 3, 3, 0, 0) + quoted[:128]))


def with_checksum(icmp):
    """The checksum stands in its bytes 2 and 3, which are 0."""
    words = struct.unpack(f">{len(icmp) // 2}H", icmp)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return icmp[:2] + struct.pack(">H", ~total & 0xFFFF) + icmp[4:]


def flow_request(source, to, context=None, queue_key=None):
    """A request of a flow (RD SEND Only); without them context and Q_Key are drawn at random."""
    headers = struct.pack(">BBHIIIII", RD_SEND_ONLY, 0x40, 0xFFFF, qpn_of(to[1]), random_number(24),
                          context or random_number(24), queue_key or random_number(32), qpn_of(source[1]))
    return roce(source, to, headers + bytes(64))


class Heard:
    """The payload of a datagram. The attribute is 0 when it is no message of the connection manager."""

    def __init__(self, payload):
        mad = payload[12 + 8:]  # behind BTH and DETH
        is_message = len(mad) >= MAD_BYTES and payload[0] == UD_SEND_ONLY and mad[1] == 7
        self.attribute = struct.unpack_from(">H", mad, 16)[0] if is_message else 0
        self.transaction = mad[8:16].hex() if is_message else ""
        self.reason = struct.unpack_from(">H", mad, 34)[0] if self.attribute == REJ else 0
        if self.attribute == REP:
            self.local_id, self.remote_id = struct.unpack_from(">II", mad, 24)
            self.queue_key = struct.unpack_from(">I", mad, 32)[0]
            self.context = struct.unpack_from(">I", mad, 40)[0] >> 8

    @classmethod
    def of_packet(cls, packet):
        """An IPv4 packet of UDP; it has the two ends, too."""
        made = cls(packet[28:])
        ports = struct.unpack_from(">HH", packet, 20)
        made.source, made.to = [(socket.inet_ntoa(packet[12 + 4 * end:16 + 4 * end]), ports[end]) for end in (0, 1)]
        return made

    def __repr__(self):
        return f"{self.attribute:#x}" + (f" with reason {self.reason}" if self.reason else "")
