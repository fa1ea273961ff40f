// SPDX-License-Identifier: BSD-2-Clause
// May several threads use one endpoint and one queue at once? (FI_THREAD_SAFE, fi_domain(3))
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "support/world.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kThreads = 4;
constexpr std::size_t kEach = 300;
constexpr std::size_t kTotal = kThreads * kEach;
constexpr std::size_t kSizes[] = {8, 64, 0, 1500, 4097, 20000};

std::size_t size_of(std::size_t i) { return kSizes[i % std::size(kSizes)]; }

// Everything that a thread needs; no gtest inside, failures are counted.
struct Shared {
  fid_ep* ep;
  fid_cq* cq;
  fi_addr_t peer;
  std::size_t expected;
  std::atomic<std::size_t> completed{0};
  std::atomic<std::size_t> failed{0};

  void poll() {
    std::array<fi_cq_tagged_entry, 8> entries{};
    const ssize_t got = fi_cq_read(cq, entries.data(), entries.size());
    if (got > 0) {
      completed += static_cast<std::size_t>(got);
    } else if (got == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      if (fi_cq_readerr(cq, &error, 0) == 1) ++failed;  // Another thread may have been faster.
    } else if (got != -FI_EAGAIN) {
      ++failed;
    }
  }
  void post_until_accepted(const std::function<ssize_t()>& call) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (failed == 0) {  // One failure says enough; waiting for more would only take time.
      const ssize_t rc = call();
      if (rc == 0) return;
      if (rc != -FI_EAGAIN || std::chrono::steady_clock::now() > deadline) {
        ++failed;
        return;
      }
      poll();
    }
  }
  void poll_to_the_end() {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (completed + failed < expected && std::chrono::steady_clock::now() < deadline) {
      poll();
      std::this_thread::yield();
    }
  }
};

// While the threads have the initiator's endpoint for themselves, the pump only drives a target
// that lives in this process.
class Threads : public testing::TestWithParam<Placement> {
 protected:
  Threads() : world_(GetParam(), Options{}) {
    if (!world_.ok()) return;
    world_.pump().remove(&world_.endpoint());
    shared_.ep = world_.ep();
    shared_.cq = world_.endpoint().cq();
    shared_.peer = world_.to_target();
  }
  // Runs `body` in every thread and `meanwhile` in this one.
  void run_threads(const std::function<void(std::size_t)>& body, const Idle& meanwhile = {}) {
    std::atomic<std::size_t> running{kThreads};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        body(i);
        --running;
      });
    }
    if (meanwhile) meanwhile();
    while (running > 0) world_.pump().once();
    for (std::thread& thread : threads) thread.join();
  }
  void expect_all(std::size_t count) {
    EXPECT_EQ(shared_.failed, 0u);
    EXPECT_EQ(shared_.completed, count);
  }
  // From here on the fixture drives both sides again.
  void end_of_threads() { world_.pump().add(&world_.endpoint()); }

  World world_;
  Shared shared_{};
};

TEST_P(Threads, SendAndPollOnOneEndpoint) {
  ASSERT_TRUE(world_.ok());
  std::vector<Token> received;
  for (std::size_t i = 0; i < kTotal; ++i) {
    received.push_back(
        world_.target().post({.kind = Kind::kTrecv, .length = size_of(i), .tag = i}));
  }
  shared_.expected = kTotal;
  std::vector<GuardedBuffer> buffers;
  for (std::size_t i = 0; i < kTotal; ++i) {
    buffers.emplace_back(size_of(i));
    buffers.back().fill(i, 0, size_of(i));
  }
  std::vector<fi_context2> contexts(kTotal);
  run_threads([&](std::size_t thread) {
    for (std::size_t i = thread; i < kTotal; i += kThreads) {
      shared_.post_until_accepted([&] {
        return fi_tsend(shared_.ep, buffers[i].data(), size_of(i), nullptr, shared_.peer, i,
                        &contexts[i]);
      });
    }
    shared_.poll_to_the_end();
  });
  expect_all(kTotal);
  for (std::size_t i = 0; i < kTotal && !HasFailure(); ++i) {
    world_.target().wait_success(received[i]);
    world_.target().expect_data(received[i], i, size_of(i));
  }
}

