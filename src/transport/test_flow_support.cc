// SPDX-License-Identifier: BSD-2-Clause
// How do tests hand packets to one half of a flow, and read what it says?
#include "test_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

namespace weft::transport::testing {

using work::RequestVerdict;
using work::Work;
using work::WorkKind;

namespace {

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::kSendFirst:
      return "send-first";
    case Operation::kSendMiddle:
      return "send-middle";
    case Operation::kSendLast:
      return "send-last";
    case Operation::kSendLastImmediate:
      return "send-last-imm";
    case Operation::kSendOnly:
      return "send-only";
    case Operation::kSendOnlyImmediate:
      return "send-only-imm";
    case Operation::kWriteFirst:
      return "write-first";
    case Operation::kWriteMiddle:
      return "write-middle";
    case Operation::kWriteLast:
      return "write-last";
    case Operation::kWriteLastImmediate:
      return "write-last-imm";
    case Operation::kWriteOnly:
      return "write-only";
    case Operation::kWriteOnlyImmediate:
      return "write-only-imm";
    case Operation::kReadRequest:
      return "read";
    case Operation::kReadResponseFirst:
      return "first";
    case Operation::kReadResponseMiddle:
      return "middle";
    case Operation::kReadResponseLast:
      return "last";
    case Operation::kReadResponseOnly:
      return "only";
    case Operation::kAcknowledge:
      return "ack";
    case Operation::kAtomicAcknowledge:
      return "value";
    case Operation::kCompareSwap:
      return "swap";
    case Operation::kFetchAdd:
      return "add";
    case Operation::kResync:
      return "resync";
    case Operation::kSendLastInvalidate:
      return "send-last-inv";
    case Operation::kSendOnlyInvalidate:
      return "send-only-inv";
    case Operation::kFlush:
      return "flush";
    case Operation::kAtomicWrite:
      return "atomic-write";
  }
  return "nothing";
}

std::string syndrome_text(std::uint8_t syndrome) {
  std::ostringstream out;
  const int code = syndrome & ~kSyndromeKind;
  switch (syndrome & kSyndromeKind) {
    case kSyndromeAck:
      return "ack";
    case kSyndromeRnr:
      out << "rnr" << code;
      return out.str();
    default:
      out << "nak" << std::hex << static_cast<int>(syndrome);
      return out.str();
  }
}

std::size_t at(const work::RemoteMemory& memory, std::uint64_t offset) {
  return static_cast<std::size_t>(memory.address - Memory::kAddress + offset);
}

const char* name_of(work::CompletionStatus status) {
  using enum work::CompletionStatus;
  constexpr std::pair<work::CompletionStatus, const char*> kNames[] = {
      {kSuccess, "ok"},
      {kRetryExceeded, "retries"},
      {kRnrRetryExceeded, "rnr"},
      {kRemoteInvalidRequest, "invalid"},
      {kRemoteAccess, "access"},
      {kRemoteOperation, "operational"},
      {kFlushed, "flushed"},
      {kLocalLength, "length"},
      {kLocalOperation, "operation"},
      {kLocalProtection, "protection"}};
  for (const auto& [each, name] : kNames) {
    if (each == status) return name;
  }
  return "no status of a requester";
}

}  // namespace

Bytes pattern(std::size_t length, unsigned begin) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::byte>((begin + i) * 7 + (begin + i) / 256);
  return bytes;
}

Settings connection() {
  Settings settings;
  settings.path_mtu = kMtu;
  settings.first_sent = settings.first_expected = kFirstPsn;
  return settings;
}

Settings selective() {
  Settings settings = connection();
  settings.selective = true;
  return settings;
}

Settings datagrams() {
  Settings settings = selective();
  settings.kind = wire::Transport::kReliableDatagram;
  return settings;
}

Sent read_packet(std::span<const std::byte> written) {
  Sent sent;
  sent.bytes.assign(written.begin(), written.end());
  sent.bytes.resize(written.size() + wire::kIcrcBytes);
  EXPECT_EQ(wire::parse(sent.bytes, sent.packet), wire::Malformed::kNone);
  return sent;
}

