// SPDX-License-Identifier: BSD-2-Clause
// Does a program with FI_PROGRESS_MANUAL that never polls serve far peers? (docs/user/waiting.md)
#include "os/thread_count_support.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kSizes[] = {0, 8, 5000, 20000, 300000};

Options manual(fi_threading threading) {
  Options options;
  options.threading = threading;
  options.data_progress = options.control_progress = FI_PROGRESS_MANUAL;
  options.left_alone = true;
  return options;
}

// Neither side polls, except while it waits for an operation of its own. They have met before: the
// first message needs both.
class FarProgress : public testing::TestWithParam<std::tuple<Placement, fi_threading>> {
 protected:
  void SetUp() override {
    if (only_links("shm")) GTEST_SKIP() << "no peer is reached over the network";
    Options options = manual(std::get<1>(GetParam()));
    options.far = true;
    world_.emplace(std::get<0>(GetParam()), options);
    ASSERT_TRUE(world_->ok());
    world_->pump().add(&world_->endpoint());
    meet();
    world_->pump().remove(&world_->endpoint());
  }
  void meet() {
    const Token received = world_->initiator().post({.kind = Kind::kRecv, .length = 8});
    const Token sent = world_->target().post(
        {.kind = Kind::kSend, .length = 8, .seed = 1, .peer = world_->to_initiator()});
    world_->target().wait_success(sent);
    world_->initiator().wait_success(received);
  }
  Token deliver(std::uint64_t length, std::uint64_t seed) {
    return world_->initiator().post({.kind = Kind::kSendmsg,
                                     .length = length,
                                     .seed = seed,
                                     .peer = world_->to_target(),
                                     .flags = FI_COMPLETION | FI_DELIVERY_COMPLETE});
  }

  std::optional<World> world_;
};

TEST_P(FarProgress, SendsOfEverySizeEndThoughTheirReceiverDoesNotPoll) {
  std::vector<Token> received;
  for (const std::uint64_t size : kSizes) {
    received.push_back(world_->target().post({.kind = Kind::kRecv, .length = size}));
  }
  for (std::size_t i = 0; i < received.size(); ++i) {
    world_->initiator().wait_success(deliver(kSizes[i], i + 1));
    world_->target().expect_data(received[i], i + 1, kSizes[i]);
  }
  for (const Token token : received) world_->target().wait_success(token);
}

TEST_P(FarProgress, RemoteReadsAndWritesEndThoughTheirTargetDoesNotPoll) {
  const Region region = world_->target().expose({.length = 300000, .seed = 9});
  for (const std::uint64_t length : {8u, 1000u, 300000u}) {
    const auto access = [&](Kind kind) {
      return world_->initiator().post({.kind = kind,
                                       .length = length,
                                       .seed = 9,
                                       .peer = world_->to_target(),
                                       .remote_address = region.base,
                                       .key = region.key});
    };
    world_->initiator().wait_success(access(Kind::kWrite));
    const Token read = access(Kind::kRead);
    world_->initiator().wait_success(read);
    world_->initiator().expect_data(read, 9, length);
  }
  world_->target().expect_region(region, 9, 0, 300000);
}

// What the receiver waits for has not left yet, or is asked for again.
TEST_P(FarProgress, SendsOfAProgramThatDoesNotPollArrive) {
  constexpr std::size_t kCount = 50;
  std::vector<Token> sent;
  for (std::size_t i = 0; i < kCount; ++i) {
    sent.push_back(world_->target().post(
        {.kind = Kind::kSend, .length = 20000, .seed = i + 1, .peer = world_->to_initiator()}));
  }
  for (std::size_t i = 0; i < kCount && !HasFailure(); ++i) {
    const Token received = world_->initiator().post({.kind = Kind::kRecv, .length = 20000});
    world_->initiator().wait_success(received);
    world_->initiator().expect_data(received, i + 1, 20000);
  }
  for (const Token token : sent) world_->target().wait_success(token);
}

INSTANTIATE_TEST_SUITE_P(
    Far, FarProgress,
    testing::Combine(testing::Values(Placement::kTwoProcesses, Placement::kConnectedProcesses),
                     testing::Values(FI_THREAD_SAFE, FI_THREAD_DOMAIN)),
    [](const testing::TestParamInfo<std::tuple<Placement, fi_threading>>& one) {
      return std::string(to_string(std::get<0>(one.param))) +
             (std::get<1>(one.param) == FI_THREAD_SAFE ? "_Safe" : "_Domain");
    });

TEST(FarProgressThread, AnEndpointWithoutPeersOverTheNetworkHasNone) {
  if (only_links("udp")) GTEST_SKIP() << "all peers are met over the network";
  const std::size_t before = os::count_threads();
  for (const Placement placement : {Placement::kSelf, Placement::kOneProcess,
                                    Placement::kTwoProcesses, Placement::kConnectedProcesses}) {
    Options options = manual(FI_THREAD_SAFE);
    options.left_alone = false;
    World world(placement, options);
    ASSERT_TRUE(world.ok());
    world.exchange(100000);
    EXPECT_EQ(os::count_threads(), before) << placement;
  }
}

TEST(FarProgressThread, ItEndsWithTheLastDomainThatNeedsIt) {
  if (only_links("shm")) GTEST_SKIP() << "no peer is reached over the network";
  const std::size_t before = os::count_threads();
  for (int round = 0; round < 3; ++round) {
    Options options = manual(FI_THREAD_DOMAIN);
    options.left_alone = false;
    options.far = true;
    {
      World world(Placement::kTwoProcesses, options);
      ASSERT_TRUE(world.ok());
      world.exchange(100000);
      EXPECT_EQ(os::count_threads(), before + 1);
      world.exchange(8);
    }
    EXPECT_EQ(os::count_threads(), before);
  }
}

}  // namespace
}  // namespace weft::conformance
