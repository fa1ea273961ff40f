// SPDX-License-Identifier: BSD-2-Clause
// Does a flow go on when the way between two hosts changes?
#include <gtest/gtest.h>

#include <cstring>

#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kKey = 10;
constexpr std::size_t kWide = Endpoint::kMtu;
constexpr std::size_t kNarrow = 1400;
constexpr int kRounds = 10;
constexpr std::size_t kLarge = 200'000;

// Two endpoints, and the router between them.
struct PathChangeTest : ::testing::Test {
  World world;
  Bytes region = pattern(1 << 20, 9);
  Endpoint a{world, options()};
  Endpoint b{world, options()};
  link::Flow* flow = nullptr;
  std::vector<Bytes> sent;  // buffers of what is in flight

  std::size_t mtu = kWide;
  bool silent = false;  // drops packets that are too large without a report
  unsigned loss = 0;    // every so many packets one is lost; 0: none
  // The router has seen:
  unsigned handed_on = 0;
  unsigned refused = 0;
  std::size_t largest = 0;
  unsigned at_once = 0;  // packets that a sends at one moment, and the most
  unsigned most_at_once = 0;
  os::Time moment{};

  static RdmOptions options() {
    RdmOptions options;
    options.raise_interval = milliseconds(50);
    return options;
  }
  void SetUp() override {
    world.regions.add(kKey, region, Access::kRemoteRead | Access::kRemoteWrite);
    world.network.loses = [this](const roce::Path& path, const Bytes& bytes) {
      return loses(path, bytes.size() + 28);
    };
    flow = connect(a, b);
    ASSERT_NE(flow, nullptr);
  }
  bool loses(const roce::Path& path, std::size_t size) {
    const bool by_a = path.from == a.address;
    if (by_a) {
      at_once = std::exchange(moment, world.network.now) == world.network.now ? at_once + 1 : 1;
      most_at_once = std::max(most_at_once, at_once);
    }
    largest = std::max(largest, size);
    if (loss != 0 && ++handed_on % loss == 0) return true;
    if (size <= mtu) return false;
    ++refused;
    if (!silent) (by_a ? a : b).host.narrow(mtu, {path.to});
    return true;
  }
  void forget() { refused = 0, largest = 0; }
  // The requests that were made end well.
  void finish() {
    ASSERT_TRUE(until({&a, &b}, [&] { return a.ends.ended_ones.size() == sent.size(); }));
    EXPECT_EQ(a.ends.doubled, 0U);
    for (const auto& [number, end] : a.ends.ended_ones) EXPECT_EQ(end.error, 0) << number;
  }
  // Smaller packets come, at both ends; and what is late is not counted.
  void agree() {
    access(false, 8);
    finish();
    world.pass(milliseconds(1), {&a, &b});
    forget();
  }
  void message(std::size_t length) {
    sent.push_back(pattern(length, sent.size() + 1));
    EXPECT_EQ(send(a, b, *flow, sent.size(), sent.back(), true).state,
              link::Outcome::State::kPending);
  }
  void access(bool write, std::size_t length) {
    sent.push_back(write ? Bytes(region.begin(), region.begin() + static_cast<long>(length))
                         : Bytes(length));
    const LocalRange sge{sent.back().data(), length};
    const RemoteRange remote{0, length, RegionKey{kKey}};
    EXPECT_EQ(flow->access(access_of(write, sge, remote, sent.size())).state,
              link::Outcome::State::kPending);
  }
  link::Outcome atomic(AtomicForm form, AtomicOp op, const LocalRange& local,
                       std::uint64_t address) {
    sent.emplace_back();
    const RemoteRange remote{address, local.length, RegionKey{kKey}};
    link::AtomicRequest request;
    request.action = {form, op, AtomicType::kUint64};
    (form == AtomicForm::kBase ? request.operand : request.result) = {&local, 1};
    request.remote = {&remote, 1};
    request.length = local.length;
    request.cookie = reinterpret_cast<void*>(sent.size());
    return flow->atomic(request);
  }
  // Adds one to the last element of the region.
  void add() {
    std::uint64_t one = 1;
    EXPECT_EQ(atomic(AtomicForm::kBase, AtomicOp::kSum,
                     {reinterpret_cast<std::byte*>(&one), sizeof one}, region.size() - sizeof one)
                  .state,
              link::Outcome::State::kPending);
  }
  std::uint64_t sum() const {
    std::uint64_t value;
    std::memcpy(&value, region.data() + region.size() - sizeof value, sizeof value);
    return value;
  }
  // Messages small and large, accesses and additions.
  void send_of_all_kinds() {
    for (int i = 0; i < kRounds; ++i) {
      message(12'000);
      message(kLarge);
      access(true, kLarge);
      access(false, kLarge);
      add();
    }
  }
  void expect_reads_and_messages() {
    std::size_t next = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const bool came = next < b.log.messages.size() && b.log.messages[next].arrival.tag == i + 1;
      if (came) {
        EXPECT_TRUE(b.log.messages[next++].bytes == sent[i]) << i;
      } else if (sent[i].size() == kLarge) {
        EXPECT_TRUE(std::equal(sent[i].begin(), sent[i].end(), region.begin())) << i;
      }
    }
    EXPECT_EQ(next, b.log.messages.size());
  }
  // A smaller path MTU is agreed upon, and all kinds of work go on.
  void expect_narrow_work() {
    agree();
    const std::uint64_t before = sum();
    send_of_all_kinds();
    finish();
    EXPECT_EQ(sum(), before + kRounds) << "each addition was made once";
    expect_reads_and_messages();
    EXPECT_EQ(refused, 0U);
    EXPECT_LE(largest, kNarrow);
    EXPECT_GT(largest, 1024U);
  }
};

