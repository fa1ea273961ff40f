// SPDX-License-Identifier: BSD-2-Clause
// Do accesses change what they may, nothing else, and in order with messages?
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

using memory::AccessError;
using State = link::Outcome::State;
using End = FlowLog::End;

constexpr std::size_t kRegionBytes = std::size_t{1} << 21;
constexpr std::uint64_t kBoth = 10;
constexpr std::uint64_t kHigh = 0x9000'0001;              // more than 31 bits
constexpr std::uint64_t kHigher = 0x1234'5678'9ABC'DEF0;  // more than 32
constexpr std::uint64_t kReadOnly = 11;
constexpr std::uint64_t kWriteOnly = 0xC000'0000;  // looks like that of an offer
constexpr std::uint64_t kUnknown = 99;
constexpr AtomicAction kFetchAdd{AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint64};
constexpr AtomicAction kCompareSwap{AtomicForm::kCompare, AtomicOp::kSwapIfEqual,
                                    AtomicType::kUint64};

struct AccessTest : ::testing::Test, AccessFixture {
  std::uint64_t last = 0;  // request

  AccessTest() : AccessFixture(Bytes(kRegionBytes)) {}
  void SetUp() override {
    const Access both = Access::kRemoteRead | Access::kRemoteWrite;
    for (const std::uint64_t key : {kBoth, kHigh, kHigher}) world.regions.add(key, region, both);
    world.regions.add(kReadOnly, region, Access::kRemoteRead);
    world.regions.add(kWriteOnly, region, Access::kRemoteWrite);
    ASSERT_NE(flow, nullptr);
  }

  // Begins an access in scattered SGEs; the number by which its end is known.
  std::uint64_t begin(bool write, std::span<std::byte> local,
                      const std::vector<RemoteRange>& remote, bool has_data = false,
                      bool must_copy = false) {
    const std::size_t third = local.size() / 3;
    const LocalRange sges[] = {{local.data(), third},
                               {local.data() + third, local.size() - 2 * third},
                               {local.data() + local.size() - third, third}};
    link::AccessRequest request;
    request.write = write;
    request.has_data = has_data;
    request.data = 0x55;
    request.local = sges;
    request.remote = remote;
    request.length = local.size();
    request.must_copy = must_copy;
    request.cookie = reinterpret_cast<void*>(++last);
    both([&] { return flow->access(request).state != State::kAgain; });
    return last;
  }
  End end_of(std::uint64_t number) {
    return both([&] { return a.ends.has(number); }) ? a.ends.ended_ones[number] : End{-1, -1};
  }
  End access(bool write, std::span<std::byte> local, const RemoteRange& remote) {
    return end_of(begin(write, local, {remote}));
  }
  End atomic(AtomicAction action, const std::vector<RemoteRange>& remote,
             std::vector<std::uint64_t> operand, std::vector<std::uint64_t> compare,
             std::vector<std::uint64_t>& result) {
    const std::size_t length = 8 * operand.size();
    const LocalRange o{operand.data(), length};
    const LocalRange c{compare.data(), 8 * compare.size()};
    const LocalRange r{result.data(), 8 * result.size()};
    link::AtomicRequest request;
    request.action = action;
    request.operand = {&o, 1};
    request.compare = {&c, action.compares() ? 1u : 0u};
    request.result = {&r, 1};
    request.remote = remote;
    request.length = length;
    request.cookie = reinterpret_cast<void*>(++last);
    both([&] { return flow->atomic(request).state != State::kAgain; });
    return end_of(last);
  }
  std::uint64_t number_at(std::size_t offset) const {
    std::uint64_t value;
    std::memcpy(&value, region.data() + offset, sizeof value);
    return value;
  }
  std::size_t count(link::MessageOperation operation) const { return b.log.count(operation); }
};

constexpr End kFine{0, 0};
End refused(AccessError why) { return {EACCES, static_cast<int>(why)}; }

