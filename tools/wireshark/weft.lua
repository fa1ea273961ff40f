-- SPDX-License-Identifier: BSD-2-Clause
-- How does Wireshark show what Weft speaks?
--
--   tshark -X lua_script:weft.lua -r FILE        or in Wireshark's folder for personal Lua plugins
--
-- Wireshark knows RoCEv2 at port 4791 only, and takes the opcodes of reliable datagrams for those of
-- another vendor's transport with a longer base header. This finds RoCEv2 at any UDP port by its first
-- bytes, takes reliable datagrams apart as the InfiniBand Architecture Specification has them (volume 1,
-- chapter 9), shows what Weft's own messages say (src/rdm/include/rdm/message.h), shows the records of
-- operations within the host (docs/formats/capture.md), and leaves all other opcodes to Wireshark.
local weft = Proto("weft", "Weft: RoCEv2 reliable datagrams, and records within the host")

local operations = {
  [0x00] = "SEND First", [0x01] = "SEND Middle", [0x02] = "SEND Last", [0x03] = "SEND Last Immediate",
  [0x04] = "SEND Only", [0x05] = "SEND Only Immediate", [0x06] = "WRITE First", [0x07] = "WRITE Middle",
  [0x08] = "WRITE Last", [0x09] = "WRITE Last Immediate", [0x0A] = "WRITE Only",
  [0x0B] = "WRITE Only Immediate", [0x0C] = "READ Request", [0x0D] = "READ Response First",
  [0x0E] = "READ Response Middle", [0x0F] = "READ Response Last", [0x10] = "READ Response Only",
  [0x11] = "Acknowledge", [0x12] = "ATOMIC Acknowledge", [0x13] = "CmpSwap", [0x14] = "FetchAdd",
  [0x15] = "RESYNC",
}
local kinds = { "whole", "offer", "taken", "atomic", "result", "alias", "notice", "check", "checked",
  "bundle", "take", "withdrawn" }
local naks = { [0] = "sequence error", "invalid request", "remote access error", "remote operational error" }

local record_kinds = { "send", "arrival", "withdrawal", "read", "write", "atomic", "management" }
local outcomes = { [0] = "done", "pending", "refused", "failed" }

-- Each field of a record with its offset and its bytes.
local r = {
  { ProtoField.uint8("weft.record.kind", "Kind", base.DEC, record_kinds), 4, 1 },
  { ProtoField.uint8("weft.record.operation", "Operation"), 5, 1 },
  { ProtoField.uint8("weft.record.type", "Atomic data type"), 6, 1 },
  { ProtoField.uint8("weft.record.form", "Atomic form"), 7, 1 },
  { ProtoField.uint8("weft.record.flags", "Flags", base.HEX), 8, 1 },
  { ProtoField.uint8("weft.record.outcome", "Outcome", base.DEC, outcomes), 9, 1 },
  { ProtoField.uint16("weft.record.reason", "Rule or errno"), 10, 2 },
  { ProtoField.uint32("weft.record.ranges", "Remote ranges"), 12, 4 },
  { ProtoField.uint64("weft.record.tag", "Tag", base.HEX), 16, 8 },
  { ProtoField.uint64("weft.record.data", "Remote CQ data", base.HEX), 24, 8 },
  { ProtoField.uint64("weft.record.length", "Length"), 32, 8 },
  { ProtoField.uint64("weft.record.exchange", "Exchange", base.HEX), 40, 8 },
  { ProtoField.uint64("weft.record.key", "Key of the first range", base.HEX), 48, 8 },
  { ProtoField.uint64("weft.record.address", "Address of the first range", base.HEX), 56, 8 },
}
local record_bytes = ProtoField.bytes("weft.record.bytes", "Bytes")
local record_header = 64

local f = {
  opcode = ProtoField.uint8("weft.opcode", "Opcode", base.HEX, operations, 0x1F),
  pad = ProtoField.uint8("weft.pad", "Pad count", base.DEC, nil, 0x30),
  pkey = ProtoField.uint16("weft.pkey", "Partition key", base.HEX),
  qp = ProtoField.uint24("weft.qp", "Destination queue pair", base.HEX),
  ack = ProtoField.bool("weft.ack_request", "Acknowledge request", 8, nil, 0x80),
  psn = ProtoField.uint24("weft.psn", "Packet sequence number"),
  context = ProtoField.uint24("weft.context", "RDETH: end-to-end context", base.HEX),
  qkey = ProtoField.uint32("weft.qkey", "DETH: queue key", base.HEX),
  source = ProtoField.uint24("weft.source", "DETH: source queue pair", base.HEX),
  address = ProtoField.uint64("weft.address", "Remote address", base.HEX),
  key = ProtoField.uint32("weft.key", "Remote key", base.HEX),
  length = ProtoField.uint32("weft.length", "RETH: length"),
  swap = ProtoField.uint64("weft.swap", "AtomicETH: swap or add"),
  compare = ProtoField.uint64("weft.compare", "AtomicETH: compare"),
  immediate = ProtoField.uint32("weft.immediate", "Immediate data", base.HEX),
  syndrome = ProtoField.uint8("weft.syndrome", "AETH: syndrome", base.HEX),
  msn = ProtoField.uint24("weft.msn", "AETH: message sequence number"),
  original = ProtoField.uint64("weft.original", "AtomicAckETH: original value"),
  kind = ProtoField.uint8("weft.kind", "Kind of message", base.DEC, kinds),
  tag = ProtoField.uint64("weft.tag", "Tag", base.HEX),
  payload = ProtoField.bytes("weft.payload", "Payload"),
  icrc = ProtoField.uint32("weft.icrc", "Invariant CRC", base.HEX),
}
local fields = { record_bytes }
for _, each in pairs(f) do table.insert(fields, each) end
for _, each in ipairs(r) do table.insert(fields, each[1]) end
weft.fields = fields