TEST_F(PathChangeTest, WorkGoesOnWhereTheRouterReportsThatPacketsAreTooLarge) {
  send_of_all_kinds();
  world.pass(microseconds(100), {&a, &b});
  mtu = kNarrow;
  finish();
  EXPECT_GT(refused, 0U);
  expect_narrow_work();
}

// Only answers are too large, which is for their receiver to change.
TEST_F(PathChangeTest, ReadsGoOnOverAWayThatCarriesLess) {
  for (const std::size_t carries : {kWide, kNarrow, kNarrow}) {
    agree();
    mtu = carries;
    access(false, kLarge);
    finish();
  }
  expect_reads_and_messages();
  EXPECT_EQ(refused, 0U);
  EXPECT_LE(largest, kNarrow);
}

// No ICMP error reports it. Large messages are RTS and writes, and each side has to detect the
// loss.
TEST_F(PathChangeTest, WorkGoesOnWhereLargePacketsVanish) {
  silent = true;
  send_of_all_kinds();
  world.pass(microseconds(100), {&a, &b});
  mtu = kNarrow;
  loss = 20;
  finish();
  EXPECT_GT(refused, 0U);
  loss = 0;
  expect_narrow_work();
}

// A message of a single packet is lost entirely, and nothing else is in flight.
TEST_F(PathChangeTest, ALonePacketThatVanishesIsFollowedBySmallerOnes) {
  silent = true;
  message(100);
  finish();
  mtu = kNarrow;
  message(3000);
  finish();
  EXPECT_GT(refused, 0U);
  agree();
  message(3000);
  finish();
  expect_reads_and_messages();
  EXPECT_EQ(b.log.messages.size(), 3U);
  EXPECT_EQ(refused, 0U);
}

// The reader detects the loss, and the other end has to know.
TEST_F(PathChangeTest, ReadsGoOnWhereLargeAnswersVanish) {
  silent = true;
  for (int i = 0; i < kRounds; ++i) {
    access(false, kLarge);
    message(100);
  }
  world.pass(microseconds(50), {&a, &b});
  mtu = kNarrow;
  finish();
  EXPECT_GT(refused, 0U);
  agree();
  access(false, kLarge);
  finish();
  expect_reads_and_messages();
  EXPECT_EQ(refused, 0U);
}

// Packets that are lost for other reasons say nothing of their size.
TEST_F(PathChangeTest, AWayThatLosesPacketsIsNoNarrowerOne) {
  loss = 10;
  send_of_all_kinds();
  finish();
  loss = 0;
  forget();
  access(true, kLarge);
  access(false, kLarge);
  finish();
  expect_reads_and_messages();
  EXPECT_GT(largest, 8'000U);
}

TEST_F(PathChangeTest, ALongResultOfAnAtomicOperationComesInSeveralPackets) {
  a.host.narrow(kNarrow, {b.address});
  agree();
  Bytes result(kMaxAtomicBytes);
  const LocalRange sge{result.data(), result.size()};
  EXPECT_EQ(atomic(AtomicForm::kFetch, AtomicOp::kRead, sge, 0).state,
            link::Outcome::State::kPending);
  finish();
  EXPECT_TRUE(std::equal(result.begin(), result.end(), region.begin()));
  EXPECT_LE(largest, kNarrow);
}

// The reason for small packets was forged, or has passed.
TEST_F(PathChangeTest, LargePacketsComeBackWhenTheWayCarriesThemAgain) {
  for (int round = 0; round < 2; ++round) {
    a.host.narrow(kNarrow, {b.address});
    agree();
    access(true, kLarge);
    finish();
    EXPECT_LE(largest, kNarrow);
    a.host.narrow(kWide, {});
    for (int i = 0; i < 20; ++i) {
      message(kLarge);
      access(true, kLarge);
      access(false, kLarge);
      finish();
      world.pass(milliseconds(20), {&a, &b});
    }
    EXPECT_GT(largest, 8'000U);
  }
  expect_reads_and_messages();
}

// The receiver of marked requests notifies their sender. The receiver of marked answers asks for
// less.
TEST_F(PathChangeTest, PacketsThatMetAQueueSlowTheirSenderDown) {
  for (int i = 0; i < 2; ++i) access(true, 4 * kLarge);
  finish();
  EXPECT_EQ(b.stats.of(Stat::kEcnMarked), 0U);
  const unsigned before = std::exchange(most_at_once, 0);
  world.network.marks = 1;
  for (int i = 0; i < 8; ++i) access(true, 4 * kLarge);
  finish();
  EXPECT_GT(b.stats.of(Stat::kEcnMarked), 0U);
  EXPECT_GT(a.stats.of(Stat::kCnpsHandled), 0U);
  most_at_once = 0;
  access(true, 4 * kLarge);
  finish();
  EXPECT_LT(most_at_once, before);

  const auto cnps = b.stats.of(Stat::kCnpsHandled);
  access(false, kLarge);
  finish();
  EXPECT_GT(a.stats.of(Stat::kEcnMarked), 0U);
  EXPECT_EQ(b.stats.of(Stat::kCnpsHandled), cnps);
}

}  // namespace
}  // namespace weft::rdm::testing
