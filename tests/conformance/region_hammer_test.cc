// SPDX-License-Identifier: BSD-2-Clause
// Does no access touch a region's memory after fi_close returned, while threads and peers access
// it? (fi_mr(3))
//
// Regions are closed and refreshed, and their memory is unmapped and reused, while threads of this
// process and peer processes access them. The memory of a closed region is filled with a canary
// pattern that no access writes, and that no access may read. WEFT_TEST_HAMMER_S is the duration in
// seconds.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "support/peer_process.h"
#include "support/world.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kThreads = 4;
constexpr std::size_t kPeers = 2;
constexpr std::size_t kRegions = 4;
constexpr std::size_t kDepth = 8;  // accesses of one accessor at once
// Each accessor has its own part of each region: concurrent writes of threads to the same bytes
// would be a data race of the program.
constexpr std::size_t kPart = 16384;
constexpr std::size_t kLength = (kThreads + kPeers) * kPart;
constexpr std::uint64_t kFirstKey = 0x400;
constexpr std::uint8_t kCanary = 0xc3;
constexpr std::uint8_t kWritten = 0x5a;
constexpr std::size_t kSizes[] = {8, 64, 4000, 12000};
constexpr Kind kKinds[] = {Kind::kWrite,  Kind::kRead,        Kind::kInjectWrite,
                           Kind::kAtomic, Kind::kFetchAtomic, Kind::kCompareAtomic};

// In most rounds other threads get the processor a few times before the memory of a closed region
// is verified; in one of kFewRounds, all accesses that had begun have ended.
constexpr std::size_t kYields = 5;
constexpr std::size_t kFewRounds = 7;

struct Tally {
  std::uint64_t granted = 0;
  std::uint64_t refused = 0;
};

// An initiator with its own endpoint that accesses all regions of the target. One thread at a time.
class Accessor {
 public:
  Accessor(std::shared_ptr<Domain> domain, const Options& options, const Address& target,
           std::size_t number)
      : endpoint_(std::move(domain), options), number_(number), random_(number) {
    if (endpoint_.ok()) target_ = endpoint_.insert(target);
  }
  bool ok() const { return target_ != FI_ADDR_NOTAVAIL; }
  const Tally& tally() const { return tally_; }

  // Posts kDepth accesses and waits for their completions; false after an error that is not
  // allowed.
  bool access() {
    for (Slot& slot : slots_) begin(slot);
    const auto limit = std::chrono::steady_clock::now() + patience();
    while (std::ranges::any_of(slots_, &Slot::pending) && good_) {
      poll();
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > limit) {
        ADD_FAILURE() << "no completion came";
        good_ = false;
      }
    }
    return good_;
  }

 private:
  struct Slot {
    fi_context2 context{};
    Operation operation;
    std::array<std::uint8_t, *std::ranges::max_element(kSizes)> buffer{};
    bool pending = false;
  };

  void choose(Operation& o) {
    o.kind = kKinds[random_() % std::size(kKinds)];
    const bool any_size = !traits(o.kind).inject && !traits(o.kind).atomic;
    o.length = any_size ? kSizes[random_() % std::size(kSizes)] : kSizes[random_() % 2];
    o.peer = target_;
    o.key = kFirstKey + random_() % kRegions;
    o.remote_address = number_ * kPart + random_() % ((kPart - o.length) / 8) * 8;
  }
  void begin(Slot& slot) {
    choose(slot.operation);
    slot.buffer.fill(kWritten);
    ssize_t rc = -FI_EAGAIN;
    while (rc == -FI_EAGAIN && good_) {
      rc = issue(endpoint_.ep(), slot.operation, slot.buffer.data(), &slot.context);
      if (rc == -FI_EAGAIN) poll();
    }
    slot.pending = rc == 0 && !traits(slot.operation.kind).inject;
    if (rc != 0) count(static_cast<int>(-rc));
  }
  void poll() {
    endpoint_.poll();
    while (const auto c = endpoint_.take(nullptr)) count(c->err);  // of an injected one
    for (Slot& slot : slots_) {
      const auto c = slot.pending ? endpoint_.take(&slot.context) : std::nullopt;
      if (!c) continue;
      slot.pending = false;
      count(c->err);
      const bool fetched = c->err == 0 && traits(slot.operation.kind).read;
      if (!fetched) continue;
      EXPECT_EQ(std::ranges::count(slot.buffer, kCanary), 0) << "read from a closed region";
    }
  }
  void count(int err) {
    ++(err == 0 ? tally_.granted : tally_.refused);
    const bool allowed = err == 0 || err == FI_EACCES || err == FI_EFAULT;
    EXPECT_TRUE(allowed) << fi_strerror(err);
    good_ = good_ && allowed;
  }

  std::array<Slot, kDepth> slots_{};  // outlives the endpoint, which writes into it
  Endpoint endpoint_;
  const std::size_t number_;
  std::mt19937 random_;
  fi_addr_t target_ = FI_ADDR_NOTAVAIL;
  Tally tally_;
  bool good_ = true;
};

