#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does Wireshark read the connection manager's messages as they were written?
"""weft_connection_messages (connection_messages.cc) writes one packet for each of the 11 messages with Weft's encoder. tshark,
without Weft's dissector, names each message and finds the values that were written. Wireshark dissects the fields of six of them;
of the other five it shows the MAD header and the bytes behind it, which are compared with the layouts of IBTA 12.6 to 12.11."""
import json
import struct
import tempfile
from pathlib import Path

from program import require, run, setup

TIMEOUT_S = 60
TRANSACTION = 0x1122334455667700  # and the attribute
FIRST_ATTRIBUTE = 0x10
GUID, REQUESTER, RESPONDER, RESPONDER_QPN = 0x0123456789ABCDEF, 0x9C400002, 0xC3500003, 0xC35001
UDP_SERVICE = 0x1111C07  # port space and port


def consecutive(first, count):
    """Private data: each byte is one more than the last."""
    return bytes((first + number) % 256 for number in range(count))


def ids(local_id, remote_id):
    """The beginning of most messages."""
    return struct.pack(">II", local_id, remote_id)


# Fields below infiniband.cm. Wireshark 4.0 cuts the path's flow label and packet rate from too few bytes: they are not here.
REQ = {"req": REQUESTER, "req.serviceid": 0x1061C06, "req.serviceid.dport": 7174, "req.localcaguid": GUID, "req.localqkey": 0x55667788,
       "req.localqpn": 0x9C4001, "req.responderres": 7, "req.localeecn": 0x7B0001, "req.initdepth": 6, "req.remoteeecn": 0x5A0001,
       "req.remoteresptout": 20, "req.transpsvctype": 0, "req.e2eflowctrl": 1, "req.startpsn": 0x123456, "req.localresptout": 19,
       "req.retrcount": 5, "req.pkey": 0xFFFF, "req.pppmtu": 3, "req.rdcexist": 1, "req.rnrretrcount": 6, "req.maxcmretr": 15,
       "req.srq": 1, "req.ext_transport": 1, "req.prim_localgid_ipv4": "192.0.2.1", "req.prim_remotegid_ipv4": "192.0.2.2",
       "req.prim_tfcclass": 0x68, "req.prim_hoplim": 64, "req.prim_sl": 3, "req.prim_subnetlocal": 1, "req.prim_localacktout": 17,
       "req.alt_localacktout": 0, "req.ip_cm.ipv": 4, "req.ip_cm.sport": 0x1C07, "req.ip_cm.sip4": "192.0.2.1",
       "req.ip_cm.dip4": "192.0.2.2", "req.ip_cm.private": consecutive(0x34, 56)}
REJ = {"rej.localcommid": RESPONDER, "rej.remotecommid": REQUESTER, "rej.msgrej": 1, "rej.rejinfolen": 8, "rej.reason": 28,
       "rej.ari": consecutive(0x40, 72), "rej.private": consecutive(0x50, 148)}
REP = {"rep": RESPONDER, "rep.remotecommid": REQUESTER, "rep.localqkey": 0x11223344, "rep.localqpn": RESPONDER_QPN,
       "rep.localeecn": 0x5A0001, "rep.startpsn": 0x654321, "rep.respres": 5, "rep.initdepth": 4, "rep.tgtackdelay": 15,
       "rep.failoveracc": 1, "rep.e2eflowctrl": 1, "rep.rnrretrcount": 7, "rep.srq": 1, "rep.localcaguid": GUID ^ (2**64 - 1),
       "rep.private": consecutive(0x20, 196)}
RTU = {"rtu.localcommid": REQUESTER, "rtu.remotecommid": RESPONDER, "rtu.private": consecutive(0xD0, 224)}
DREQ = {"dreq.localcommid": REQUESTER, "dreq.remotecommid": RESPONDER, "req.remoteqpneecn": RESPONDER_QPN,
        "dreq.private": consecutive(0xE0, 220)}
