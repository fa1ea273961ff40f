// SPDX-License-Identifier: BSD-2-Clause
// Are the parts of a registration one range to its peers? (fi_mr_regv of fi_mr(3))
#include <algorithm>
#include <cstring>
#include <vector>

#include "support/atomic.h"
#include "support/guarded_buffer.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kSegments = 3;
constexpr std::size_t kPart = 10004;  // elements of 4 bytes end at a border, those of 8 do not
constexpr std::size_t kWhole = kSegments * kPart;
constexpr std::uint64_t kContents = 31;

Options options() {
  Options options;
  options.caps |= FI_ATOMIC;
  return options;
}

// The bytes of that pattern in the order in which peers see memory that holds it.
Bytes as_peers_see(std::uint64_t seed) {
  GuardedBuffer memory(kWhole);
  memory.fill(seed, 0, kWhole);
  Bytes seen;
  for (std::size_t i = kSegments; i-- != 0;) {
    const auto* part = memory.data() + i * kPart;
    seen.insert(seen.end(), part, part + kPart);
  }
  return seen;
}

class Segments : public PlacementTest {
 protected:
  Segments() : world_(GetParam(), options()) {
    if (!world_.ok()) return;
    region_ = world_.target().expose({.length = kWhole,
                                      .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
                                      .seed = kContents,
                                      .segments = kSegments});
  }

  // The error with which the call, which takes a context, ends.
  template <class Call>
  int end_of(Call call) {
    ssize_t rc = -FI_EAGAIN;
    world_.pump().until([&] { return (rc = call(&context_)) != -FI_EAGAIN; });
    if (rc != 0) return static_cast<int>(-rc);
    std::optional<Completion> c;
    world_.pump().until([&] { return (c = world_.endpoint().take(&context_)).has_value(); });
    return c ? c->err : FI_ETIMEDOUT;
  }
  int write(std::uint64_t offset, const std::uint8_t* bytes, std::size_t length) {
    return end_of([&](void* own) {
      return fi_write(world_.ep(), bytes, length, nullptr, world_.to_target(),
                      region_.base + offset, region_.key, own);
    });
  }
  Bytes read(std::uint64_t offset, std::size_t length) {
    Bytes bytes(length);
    EXPECT_EQ(end_of([&](void* own) {
                return fi_read(world_.ep(), bytes.data(), length, nullptr, world_.to_target(),
                               region_.base + offset, region_.key, own);
              }),
              0);
    return bytes;
  }
  Atomic sum(fi_datatype type, std::size_t count, std::uint64_t offset) {
    Atomic atomic;
    atomic.type = type;
    atomic.count = count;
    atomic.peer = world_.to_target();
    atomic.address = region_.base + offset;
    atomic.key = region_.key;
    std::mt19937_64 random(3);
    atomic.fill(random);
    return atomic;
  }

  World world_;
  Region region_;
  fi_context2 context_{};
};

TEST_P(Segments, ReadsGoOnInTheNextOne) {
  ASSERT_TRUE(world_.ok());
  ASSERT_EQ(region_.rc, 0);
  const Bytes seen = as_peers_see(kContents);
  for (const std::size_t length : {std::size_t{2}, std::size_t{9}, std::size_t{5000}, kWhole - 2}) {
    for (const std::size_t border : {kPart, 2 * kPart}) {
      const std::size_t begin = length > kPart ? 1 : border - length / 2;
      const auto from = seen.begin() + static_cast<std::ptrdiff_t>(begin);
      EXPECT_EQ(read(begin, length), Bytes(from, from + static_cast<std::ptrdiff_t>(length)))
          << length << " bytes at " << begin;
    }
  }
  world_.exchange();
  world_.target().expect_region(region_, kContents, 0, kWhole);
}

TEST_P(Segments, WritesGoOnInTheNextOne) {
  ASSERT_TRUE(world_.ok());
  constexpr std::uint64_t kWritten = 32;
  const Bytes seen = as_peers_see(kWritten);
  const std::size_t lengths[] = {kPart - 4, 8, 1, 7000, 3001, kPart + 7};
  std::size_t offset = 0;
  for (std::size_t i = 0; offset < kWhole; ++i) {
    const std::size_t length = std::min(lengths[i % std::size(lengths)], kWhole - offset);
    ASSERT_EQ(write(offset, seen.data() + offset, length), 0) << length << " bytes at " << offset;
    offset += length;
  }
  world_.exchange();
  world_.target().expect_region(region_, kWritten, 0, kWhole);
}

TEST_P(Segments, AnAccessPastTheLastOneIsRefused) {
  ASSERT_TRUE(world_.ok());
  const Bytes bytes(kPart);
  EXPECT_EQ(write(kWhole - 1, bytes.data(), 2), FI_EACCES);
  EXPECT_EQ(write(2 * kPart + 1, bytes.data(), kPart), FI_EACCES);
  world_.exchange();
  world_.target().expect_region(region_, kContents, 0, kWhole);
}

TEST_P(Segments, AnAtomicOperationGoesOnInTheNextOne) {
  ASSERT_TRUE(world_.ok());
  for (const auto& [count, offset] :
       {std::pair{std::size_t{2}, kPart - 4}, std::pair{std::size_t{40}, 2 * kPart - 100}}) {
    Atomic atomic = sum(FI_UINT32, count, offset);
    const Bytes before = read(offset, atomic.bytes());
    ASSERT_EQ(end_of([&](void* own) { return issue(world_.ep(), atomic, own); }), 0);
    collect(atomic);
    EXPECT_EQ(atomic.result, before);
    EXPECT_EQ(read(offset, atomic.bytes()), outcome(atomic, before));
  }
}

// Its halves lie apart: no lock covers both.
TEST_P(Segments, AnAtomicOperationOnAnElementInTwoIsRefused) {
  ASSERT_TRUE(world_.ok());
  Atomic atomics[] = {sum(FI_UINT64, 1, kPart - 4), sum(FI_UINT64, 3, kPart - 12),
                      sum(FI_UINT32, 4, kPart - 6)};
  for (Atomic& atomic : atomics) {
    EXPECT_EQ(end_of([&](void* own) { return issue(world_.ep(), atomic, own); }), FI_EACCES);
  }
  world_.exchange();
  world_.target().expect_region(region_, kContents, 0, kWhole);
}

INSTANTIATE_TEST_SUITE_P(Regions, Segments, every_placement(), placement_name);

}  // namespace
}  // namespace weft::conformance
