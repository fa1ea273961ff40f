// SPDX-License-Identifier: BSD-2-Clause
// Which opcodes are there, and what does a packet of each consist of? (IBTA 9.2.1, tables 35 to 38)
#include "wire/opcode.h"

#include <algorithm>
#include <array>

#include "wire/packet.h"

namespace weft::wire {
namespace {

// Of which transports an operation is.
constexpr unsigned kRc = 1;  // reliable connections, and extended ones
constexpr unsigned kUc = 2;
constexpr unsigned kRd = 4;
constexpr unsigned kUd = 8;

struct OpcodeRow {
  Operation operation;
  unsigned transports;
  Headers headers;  // on a reliable connection
  Payload payload;
  bool request;
  bool starts;
  bool ends;
};

using enum Operation;
constexpr OpcodeRow kRows[] = {
    {kSendFirst, kRc | kUc | kRd, 0, Payload::kFull, true, true, false},
    {kSendMiddle, kRc | kUc | kRd, 0, Payload::kFull, true, false, false},
    {kSendLast, kRc | kUc | kRd, 0, Payload::kSome, true, false, true},
    {kSendLastImmediate, kRc | kUc | kRd, kImmediate, Payload::kSome, true, false, true},
    {kSendOnly, kRc | kUc | kRd | kUd, 0, Payload::kAny, true, true, true},
    {kSendOnlyImmediate, kRc | kUc | kRd | kUd, kImmediate, Payload::kAny, true, true, true},
    {kWriteFirst, kRc | kUc | kRd, kReth, Payload::kFull, true, true, false},
    {kWriteMiddle, kRc | kUc | kRd, 0, Payload::kFull, true, false, false},
    {kWriteLast, kRc | kUc | kRd, 0, Payload::kSome, true, false, true},
    {kWriteLastImmediate, kRc | kUc | kRd, kImmediate, Payload::kSome, true, false, true},
    {kWriteOnly, kRc | kUc | kRd, kReth, Payload::kAny, true, true, true},
    {kWriteOnlyImmediate, kRc | kUc | kRd, kReth | kImmediate, Payload::kAny, true, true, true},
    {kReadRequest, kRc | kRd, kReth, Payload::kNone, true, true, true},
    {kReadResponseFirst, kRc | kRd, kAeth, Payload::kFull, false, true, false},
    {kReadResponseMiddle, kRc | kRd, 0, Payload::kFull, false, false, false},
    {kReadResponseLast, kRc | kRd, kAeth, Payload::kSome, false, false, true},
    {kReadResponseOnly, kRc | kRd, kAeth, Payload::kAny, false, true, true},
    {kAcknowledge, kRc | kRd, kAeth, Payload::kNone, false, true, true},
    {kAtomicAcknowledge, kRc | kRd, kAeth | kAtomicAckEth, Payload::kNone, false, true, true},
    {kCompareSwap, kRc | kRd, kAtomicEth, Payload::kNone, true, true, true},
    {kFetchAdd, kRc | kRd, kAtomicEth, Payload::kNone, true, true, true},
    {kResync, kRd, 0, Payload::kNone, true, true, true},
    {kSendLastInvalidate, kRc, kIeth, Payload::kSome, true, false, true},
    {kSendOnlyInvalidate, kRc, kIeth, Payload::kAny, true, true, true},
    {kFlush, kRc | kRd, kFeth | kReth, Payload::kNone, true, true, true},
    {kAtomicWrite, kRc, kReth, Payload::kEight, true, true, true},
};

// What a transport adds to the headers of its requests and of its responses.
constexpr Headers added_by(Transport transport, bool request) {
  switch (transport) {
    case Transport::kReliableDatagram:
      return request ? kRdeth | kDeth : kRdeth;
    case Transport::kUnreliableDatagram:
      return kDeth;
    case Transport::kExtendedReliable:
      return request ? kXrceth : Headers{0};
    case Transport::kReliableConnection:
    case Transport::kUnreliableConnection:
    case Transport::kCongestion:
      return 0;
  }
  return 0;
}

constexpr std::array<Layout, 256> make_table() {
  constexpr struct {
    Transport transport;
    unsigned bit;
  } kTransports[] = {{Transport::kReliableConnection, kRc},
                     {Transport::kExtendedReliable, kRc},
                     {Transport::kUnreliableConnection, kUc},
                     {Transport::kReliableDatagram, kRd},
                     {Transport::kUnreliableDatagram, kUd}};
  std::array<Layout, 256> table{};
  for (const auto& [transport, bit] : kTransports) {
    for (const OpcodeRow& row : kRows) {
      if ((row.transports & bit) == 0) continue;
      const auto headers = static_cast<Headers>(row.headers | added_by(transport, row.request));
      table[opcode_of(transport, row.operation)] = {true,
                                                    headers,
                                                    row.payload,
                                                    row.request,
                                                    row.starts,
                                                    row.ends,
                                                    static_cast<std::uint8_t>(bytes_of(headers))};
    }
  }
  table[kCongestionNotification] = {true, 0, Payload::kCnp, false, true, true, 0};
  return table;
}

}  // namespace

constexpr std::array<Layout, 256> layouts = make_table();

namespace {

// The longest packet that any opcode has. No payload of that length needs padding.
constexpr std::size_t longest_packet() {
  std::size_t longest = 0;
  for (std::size_t opcode = 0; opcode < layouts.size(); ++opcode) {
    const Layout& layout = layouts[opcode];
    const Transport transport = transport_of(static_cast<std::uint8_t>(opcode));
    const std::size_t payload = max_payload(transport, layout.payload);
    longest = std::max(longest, kBthBytes + layout.header_bytes + payload + padding_of(payload));
  }
  return longest + kIcrcBytes;
}
static_assert(longest_packet() == kMaxPacketBytes);

}  // namespace

}  // namespace weft::wire