std::string text_of(const Sent& sent) {
  const wire::Packet& packet = sent.packet;
  const wire::Headers headers = wire::layout_of(packet.opcode).headers;
  std::ostringstream out;
  const bool says = sent.operation() == Operation::kAcknowledge;
  out << (says ? syndrome_text(packet.syndrome) : name_of(sent.operation())) << ' '
      << packet.psn.since(kFirstPsn);
  if ((headers & wire::kAeth) != 0) out << " #" << packet.message_number;
  if ((headers & wire::kAtomicAckEth) != 0) out << " =" << packet.original;
  if ((headers & wire::kReth) != 0)
    out << " @" << packet.reth.address - Memory::kAddress << '+' << packet.reth.length;
  if (!packet.payload.empty()) out << " [" << packet.payload.size() << ']';
  if (packet.ack_request) out << '?';
  return out.str();
}

std::string text_of(const std::vector<Sent>& all) {
  std::string text;
  for (const Sent& sent : all) text += (text.empty() ? "" : ", ") + text_of(sent);
  return text;
}

RequestVerdict Memory::may_use(std::uint32_t shared_receive) {
  return {shared_receive == kSharedReceive ? RequestVerdict::Kind::kYes
                                           : RequestVerdict::Kind::kInvalid,
          0};
}

RequestVerdict Memory::message_begins() {
  EXPECT_FALSE(receiving_) << "a message begins within another";
  receiving_ = begins.ok();
  return begins;
}

RequestVerdict Memory::message_goes_on(std::span<const std::byte> more) {
  EXPECT_TRUE(receiving_) << "bytes of no message";
  if (goes_on.ok()) message_.insert(message_.end(), more.begin(), more.end());
  return goes_on;
}

void Memory::message_ends(const work::MessageEnd& end) {
  EXPECT_TRUE(std::exchange(receiving_, false)) << "the end of no message";
  messages.push_back(std::exchange(message_, {}));
  ends.push_back(end);
}

void Memory::message_breaks() {
  EXPECT_TRUE(std::exchange(receiving_, false)) << "no message was there to break";
  message_.clear();
  ++broken;
}

RequestVerdict Memory::may_access(Access, const work::RemoteMemory& memory) {
  if (lenient && memory.length == 0) return {};
  const bool within = memory.key == kKey && memory.address >= kAddress &&
                      memory.address - kAddress + memory.length <= kBytes;
  return within || vast ? access : RequestVerdict{RequestVerdict::Kind::kAccess, 5};
}

RequestVerdict Memory::write(const work::RemoteMemory& memory, std::uint64_t offset,
                             std::span<const std::byte> more) {
  EXPECT_LE(offset + more.size(), memory.length);
  if (writes.ok())
    std::copy(more.begin(), more.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(at(memory, offset)));
  return writes;
}

void Memory::written(const work::RemoteMemory& memory, const work::MessageEnd& end) {
  writes_of.push_back(memory.length);
  ends.push_back(end);
}

RequestVerdict Memory::read(const work::RemoteMemory& memory, std::uint64_t offset,
                            std::span<std::byte> out) {
  EXPECT_LE(offset + out.size(), memory.length);
  if (reads.ok() && !vast) std::memcpy(out.data(), bytes.data() + at(memory, offset), out.size());
  return reads;
}

RequestVerdict Memory::atomic(bool compares, const work::AtomicOperands& what,
                              std::uint64_t& original) {
  if (!atomics.ok()) return atomics;
  ++changed;
  original = sum;
  if (!compares) sum += what.swap_or_add;
  if (compares && sum == what.compare) sum = what.swap_or_add;
  return {};
}

Settings counted(Settings settings, Stats& stats) {
  settings.stats = &stats;
  return settings;
}

Receiver::Receiver(const Settings& given)
    : settings(counted(given, stats)), responder(settings, memory), payload_(pattern(4096)) {}

wire::Packet Receiver::request(Operation operation, std::int32_t number, std::size_t length) {
  wire::Packet packet;
  packet.opcode = wire::opcode_of(settings.kind, operation);
  packet.psn = psn(number);
  packet.payload = {payload_.data(), length};
  packet.reth = {Memory::kAddress, Memory::kKey, static_cast<std::uint32_t>(length)};
  packet.shared_receive = Memory::kSharedReceive;
  return packet;
}

wire::Packet Receiver::read(std::int32_t number, std::uint32_t length, std::uint64_t offset) {
  wire::Packet packet = request(Operation::kReadRequest, number);
  packet.reth = {Memory::kAddress + offset, Memory::kKey, length};
  return packet;
}

