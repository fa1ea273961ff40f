// SPDX-License-Identifier: BSD-2-Clause
// Does a region end with its creator for those that come later, and for no others?
#include <gtest/gtest.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/seeds_support.h"
#include "region_test_support.h"

namespace weft::shared_memory {
namespace {

using namespace testing_support;

std::size_t free_bytes() {
  struct statvfs now {};
  EXPECT_EQ(::statvfs("/dev/shm", &now), 0);
  return now.f_bavail * now.f_frsize;
}

TEST(Lifetime, AttachersKeepThePagesAfterTheCreatorsEnd) {
  in_own_shm([] {
    auto region = share();
    const std::uint32_t id = region->id();
    auto kept = std::make_unique<RegionMemory>(attach({.id = id, .writable = true}).value());
    std::memcpy(region->base(), "kept", 5);
    region.reset();
    EXPECT_TRUE(region_names().empty());
    EXPECT_EQ(attach_error(id), ENOENT);
    EXPECT_EQ(os::in_child([&] { return attach_error(id); }), ENOENT);
    EXPECT_EQ(std::memcmp(kept->base(), "kept", 5), 0);
    std::memcpy(kept->base(), "more", 5);
  });
}

TEST(Lifetime, NoPageStaysAfterTheLastMapping) {
  in_own_shm([] {
    const std::size_t before = free_bytes();
    auto region = share(0600, 16 * kPage);
    {
      const auto kept = attach({.id = region->id()});
      EXPECT_LT(free_bytes(), before);
      region.reset();
      EXPECT_LT(free_bytes(), before);
    }
    EXPECT_EQ(free_bytes(), before);
  });
}

TEST(Lifetime, AKilledCreatorIsNotFoundAndItsNameSwept) {
  in_own_shm([] {
    Creator creator;
    auto kept = attach({.id = creator.id(), .writable = true});
    ASSERT_TRUE(kept.ok());
    creator.kill();
    EXPECT_EQ(region_names().size(), 1U);
    EXPECT_EQ(attach_error(creator.id()), ENOENT);
    EXPECT_TRUE(region_names().empty());
    std::memcpy(kept.value().base(), "kept", 5);
  });
}

// Only the user of the creator may remove the name.
TEST(Lifetime, AnotherUserDoesNotFindAKilledCreatorEither) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become other users";
  in_own_shm([] {
    constexpr uid_t kOne = 1001;
    constexpr uid_t kOther = 1002;
    Creator creator(0666, kPage, [] { return ::setuid(kOne) == 0; });
    const auto by_other = [&] {
      return os::in_child([&] { return ::setuid(kOther) == 0 ? attach_error(creator.id()) : -1; });
    };
    EXPECT_EQ(by_other(), 0);
    creator.kill();
    EXPECT_EQ(by_other(), ENOENT);
    EXPECT_EQ(region_names().size(), 1U);
    const Creator next(0600, kPage, [] { return ::setuid(kOne) == 0; });
    EXPECT_EQ(region_names().size(), 1U) << "the next of that user sweeps";
    EXPECT_EQ(attach_error(next.id()), 0);
  });
}

TEST(Lifetime, AProcessThatEndsWithoutDestructorsWithdrawsItsNames) {
  in_own_shm([] {
    const int status = os::in_child([] {
      static const auto region = share();
      static const auto* const leaked = share().release();
      if (leaked == nullptr || region_names().size() != 2) return 1;
      std::exit(0);
    });
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(region_names().empty());
  });
}

TEST(Lifetime, AForkedChildWithdrawsNothing) {
  in_own_shm([] {
    auto region = share();
    const std::uint32_t id = region->id();
    EXPECT_EQ(os::in_child([&] {
                region.reset();
                return region_names().size() == 1 ? 0 : 1;
              }),
              0);
    EXPECT_EQ(os::in_child([&]() -> int { std::exit(region_names().size() == 1 ? 0 : 1); }), 0);
    EXPECT_EQ(region_names().size(), 1U);
    EXPECT_EQ(os::in_child([&] { return attach_error(id, true); }), 0) << "as any other process";
    EXPECT_EQ(attach_error(id), 0);
  });
}

TEST(Lifetime, AForkedChildKeepsNoId) {
  in_own_shm([] {
    auto region = share();
    const std::uint32_t id = region->id();
    const os::Sleeper child([&] { return region->id() == id; });
    region.reset();
    EXPECT_TRUE(region_names().empty());
    EXPECT_EQ(attach_error(id), ENOENT);
  });
}

TEST(Lifetime, IdsAreNotUsedAgainAndBeginElsewhereInAChild) {
  in_own_shm([] {
    std::set<std::uint32_t> ids;
    for (int i = 0; i < 300; ++i) EXPECT_TRUE(ids.insert(share()->id()).second);
    EXPECT_FALSE(ids.contains(0));
    const Creator child;
    EXPECT_NE(child.id(), *ids.rbegin() + 1);
    EXPECT_NE(child.id(), share()->id());
  });
}

TEST(Lifetime, SweepsSpareTheLiving) {
  in_own_shm([] {
    const auto own = share();
    const Creator other;
    const auto more = share();
    EXPECT_EQ(region_names().size(), 3U);
    for (const std::uint32_t id : {own->id(), other.id(), more->id()}) {
      EXPECT_EQ(attach_error(id), 0);
      EXPECT_EQ(os::in_child([&] { return attach_error(id); }), 0);
    }
  });
}

// A thread that took a file of another one for a foreign one would drop its lock.
TEST(Lifetime, ThreadsShareAndAttachAtOnce) {
  in_own_shm([] {
    constexpr std::size_t kThreads = 3;
    constexpr int kRounds = 60;
    std::array<std::atomic<std::uint32_t>, kThreads> latest{};
    std::array<std::vector<std::unique_ptr<RegionMemory>>, kThreads> kept;
    std::vector<std::thread> threads;
    for (std::size_t own = 0; own < kThreads; ++own) {
      threads.emplace_back([&, own] {
        for (int i = 0; i < kRounds; ++i) {
          auto region = share();
          latest[own] = region->id();
          for (const auto& id : latest) {
            const int error = attach_error(id);
            EXPECT_TRUE(error == 0 || error == ENOENT) << error;
          }
          if (i % 10 == 0) kept[own].push_back(std::move(region));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& regions : kept) {
      for (const auto& region : regions)
        EXPECT_EQ(os::in_child([&] { return attach_error(region->id()); }), 0);
    }
    EXPECT_EQ(region_names().size(), kThreads * kRounds / 10);
  });
}

void allocate_for_ever() {
  for (;;) {
    auto one = share(0600, 8 * kPage);
    const auto two = share(0640);
    if (!attach({.id = one->id(), .writable = true})) ::_exit(1);
  }
}

// Kills a process that runs `body` at a moment that the seed chooses.
void kill_at_random(std::mt19937& random, const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(1);
  }
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself, with " << WEXITSTATUS(status);
}

TEST(Lifetime, ProcessesThatAreKilledAtAnyMomentLeaveNothing) {
  in_own_shm([] {
    const auto seeds = SimulatorSeeds::of(0, 20);  // of one moment each; tools/ci/soak.py has more
    std::mt19937 random(static_cast<unsigned>(seeds.first));
    const std::size_t before = free_bytes();
    const auto region = share();
    for (auto i = seeds.first; i < seeds.end; i += 2) {
      kill_at_random(random, allocate_for_ever);
      kill_at_random(random, [&] {
        while (attach({.id = region->id(), .writable = true})) {
        }
      });
      EXPECT_EQ(attach_error(region->id(), true), 0);
      EXPECT_EQ(region_names().size(), 1U);
    }
    EXPECT_EQ(free_bytes(), before - kPage);
  });
}

}  // namespace
}  // namespace weft::shared_memory
