// SPDX-License-Identifier: BSD-2-Clause
// Does a side that never calls libfabric again serve its peers? (fi_domain(3), FI_PROGRESS_AUTO)
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "os/thread_state_support.h"
#include "support/native_wait.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kSizes[] = {0, 8, 200, 5000, 20000, 300000, 5000000};

Options automatic() {
  Options options;
  options.data_progress = FI_PROGRESS_AUTO;
  options.left_alone = true;
  return options;
}

// Neither side polls, except while it waits for an operation of its own.
class AutoProgress : public testing::TestWithParam<std::tuple<Placement, fi_threading>> {
 protected:
  AutoProgress() : world_(std::get<0>(GetParam()), options()) {}
  static Options options() {
    Options options = automatic();
    options.threading = std::get<1>(GetParam());
    return options;
  }
  Token deliver(Kind kind, std::uint64_t length, std::uint64_t seed) {
    return world_.initiator().post({.kind = kind,
                                    .length = length,
                                    .seed = seed,
                                    .peer = world_.to_target(),
                                    .tag = seed,
                                    .flags = FI_COMPLETION | FI_DELIVERY_COMPLETE});
  }

  World world_;
};

TEST_P(AutoProgress, IsWhatGetinfoAnswers) {
  ASSERT_TRUE(world_.ok());
  EXPECT_EQ(world_.endpoint().info()->domain_attr->data_progress, FI_PROGRESS_AUTO);
}

TEST_P(AutoProgress, PostedReceivesOfEverySizeAreServed) {
  ASSERT_TRUE(world_.ok());
  std::vector<Token> received;
  std::uint64_t seed = 0;
  for (const std::uint64_t size : kSizes) {
    received.push_back(world_.target().post({.kind = Kind::kRecv, .length = size}));
    received.push_back(
        world_.target().post({.kind = Kind::kTrecv, .length = size, .tag = seed + 2}));
    seed += 2;
  }
  seed = 0;
  for (const std::uint64_t size : kSizes) {
    for (const Kind kind : {Kind::kSendmsg, Kind::kTsendmsg}) {
      world_.initiator().wait_success(deliver(kind, size, ++seed));
      world_.target().expect_data(received[seed - 1], seed, size);
    }
  }
  for (const Token token : received) world_.target().wait_success(token);
}

TEST_P(AutoProgress, MessagesThatComeBeforeTheirReceiveWaitForIt) {
  ASSERT_TRUE(world_.ok());
  for (const std::uint64_t size : kSizes) {
    const Token sent = world_.initiator().post(
        {.kind = Kind::kSend, .length = size, .seed = size + 1, .peer = world_.to_target()});
    const Token received = world_.target().post({.kind = Kind::kRecv, .length = size});
    world_.initiator().wait_success(sent);
    world_.target().wait_success(received);
    world_.target().expect_data(received, size + 1, size);
  }
}

// More than a ring or the number of exchanges holds: the sender has to go on with them.
TEST_P(AutoProgress, PendingSendsFinish) {
  ASSERT_TRUE(world_.ok());
  constexpr std::size_t kCount = 300;
  std::vector<Token> sent;
  for (std::size_t i = 0; i < kCount; ++i) {
    sent.push_back(world_.target().post(
        {.kind = Kind::kSend, .length = 20000, .seed = i + 1, .peer = world_.to_initiator()}));
  }
  for (std::size_t i = 0; i < kCount && !HasFailure(); ++i) {
    const Token received = world_.initiator().post({.kind = Kind::kRecv, .length = 20000});
    world_.initiator().wait_success(received);
    world_.initiator().expect_data(received, i + 1, 20000);
  }
  for (const Token token : sent) world_.target().wait_success(token);
}

TEST_P(AutoProgress, RemoteAccessesAreServed) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 300000, .seed = 9});
  for (const std::uint64_t length : {8u, 1000u, 300000u}) {
    const auto access = [&](Kind kind) {
      return world_.initiator().post({.kind = kind,
                                      .length = length,
                                      .seed = 9,
                                      .peer = world_.to_target(),
                                      .remote_address = region.base,
                                      .key = region.key});
    };
    world_.initiator().wait_success(access(Kind::kWrite));
    const Token read = access(Kind::kRead);
    world_.initiator().wait_success(read);
    world_.initiator().expect_data(read, 9, length);
  }
  world_.target().expect_region(region, 9, 0, 300000);
}

INSTANTIATE_TEST_SUITE_P(
    Auto, AutoProgress,
    testing::Combine(testing::Values(Placement::kTwoProcesses, Placement::kOneProcess,
                                     Placement::kTwoDomains),
                     testing::Values(FI_THREAD_SAFE, FI_THREAD_DOMAIN)),
    [](const testing::TestParamInfo<std::tuple<Placement, fi_threading>>& one) {
      return std::string(to_string(std::get<0>(one.param))) +
             (std::get<1>(one.param) == FI_THREAD_SAFE ? "_Safe" : "_Domain");
    });

class AutoArrival : public PlacementTest {};

