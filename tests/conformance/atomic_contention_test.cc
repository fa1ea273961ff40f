// SPDX-License-Identifier: BSD-2-Clause
// Is an atomic operation atomic among all initiators, whichever process or thread they are in?
// (fi_atomic(3))
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "support/atomic.h"
#include "support/local_party.h"
#include "support/peer_process.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kTurns = 1500;
constexpr std::size_t kProcesses = 3;
constexpr std::size_t kThreads = 3;

// Where the counters are: one for fetch-add, one for compare-and-swap, and some that lie across a
// page.
struct Counters {
  Address owner;
  std::uint64_t base = 0;
  std::uint64_t key = 0;
};
constexpr std::uint64_t kAdded = 0;
constexpr std::uint64_t kSwapped = 8;
constexpr std::uint64_t kMany = 4096 - 20;
constexpr std::size_t kManyCount = 5;
constexpr std::size_t kRegion = 8192;

Options options() {
  Options options;
  options.caps |= FI_ATOMIC;
  return options;
}

// One initiator with an endpoint of its own. No gtest inside: it may be a thread.
class Hammer {
 public:
  Hammer(LocalParty& party, fi_addr_t owner, const Counters& counters)
      : endpoint_(party.endpoint()), owner_(owner), counters_(counters) {}

  bool swing() {
    for (std::uint64_t i = 0; i < kTurns; ++i) {
      if (!add(kAdded, 1, i % 2 == 0) || !increment_by_swap() || !add(kMany, kManyCount, false)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool perform(Atomic& atomic) {
    fi_context2 context{};
    const auto end = std::chrono::steady_clock::now() + patience();
    ssize_t rc = 0;
    while ((rc = issue(endpoint_.ep(), atomic, &context)) == -FI_EAGAIN) {
      poll();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    if (rc != 0) return false;
    std::optional<Completion> c;
    while (!(c = endpoint_.take(&context)).has_value()) {
      poll();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return c->err == 0;
  }
  // There are more initiators than processors: one that waits yields to those that it waits for.
  void poll() {
    endpoint_.poll();
    sched_yield();
  }
  Atomic call(Form form, fi_op op, std::uint64_t offset, std::size_t count) const {
    Atomic atomic;
    atomic.form = form;
    atomic.op = op;
    atomic.count = count;
    atomic.peer = owner_;
    atomic.address = counters_.base + offset;
    atomic.key = counters_.key;
    atomic.operand.resize(8 * count);
    if (form != Form::kBase) atomic.result.resize(8 * count);
    return atomic;
  }
  bool add(std::uint64_t offset, std::size_t count, bool fetches) {
    Atomic atomic = call(fetches ? Form::kFetch : Form::kBase, FI_SUM, offset, count);
    for (std::size_t i = 0; i < count; ++i) atomic.operand[8 * i] = 1;
    return perform(atomic);
  }
  bool increment_by_swap() {
    for (;;) {
      Atomic swap = call(Form::kCompare, FI_CSWAP, kSwapped, 1);
      const std::uint64_t next = guess_ + 1;
      swap.compare.resize(8);
      std::memcpy(swap.compare.data(), &guess_, 8);
      std::memcpy(swap.operand.data(), &next, 8);
      if (!perform(swap)) return false;
      std::uint64_t was = 0;
      std::memcpy(&was, swap.result.data(), 8);
      const bool swapped = was == guess_;
      guess_ = swapped ? next : was;
      if (swapped) return true;
    }
  }

  Endpoint& endpoint_;
  const fi_addr_t owner_;
  const Counters counters_;
  std::uint64_t guess_ = 0;
};

void hammer_script(Channel& to_test) {
  Pump pump;
  LocalParty party(std::make_shared<Domain>(options()), options(), &pump);
  ASSERT_TRUE(party.ok());
  Counters counters;
  ASSERT_TRUE(to_test.receive(&counters));
  Hammer hammer(party, party.insert(counters.owner), counters);
  const bool done = hammer.swing();
  EXPECT_TRUE(done) << "an operation failed";
  to_test.send(done);
}

std::uint64_t word_at(Endpoint& endpoint, fi_addr_t self, const Counters& where,
                      std::uint64_t offset) {
  std::uint64_t word = ~std::uint64_t{0};
  fi_context2 context{};
  EXPECT_EQ(
      fi_read(endpoint.ep(), &word, 8, nullptr, self, where.base + offset, where.key, &context), 0);
  while (!endpoint.take(&context).has_value()) endpoint.poll();
  return word;
}

TEST(AtomicContention, NoCountIsLostAmongProcessesAndThreads) {
  std::vector<std::unique_ptr<PeerProcess>> processes;
  for (std::size_t i = 0; i < kProcesses; ++i) {
    processes.push_back(std::make_unique<PeerProcess>(hammer_script));
  }
  Pump pump;
  LocalParty owner(std::make_shared<Domain>(options()), options(), &pump);
  ASSERT_TRUE(owner.ok());
  const Region region = owner.expose({.length = kRegion});
  const Counters counters{owner.name(), region.base, region.key};
  const fi_addr_t self = owner.insert(owner.name());
  const std::vector<std::uint8_t> zeros(kRegion);
  fi_context2 context{};
  ASSERT_EQ(fi_write(owner.endpoint().ep(), zeros.data(), kRegion, nullptr, self, region.base,
                     region.key, &context),
            0);
  ASSERT_TRUE(pump.until([&] { return owner.endpoint().take(&context).has_value(); }));

  for (auto& process : processes) ASSERT_TRUE(process->channel().send(counters));
  std::atomic<std::size_t> failed{0};
  std::atomic<std::size_t> running{kThreads};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Pump own;
      LocalParty party(std::make_shared<Domain>(options()), options(), &own);
      Hammer hammer(party, party.insert(counters.owner), counters);
      if (!hammer.swing()) ++failed;
      --running;
    });
  }
  // The owner polls, so that it is asked to do some of them itself.
  while (running != 0) pump.once();
  for (std::thread& thread : threads) thread.join();
  bool done = false;
  for (auto& process : processes) {
    EXPECT_TRUE(process->channel().receive(&done, [&] { pump.once(); }));
  }
  EXPECT_EQ(failed, 0u);
  const std::uint64_t expected = kTurns * (kProcesses + kThreads);
  const auto word = [&](std::uint64_t offset) {
    return word_at(owner.endpoint(), self, counters, offset);
  };
  EXPECT_EQ(word(kAdded), expected);
  EXPECT_EQ(word(kSwapped), expected);
  for (std::size_t i = 0; i < kManyCount; ++i) EXPECT_EQ(word(kMany + 8 * i), expected) << i;
}

// Memory that several processes have mapped, and a region of it in this process.
class SharedRegion {
 public:
  // `path` names the memory.
  SharedRegion(LocalParty& party, const char* path) {
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    void* place = ::mmap(nullptr, kRegion, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (place == MAP_FAILED) return;
    memory_ = static_cast<std::uint8_t*>(place);
    fid_domain* domain = party.endpoint().domain()->get();
    mr_ = open_fid<fid_mr>([&](fid_mr** out) {
      return fi_mr_reg(domain, memory_, kRegion, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                       Endpoint::next_key(), 0, out, nullptr);
    });
    const int mode = party.endpoint().info()->domain_attr->mr_mode;
    if ((mode & FI_MR_VIRT_ADDR) != 0) base_ = reinterpret_cast<std::uintptr_t>(place);
  }
  ~SharedRegion() {
    mr_.reset();
    if (memory_ != nullptr) ::munmap(memory_, kRegion);
  }
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  bool ok() const { return mr_ != nullptr; }
  Counters counters(LocalParty& party) const { return {party.name(), base_, fi_mr_key(mr_.get())}; }
  std::uint64_t word(std::uint64_t offset) const {
    std::uint64_t word = 0;
    std::memcpy(&word, memory_ + offset, sizeof word);
    return word;
  }

 private:
  std::uint8_t* memory_ = nullptr;
  std::uint64_t base_ = 0;
  Fid<fid_mr> mr_;
};

struct Path {
  char text[64];
};

void other_mapping_script(Channel& to_test) {
  Pump pump;
  Path path{};
  ASSERT_TRUE(to_test.receive(&path));
  LocalParty party(std::make_shared<Domain>(options()), options(), &pump);
  ASSERT_TRUE(party.ok());
  const SharedRegion region(party, path.text);
  ASSERT_TRUE(region.ok());
  Counters counters;
  ASSERT_TRUE(to_test.send(region.counters(party)));
  ASSERT_TRUE(to_test.receive(&counters, [&] { pump.once(); }));
  const bool done = Hammer(party, party.insert(counters.owner), counters).swing();
  ASSERT_TRUE(to_test.send(done));
  bool ended = false;
  to_test.receive(&ended, [&] { pump.once(); });
}

// Two processes change the same words, each through the region of the other.
TEST(AtomicContention, NoCountIsLostInMemoryThatTwoProcessesRegister) {
  PeerProcess peer(other_mapping_script);
  const int fd = ::memfd_create("conformance", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, kRegion), 0);
  Path path{};
  std::snprintf(path.text, sizeof path.text, "/proc/%d/fd/%d", ::getpid(), fd);
  Pump pump;
  LocalParty party(std::make_shared<Domain>(options()), options(), &pump);
  ASSERT_TRUE(party.ok());
  const SharedRegion region(party, path.text);
  ASSERT_TRUE(region.ok());
  ASSERT_TRUE(peer.channel().send(path));
  Counters counters;
  ASSERT_TRUE(peer.channel().receive(&counters, [&] { pump.once(); }));
  ASSERT_TRUE(peer.channel().send(region.counters(party)));
  EXPECT_TRUE(Hammer(party, party.insert(counters.owner), counters).swing());
  bool done = false;
  EXPECT_TRUE(peer.channel().receive(&done, [&] { pump.once(); }));
  EXPECT_TRUE(done);
  EXPECT_EQ(region.word(kAdded), 2 * kTurns);
  EXPECT_EQ(region.word(kSwapped), 2 * kTurns);
  for (std::size_t i = 0; i < kManyCount; ++i) EXPECT_EQ(region.word(kMany + 8 * i), 2 * kTurns);
  EXPECT_TRUE(peer.channel().send(true));
  peer.finish([&] { pump.once(); });
  ::close(fd);
}

}  // namespace
}  // namespace weft::conformance
