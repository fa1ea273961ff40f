// SPDX-License-Identifier: BSD-2-Clause
// While regions come and go, is no live one ever refused and no dead one ever granted?
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "memory/access_guard.h"
#include "memory/region_table.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{1};
constexpr std::uint64_t kKeys = 3000;
#ifdef __SANITIZE_THREAD__
constexpr int kSteps = 50000;  // each costs several times as much there
#else
constexpr int kSteps = 200000;
#endif

// What the owner says of each key, in memory that all processes share: a count that rises by one
// when an addition or a removal begins and again when it has ended. So a key whose count is the
// same before and after a look was live (count % 4 == 2) or closed (0) all the time between.
struct Announcements {
  std::array<std::atomic<std::uint64_t>, kKeys> count;
  std::atomic<std::uint64_t> looks;
  std::atomic<std::uint64_t> false_grants;
  std::atomic<std::uint64_t> false_refusals;
  std::atomic<std::uint64_t> wrong_addresses;
  std::atomic<bool> finished;
};

// Every registration of a key lies elsewhere, so that an old one is never mistaken for a new one.
std::uint64_t base_of(std::uint64_t key, std::uint64_t count) {
  return (key + 1) << 32 | (count / 4 + 1) << 12;
}

class Looker {
 public:
  Looker(Announcements& said, std::unique_ptr<AccessGuard> user, unsigned seed)
      : said_(said), user_(std::move(user)), random_(seed) {}

  void look_until_finished() {
    while (!said_.finished.load()) look();
  }

  // Looks 1 to 8 keys up in one operation and compares the answer with what was said.
  void look() {
    std::array<std::uint64_t, kHazards> keys{};
    std::array<std::uint64_t, kHazards> before{};
    std::array<RemoteRange, kHazards> ranges{};
    const std::size_t count = random_() % 4 == 0 ? 1 + random_() % kHazards : 1;
    for (std::size_t i = 0; i < count; ++i) {
      keys[i] = random_() % kKeys;
      before[i] = said_.count[keys[i]].load();
      ranges[i] = {0, 64, RegionKey{keys[i]}};
    }
    const Grant grant = user_->check_and_pin(kDomain, Access::kRemoteRead, {ranges.data(), count});
    const std::size_t culprit = grant.ok() ? count : grant.culprit;
    for (std::size_t i = 0; i < count && i <= culprit; ++i) {
      if (said_.count[keys[i]].load() == before[i]) {
        judge(before[i], i < culprit, keys[i],
              grant.ok() ? reinterpret_cast<std::uint64_t>(grant.segments[i].base)
                         : base_of(keys[i], before[i]));
      }
    }
    user_->release();
    said_.looks.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  void judge(std::uint64_t count, bool granted, std::uint64_t key, std::uint64_t address) {
    if (granted && count % 4 == 0) ++said_.false_grants;
    if (!granted && count % 4 == 2) ++said_.false_refusals;
    if (granted && count % 4 == 2 && address != base_of(key, count)) ++said_.wrong_addresses;
  }

  Announcements& said_;
  const std::unique_ptr<AccessGuard> user_;
  std::mt19937 random_;
};

class RegionChurn : public testing::Test {
 protected:
  RegionChurn() {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    void* shared = ::mmap(nullptr, sizeof(Announcements), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(shared, MAP_FAILED);
    said_ = new (shared) Announcements{};
    table_ = std::move(RegionTable::create(directory_)).value();
  }
  ~RegionChurn() override {
    ::munmap(said_, sizeof *said_);
    std::filesystem::remove_all(directory_);
  }

  Looker looker(unsigned seed) const {
    const auto foreign = RegionTableView::open(directory_, table_->name()).value();
    return {*said_, std::move(AccessGuard::attach(foreign)).value(), seed};
  }

  // Adds the key when it is not live and removes it when it is.
  void turn(std::uint64_t key) {
    auto& count = said_->count[key];
    const std::uint64_t now = count.load();
    count.store(now + 1);
    if (const auto live = model_.find(key); live != model_.end()) {
      EXPECT_TRUE(table_->remove(live->second).ok());
      model_.erase(live);
    } else {
      const auto added = table_->add({.domain = kDomain,
                                      .access = Access::kRemoteRead,
                                      .base = base_of(key, now),
                                      .length = 64,
                                      .key = RegionKey{key}});
      ASSERT_TRUE(added.ok()) << added.error().message;
      model_[key] = added.value();
    }
    count.store(now + 2);
  }

  // Grows to all keys, shrinks, and grows again, so that indexes are enlarged and cleaned.
  void churn() {
    std::mt19937 random(7);
    for (int step = 0; step < kSteps; ++step) {
      const std::uint64_t reach = 1 + kKeys * static_cast<std::uint64_t>(step % 25000) / 25000;
      turn(random() % reach);
    }
  }

  void expect_no_error() const {
    EXPECT_GT(said_->looks.load(), 0U);
    EXPECT_EQ(said_->false_grants.load(), 0U);
    EXPECT_EQ(said_->false_refusals.load(), 0U);
    EXPECT_EQ(said_->wrong_addresses.load(), 0U);
  }

  void expect_the_table_equals_the_model() const {
    const auto foreign = RegionTableView::open(directory_, table_->name()).value();
    const auto user = std::move(AccessGuard::attach(foreign)).value();
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const RemoteRange range{0, 64, RegionKey{key}};
      const bool found = user->check_and_pin(kDomain, Access::kRemoteRead, {&range, 1}).ok();
      EXPECT_EQ(found, model_.contains(key)) << key;
      user->release();
    }
  }

  std::string directory_ = "/dev/shm/weft-test-XXXXXX";
  Announcements* said_ = nullptr;
  std::unique_ptr<RegionTable> table_;
  std::map<std::uint64_t, Registration> model_;
};

TEST_F(RegionChurn, AThreadThatLooksKeysUpIsNeverToldWrong) {
  std::thread other([&] { looker(1).look_until_finished(); });
  churn();
  while (said_->looks.load() == 0) std::this_thread::yield();
  said_->finished = true;
  other.join();
  expect_no_error();
  expect_the_table_equals_the_model();
}

TEST_F(RegionChurn, AProcessThatLooksKeysUpIsNeverToldWrong) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    looker(2).look_until_finished();
    ::_exit(0);
  }
  churn();
  while (said_->looks.load() == 0) std::this_thread::yield();
  said_->finished = true;
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  expect_no_error();
  expect_the_table_equals_the_model();
}

}  // namespace
}  // namespace weft::memory
