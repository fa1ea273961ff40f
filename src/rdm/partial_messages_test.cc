// SPDX-License-Identifier: BSD-2-Clause
// What do messages cost of which a part has arrived, and what becomes of them when the rest is
// late?
#include <gtest/gtest.h>

#include <deque>

#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::Operation;

constexpr std::size_t kMemory = std::size_t{8} << 20;  // for messages

struct PartialMessages : ::testing::Test {
  World world;
  Options patient = [] {
    Options options;
    options.connect_timeout = options.peer_timeout = std::chrono::hours(1);
    return options;
  }();
  RdmOptions options = [this] {
    RdmOptions chosen;
    chosen.device = &patient;
    chosen.message_memory.total = kMemory;
    return chosen;
  }();
  Endpoint a{world, options};
  Endpoint b{world, options};
  std::deque<Stranger> crowd;

  bool both(const std::function<bool()>& holds) { return until({&a, &b}, holds); }
  // Peers that send the first packet of a message of that length, and then nothing.
  void begin_messages(unsigned peers, std::size_t length) {
    for (unsigned i = 0; i < peers; ++i) {
      const auto number = static_cast<unsigned>(crowd.size());
      const std::string host =
          std::to_string(number / 200) + "." + std::to_string(number % 200 + 1);
      Stranger& each = crowd.emplace_back(world, os::address_of("10.2." + host, 50'000));
      each.endpoint_id = 1000 + number;
      ASSERT_TRUE(each.agree(b));
      MessageHeader header;
      header.length = length;
      Bytes first(1024);
      write_header(header, first.data());
      each.send(b, each.of_flow(Operation::kSendFirst, 0, first));
      world.pass(microseconds(20), {&b});
      each.hear();
    }
  }
  // Until no flow gets more than its share whatever the others hold.
  void take_all_memory() {
    for (const std::size_t length : {200'000, 100'000, 50'000, 25'000, 12'000})
      begin_messages(40, length);
  }
};

TEST_F(PartialMessages, LeaveRoomForAnyMessageThatIsCopied) {
  link::Flow* const flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  take_all_memory();
  Bytes copied = pattern(kCopiedSend, 1);
  a.host.narrow(1500, {b.address});
  send(a, b, *flow, 1, copied);
  ASSERT_TRUE(until(
      {&a, &b}, [&] { return !b.log.messages.empty(); }, seconds(1)));
  expect_message(b.log.messages[0], 1, copied);
}

TEST_F(PartialMessages, GiveTheirMemoryBackWhenNothingComesForSomeSeconds) {
  link::Flow* const flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  take_all_memory();
  Bytes largest = pattern(kEagerLimit, 1);
  send(a, b, *flow, 1, largest);
  ASSERT_TRUE(until(
      {&a, &b}, [&] { return !b.log.messages.empty(); }, seconds(60)));
  expect_message(b.log.messages[0], 1, largest);
}

// Packets of a from some message on are lost, for longer than b keeps a part of a message.
struct LateRest : PartialMessages {
  link::Flow* flow = nullptr;
  bool cut = false;
  unsigned requests = 0;  // of a, since the cut
  Bytes copied = pattern(8192, 1);
  Bytes large = pattern(100'000, 2);
  Bytes small = pattern(100, 3);

  void SetUp() override {
    a.host.narrow(1500, {});
    flow = connect(a, b);
    ASSERT_NE(flow, nullptr);
    // Those of the connection manager pass: both ends know that the other one lives.
    world.network.loses = [this](const roce::Path& path, const Bytes& bytes) {
      const bool request = path.from == a.address && bytes[0] != std::byte{0x64};
      return cut && request && ++requests > 3;
    };
  }
  std::uint64_t refused() const { return b.stats.of(Stat::kRefusedRequests); }
  void expect_all_arrived_once() {
    ASSERT_TRUE(both([&] { return b.log.messages.size() == 3 && !flow->busy(); }));
    expect_message(b.log.messages[0], 1, first());
    expect_message(b.log.messages[1], 2, second());
    expect_message(b.log.messages[2], 3, small);
    EXPECT_EQ(a.ends.doubled, 0U);
    for (const auto& [number, end] : a.ends.ended_ones) EXPECT_EQ(end.error, 0) << number;
    EXPECT_EQ(flow->check_peer(a.ends), link::PeerState::kAlive);
    EXPECT_TRUE(b.log.closed.empty());
  }
  void send_all() {
    send(a, b, *flow, 1, first());
    send(a, b, *flow, 2, second());
    send(a, b, *flow, 3, small);
  }
  bool copied_first = true;
  Bytes& first() { return copied_first ? copied : large; }
  Bytes& second() { return copied_first ? large : copied; }
};

// The send of the copied message has been reported already.
TEST_F(LateRest, OfASenderThatStoppedIsFollowedByAllOfTheMessage) {
  for (const bool is_copied : {true, false}) {
    copied_first = is_copied;
    b.log.messages.clear();
    a.ends.ended_ones.clear();
    requests = 0;
    cut = true;
    send_all();
    world.pass(milliseconds(1), {&a, &b});
    world.pass(seconds(10), {&b});
    EXPECT_TRUE(b.log.messages.empty());
    const std::uint64_t before = refused();
    cut = false;
    expect_all_arrived_once();
    EXPECT_EQ(refused(), before + 1) << "the part was kept";
  }
}

// The requester has sent the same packets again and again meanwhile, and smaller ones.
TEST_F(LateRest, OfASenderWhosePacketsWereLostIsFollowedByAllOfTheMessage) {
  for (const bool is_copied : {true, false}) {
    copied_first = is_copied;
    b.log.messages.clear();
    a.ends.ended_ones.clear();
    requests = 0;
    cut = true;
    send_all();
    world.pass(seconds(10), {&a, &b});
    EXPECT_TRUE(b.log.messages.empty());
    const std::uint64_t before = refused();
    cut = false;
    expect_all_arrived_once();
    EXPECT_EQ(refused(), before + 1) << "the part was kept";
  }
}

TEST_F(LateRest, IsTakenAsItComesWithinTheTime) {
  cut = true;
  send_all();
  world.pass(seconds(3), {&a, &b});
  cut = false;
  const std::uint64_t before = refused();
  expect_all_arrived_once();
  EXPECT_EQ(refused(), before);
}

}  // namespace
}  // namespace weft::rdm::testing
