// SPDX-License-Identifier: BSD-2-Clause
// What may a program see that polls memory while requests of its peer change it? (IBTA 9.5)
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "support/beside.h"

namespace weft::verbs_conformance {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSource = std::size_t{1} << 20;  // of an initiator's bytes that are sent
constexpr std::size_t kLong = 100'000;                 // in several parts

// All bytes of a round; each differs from that of the round before.
unsigned char mark_of(std::uint64_t round) { return static_cast<unsigned char>(round % 251); }

// As a program sees them that polls memory.
unsigned char byte_at(const std::byte* memory) {
  return std::atomic_ref(*reinterpret_cast<unsigned char*>(const_cast<std::byte*>(memory)))
      .load(std::memory_order_acquire);
}
std::atomic_ref<std::uint64_t> word_at(std::byte* memory) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory));
}

// The last ones first, which are the last to arrive.
std::size_t others_than(unsigned char mark, const std::byte* bytes, std::size_t length) {
  std::size_t others = 0;
  for (std::size_t i = length; i-- > 0;) others += byte_at(bytes + i) == mark ? 0 : 1;
  return others;
}

class MemoryOrder : public testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (GetParam() == Where::kProcess && !kHasChildren) GTEST_SKIP() << "not under a sanitizer";
  }
};
INSTANTIATE_TEST_SUITE_P(TargetIn, MemoryOrder, testing::Values(Where::kThread, Where::kProcess),
                         testing::PrintToStringParamName());