TEST_F(AccessTest, WritesAndReadsOfAllSizes) {
  unsigned seed = 0;
  for (const std::uint64_t key : {kBoth, kHigh, kHigher}) {
    for (const std::size_t length : {1u, 7u, 1024u, 4096u, 4097u, 100'000u, 1u << 20}) {
      std::fill(region.begin(), region.end(), std::byte{0});
      Bytes bytes = pattern(length, ++seed);
      ASSERT_EQ(access(true, bytes, {777, length, RegionKey{key}}), kFine) << length;
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), region.begin() + 777)) << length;
      EXPECT_EQ(region[776], std::byte{0});
      EXPECT_EQ(region[777 + length], std::byte{0});
      Bytes back(length);
      ASSERT_EQ(access(false, back, {777, length, RegionKey{key}}), kFine) << length;
      EXPECT_TRUE(back == bytes) << length;
    }
  }
  EXPECT_TRUE(b.log.messages.empty());
}

TEST_F(AccessTest, SeveralRangesOfSeveralRegions) {
  Bytes bytes = pattern(30'000, 1);
  const std::vector<RemoteRange> remote = {{0, 10'000, RegionKey{kBoth}},
                                           {50'000, 1, RegionKey{kHigh}},
                                           {60'000, 19'999, RegionKey{kHigher}}};
  ASSERT_EQ(end_of(begin(true, bytes, remote)), kFine);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 10'000, region.begin()));
  EXPECT_EQ(region[50'000], bytes[10'000]);
  EXPECT_TRUE(std::equal(bytes.begin() + 10'001, bytes.end(), region.begin() + 60'000));
  Bytes back(30'000);
  ASSERT_EQ(end_of(begin(false, back, remote)), kFine);
  EXPECT_TRUE(back == bytes);
}

// InfiniBand checks neither the key nor the address of an access of no bytes (IBTA 9.7.4).
TEST_F(AccessTest, AnAccessToNoBytesIsAllowedWhateverItsKey) {
  for (const bool write : {true, false}) {
    EXPECT_EQ(access(write, {}, {0, 0, RegionKey{kBoth}}), kFine);
    EXPECT_EQ(access(write, {}, {0, 0, RegionKey{kUnknown}}), kFine);
    EXPECT_EQ(access(write, {}, {0, 0, RegionKey{write ? kReadOnly : kWriteOnly}}), kFine);
  }
}

// Long reads go in parts, too.
TEST_F(AccessTest, AnAccessInSeveralPartsIsToldOnce) {
  constexpr RegionKey kTold{12};
  const Access rights = Access::kRemoteRead | Access::kRemoteWrite;
  world.regions.table().report_accesses(world.regions.add(kTold.v, region, rights), rights);
  Bytes bytes(kRegionBytes);
  std::uint64_t accesses = 0;
  for (const bool write : {true, false}) {
    const auto need = write ? Access::kRemoteWrite : Access::kRemoteRead;
    const std::vector<RemoteRange> ways[] = {
        {{0, kRegionBytes, kTold}},
        {{0, 1000, kTold}, {5000, kRegionBytes - 6000, kTold}, {2000, 5000, kTold}}};
    for (const auto& remote : ways) {
      ASSERT_EQ(end_of(begin(write, bytes, remote)), kFine);
      Bytes behind = pattern(10, 1);
      send(a, b, *flow, 1000 + ++accesses, behind);
      ASSERT_TRUE(both([&] { return count(link::MessageOperation::kTagged) == accesses; }));
      ASSERT_EQ(b.log.accesses.size(), accesses);
      EXPECT_EQ(b.log.accesses.back(), std::pair(need, kTold.v));
    }
  }
}

TEST_F(AccessTest, BuffersThatMustBeCopiedMayChangeAtOnce) {
  const Bytes original = pattern(5000, 1);
  Bytes bytes = original;
  const auto number = begin(true, bytes, {{0, 5000, RegionKey{kBoth}}}, false, true);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  ASSERT_EQ(end_of(number), kFine);
  EXPECT_TRUE(std::equal(original.begin(), original.end(), region.begin()));
}

TEST_F(AccessTest, RefusalsHaveTheirReasonAndTouchNothing) {
  const Bytes before = pattern(kRegionBytes, 1);
  std::copy(before.begin(), before.end(), region.begin());
  struct Case {
    bool write;
    std::uint64_t address;
    std::uint64_t key;
    AccessError why;
  };
  const Case cases[] = {{true, 0, kUnknown, AccessError::kUnknownKey},
                        {false, 0, kUnknown, AccessError::kUnknownKey},
                        {true, 0, kHigher + 1, AccessError::kUnknownKey},
                        {true, kRegionBytes - 9999, kBoth, AccessError::kPastEnd},
                        {false, kRegionBytes, kHigh, AccessError::kPastEnd},
                        {true, ~0ull - 10, kBoth, AccessError::kWraps},
                        {true, 0, kReadOnly, AccessError::kNoRight},
                        {false, 0, kWriteOnly, AccessError::kNoRight}};
  std::uint64_t tag = 1000;
  for (const Case& each : cases) {
    Bytes bytes = pattern(10'000, 2);
    const Bytes message = pattern(5000, ++tag);
    const auto number = begin(each.write, bytes, {{each.address, 10'000, RegionKey{each.key}}});
    Bytes sent = message;
    ASSERT_EQ(send(a, b, *flow, tag, sent).error, 0);
    EXPECT_EQ(end_of(number), refused(each.why)) << "key " << each.key << " at " << each.address;
    EXPECT_TRUE(bytes == pattern(10'000, 2));
    ASSERT_TRUE(both([&] { return b.log.messages.size() == tag - 1000; }));
    EXPECT_EQ(b.log.messages.back().arrival.tag, tag);
    EXPECT_TRUE(b.log.messages.back().bytes == message);
  }
  EXPECT_TRUE(region == before);
}

// The target knows of more than it tells the initiator.
TEST_F(AccessTest, TheTargetHearsWhichAccessItHasRefused) {
  const RemoteRange good{0, 8, RegionKey{kBoth}};
  const RemoteRange past{kRegionBytes - 4, 8, RegionKey{kBoth}};
  const RemoteRange unknown{16, 8, RegionKey{kHigher + 1}};
  Bytes bytes(8);
  Bytes two(16);
  std::vector<std::uint64_t> was(2);
  end_of(begin(true, bytes, {past}));
  end_of(begin(false, bytes, {unknown}));
  end_of(begin(true, two, {good, past}));
  atomic(kFetchAdd, {good, past}, {1, 1}, {}, was);
  ASSERT_EQ(b.log.refusals.size(), 4U);
  const char* const operations[] = {"write", "read", "write", "atomic operation"};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& [operation, access] = b.log.refusals[i];
    const bool known = i != 1;
    EXPECT_EQ(operation, operations[i]);
    EXPECT_EQ(access.reason,
              static_cast<int>(known ? AccessError::kPastEnd : AccessError::kUnknownKey));
    EXPECT_EQ(access.range.address, known ? past.address : unknown.address);
    EXPECT_EQ(access.range.key, known ? past.key : unknown.key);
    EXPECT_EQ(access.ranges, 1U);
    EXPECT_EQ(access.region_known, known);
    EXPECT_EQ(access.region_length, known ? kRegionBytes : 0U);
  }
}

// Others go on their way between them.
TEST_F(AccessTest, RefusedOnesAmongManyDisturbNoOthers) {
  std::vector<Bytes> written;
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < 120; ++i) {
    written.push_back(pattern(6000, i));
    const bool bad = i % 3 == 1;
    numbers.push_back(
        begin(true, written.back(), {{i * 6000, 6000, RegionKey{bad ? kUnknown : kHigh}}}));
    Bytes message = pattern(100, i);
    send(a, b, *flow, 1'000'000 + i, message);
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool bad = i % 3 == 1;
    EXPECT_EQ(end_of(numbers[i]), bad ? refused(AccessError::kUnknownKey) : kFine) << i;
    const auto to = region.begin() + static_cast<std::ptrdiff_t>(i * 6000);
    const Bytes expected = bad ? Bytes(6000) : written[i];
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to)) << i;
  }
  ASSERT_TRUE(both([&] { return b.log.messages.size() == numbers.size(); }));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(b.log.messages[i].arrival.tag, 1'000'000 + i);
    EXPECT_TRUE(b.log.messages[i].bytes == pattern(100, i));
  }
}

TEST_F(AccessTest, AWriteWithDataAnnouncesItselfOnce) {
  Bytes bytes = pattern(20'000, 1);
  ASSERT_EQ(end_of(begin(true, bytes, {{0, 20'000, RegionKey{kBoth}}}, true)), kFine);
  ASSERT_TRUE(both([&] { return !b.log.messages.empty(); }));
  Bytes more = pattern(10, 1);
  send(a, b, *flow, 1000, more);
  ASSERT_TRUE(both([&] { return count(link::MessageOperation::kTagged) == 1; }));
  ASSERT_EQ(b.log.messages.size(), 2u);
  const link::Arrival& arrival = b.log.messages[0].arrival;
  EXPECT_EQ(arrival.operation, link::MessageOperation::kWriteData);
  EXPECT_TRUE(arrival.has_data);
  EXPECT_EQ(arrival.data, 0x55u);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), region.begin()));
}

TEST_F(AccessTest, ARefusedWriteWithDataAnnouncesNothing) {
  Bytes bytes = pattern(20'000, 1);
  EXPECT_EQ(end_of(begin(true, bytes, {{0, 20'000, RegionKey{kReadOnly}}}, true)),
            refused(AccessError::kNoRight));
  Bytes more = pattern(10, 1);
  send(a, b, *flow, 1000, more);
  ASSERT_TRUE(both([&] { return count(link::MessageOperation::kTagged) == 1; }));
  EXPECT_EQ(count(link::MessageOperation::kWriteData), 0u);
}

TEST_F(AccessTest, OneRefusedRangeOfSeveralFailsTheAccess) {
  Bytes bytes = pattern(2000, 1);
  const std::vector<RemoteRange> remote = {{0, 1000, RegionKey{kBoth}},
                                           {5000, 1000, RegionKey{kReadOnly}}};
  EXPECT_EQ(end_of(begin(true, bytes, remote, true)), refused(AccessError::kNoRight));
  EXPECT_EQ(region, Bytes(kRegionBytes)) << "no range is written when one is refused";
  Bytes good = pattern(2000, 2);
  ASSERT_EQ(end_of(begin(true, good, {{0, 2000, RegionKey{kBoth}}}, true)), kFine);
  ASSERT_TRUE(both([&] { return !b.log.messages.empty(); }));
  EXPECT_EQ(count(link::MessageOperation::kWriteData), 1u);
}

TEST_F(AccessTest, OneRangeThatCannotBeReadLeavesTheBufferAlone) {
  std::ranges::copy(pattern(kRegionBytes, 3), region.begin());
  Bytes bytes(2000);
  for (int i = 0; i < 3; ++i) {
    const std::vector<RemoteRange> remote = {{0, 1000, RegionKey{kBoth}},
                                             {5000, 1000, RegionKey{kWriteOnly}}};
    EXPECT_EQ(end_of(begin(false, bytes, remote)), refused(AccessError::kNoRight));
    EXPECT_EQ(bytes, Bytes(2000));
  }
  ASSERT_EQ(end_of(begin(false, bytes, {{0, 2000, RegionKey{kBoth}}})), kFine);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), region.begin()));
}

// A later write must not change the bytes that a read finds.
TEST_F(AccessTest, AWriteWaitsForTheReadsBeforeIt) {
  std::ranges::copy(pattern(kRegionBytes, 4), region.begin());
  const Bytes before = region;
  Bytes got(kRegionBytes);
  Bytes bytes = pattern(kRegionBytes, 5);
  const std::uint64_t read = begin(false, got, {{0, kRegionBytes, RegionKey{kBoth}}});
  const std::uint64_t write = begin(true, bytes, {{0, kRegionBytes, RegionKey{kBoth}}});
  EXPECT_EQ(end_of(read), kFine);
  EXPECT_EQ(end_of(write), kFine);
  EXPECT_EQ(got, before);
  EXPECT_EQ(region, bytes);
}

TEST_F(AccessTest, AnOwnerThatAskedIsTold) {
  const Access both_rights = Access::kRemoteRead | Access::kRemoteWrite;
  const auto registration = world.regions.add(50, region, both_rights);
  world.regions.table().report_accesses(registration, both_rights);
  Bytes bytes = pattern(10'000, 1);
  ASSERT_EQ(access(true, bytes, {0, 10'000, RegionKey{50}}), kFine);
  ASSERT_EQ(access(false, bytes, {0, 10'000, RegionKey{50}}), kFine);
  ASSERT_EQ(access(true, bytes, {kRegionBytes, 10'000, RegionKey{50}}),
            refused(AccessError::kPastEnd));
  ASSERT_EQ(b.log.accesses.size(), 2u);
  EXPECT_EQ(b.log.accesses[0], (std::pair{Access::kRemoteWrite, std::uint64_t{50}}));
  EXPECT_EQ(b.log.accesses[1], (std::pair{Access::kRemoteRead, std::uint64_t{50}}));
}

TEST_F(AccessTest, AtomicsBringWhatWasThere) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 1; i <= 50; ++i) {
    std::vector<std::uint64_t> was(1);
    ASSERT_EQ(atomic(kFetchAdd, {{64, 8, RegionKey{kHigher}}}, {i}, {}, was), kFine);
    EXPECT_EQ(was[0], sum);
    sum += i;
  }
  EXPECT_EQ(number_at(64), sum);
  std::vector<std::uint64_t> was(1);
  ASSERT_EQ(atomic(kCompareSwap, {{64, 8, RegionKey{kBoth}}}, {1}, {sum + 1}, was), kFine);
  EXPECT_EQ(was[0], sum);
  EXPECT_EQ(number_at(64), sum);
  ASSERT_EQ(atomic(kCompareSwap, {{64, 8, RegionKey{kBoth}}}, {1}, {sum}, was), kFine);
  EXPECT_EQ(was[0], sum);
  EXPECT_EQ(number_at(64), 1u);
}

TEST_F(AccessTest, AnAtomicOfSeveralElementsAndRanges) {
  std::vector<std::uint64_t> operand(512);
  std::iota(operand.begin(), operand.end(), 1);
  std::vector<std::uint64_t> was(512, 7);
  ASSERT_EQ(atomic(kFetchAdd, {{0, 96, RegionKey{kBoth}}, {8000, 4000, RegionKey{kHigh}}}, operand,
                   {}, was),
            kFine);
  for (std::size_t i = 0; i < 512; ++i) {
    EXPECT_EQ(number_at(i < 12 ? 8 * i : 8000 + 8 * (i - 12)), i + 1);
    EXPECT_EQ(was[i], 0u);
  }
}

TEST_F(AccessTest, RefusedAtomicsChangeNothing) {
  const Bytes before = pattern(kRegionBytes, 1);
  std::copy(before.begin(), before.end(), region.begin());
  std::vector<std::uint64_t> was(2, 7);
  const RemoteRange good{0, 8, RegionKey{kBoth}};
  const auto both_of = [&](std::uint64_t address, std::uint64_t key) {
    return atomic(kFetchAdd, {good, {address, 8, RegionKey{key}}}, {1, 1}, {}, was);
  };
  EXPECT_EQ(both_of(0, kUnknown), refused(AccessError::kUnknownKey));
  EXPECT_EQ(both_of(kRegionBytes - 7, kBoth), refused(AccessError::kPastEnd));
  EXPECT_EQ(both_of(0, kReadOnly), refused(AccessError::kNoRight));
  EXPECT_EQ(both_of(0, kWriteOnly), refused(AccessError::kNoRight));
  EXPECT_EQ(atomic(kCompareSwap, {{8, 8, RegionKey{kUnknown}}, good}, {1, 1}, {0, 0}, was),
            refused(AccessError::kUnknownKey));
  EXPECT_EQ(was, (std::vector<std::uint64_t>{7, 7}));
  EXPECT_TRUE(region == before);
  Bytes bytes = pattern(10, 1);
  send(a, b, *flow, 1000, bytes);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
}

}  // namespace
}  // namespace weft::rdm::testing
