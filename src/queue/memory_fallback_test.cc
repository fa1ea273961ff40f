// SPDX-License-Identifier: BSD-2-Clause
// Do both ends use packets where one of them cannot use shared memory?
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>

#include "link_shm/layout.h"
#include "link_shm/names.h"
#include "roce/route.h"
#include "test_support.h"

namespace weft::queue::testing {
namespace {

using work::CompletionStatus;
using work::WorkKind;

constexpr std::byte kMark{0x5A};

// A byte in the header of an end's mailbox has another lowest bit while this exists.
class Altered {
 public:
  Altered(const End& end, std::size_t offset)
      : file_(shm::mailbox_path(
                  device()->directory(),
                  os::SocketAddress::of_host(AF_INET, &in6addr_any, roce::port_of(end.pair->qpn())),
                  link::Service::kQueuePairs),
              std::ios::in | std::ios::out | std::ios::binary),
        offset_(static_cast<std::streamoff>(offset)) {
    EXPECT_TRUE(file_.is_open());
    invert();
  }
  ~Altered() { invert(); }
  Altered(const Altered&) = delete;
  Altered& operator=(const Altered&) = delete;

 private:
  void invert() {
    file_.seekg(offset_);
    const int byte = file_.get();
    file_.seekp(offset_);
    file_.put(static_cast<char>(byte ^ 1));
    EXPECT_TRUE(file_.flush().good());
  }
  std::fstream file_;
  const std::streamoff offset_;
};

// Two ends that could share memory, of which `b` finds no mailbox of `a` that it understands.
struct UnevenCouple {
  explicit UnevenCouple(QpType type = QpType::kRc)
      : a(type, nullptr, 64, true), b(type, nullptr, 64, true) {
    a.connect(b.pair->qpn());
    const Altered of_a(a, offsetof(shm::MailboxHeader, version));
    b.connect(a.pair->qpn());
  }
  int write(std::size_t to, std::uint64_t id) {
    const work::Segment out[] = {a.part(0, 8)};
    QpSendRequest request;
    request.id = id;
    request.opcode = CompletionOpcode::kWrite;
    request.work.kind = WorkKind::kWrite;
    request.work.sges = out;
    request.work.length = 8;
    request.work.address = b.address(to);
    request.work.key = b.key();
    return a.post(request);
  }
  static int send(End& from, std::size_t length, std::uint64_t id = 0) {
    const work::Segment out[] = {from.part(0, length)};
    return from.send(out, id);
  }
  static int receive(End& at, std::size_t length) {
    const work::Segment in[] = {at.part(1 << 20, length)};
    return at.receive(in);
  }
  // The bytes of the last receive.
  static bool has_mark(const End& at, std::size_t length) {
    const MutexLock guard(at.port->lock());
    const auto begin = at.memory.begin() + (1 << 20);
    return std::count(begin, begin + static_cast<std::ptrdiff_t>(length), kMark) ==
           static_cast<std::ptrdiff_t>(length);
  }
  std::uint64_t packets() const { return b.port->stats().of(Stat::kRequests); }

  End a;
  End b;
};

TEST(MemoryFallback, AOneSidedOperationGoesByPackets) {
  UnevenCouple two;
  two.a.memory[7] = kMark;
  ASSERT_EQ(two.write(64, 1), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  const MutexLock guard(two.b.port->lock());
  EXPECT_EQ(two.b.memory[64 + 7], kMark);
  EXPECT_NE(two.packets(), 0U);
}

TEST(MemoryFallback, MessagesInTheRingGoByPacketsOnce) {
  UnevenCouple two;
  std::ranges::fill(two.a.memory, kMark);
  constexpr std::size_t kMessages = 5;
  constexpr std::size_t kBytes = 10'000;
  for (std::size_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(UnevenCouple::receive(two.b, kBytes), 0);
    ASSERT_EQ(UnevenCouple::send(two.a, kBytes, i), 0);
  }
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    const device::Completion sent = two.a.next_sent();
    EXPECT_EQ(sent.status, CompletionStatus::kSuccess);
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(sent.context), i);
    EXPECT_EQ(two.b.next_received().length, kBytes);
  }
  EXPECT_TRUE(UnevenCouple::has_mark(two.b, kBytes));
  EXPECT_NE(two.packets(), 0U);
  two.b.port->progress();
  EXPECT_TRUE(two.b.received->empty());
}

TEST(MemoryFallback, PacketsOfThePeerAreTaken) {
  UnevenCouple two;
  std::ranges::fill(two.b.memory, kMark);
  ASSERT_EQ(UnevenCouple::receive(two.a, 16), 0);
  ASSERT_EQ(UnevenCouple::send(two.b, 16), 0);
  EXPECT_EQ(two.a.next_received().length, 16U);
  EXPECT_TRUE(UnevenCouple::has_mark(two.a, 16));
  EXPECT_EQ(two.b.next_sent().status, CompletionStatus::kSuccess);
}

TEST(MemoryFallback, AnUnreliableConnectionGoesByPackets) {
  UnevenCouple two(QpType::kUc);
  std::ranges::fill(two.a.memory, kMark);
  ASSERT_EQ(UnevenCouple::receive(two.b, 16), 0);
  ASSERT_EQ(UnevenCouple::send(two.a, 16), 0);
  EXPECT_EQ(two.b.next_received().length, 16U);
  EXPECT_TRUE(UnevenCouple::has_mark(two.b, 16));
  ASSERT_EQ(two.write(64, 2), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  EXPECT_NE(two.packets(), 0U);
}

// As by a seccomp filter that the program has set up meanwhile.
TEST(MemoryFallback, AMessageToAProcessThatMayNotBeReachedAnyMoreGoesByPackets) {
  Couple two(QpType::kRc, End::usual(), true);
  const Altered of_b(two.b, offsetof(shm::MailboxHeader, probe) + offsetof(shm::Probe, value));
  std::ranges::fill(two.a.memory, kMark);
  ASSERT_EQ(UnevenCouple::receive(two.b, 16), 0);
  ASSERT_EQ(UnevenCouple::send(two.a, 16), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  EXPECT_EQ(two.b.next_received().length, 16U);
  EXPECT_TRUE(UnevenCouple::has_mark(two.b, 16));
  EXPECT_NE(two.b.port->stats().of(Stat::kRequests), 0U);
}

}  // namespace
}  // namespace weft::queue::testing