DREP = {"drsp.localcommid": RESPONDER, "drsp.remotecommid": REQUESTER, "drsp.private": consecutive(0xF0, 224)}
MRA = ids(RESPONDER, REQUESTER) + struct.pack(">BB", 1 << 6, 19 << 3) + consecutive(0x30, 222)
SIDR_REQ = struct.pack(">IHxxQ", REQUESTER, 0xFFFF, UDP_SERVICE) + consecutive(0x60, 216)
SIDR_REP = (struct.pack(">IBBxxIQI", REQUESTER, 1, 4, RESPONDER_QPN << 8, UDP_SERVICE, 0x12345678)
            + consecutive(0x70, 72) + consecutive(0x80, 136))
LAP = (ids(REQUESTER, RESPONDER) + struct.pack(">4xII", RESPONDER_QPN << 8 | 18 << 3, 0) + consecutive(0x90, 44)
       + consecutive(0xA0, 168))
APR = ids(RESPONDER, REQUESTER) + struct.pack(">BBxx", 8, 2) + consecutive(0xB0, 72) + consecutive(0xC0, 148)

# In the order of the packets: Wireshark's name, and the fields or all bytes behind the MAD header.
MESSAGES = (("ConnectRequest", REQ), ("MsgRcptAck", MRA), ("ConnectReject", REJ), ("ConnectReply", REP), ("ReadyToUse", RTU),
            ("DisconnectRequest", DREQ), ("DisconnectReply", DREP), ("ServiceIDResReq", SIDR_REQ),
            ("ServiceIDResReqResp", SIDR_REP), ("LoadAlternatePath", LAP), ("AlternatePathResponse", APR))
MAD_HEADER = {"baseversion": 1, "mgmtclass": 7, "classversion": 2, "method": 3, "status": 0, "attributemodifier": 0}


def tshark(path, env, *words):
    """What it prints about a capture."""
    done = run(["tshark", "-r", path, *words], env, TIMEOUT_S)
    require(done.returncode == 0, f"tshark: {done.returncode}\n{done.stderr}")
    return done.stdout


def add_leaves(tree, into):
    """All fields of a packet with their values as text; of a field that appears twice the first."""
    for name, value in tree.items():
        if isinstance(value, dict):
            add_leaves(value, into)
        else:
            into.setdefault(name, value)
    return into


def means(text, expected):
    """Is that what tshark shows of such a value?"""
    if isinstance(expected, bytes):
        return text == expected.hex(":")
    return text == expected if isinstance(expected, str) else int(text, 0) == expected


def differences(leaves, expected):
    """The fields that are missing or have another value."""
    return {name: (leaves.get(name), value) for name, value in expected.items()
            if name not in leaves or not means(leaves[name], value)}


def expected_fields(attribute, body):
    """Of the message with that attribute."""
    fields = {f"infiniband.mad.{name}": value for name, value in MAD_HEADER.items()}
    fields |= {"infiniband.mad.transactionid": TRANSACTION | attribute, "infiniband.mad.attributeid": attribute,
               "infiniband.bth.destqp": 1, "infiniband.deth.q_key": 0x80010000, "infiniband.deth.srcqp": 1}
    if isinstance(body, bytes):
        return fields | {"infiniband.mad.data": body}
    return fields | {f"infiniband.cm.{name}": value for name, value in body.items()}


def main():
    test, _ = setup(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messages.pcapng"
        made = run([test.build / "bin/weft_connection_messages", path], test.env, TIMEOUT_S)
        require(made.returncode == 0, f"weft_connection_messages: {made.returncode}\n{made.stderr}")
        rows = tshark(path, test.env, "-T", "fields", "-e", "_ws.col.Info", "-e", "_ws.malformed", "-e", "_ws.expert").splitlines()
        packets = json.loads(tshark(path, test.env, "-T", "json", "-J", "infiniband"))
    require(len(rows) == len(packets) == len(MESSAGES), f"{len(rows)} rows, {len(packets)} packets for {len(MESSAGES)} messages")
    for number, (name, body) in enumerate(MESSAGES):
        require(rows[number].split("\t") == [f"CM: {name}", "", ""], f"{name} is shown as {rows[number]!r}")
        leaves = add_leaves(packets[number]["_source"]["layers"]["infiniband"], {})
        wrong = differences(leaves, expected_fields(FIRST_ATTRIBUTE + number, body))
        require(not wrong, f"{name}: tshark's value and that which was written: {wrong}")
    print(f"{len(MESSAGES)} messages as written")


main()