// Within a cache line, across lines, across pages, and in several copies.
struct Range {
  std::size_t at;
  std::size_t length;
};
constexpr auto kRanges = std::to_array<Range>({
    {0, 2},
    {61, 7},
    {0, 64},
    {1, 63},
    {60, 8},
    {3, 200},
    {64, 256},
    {kPage - 1, 2},
    {kPage - 4, 9},
    {kPage - 100, 1000},
    {kPage - 64, 64},
    {0, kPage + 64},
    {5, 70'000},
    {17, 400'000},
});

// Bounds rounds where other programs have the processors.
class Rounds {
 public:
  // Whether that round is one of the `least`, or one of the `most` that there is time for.
  bool include(std::uint64_t round, std::uint64_t least, std::uint64_t most) const {
    constexpr std::chrono::milliseconds kEnough(150);
    return round <= least || (round <= most && std::chrono::steady_clock::now() - begin_ < kEnough);
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The target spins on memory, as perftest's ib_write_lat does.
TEST_P(MemoryOrder, TheLastByteOfAWriteIsTheLast) {
  const auto target = [](End& end, Board& board) {
    for (std::uint64_t round = 1;; ++round) {
      const Range& range = kRanges[round % kRanges.size()];
      const unsigned char mark = mark_of(round);
      const std::byte* const first = end.memory() + range.at;
      const std::byte* const last = first + range.length - 1;
      ASSERT_TRUE(spins_until([&] { return byte_at(last) == mark || board.over; }));
      if (board.over) return;
      ASSERT_EQ(others_than(mark, first, range.length), 0U)
          << "of " << range.length << " bytes at " << range.at;
      board.finished = round;
    }
  };
  Beside two(GetParam(), target);
  const Rounds rounds;
  for (std::uint64_t round = 1; rounds.include(round, kRanges.size(), 8000); ++round) {
    const Range& range = kRanges[round % kRanges.size()];
    std::memset(two.end().memory(), mark_of(round), range.length);
    const std::size_t cut = round % 3 * range.length / 3;  // one entry, or two
    SendRequest write(IBV_WR_RDMA_WRITE, {two.end().part(cut, range.length - cut)});
    if (cut != 0) write.sges.insert(write.sges.begin(), two.end().part(0, cut));
    ASSERT_EQ(two.end().post(write.at(two.place(range.at))), 0);
    ASSERT_EQ(two.end().sent().status, IBV_WC_SUCCESS);
    ASSERT_TRUE(two.finishes(round));
  }
}

constexpr auto kLengths = std::to_array<std::size_t>({1, 8, 65, 5000, kLong, 600'000});
constexpr std::uint64_t kMessages = 24;

TEST_P(MemoryOrder, AMessageArrivesAfterTheBytesOfTheWriteBeforeIt) {
  const auto target = [](End& end, Board& board) {
    for (std::uint64_t round = 1; round <= kMessages; ++round) {
      const std::size_t length = kLengths[round % kLengths.size()];
      ASSERT_EQ(end.receive(ReceiveRequest({end.part(kSource, 8)})), 0);
      ASSERT_EQ(end.received().status, IBV_WC_SUCCESS);
      ASSERT_EQ(others_than(mark_of(round), end.memory(), length), 0U) << "of " << length;
      board.finished = round;
    }
  };
  Beside two(GetParam(), target);
  for (std::uint64_t round = 1; round <= kMessages; ++round) {
    const std::size_t length = kLengths[round % kLengths.size()];
    std::memset(two.end().memory(), mark_of(round), length);
    SendRequest write(IBV_WR_RDMA_WRITE, {two.end().part(0, length)});
    SendRequest send(IBV_WR_SEND, {two.end().part(0, 8)});
    write.at(two.place(0));
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(two.end().qp(), write.get(send.get()), &bad), 0);
    ASSERT_EQ(two.end().sent().status, IBV_WC_SUCCESS);
    ASSERT_EQ(two.end().sent().status, IBV_WC_SUCCESS);
    ASSERT_TRUE(two.finishes(round));
  }
}

// A flag that is written behind the data, as programs do that use no messages.
TEST_P(MemoryOrder, TheBytesOfAWriteAreThereBeforeThoseOfTheNext) {
  const auto target = [](End& end, Board& board) {
    for (std::uint64_t round = 1; round <= kMessages; ++round) {
      const std::size_t length = kLengths[round % kLengths.size()];
      ASSERT_TRUE(spins_until([&] { return word_at(end.memory() + kSource) == round; }));
      ASSERT_EQ(others_than(mark_of(round), end.memory(), length), 0U) << "of " << length;
      board.finished = round;
    }
  };
  Beside two(GetParam(), target);
  for (std::uint64_t round = 1; round <= kMessages; ++round) {
    const std::size_t length = kLengths[round % kLengths.size()];
    std::memset(two.end().memory(), mark_of(round), length);
    word_at(two.end().memory() + kSource) = round;
    SendRequest data(IBV_WR_RDMA_WRITE, {two.end().part(0, length)});
    SendRequest flag(IBV_WR_RDMA_WRITE, {two.end().part(kSource, 8)});
    data.at(two.place(0));
    flag.at(two.place(kSource));
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(two.end().qp(), data.get(flag.get()), &bad), 0);
    ASSERT_EQ(two.end().sent().status, IBV_WC_SUCCESS);
    ASSERT_EQ(two.end().sent().status, IBV_WC_SUCCESS);
    ASSERT_TRUE(two.finishes(round));
  }
}

// Places of the target's memory that requests behind a SEND change or read.
constexpr std::size_t kWritten = 0;
constexpr std::size_t kCounter = 2 * kPage;
constexpr std::size_t kRead = 3 * kPage;
constexpr std::uint64_t kStalls = 24;

std::size_t length_of_send(std::uint64_t round) { return round % 3 == 0 ? kLong : round % 3 * 8; }

// Before each receive, the requests behind the SEND that waits for it have had no effect. In some
// rounds the target has looked at its queues meanwhile, and told the initiator to come again.
void expect_no_effect_of_stalled(End& end, Board& board) {
  for (std::uint64_t round = 1; round <= kStalls; ++round) {
    ASSERT_TRUE(spins_until([&] { return board.posted >= round; }));
    for (std::uint64_t i = 0; i < round % 4 * 200; ++i) end.drive();
    ASSERT_EQ(others_than(mark_of(round - 1), end.memory() + kWritten, kPage), 0U);
    ASSERT_EQ(word_at(end.memory() + kCounter).load(), round - 1);
    word_at(end.memory() + kRead) = ~round;
    ASSERT_EQ(end.receive(ReceiveRequest({end.part(kSource, kLong)})), 0);
    const ibv_wc wc = end.received();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.byte_len, length_of_send(round));
  }
}

TEST_P(MemoryOrder, RequestsBehindASendWithoutAReceiveWaitAndCompleteInOrder) {
  Beside two(GetParam(), expect_no_effect_of_stalled);
  End& end = two.end();
  for (std::uint64_t round = 1; round <= kStalls; ++round) {
    std::memset(end.memory(), mark_of(round), kPage);
    SendRequest send(IBV_WR_SEND, {end.part(kSource, length_of_send(round))}, 1);
    SendRequest write(IBV_WR_RDMA_WRITE, {end.part(0, kPage)}, 2);
    SendRequest add(IBV_WR_ATOMIC_FETCH_AND_ADD, {end.part(kCounter, 8)}, 3);
    SendRequest read(IBV_WR_RDMA_READ, {end.part(kRead, 8)}, 4);
    write.at(two.place(kWritten));
    add.at(two.place(kCounter)).operands(1);
    read.at(two.place(kRead));
    ibv_send_wr* bad = nullptr;
    ibv_send_wr* const list = send.get(write.get(add.get(read.get())));
    ASSERT_EQ(ibv_post_send(end.qp(), list, &bad), 0);
    two.board().posted = round;
    for (std::uint64_t id = 1; id <= 4; ++id) {
      const ibv_wc wc = end.sent();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, id);
    }
    ASSERT_EQ(word_at(end.memory() + kCounter).load(), round - 1);
    ASSERT_EQ(word_at(end.memory() + kRead).load(), ~round) << "read before the SEND was executed";
  }
}

// Two values without a common byte.
constexpr std::array<std::uint64_t, 4> kValues{0x0101'0101'0101'0101, 0xFEFE'FEFE'FEFE'FEFE,
                                               0x2323'2323'2323'2323, 0xDCDC'DCDC'DCDC'DCDC};
bool is_whole(std::uint64_t value) { return std::ranges::count(kValues, value) == 1; }
constexpr std::size_t kWords = 16'000;

// Looks at a word while another thread works.
template <class Work>
void expect_whole_values(std::byte* word, const Work& work) {
  word_at(word) = kValues[0];
  std::atomic<bool> over{false};
  std::thread looking([&] {
    while (!over) {
      const std::uint64_t value = word_at(word);
      ASSERT_PRED1(is_whole, value);
    }
  });
  work();
  over = true;
  looking.join();
}

// Requests of 8 bytes: WRITEs of values in turn, or READs whose values are looked at.
void repeat(End& end, ibv_wr_opcode opcode, const RemotePlace& place) {
  constexpr std::size_t kAtOnce = 16;
  const Rounds rounds;
  for (std::size_t i = 0; rounds.include(i, 0, kWords); i += kAtOnce) {
    for (std::size_t at = 0; at < kAtOnce * 8; at += 8) {
      ASSERT_EQ(end.post(SendRequest(opcode, {end.part(at, 8)}).at(place)), 0);
    }
    for (std::size_t each = 0; each < kAtOnce; ++each) ASSERT_EQ(end.sent().status, IBV_WC_SUCCESS);
    for (std::size_t at = 0; at < kAtOnce * 8; at += 8) {
      ASSERT_PRED1(is_whole, word_at(end.memory() + at).load());
    }
  }
}
void fill(End& end, std::size_t first) {
  for (std::size_t i = 0; i < 16; ++i) word_at(end.memory() + i * 8) = kValues[first + i % 2];
}

TEST(WholeWords, AreWrittenByAWriteOfEightAlignedBytes) {
  Pair two;
  fill(two.a, 0);
  expect_whole_values(two.b.memory() + 64,
                      [&] { repeat(two.a, IBV_WR_RDMA_WRITE, two.b.place(64)); });
}

TEST(WholeWords, AreWrittenByTwoInitiatorsAtOnce) {
  Pair one;
  Pair other;
  const Owned<ibv_mr> same(
      ibv_reg_mr(other.b.pd(), one.b.memory(), kPage, static_cast<int>(kAllRights)));
  ASSERT_NE(same, nullptr);
  fill(one.a, 0);
  fill(other.a, 2);
  expect_whole_values(one.b.memory() + 64, [&] {
    std::thread beside([&] {
      repeat(other.a, IBV_WR_RDMA_WRITE, {one.b.place(64).address, same->rkey});
    });
    repeat(one.a, IBV_WR_RDMA_WRITE, one.b.place(64));
    beside.join();
  });
}

TEST(WholeWords, AreReadByAReadOfEightAlignedBytes) {
  Pair two;
  std::byte* const word = two.b.memory() + 64;
  word_at(word) = kValues[0];
  std::atomic<bool> over{false};
  std::thread changing([&] {
    for (std::size_t i = 0; !over; ++i) word_at(word) = kValues[i % kValues.size()];
  });
  repeat(two.a, IBV_WR_RDMA_READ, two.b.place(64));
  over = true;
  changing.join();
}

}  // namespace
}  // namespace weft::verbs_conformance