// Start is the first record to a peer. The peer answers each Order with its tally, between two
// calls of access(): all accesses that it posted before have completed.
struct Start {
  std::size_t number = 0;
  Address target;
};
struct Order {
  bool go_on = true;
};

Options options() {
  Options options;
  options.caps |= FI_ATOMIC;
  options.mr_mode = 0;
  return options;
}

void be_peer(Channel& to_test) {
  Start start;
  if (!to_test.receive(&start)) return;
  Accessor accessor(std::make_shared<Domain>(options()), options(), start.target, start.number);
  Order order;
  while (accessor.ok() && order.go_on && accessor.access()) {
    if (!to_test.ready()) continue;
    if (!to_test.receive(&order) || !to_test.send(accessor.tally())) return;
  }
}

// A region of the target and its memory.
class Target {
 public:
  Target(fid_domain* domain, std::uint64_t key)
      : domain_(domain),
        key_(key),
        memory_(static_cast<std::uint8_t*>(
            ::mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    open();
  }
  ~Target() {
    mr_.reset();
    ::munmap(memory_, kLength);
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  void open() {
    mr_ = open_fid<fid_mr>([&](fid_mr** out) {
      return fi_mr_reg(domain_, memory_, kLength, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key_, 0, out,
                       nullptr);
    });
  }
  void refresh() {
    const iovec second_half{memory_ + kLength / 2, kLength / 2};
    EXPECT_EQ(fi_mr_refresh(mr_.get(), nullptr, 0, 0), 0);
    EXPECT_EQ(fi_mr_refresh(mr_.get(), &second_half, 1, 0), 0);
  }
  // PROT_NONE keeps the address range reserved: peers may still write to it.
  void unmap_and_map() {
    map(PROT_NONE);
    map(PROT_READ | PROT_WRITE);
    refresh();
  }
  void close_and_mark() {
    mr_.reset();
    std::memset(memory_, kCanary, kLength);
  }
  void expect_untouched() {
    EXPECT_EQ(std::count(memory_, memory_ + kLength, kCanary), static_cast<long>(kLength))
        << "a region's memory has changed after fi_close";
  }
  // Maps new pages in place of those of the closed region.
  void map_and_open() {
    map(PROT_READ | PROT_WRITE);
    EXPECT_EQ(std::count(memory_, memory_ + kLength, 0), static_cast<long>(kLength));
    open();
  }

 private:
  void map(int protection) {
    EXPECT_NE(::mmap(memory_, kLength, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              MAP_FAILED);
  }

  fid_domain* domain_;
  const std::uint64_t key_;
  std::uint8_t* const memory_;
  Fid<fid_mr> mr_;
};

std::chrono::seconds duration() {
  const char* const seconds = std::getenv("WEFT_TEST_HAMMER_S");
  return std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 2);
}

class RegionHammer : public testing::Test {
 protected:
  RegionHammer() : domain_(std::make_shared<Domain>(options())), endpoint_(domain_, options()) {}
  ~RegionHammer() override { stop(); }

  void start() {
    for (std::size_t i = 0; i < kRegions; ++i)
      targets_.push_back(std::make_unique<Target>(domain_->get(), kFirstKey + i));
    const Address address = endpoint_.name();
    serve_ = std::thread([this] {
      while (!stopped_) endpoint_.poll();
    });
    for (std::size_t i = 0; i < kThreads; ++i)
      threads_.emplace_back([this, i, address] { be_thread(i, address); });
    for (std::size_t i = 0; i < kPeers; ++i) {
      peers_.push_back(std::make_unique<PeerProcess>(be_peer));
      ASSERT_TRUE(peers_.back()->channel().send(Start{kThreads + i, address}));
    }
  }
  void be_thread(std::size_t number, const Address& address) {
    Accessor accessor(domain_, options(), address, number);
    EXPECT_TRUE(accessor.ok());
    while (!stopped_ && accessor.ok() && accessor.access()) {
      granted_[number] = accessor.tally().granted;
      refused_[number] = accessor.tally().refused;
      ++rounds_[number];
    }
    if (!stopped_) failed_ = true;
  }
  // Waits until every accessor has completed the accesses that it had posted; false if one failed.
  bool all_have_ended(bool go_on = true) {
    std::array<std::uint64_t, kThreads> before{};
    for (std::size_t i = 0; i < kThreads; ++i) before[i] = rounds_[i];
    for (const auto& peer : peers_) {
      if (!peer->channel().send(Order{go_on})) return false;
    }
    for (std::size_t i = 0; i < kPeers; ++i) {
      if (!peers_[i]->channel().receive(&tallies_[i])) return false;
    }
    for (std::size_t i = 0; i < kThreads; ++i) {
      while (rounds_[i] < before[i] + 1 && !failed_) std::this_thread::yield();
    }
    return !failed_;
  }
  // Whether every accessor has had a success and a refusal.
  bool all_met() const {
    const auto met = [](const Tally& tally) { return tally.granted > 0 && tally.refused > 0; };
    bool all = std::ranges::all_of(tallies_, met);
    for (std::size_t i = 0; i < kThreads; ++i) all = all && met({granted_[i], refused_[i]});
    return all;
  }
  void stop() {
    stopped_ = true;
    for (std::thread& thread : threads_) thread.join();
    if (serve_.joinable()) serve_.join();
    threads_.clear();
  }

  std::shared_ptr<Domain> domain_;
  Endpoint endpoint_;
  std::vector<std::unique_ptr<Target>> targets_;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> failed_ = false;
  std::array<std::atomic<std::uint64_t>, kThreads> rounds_{};
  std::array<std::atomic<std::uint64_t>, kThreads> granted_{};
  std::array<std::atomic<std::uint64_t>, kThreads> refused_{};
  std::array<Tally, kPeers> tallies_{};
  std::thread serve_;
  std::vector<std::thread> threads_;
  std::vector<std::unique_ptr<PeerProcess>> peers_;
};

TEST_F(RegionHammer, NothingIsWrittenAfterARegionWasClosed) {
  ASSERT_TRUE(endpoint_.ok());
  ASSERT_NO_FATAL_FAILURE(start());
  const auto end = std::chrono::steady_clock::now() + duration();
  std::size_t rounds = 0;
  while (std::chrono::steady_clock::now() < end || !all_met()) {
    Target& target = *targets_[rounds % kRegions];
    if (rounds % 2 == 0) target.refresh();
    if (rounds % 4 == 0) target.unmap_and_map();
    target.close_and_mark();
    if (rounds++ % kFewRounds == 0) {
      ASSERT_TRUE(all_have_ended()) << "an accessor has failed";
    } else {
      for (std::size_t i = 0; i < kYields; ++i) std::this_thread::yield();
    }
    target.expect_untouched();
    target.map_and_open();
    ASSERT_FALSE(HasFailure()) << "in round " << rounds;
    ASSERT_LT(std::chrono::steady_clock::now(), end + patience())
        << "an accessor had no success or no refusal";
  }
  EXPECT_TRUE(all_have_ended(false));
}

}  // namespace
}  // namespace weft::conformance
