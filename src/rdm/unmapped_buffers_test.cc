// SPDX-License-Identifier: BSD-2-Clause
// Is a buffer that the program unmaps while packets need it an error, and nothing worse?
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "os/user_memory.h"
#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

constexpr std::uint64_t kKey = 10;

// Memory of whole pages that its owner can take away.
class Pages {
 public:
  explicit Pages(std::size_t length) : length_(length) {
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const Bytes filled = pattern(length, 7);
    std::memcpy(base_, filled.data(), length);
  }
  ~Pages() { ::munmap(base_, length_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::span<std::byte> bytes() const { return {base_, length_}; }
  LocalRange range() const { return {base_, length_}; }
  // Not unmapped: the next mapping of this process might take its place.
  void go() const { ::mprotect(base_, length_, PROT_NONE); }
  void go_from(std::size_t offset) const {
    ::mprotect(base_ + offset, length_ - offset, PROT_NONE);
  }

 private:
  std::byte* base_;
  std::size_t length_;
};

struct UnmappedBuffersTest : ::testing::Test, AccessFixture {
  UnmappedBuffersTest() : AccessFixture(pattern(1 << 20, 3)) {}
  void SetUp() override {
    os::handle_user_faults();
    world.regions.add(kKey, region, Access::kRemoteRead | Access::kRemoteWrite);
    ASSERT_NE(flow, nullptr);
  }

  link::Outcome access(bool write, const LocalRange& local, std::uint64_t number) {
    const RemoteRange remote{0, local.length, RegionKey{kKey}};
    return flow->access(access_of(write, local, remote, number));
  }
  // How request `number` ended, when the peer is silent, or polls too.
  int error_while_silent(std::uint64_t number) {
    return until({&a}, [&] { return a.ends.has(number); }) ? a.ends.ended_ones[number].error : -1;
  }
  int error_of(std::uint64_t number) {
    const bool ended = until({&a, &b}, [&] { return a.ends.has(number); });
    return ended ? a.ends.ended_ones[number].error : -1;
  }
  // A new flow to the same peer carries messages, and neither end has taken the other for dead.
  void expect_peer_can_be_reached_again() {
    EXPECT_NE(a.flows.back()->check_peer(a.ends), link::PeerState::kDied);
    a.flows.clear();
    flow = connect(a, b);
    ASSERT_NE(flow, nullptr);
    b.log.messages.clear();
    Bytes bytes = pattern(50'000, 9);
    send(a, b, *flow, 100, bytes);
    ASSERT_TRUE(until({&a, &b}, [&] { return a.ends.has(100) && !b.log.messages.empty(); }));
    EXPECT_EQ(a.ends.ended_ones[100].error, 0);
    EXPECT_TRUE(b.log.messages.back().bytes == bytes);
    for (const auto& each : b.log.closed) EXPECT_FALSE(each.died);
  }
};

TEST_F(UnmappedBuffersTest, AMessageIsAnErrorWhenItGoesAgain) {
  const Pages pages(12 * 1024);
  ASSERT_EQ(send(a, b, *flow, 1, pages.bytes()).state, link::Outcome::State::kPending);
  a.poll();
  pages.go();
  EXPECT_EQ(error_while_silent(1), EFAULT);
  expect_peer_can_be_reached_again();
}

TEST_F(UnmappedBuffersTest, OthersOfTheFlowEndTogetherWithIt) {
  const Pages pages(12 * 1024);
  Bytes other = pattern(12 * 1024, 1);
  send(a, b, *flow, 1, pages.bytes(), true);
  send(a, b, *flow, 2, other, true);
  a.poll();
  pages.go();
  EXPECT_EQ(error_while_silent(1), EFAULT);
  EXPECT_EQ(error_while_silent(2), ECONNRESET);
  EXPECT_EQ(a.ends.doubled, 0U);
  expect_peer_can_be_reached_again();
}

TEST_F(UnmappedBuffersTest, AWriteIsAnErrorWhenItGoesAgain) {
  const Pages pages(64 * 1024);
  ASSERT_EQ(access(true, pages.range(), 1).state, link::Outcome::State::kPending);
  a.poll();
  pages.go();
  EXPECT_EQ(error_while_silent(1), EFAULT);
  expect_peer_can_be_reached_again();
}

TEST_F(UnmappedBuffersTest, AnOfferedMessageIsAnErrorWhenItIsWanted) {
  const Pages pages(1 << 20);
  ASSERT_EQ(send(a, b, *flow, 1, pages.bytes()).state, link::Outcome::State::kPending);
  pages.go_from(512 * 1024);
  EXPECT_EQ(error_of(1), EFAULT);
  ASSERT_TRUE(until({&a, &b}, [&] { return b.log.messages.at(0).error != -1; }));
  EXPECT_NE(b.log.messages[0].error, 0);
  expect_peer_can_be_reached_again();
}

TEST_F(UnmappedBuffersTest, ABufferThatIsReadIntoIsAnErrorAndTheFlowGoesOn) {
  const Pages pages(512 * 1024);
  ASSERT_EQ(access(false, pages.range(), 1).state, link::Outcome::State::kPending);
  pages.go_from(4096);
  EXPECT_EQ(error_of(1), EFAULT);
  Bytes bytes(region.size());
  ASSERT_EQ(access(false, {bytes.data(), bytes.size()}, 2).state, link::Outcome::State::kPending);
  EXPECT_EQ(error_of(2), 0);
  EXPECT_TRUE(bytes == region);
}

TEST_F(UnmappedBuffersTest, AReceiveIsAnErrorAtBothEnds) {
  const Pages pages(1 << 20);
  Bytes bytes = pattern(1 << 20, 5);
  b.log.accepts = false;
  ASSERT_EQ(send(a, b, *flow, 1, bytes).state, link::Outcome::State::kPending);
  ASSERT_TRUE(until({&a, &b}, [&] { return !b.log.messages.empty(); }));
  auto& message = b.log.messages.front();
  const LocalRange sge = pages.range();
  pages.go_from(512 * 1024);
  b.engine->accept(b.log, message.arrival.offer, {&sge, 1}, sge.length, &message);
  EXPECT_EQ(error_of(1), EFAULT);
  ASSERT_TRUE(until({&a, &b}, [&] { return message.error != -1; }));
  EXPECT_EQ(message.error, EFAULT);
  Bytes next = pattern(5'000, 6);
  send(a, b, *flow, 2, next);
  ASSERT_TRUE(until({&a, &b}, [&] { return b.log.messages.size() == 2; }));
  EXPECT_TRUE(b.log.messages.back().bytes == next) << "the flow goes on";
}

}  // namespace
}  // namespace weft::rdm::testing