wire::Packet Receiver::add(std::int32_t number) {
  wire::Packet packet = request(Operation::kFetchAdd, number);
  packet.atomic = {Memory::kAddress, Memory::kKey, 1, 0};
  return packet;
}

void Receiver::take(const wire::Packet& request) { responder.take(request, now_); }

void Receiver::take(Operation operation, std::int32_t number, std::size_t length) {
  take(request(operation, number, length));
}

std::vector<Sent> Receiver::answers() {
  std::vector<Sent> all;
  Bytes out(wire::kMaxHeaderBytes + settings.path_mtu);
  while (responder.ready()) {
    const std::size_t length = responder.next(out);
    if (length == 0) break;
    all.push_back(read_packet(std::span<const std::byte>(out).first(length)));
    EXPECT_EQ(wire::transport_of(all.back().packet.opcode), settings.kind);
  }
  EXPECT_EQ(responder.next(out), 0U);
  return all;
}

std::string Receiver::hears(const wire::Packet& request) {
  take(request);
  return says();
}

std::string Receiver::hears(Operation operation, std::int32_t number, std::size_t length) {
  return hears(request(operation, number, length));
}

Sender::Sender(const Settings& given)
    : settings(counted(given, stats)), requester(settings, *this, memory) {}

// In two SGEs that do not end where packets do.
Work Sender::work(WorkKind kind, std::size_t length) {
  Work work;
  work.kind = kind;
  work.length = length;
  work.address = Memory::kAddress;
  work.key = Memory::kKey;
  work.cookie = reinterpret_cast<void*>(posted_++);
  if (kind >= WorkKind::kCompareSwap) {
    work.original = &original;
    return work;
  }
  sges_[0] = {buffer.data(), length / 3};
  sges_[1] = {buffer.data() + length / 3, length - length / 3};
  work.sges = sges_;
  return work;
}

std::vector<Sent> Sender::packets(std::size_t most) {
  std::vector<Sent> all;
  Bytes out(wire::kMaxHeaderBytes + settings.path_mtu);
  while (all.size() < most && requester.ready(now)) {
    const std::size_t length = requester.next(now, out);
    if (length == 0) break;
    all.push_back(read_packet(std::span<const std::byte>(out).first(length)));
  }
  return all;
}

void Sender::acknowledge(std::int32_t number, std::uint8_t syndrome, std::uint32_t message_number) {
  wire::Packet packet;
  packet.opcode = wire::opcode_of(settings.kind, Operation::kAcknowledge);
  packet.psn = psn(number);
  packet.syndrome = syndrome;
  packet.message_number = message_number;
  take(packet);
}

void Sender::nak(Nak code, std::int32_t number, std::uint32_t count) {
  acknowledge(number, static_cast<std::uint8_t>(kSyndromeNak | static_cast<std::uint8_t>(code)),
              count);
}

void Sender::answer(Operation operation, std::int32_t number, std::size_t length) {
  const Bytes bytes = pattern(length, static_cast<unsigned>(number) * kMtu);
  wire::Packet packet;
  packet.opcode = wire::opcode_of(settings.kind, operation);
  packet.psn = psn(number);
  packet.syndrome = kNoCredits;
  packet.payload = bytes;
  take(packet);
}

void Sender::value(std::int32_t number, std::uint64_t found) {
  wire::Packet packet;
  packet.opcode = wire::opcode_of(settings.kind, Operation::kAtomicAcknowledge);
  packet.psn = psn(number);
  packet.syndrome = kNoCredits;
  packet.original = found;
  take(packet);
}

void Sender::wait() {
  ASSERT_NE(requester.deadline(), Time::max());
  now = std::max(now, requester.deadline());
  requester.tick(now);
}

void Sender::pass(Duration time) {
  now += time;
  if (requester.deadline() <= now) requester.tick(now);
}

void Sender::ended(const work::Ended& work) {
  std::ostringstream out;
  out << (ended_.empty() ? "" : ", ") << reinterpret_cast<std::uintptr_t>(work.cookie) << ' '
      << name_of(work.status);
  if (work.detail != 0) out << '/' << static_cast<int>(work.detail);
  ended_ += out.str();
  if (on_end) on_end(work);
}

std::string Sender::ended_now() { return std::exchange(ended_, {}); }

}  // namespace weft::transport::testing