// A write with data and counted writes report at a target that sleeps on its descriptor only: what
// makes that readable is in the queue already, as no other thread could have put it there.
TEST_P(AutoArrival, RemoteDataReachesTheQueueOfATargetThatOnlyReadsIt) {
  Options options = automatic();
  options.caps |= FI_RMA_EVENT;
  options.counters = FI_REMOTE_WRITE;
  World world(GetParam(), options);
  ASSERT_TRUE(world.ok());
  const Region region = world.target().expose({.length = 4096});
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const Token write = world.initiator().post({.kind = Kind::kWritedata,
                                                .length = 64,
                                                .seed = 3,
                                                .peer = world.to_target(),
                                                .data = round,
                                                .remote_address = region.base,
                                                .key = region.key});
    world.initiator().wait_success(write);
    EXPECT_EQ(world.target().wait_success(kNoToken).data, round);
    world.target().expect_counter(FI_REMOTE_WRITE, round);
  }
}

INSTANTIATE_TEST_SUITE_P(Auto, AutoArrival, both_process_counts(), placement_name);

// Endpoints come and go while the thread is at work.
TEST(AutoThreaded, EndpointsMayBeClosedWhileTheThreadServes) {
  World world(Placement::kOneProcess, automatic());
  ASSERT_TRUE(world.ok());
  std::atomic<bool> stop{false};
  std::thread visitor([&] {
    while (!stop) Endpoint passing(world.endpoint().domain(), automatic());
  });
  for (std::uint64_t round = 1; round <= 50 && !HasFailure(); ++round) {
    const Token received = world.target().post({.kind = Kind::kRecv, .length = 20000});
    const Token sent = world.initiator().post({.kind = Kind::kSendmsg,
                                               .length = 20000,
                                               .seed = round,
                                               .peer = world.to_target(),
                                               .flags = FI_COMPLETION | FI_DELIVERY_COMPLETE});
    world.initiator().wait_success(sent);
    world.target().wait_success(received);
  }
  stop = true;
  visitor.join();
}

TEST(AutoThreaded, SleepingReadersAreWokenByTheThread) {
  for (const fi_wait_obj object : {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD}) {
    Options options = automatic();
    options.wait = object;
    World world(Placement::kOneProcess, options);
    ASSERT_TRUE(world.ok());
    const Token received = world.initiator().post({.kind = Kind::kRecv, .length = 8});
    std::thread sender = os::once_asleep([&] {
      world.target().post({.kind = Kind::kSend, .length = 8, .peer = world.to_initiator()});
    });
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(world.endpoint().cq(), &entry, 1, nullptr, 20000), 1);
    EXPECT_EQ(entry.op_context, world.initiator().context_of(received));
    sender.join();
  }
}

class BusyReader : public PlacementTest {};

// Its queue is never empty when it is read: each operation of its own is over when the call
// returns.
TEST_P(BusyReader, ServesItsPeersAllTheSame) {
  constexpr int kReads = 100'000;
  std::uint64_t number = 0;  // the last write from it may be under way at the end
  World world(GetParam(), Options{});
  ASSERT_TRUE(world.ok());
  const Region region = world.target().expose({.length = 8});
  const Token received = world.initiator().post({.kind = Kind::kRecv, .length = 8});
  world.target().post({.kind = Kind::kSend, .length = 8, .seed = 3, .peer = world.to_initiator()});
  const void* const awaited = world.initiator().context_of(received);
  fi_cq_tagged_entry entry{};
  for (int i = 0; i < kReads && entry.op_context != awaited; ++i) {
    ASSERT_EQ(fi_write(world.ep(), &number, sizeof number, nullptr, world.to_target(), region.base,
                       region.key, nullptr),
              0);
    while (fi_cq_read(world.endpoint().cq(), &entry, 1) != 1) {
    }
  }
  EXPECT_EQ(entry.op_context, awaited) << "nothing came in " << kReads << " reads";
  world.initiator().expect_data(received, 3, 8);
  world.initiator().leftovers();
}

INSTANTIATE_TEST_SUITE_P(Progress, BusyReader,
                         testing::Values(Placement::kOneProcess, Placement::kConnected),
                         placement_name);

// The child has no such thread, and locks that one held would never be given back.
TEST(AutoFork, AChildEndsAndMayOpenADomainOfItsOwn) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "gcc 12's sanitizers do not bring their own locks through a fork with threads";
#endif
  World world(Placement::kOneProcess, automatic());
  ASSERT_TRUE(world.ok());
  for (int round = 0; round < 10 && !testing::Test::HasFailure(); ++round) {
    for (int i = 0; i < 5; ++i) {
      world.target().post({.kind = Kind::kRecv, .length = 100000});
      world.initiator().post(
          {.kind = Kind::kSend, .length = 100000, .seed = 1, .peer = world.to_target()});
    }
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      World own(Placement::kOneProcess, automatic());
      if (!own.ok()) _exit(2);
      own.exchange(20000);
      _exit(testing::Test::HasFailure() ? 3 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  world.exchange(20000);
}

}  // namespace
}  // namespace weft::conformance
