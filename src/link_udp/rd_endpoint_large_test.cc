// SPDX-License-Identifier: BSD-2-Clause
// Do messages and accesses that are larger than one request arrive whole, or not at all?
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "test_support.h"
#include "work/work.h"

namespace weft::udp {
namespace {

using namespace testing;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif

struct RdEndpointLargeTest : ::testing::Test {
  Peer a;
  Peer b;
  bool both(const std::function<bool()>& holds) { return until({&a, &b}, holds); }
};

// At whatever moment the sender takes its message back, both ends hear how it ended, and no end
// hears that it arrived when it did not.
TEST_F(RdEndpointLargeTest, AMessageMayBeTakenBackWhileItIsWritten) {
  Bytes bytes = pattern(2'000'000, 1);
  unsigned broken = 0;
  for (unsigned rounds = 0; rounds < 24; ++rounds) {
    link::Flow* flow = connect(a, b);
    ASSERT_NE(flow, nullptr);
    b.log.messages.clear();
    a.ends.ended_ones.clear();
    send(a, b, *flow, 1, bytes);
    ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
    for (unsigned i = 0; i < rounds; ++i) {
      a.poll();
      b.poll();
    }
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
  part(a, b);
}

// The rest of a message that is accepted comes behind others: they have to be let in for it.
// The receiver has asked for the message when the sender withdraws it.
TEST_F(RdEndpointLargeTest, AWithdrawnMessageLeavesItsReceiveForTheNextOne) {
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
  part(a, b);
}

// Until the peer answers nothing has left.
TEST(RdEndpointWithdrawal, OfWhatWaitsForAPeerThatNeverAnswers) {
  Peer a;
  const auto silent = os::UdpSocket::bind(os::loopback(0), roce::kReliableSocket);
  ASSERT_TRUE(silent.ok());
  auto opened = a.endpoint->connect(silent.value().address());
  ASSERT_TRUE(opened.ok());
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
  a.leave();
}

TEST_F(RdEndpointLargeTest, MessagesBeforeAnAcceptedOneAreLetIn) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  Bytes large = pattern(3'000'000, 1);
  Bytes small = pattern(100, 2);
  b.log.accepts = false;
  send(a, b, *flow, 1, large);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  b.log.takes = false;
  for (std::uint64_t i = 2; i < 12; ++i) send(a, b, *flow, i, small);
  for (int i = 0; i < 50; ++i) {
    a.poll();
    b.poll();
  }
  EXPECT_EQ(b.log.messages.size(), 1U) << "there is no room for them";
  b.log.takes_urgently = true;
  b.log.accept(b.log.messages[0]);
  ASSERT_TRUE(both([&] { return b.log.messages[0].error == 0; }));
  EXPECT_TRUE(b.log.messages[0].bytes == large);
  ASSERT_TRUE(both([&] { return a.ends.has(1); }));
  b.log.takes = true;
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 11; }));
  part(a, b);
}

// The receiver leaves while it is written to: its memory is not touched any more, the sender hears.
TEST_F(RdEndpointLargeTest, AReceiverMayLeaveWhileItIsWrittenTo) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  Bytes bytes = pattern(4'000'000, 1);
  send(a, b, *flow, 1, bytes);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  for (unsigned i = 0; i < 4; ++i) {
    a.poll();
    b.poll();
  }
  ASSERT_FALSE(a.ends.has(1));
  b.leave(&a);
  b.log.messages.clear();
  ASSERT_TRUE(until({&a}, [&] { return a.ends.has(1); }));
  EXPECT_EQ(a.ends.ended_ones[1].error, ECONNRESET);
  a.leave();
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

TEST(RdEndpointHugeTest, AWriteOfMoreThanARequestCarriesIsOneAccess) {
  if (kSlow) GTEST_SKIP() << "two GiB are too much for a sanitizer";
  const Loop source(work::kMaxMessage + 12'345);
  const Loop target(work::kMaxMessage + 12'345);
  Bytes bytes = pattern(Loop::kPart, 3);
  std::memcpy(source.all().data(), bytes.data(), bytes.size());
  Regions regions;
  regions.add(1, target.all(), Access::kRemoteWrite);
  Peer a;
  RdmOptions options;
  options.regions = regions.open();
  options.counts_writes = true;
  Peer b(options);
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  const LocalRange piece{source.all().data(), source.all().size()};
  const RemoteRange remote{0, piece.length, RegionKey{1}};
  link::AccessRequest request;
  request.write = true;
  request.has_data = true;
  request.data = 77;
  request.local = {&piece, 1};
  request.remote = {&remote, 1};
  request.length = piece.length;
  request.cookie = reinterpret_cast<void*>(1);
  EXPECT_EQ(flow->access(request).state, link::Outcome::State::kPending);
  for (int i = 0; i < 6 && !a.ends.has(1); ++i) {
    until({&a, &b}, [&] { return a.ends.has(1); });
  }
  ASSERT_TRUE(a.ends.has(1));
  EXPECT_EQ(a.ends.ended_ones[1].error, 0);
  EXPECT_EQ(std::memcmp(target.all().data(), bytes.data(), bytes.size()), 0);
  ASSERT_EQ(b.log.messages.size(), 1U);
  EXPECT_EQ(b.log.messages[0].arrival.operation, link::MessageOperation::kWriteData);
  EXPECT_EQ(b.log.messages[0].arrival.data, 77U);
  EXPECT_EQ(b.log.messages[0].arrival.tag, piece.length);
  part(a, b);
}

}  // namespace
}  // namespace weft::udp
