// SPDX-License-Identifier: BSD-2-Clause
// Are the worked examples of docs/formats the bytes that the code writes?
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "capture/record.h"
#include "cm/agent.h"
#include "device/provider_error.h"
#include "device/stats_file.h"
#include "link_shm/layout.h"
#include "memory/access_guard.h"
#include "memory/region_table.h"
#include "rdm/flow_message.h"
#include "rdm/message.h"
#include "wire/cm_message.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft {
namespace {

using Bytes = std::vector<std::byte>;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string page(const char* name) { return text_of(std::filesystem::path(WEFT_FORMATS) / name); }

// A line of an example: offset with so many digits, then up to 16 bytes in two groups.
std::string line_of(std::span<const std::byte> bytes, std::size_t offset, int digits) {
  std::string line = fmt::format("    {:0{}x} ", offset, digits);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    line += fmt::format("{} {:02x}", i == 8 ? " " : "", std::to_integer<unsigned>(bytes[i]));
  }
  return line;
}

// Every line that is not all zero stands on that page. `offset` is that of the first byte.
void expect_example(const std::string& page, std::span<const std::byte> bytes,
                    std::size_t offset = 0, int digits = 4) {
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    const auto part = bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at));
    const bool zero =
        std::all_of(part.begin(), part.end(), [](std::byte each) { return each == std::byte{0}; });
    const std::string line = line_of(part, offset + at, digits);
    EXPECT_TRUE(zero || page.find(line) != std::string::npos) << "missing: " << line;
  }
}

// From 192.0.2.1:40000 to 192.0.2.2:50000, or back.
wire::Route route(bool back) {
  wire::Route route;
  auto set = [](auto& address, int last) {
    address = {std::byte{192}, std::byte{0}, std::byte{2}, static_cast<std::byte>(last)};
  };
  set(route.source, back ? 2 : 1);
  set(route.destination, back ? 1 : 2);
  route.source_port = back ? 50000 : 40000;
  route.destination_port = back ? 40000 : 50000;
  return route;
}

constexpr std::uint32_t kRequester = 40000 << 8 | 1;
constexpr std::uint32_t kResponder = 50000 << 8 | 1;
constexpr std::uint32_t kFirst = 0x123;
constexpr std::uint32_t kRequesterContext = 0x7B0001;
constexpr std::uint32_t kResponderContext = 0x5A0001;
constexpr std::uint32_t kResponderKey = 0x11223344;

Bytes packet(const wire::Packet& headers, std::span<const std::byte> payload, bool back) {
  Bytes bytes(wire::header_bytes(headers));
  wire::write_headers(headers, payload.size(), bytes.data());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  const std::uint32_t crc = wire::icrc(route(back), bytes);
  bytes.resize(bytes.size() + wire::kIcrcBytes);
  wire::store_icrc(bytes.data() + bytes.size() - wire::kIcrcBytes, crc);
  return bytes;
}

TEST(Examples, OfATaggedMessageAndItsAcknowledgement) {
  rdm::MessageHeader header;
  header.operation = link::MessageOperation::kTagged;
  header.tag = 7;
  header.length = 8;
  std::byte message[rdm::kMessageHeader + 8];
  rdm::write_header(header, message);
  std::memcpy(message + rdm::kMessageHeader, "weftweft", 8);
  wire::Packet request;
  request.opcode = wire::opcode_of(wire::Transport::kReliableDatagram, wire::Operation::kSendOnly);
  request.ack_request = true;
  request.destination = kResponder;
  request.psn = Psn(kFirst);
  request.end_to_end_context = kResponderContext;
  request.queue_key = kResponderKey;
  request.source = kRequester;
  wire::Packet answer;
  answer.opcode =
      wire::opcode_of(wire::Transport::kReliableDatagram, wire::Operation::kAcknowledge);
  answer.destination = kRequester;
  answer.psn = Psn(kFirst);
  answer.end_to_end_context = kRequesterContext;
  answer.syndrome = 0x1F;
  answer.message_number = 1;
  const std::string rdm = page("rdm.md");
  expect_example(rdm, packet(request, message, false));
  expect_example(rdm, packet(answer, {}, true));
}

rdm::Introduction introduction(bool responder) {
  rdm::Introduction end;
  end.endpoint_id = responder ? 0xFEDCBA9876543210 : 0x0123456789ABCDEF;
  end.queue_pair = responder ? kResponder : kRequester;
  end.context = responder ? kResponderContext : kRequesterContext;
  end.queue_key = responder ? kResponderKey : 0x55667788;
  end.path_mtu = 1408;
  end.room = 425984;
  return end;
}

