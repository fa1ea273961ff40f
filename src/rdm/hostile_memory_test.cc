// SPDX-License-Identifier: BSD-2-Clause
// How much memory do hostile flows make an endpoint keep?
#include <gtest/gtest.h>

#include <deque>

#include "heap_use.h"
#include "message_assembly.h"
#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using wire::Operation;

constexpr std::uint32_t kFlows = 1000;
constexpr std::size_t kMemory = std::size_t{8} << 20;  // for packets, and as much for messages
// The cost of each flow: contexts, channels, and the ways back to their peers.
constexpr std::size_t kPerFlow =
    (std::size_t{4} << 10) + kPacketMemory.minimum + kMessageMemory.minimum;

// A thousand peers at as many addresses.
struct HostileMemory : ::testing::Test {
  World world;
  Bytes region = Bytes(4096);
  Options patient = [] {
    Options options;
    options.connect_timeout = std::chrono::hours(1);
    return options;
  }();
  Endpoint a{world};
  Endpoint b{world, [this] {
               RdmOptions options;
               options.device = &patient;
               options.packet_memory.total = options.message_memory.total = kMemory;
               return options;
             }()};
  std::deque<Stranger> crowd;
  std::uint64_t sent = 0;

  void agree_with_all() {
    for (std::uint32_t i = 0; i < kFlows; ++i) {
      const std::string host = std::to_string(i / 200) + "." + std::to_string(i % 200 + 1);
      Stranger& each = crowd.emplace_back(world, os::address_of("10.2." + host, 50'000));
      each.endpoint_id = 1000 + i;
      ASSERT_TRUE(each.agree(b)) << i;
    }
  }
  void send_packet(Stranger& from, Operation operation, std::uint32_t number,
                   std::span<const std::byte> payload) {
    wire::Packet packet = from.headers(operation, number);
    from.send(b, FlowHand::packet(packet, payload));
    if (++sent % 16 == 0) world.pass(microseconds(20), {&b});
  }
  static Bytes message(MessageHeader header, std::size_t room) {
    Bytes bytes(kMessageHeader + room);
    write_header(header, bytes.data());
    return bytes;
  }
  // Behind a gap that is never filled.
  void send_packets_behind_a_gap(Stranger& from) {
    for (std::uint32_t i = 1; i < 200; ++i) send_packet(from, Operation::kSendOnly, i, Bytes(1024));
  }
  // A message of 120 KiB, which never ends.
  void send_partial_message(Stranger& from) {
    MessageHeader header;
    header.length = 120 * 1024;
    send_packet(from, Operation::kSendFirst, 0, message(header, 992));
    for (std::uint32_t i = 1; i < 100; ++i) {
      send_packet(from, Operation::kSendMiddle, i, Bytes(1024));
    }
  }
  // Atomic operations of 512 bytes, whose answers are not acknowledged.
  void ask_for_answers(Stranger& from) {
    for (std::uint32_t i = 0; i < 64; ++i) {
      send_packet(from, Operation::kSendOnly, i, Stranger::fetch_sum(i, 512));
    }
  }
  // Aliases of keys: a number far away, then as many as there may be.
  void send_aliases(Stranger& from) {
    MessageHeader header;
    header.kind = MessageKind::kAlias;
    header.rendezvous_id = (1U << 20) - 1;
    send_packet(from, Operation::kSendOnly, 0, message(header, 0));
    for (std::uint32_t i = 0; i < 100; ++i) {
      header.rendezvous_id = i;
      send_packet(from, Operation::kSendOnly, i + 1, message(header, 0));
    }
  }
};

TEST_F(HostileMemory, OfAThousandFlowsStaysBelowTheSumOfTheLimits) {
  world.regions.add(Stranger::kKey, region, Access::kRemoteRead | Access::kRemoteWrite);
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  b.log.accepts = false;
  const std::size_t before = heap_use();
  agree_with_all();
  for (std::uint32_t i = 0; i < kFlows; i += 4) {
    send_packets_behind_a_gap(crowd[i]);
    send_partial_message(crowd[i + 1]);
    ask_for_answers(crowd[i + 2]);
    if (i < kFlows / 10) send_aliases(crowd[i + 3]);
    for (std::uint32_t j = i; j < i + 4; ++j) crowd[j].hear();
  }
  world.pass(milliseconds(1), {&b});
  for (Stranger& each : crowd) each.hear();
  const std::size_t after = heap_use();
  constexpr std::size_t kPartialMessages = kFlows / 4 * kGuaranteedMessage;
  EXPECT_LT(after - before, 2 * kMemory + kFlows * kPerFlow + kPartialMessages)
      << "after " << sent << " packets: " << (after - before) / kFlows << " B a flow";
  EXPECT_GT(b.stats.of(Stat::kRequests), sent / 2) << "they came";
  // The others go on.
  Bytes bytes = pattern(700, 1);
  send(a, b, *flow, 1, bytes);
  ASSERT_TRUE(until({&a, &b}, [&] { return !b.log.messages.empty(); }));
  EXPECT_TRUE(b.log.messages[0].bytes == bytes);
}

}  // namespace
}  // namespace weft::rdm::testing