local function is_write(op) return op >= 0x06 and op <= 0x0B end
local function is_response(op) return op >= 0x0D and op <= 0x12 end

-- Calls back with each header's field and place; returns where the payload begins.
local function headers_of(op, add)
  local at = 12
  local function take(field, bytes, skip) add(field, at + (skip or 0), bytes); at = at + bytes + (skip or 0) end
  take(f.context, 3, 1)
  if is_response(op) then
    if op ~= 0x0E then take(f.syndrome, 1); take(f.msn, 3) end
    if op == 0x12 then take(f.original, 8) end
    return at
  end
  take(f.qkey, 4)
  take(f.source, 3, 1)
  if op == 0x06 or op == 0x0A or op == 0x0B or op == 0x0C then
    take(f.address, 8); take(f.key, 4); take(f.length, 4)
  elseif op == 0x13 or op == 0x14 then
    take(f.address, 8); take(f.key, 4); take(f.swap, 8); take(f.compare, 8)
  end
  if op == 0x03 or op == 0x05 or op == 0x09 or op == 0x0B then take(f.immediate, 4) end
  return at
end

local function say(tvb, pinfo, op, payload, length)
  local text = "RD " .. operations[op] .. string.format(" QP=0x%06x PSN=%d", tvb(5, 3):uint(), tvb(9, 3):uint())
  if op == 0x11 and tvb(16, 1):bitfield(1, 2) == 3 then
    local code = tvb(16, 1):bitfield(3, 5)
    text = text .. " NAK: " .. (naks[code] or ("access refused by rule " .. (code % 16)))
  elseif (op == 0x00 or op == 0x04 or op == 0x05) and length >= 32 then
    text = text .. " " .. (kinds[tvb(payload, 1):uint()] or "")
  end
  pinfo.cols.info = text
end

local function reliable_datagram(tvb, pinfo, tree)
  local op = tvb(0, 1):uint() % 0x20
  local top = tree:add(weft, tvb())
  top:add(f.opcode, tvb(0, 1))
  top:add(f.pad, tvb(1, 1))
  top:add(f.pkey, tvb(2, 2))
  top:add(f.qp, tvb(5, 3))
  top:add(f.ack, tvb(8, 1))
  top:add(f.psn, tvb(9, 3))
  local payload = headers_of(op, function(field, at, bytes) top:add(field, tvb(at, bytes)) end)
  local length = tvb:len() - 4 - payload - tvb(1, 1):bitfield(2, 2)
  pinfo.cols.protocol = "Weft"
  say(tvb, pinfo, op, payload, length)
  if (op == 0x00 or op == 0x04 or op == 0x05) and length >= 32 then
    top:add(f.kind, tvb(payload, 1))
    top:add(f.tag, tvb(payload + 8, 8))
  end
  if length > 0 then top:add(f.payload, tvb(payload, length)) end
  top:add_le(f.icrc, tvb(tvb:len() - 4, 4))
end

local function record(tvb, pinfo, tree)
  local top = tree:add(weft, tvb())
  for _, each in ipairs(r) do top:add(each[1], tvb(each[2], each[3])) end
  if tvb:len() > record_header then top:add(record_bytes, tvb(record_header)) end
  local outcome = tvb(9, 1):uint()
  local text = string.format("%s %s bytes", record_kinds[tvb(4, 1):uint()] or "?", tostring(tvb(32, 8):uint64()))
  if outcome ~= 0 then text = text .. " " .. (outcomes[outcome] or "?") end
  if outcome >= 2 then text = text .. " " .. tvb(10, 2):uint() end
  pinfo.cols.protocol = "Weft"
  pinfo.cols.info = text
end

-- By its port, for by its name it would begin with the link header of another network.
local rocev2 = DissectorTable.get("udp.port"):get_dissector(4791)

-- A record, or a base header of version 0 with the default partition key and reserved bits that are zero, whole
-- words, and an opcode that there is.
function weft.dissector(tvb, pinfo, tree)
  if tvb:len() >= record_header and tvb(0, 4):string() == "WFT1" then
    record(tvb, pinfo, tree)
    return true
  end
  if tvb:len() < 16 or tvb:len() % 4 ~= 0 then return false end
  if tvb(1, 1):bitfield(4, 4) ~= 0 or tvb(2, 2):uint() % 0x8000 ~= 0x7FFF then return false end
  if tvb(8, 1):bitfield(1, 7) ~= 0 then return false end
  local class = tvb(0, 1):bitfield(0, 3)
  if class ~= 2 then
    if class > 5 then return false end
    rocev2:call(tvb, pinfo, tree)
    return true
  end
  local op = tvb(0, 1):bitfield(3, 5)
  if operations[op] == nil or tvb:len() < headers_of(op, function() end) + 4 then return false end
  reliable_datagram(tvb, pinfo, tree)
  return true
end

weft:register_heuristic("udp", weft.dissector)