TEST(Examples, OfReqRepAndRtu) {
  constexpr std::uint64_t kTransaction = 0x1A2B3C4D5E6F7081;
  constexpr std::uint32_t kRequesterId = 40000U << 16 | 0x1234;
  constexpr std::uint32_t kResponderId = 50000U << 16 | 0x5678;
  rdm::FlowRequest request;
  request.me = introduction(false);
  in_addr address{};
  ASSERT_EQ(inet_pton(AF_INET, "192.0.2.1", &address), 1);
  request.name =
      os::SocketAddress::of_host(AF_INET, reinterpret_cast<const std::byte*>(&address), 40000, 0);
  wire::CmReq req = rdm::write_request(request);
  req.local_id = kRequesterId;
  wire::CmRep rep = rdm::write_reply({introduction(true), Psn(kFirst)});
  rep.local_id = kResponderId;
  rep.remote_id = kRequesterId;
  const wire::CmRtu rtu{kRequesterId, kResponderId, {}};
  const std::string rdm = page("rdm.md");
  expect_example(rdm, wire::write_cm({0, kTransaction, 0, req}));
  expect_example(rdm, wire::write_cm({0, kTransaction, 0, rep}));
  expect_example(rdm, wire::write_cm({0, kTransaction, 0, rtu}));
}

// One of two connection managers, and the messages that it has sent.
struct Manager final : cm::CmHost, cm::User {
  Manager(std::uint16_t its_port, std::uint64_t guid) : port(its_port) {
    cm::AgentOptions options;
    options.port = port;
    options.guid = guid;
    agent.emplace(*this, options, stats);
  }
  void send(const cm::Remote&, cm::ConnectionId, std::span<const std::byte> message) override {
    sent.emplace_back(message.begin(), message.end());
  }
  std::uint64_t random() override { return next_random; }
  void handle(const cm::CmEvent& event) override { last = event.id; }
  Time last_received(cm::ConnectionId, void*) override { return {}; }
  cm::Remote place() const {
    const std::byte host[4] = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
    return {os::SocketAddress::of_host(AF_INET, host, port)};
  }
  // The message that it sends now goes to `to`, and is returned.
  Bytes pass(Manager& to) {
    const Bytes message = sent.back();
    to.agent->take(place(), message, {});
    to.agent->deliver();
    return message;
  }

  std::uint16_t port;
  Stats stats;
  std::uint64_t next_random = 1;
  std::vector<Bytes> sent;
  cm::ConnectionId last = 0;
  std::optional<cm::Agent> agent;
};

TEST(Examples, OfAProbe) {
  Manager a(40000, 0x0123456789ABCDEF);
  Manager b(50000, 0xFEDCBA9876543210);
  ASSERT_TRUE(b.agent->listen(7, 1, b, nullptr));
  cm::ConnectRequest request;
  request.to = b.place();
  request.req.service = 7;
  request.watched = true;
  ASSERT_TRUE(a.agent->connect(request, a, nullptr, {}));
  a.pass(b);
  cm::AcceptRequest reply;
  reply.rep.qpn = kResponder;
  reply.watched = true;
  ASSERT_TRUE(b.agent->accept(b.last, reply, b, nullptr, {}));
  b.pass(a);
  ASSERT_TRUE(a.agent->confirm(a.last, {}, {}));
  a.next_random = 0x1122334455667788;
  a.agent->probe(a.last, {});
  const std::string text = page("connection_manager.md");
  expect_example(text, a.pass(b));
  expect_example(text, b.sent.back());
  EXPECT_EQ(wire::parse_cm(b.sent.back())->message.index(), wire::CmMessage(wire::CmApr()).index());
}

// More private data than a REQ has room for.
TEST(Examples, OfFurtherPrivateData) {
  Manager a(40000, 0x0123456789ABCDEF);
  cm::ConnectRequest request;
  request.to = a.place();
  request.req.service = wire::service_of(wire::kPortSpaceTcp, 7174);
  request.req.qpn = kRequester;
  request.req.data.fill(std::byte{'w'});
  request.more.resize(8, std::byte{'x'});
  a.next_random = 0x1122334455667788;
  ASSERT_TRUE(a.agent->connect(request, a, nullptr, {}));
  expect_example(page("connection_manager.md"), a.sent.back());
}

TEST(Examples, OfACell) {
  constexpr std::uint64_t kPosition = 513;
  shm::RingPosition position(shm::kMessageGeometry);
  while (position.count() != kPosition) position.advance();
  shm::Cell cell{};
  cell.word =
      shm::CellWord{position.lap(), link::MessageOperation::kTagged, shm::CellKind::kInline, 0, 8}
          .pack();
  cell.tag = 7;
  std::memcpy(cell.bytes, "weftweft", 8);
  const std::string mailbox = page("mailbox.md");
  expect_example(mailbox, {reinterpret_cast<const std::byte*>(&cell), 32});
  const std::uint64_t at = shm::slot_at(0) + shm::kCellsAt + position.index() * sizeof(shm::Cell);
  EXPECT_NE(mailbox.find(fmt::format("0x{:x}", at)), std::string::npos) << at;
}

