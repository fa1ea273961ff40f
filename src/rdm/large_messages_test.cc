// SPDX-License-Identifier: BSD-2-Clause
// Do messages and accesses that are larger than one request arrive whole, or not at all?
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "simulated_endpoint.h"
#include "work/work.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif

struct LargeMessagesTest : ::testing::Test {
  World world;
  Endpoint a{world};
  Endpoint b{world};
  bool both(const std::function<bool()>& holds) { return until({&a, &b}, holds); }
};

// At whatever moment the sender takes its message back, both ends hear how it ended, and no end
// hears that it arrived when it did not.
TEST_F(LargeMessagesTest, AMessageMayBeTakenBackWhileItIsWritten) {
  Bytes bytes = pattern(2'000'000, 1);
  unsigned broken = 0;
  for (unsigned rounds = 0; rounds < 24; ++rounds) {
    link::Flow* flow = connect(a, b);
    ASSERT_NE(flow, nullptr);
    b.log.messages.clear();
    a.ends.ended_ones.clear();
    send(a, b, *flow, 1, bytes);
    ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
    world.pass(rounds * microseconds(10), {&a, &b});
    flow->give_up(a.ends);
    ASSERT_TRUE(both([&] { return a.ends.has(1) && b.log.messages[0].error != -1; })) << rounds;
    const bool arrived = b.log.messages[0].error == 0;
    if (!arrived) {
      ++broken;
      EXPECT_EQ(a.ends.ended_ones[1].error, ECONNRESET);
    } else {
      EXPECT_TRUE(b.log.messages[0].bytes == bytes);
    }
    EXPECT_FALSE(flow->busy());
    a.flows.clear();
  }
  EXPECT_GT(broken, 2U);
  EXPECT_LT(broken, 24U);
}

// The receiver has asked for the message when the sender withdraws it.
TEST_F(LargeMessagesTest, AWithdrawnMessageLeavesItsReceiveForTheNextOne) {
  Bytes bytes = pattern(2'000'000, 1);
  Bytes next = pattern(300, 2);
  b.log.accepts = false;
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  send(a, b, *flow, 1, bytes);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  b.log.accept(b.log.messages[0]);
  EXPECT_TRUE(flow->cancel(reinterpret_cast<void*>(1), a.ends));
  EXPECT_EQ(a.ends.ended_ones[1].error, ECANCELED);
  EXPECT_FALSE(flow->cancel(reinterpret_cast<void*>(1), a.ends));
  send(a, b, *flow, 2, next);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 2; }));
  EXPECT_EQ(b.log.messages[0].error, link::kWithdrawn) << "before the next one arrives";
  ASSERT_TRUE(both([&] { return !flow->busy(); }));
  EXPECT_EQ(a.ends.doubled, 0u);
}

// Until the peer answers nothing has left.
TEST(Withdrawal, OfWhatWaitsForAPeerThatNeverAnswers) {
  World world;
  Endpoint a{world};
  const Stranger silent(world);
  auto opened = a.open(silent.address);
  a.flows.push_back(std::move(opened).value());
  link::Flow& flow = *a.flows.back();
  Bytes sizes[] = {pattern(8, 1), pattern(20'000, 2), pattern(2'000'000, 3)};
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(send(a, a, flow, i + 1, sizes[i]).state, link::Outcome::State::kPending);
  }
  a.poll();
  for (const std::uint64_t tag : {2, 3, 1}) {
    EXPECT_TRUE(flow.cancel(reinterpret_cast<void*>(tag), a.ends)) << tag;
    EXPECT_EQ(a.ends.ended_ones[tag].error, ECANCELED);
  }
  EXPECT_FALSE(flow.busy());
}

// The rest of a message that is accepted comes behind others: they have to be let in for it.
TEST_F(LargeMessagesTest, MessagesBeforeAnAcceptedOneAreLetIn) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  Bytes large = pattern(3'000'000, 1);
  Bytes small = pattern(100, 2);
  b.log.accepts = false;
  send(a, b, *flow, 1, large);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  b.log.takes = false;
  for (std::uint64_t i = 2; i < 12; ++i) send(a, b, *flow, i, small);
  world.pass(milliseconds(1), {&a, &b});
  EXPECT_EQ(b.log.messages.size(), 1U) << "there is no room for them";
  b.log.takes_urgently = true;
  b.log.accept(b.log.messages[0]);
  ASSERT_TRUE(both([&] { return b.log.messages[0].error == 0; }));
  EXPECT_TRUE(b.log.messages[0].bytes == large);
  ASSERT_TRUE(both([&] { return a.ends.has(1); }));
  b.log.takes = true;
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 11; }));
}

// The receiver leaves while it is written to: its memory is not touched any more, the sender hears.
TEST_F(LargeMessagesTest, AReceiverMayLeaveWhileItIsWrittenTo) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  Bytes bytes = pattern(4'000'000, 1);
  send(a, b, *flow, 1, bytes);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  world.pass(microseconds(60), {&a, &b});
  ASSERT_FALSE(a.ends.has(1));
  b.leave(&a);
  b.log.messages.clear();
  ASSERT_TRUE(until({&a}, [&] { return a.ends.has(1); }));
  EXPECT_EQ(a.ends.ended_ones[1].error, ECONNRESET);
}

// The same 8 MiB over and over: more than one request can carry, in little memory.
class Loop {
 public:
  static constexpr std::size_t kPart = std::size_t{8} << 20;

  explicit Loop(std::size_t bytes) : bytes_(bytes) {
    const int fd = ::memfd_create("weft-loop", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(fd, kPart), 0);
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (std::size_t at = 0; at < bytes; at += kPart) {
      const std::size_t length = std::min(kPart, bytes - at);
      ::mmap(base_ + at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    }
    ::close(fd);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() { ::munmap(base_, bytes_); }
  std::span<std::byte> all() const { return {base_, bytes_}; }

 private:
  const std::size_t bytes_;
  std::byte* base_ = nullptr;
};

TEST(HugeAccess, AWriteOfMoreThanARequestCarriesIsOneAccess) {
  if (kSlow) GTEST_SKIP() << "two GiB are too much for a sanitizer";
  const Loop source(work::kMaxMessage + 12'345);
  const Loop target(work::kMaxMessage + 12'345);
  Bytes bytes = pattern(Loop::kPart, 3);
  std::memcpy(source.all().data(), bytes.data(), bytes.size());
  World world;
  world.regions.add(1, target.all(), Access::kRemoteWrite);
  RdmOptions options;
  options.counts_writes = true;
  Endpoint a{world};
  Endpoint b{world, options};
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  const LocalRange sge{source.all().data(), source.all().size()};
  const RemoteRange remote{0, sge.length, RegionKey{1}};
  link::AccessRequest request = access_of(true, sge, remote, 1);
  request.has_data = true;
  request.data = 77;
  EXPECT_EQ(flow->access(request).state, link::Outcome::State::kPending);
  ASSERT_TRUE(until({&a, &b}, [&] { return a.ends.has(1); }));
  EXPECT_EQ(a.ends.ended_ones[1].error, 0);
  EXPECT_EQ(std::memcmp(target.all().data(), bytes.data(), bytes.size()), 0);
  ASSERT_EQ(b.log.messages.size(), 1U);
  EXPECT_EQ(b.log.messages[0].arrival.operation, link::MessageOperation::kWriteData);
  EXPECT_EQ(b.log.messages[0].arrival.data, 77U);
  EXPECT_EQ(b.log.messages[0].arrival.tag, sge.length);
}

}  // namespace
}  // namespace weft::rdm::testing