TEST_P(Threads, ReceiveOnOneEndpoint) {
  ASSERT_TRUE(world_.ok());
  constexpr std::size_t kFew = 200;
  std::vector<GuardedBuffer> buffers(kFew, GuardedBuffer(2000));
  std::vector<fi_context2> contexts(kFew);
  shared_.expected = kFew;
  std::vector<Token> sent;
  const auto receive = [&](std::size_t thread) {
    for (std::size_t i = thread; i < kFew; i += kThreads) {
      shared_.post_until_accepted([&] {
        return fi_trecv(shared_.ep, buffers[i].data(), 2000, nullptr, FI_ADDR_UNSPEC, i, 0,
                        &contexts[i]);
      });
    }
    shared_.poll_to_the_end();
  };
  run_threads(receive, [&] {
    for (std::size_t i = 0; i < kFew; ++i) {
      sent.push_back(world_.target().post({.kind = Kind::kTsend,
                                           .length = 2000,
                                           .seed = i + 1,
                                           .peer = world_.to_initiator(),
                                           .tag = i}));
    }
  });
  expect_all(kFew);
  for (std::size_t i = 0; i < kFew; ++i) {
    EXPECT_EQ(buffers[i].check_pattern(i + 1, 0, 2000), "");
    EXPECT_EQ(buffers[i].check_guards(), "");
  }
  for (const Token token : sent) world_.target().wait_success(token);
}

TEST_P(Threads, WriteToOneRegion) {
  ASSERT_TRUE(world_.ok());
  constexpr std::size_t kSlot = 6000;
  constexpr std::size_t kSlots = 400;
  const Region region = world_.target().expose({.length = kSlot * kSlots});
  std::vector<fi_context2> contexts(kSlots);
  std::vector<GuardedBuffer> buffers;
  for (std::size_t i = 0; i < kSlots; ++i) {
    buffers.emplace_back(kSlot);
    buffers.back().fill(i + 1, 0, kSlot);
  }
  shared_.expected = kSlots;
  run_threads([&](std::size_t thread) {
    for (std::size_t i = thread; i < kSlots; i += kThreads) {
      shared_.post_until_accepted([&] {
        return fi_write(shared_.ep, buffers[i].data(), kSlot, nullptr, shared_.peer,
                        region.base + i * kSlot, region.key, &contexts[i]);
      });
    }
    shared_.poll_to_the_end();
  });
  expect_all(kSlots);
  end_of_threads();
  world_.exchange();
  for (std::size_t i = 0; i < kSlots && !HasFailure(); ++i) {
    world_.target().expect_region(region, i + 1, i * kSlot, kSlot);
  }
}

TEST_P(Threads, RegisterAndCloseWhileOthersAreUsed) {
  ASSERT_TRUE(world_.ok());
  std::atomic<std::size_t> failed{0};
  fid_domain* domain = world_.endpoint().domain()->get();
  run_threads([&](std::size_t thread) {
    std::array<std::uint8_t, 256> memory{};
    for (std::uint64_t i = 0; i < 500; ++i) {
      fid_mr* mr = nullptr;
      const std::uint64_t key = (thread + 1) * 100000 + i;
      if (fi_mr_reg(domain, memory.data(), memory.size(), FI_REMOTE_READ, 0, key, 0, &mr,
                    nullptr) != 0 ||
          fi_mr_key(mr) != key || fi_close(&mr->fid) != 0) {
        ++failed;
      }
    }
  });
  EXPECT_EQ(failed, 0u);
  end_of_threads();
  world_.exchange();
}

INSTANTIATE_TEST_SUITE_P(Threaded, Threads,
                         testing::Values(Placement::kTwoProcesses, Placement::kOneProcess),
                         [](const testing::TestParamInfo<Placement>& one) {
                           return to_string(one.param);
                         });

}  // namespace
}  // namespace weft::conformance