TEST(Examples, OfAGeometry) {
  const std::string mailbox = page("mailbox.md");
  expect_example(mailbox, std::as_bytes(std::span(&shm::kMessageGeometry, 1)),
                 offsetof(shm::SlotHeader, geometry));
}

TEST(Examples, OfATableWithOneRegion) {
  std::string directory = testing::TempDir() + "weft-formats-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  {
    auto table = memory::RegionTable::create(directory);
    ASSERT_TRUE(table);
    memory::RegionAttributes attributes;
    attributes.domain = DomainId{1};
    attributes.access = Access::kRemoteRead | Access::kRemoteWrite;
    attributes.base = 0x7F0012340000;
    attributes.length = 4096;
    attributes.key = RegionKey{0x2A};
    ASSERT_TRUE(table.value()->add(attributes));
    std::ifstream file(directory + "/" + table.value()->name(), std::ios::binary);
    const std::string region_table = page("region_table.md");
    const auto expect_at = [&](std::uint64_t offset, std::size_t length) {
      std::string bytes(length, '\0');
      file.seekg(static_cast<std::streamoff>(offset));
      ASSERT_TRUE(file.read(bytes.data(), static_cast<std::streamsize>(length)));
      // Not every system can execute barriers in other processes; the example's can. The private
      // shift is a random number.
      if (offset == 0) {
        bytes[offsetof(memory::TableHeader, owner_raises_barriers)] = 1;
        const std::uint32_t shift = 0x07513c9a;
        std::memcpy(&bytes[offsetof(memory::TableHeader, private_shift)], &shift, sizeof shift);
      }
      expect_example(region_table, std::as_bytes(std::span(bytes)), offset, 7);
    };
    const memory::IndexWord index{0, memory::kFirstIndexBits};
    const std::uint64_t entry =
        memory::hash_key(attributes.domain, attributes.key) % index.entries();
    expect_at(0, sizeof(memory::TableHeader));
    expect_at(index.at() + 4 * entry, 4);
    expect_at(memory::kSlotsAt, sizeof(memory::RegionSlot));
  }
  std::filesystem::remove_all(directory);
}

Bytes record(const capture::Record& header, std::string_view bytes) {
  Bytes out(capture::kRecordHeader + bytes.size());
  capture::write_header(header, out.data());
  std::memcpy(out.data() + capture::kRecordHeader, bytes.data(), bytes.size());
  return out;
}

TEST(Reasons, StandInTheUsersTable) {
  const std::string reasons =
      text_of(std::filesystem::path(WEFT_FORMATS) / ".." / "user" / "reasons.md");
  std::vector<int> all{static_cast<int>(memory::AccessError::kNotMapped)};
  for (int i = 1; i <= static_cast<int>(memory::kLastAccessError); ++i) all.push_back(i);
  for (const int i : all) {
    const int number = device::kRefusals + i;
    const std::string row = fmt::format("| {} | {} |", number, device::refusal_text(number));
    EXPECT_NE(reasons.find(row), std::string::npos) << row;
  }
}

TEST(Examples, OfRecordsInACapture) {
  capture::Record sent;
  sent.operation = static_cast<std::uint8_t>(link::MessageOperation::kTagged);
  sent.until_delivered = true;
  sent.outcome = link::Outcome::pending();
  sent.tag = 7;
  sent.length = 8;
  sent.rendezvous_id = 0x5581AA10;
  const RemoteRange range{0x10000, 8, RegionKey{9}};
  capture::Record refused;
  refused.kind = capture::RecordKind::kWrite;
  refused.has_data = true;
  refused.data = 0x1122334455667788;
  refused.length = 8;
  refused.remote = {&range, 1};
  refused.outcome = link::Outcome::failed(EACCES, static_cast<int>(memory::AccessError::kPastEnd));
  const std::string capture = page("capture.md");
  expect_example(capture, record(sent, "weftweft"));
  expect_example(capture, record(refused, "weftweft"));
}

TEST(Examples, OfTheCountersOfAPort) {
  const std::string directory = ::testing::TempDir();
  const auto file = device::StatsFile::open(directory);
  const auto stats = file->take("192.0.2.1:40000");
  stats->add(Stat::kIcrcErrors, 3);
  stats->add(Stat::kPacketsSent, 5);
  using device::stats_format::StatsBlock;
  const auto* block = reinterpret_cast<const std::byte*>(stats.get()) - offsetof(StatsBlock, stats);
  expect_example(page("statistics.md"), {block, sizeof(StatsBlock)});
}

}  // namespace
}  // namespace weft
