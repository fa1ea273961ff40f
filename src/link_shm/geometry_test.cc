// SPDX-License-Identifier: BSD-2-Clause
// Do the parts of a slot keep apart, whatever its geometry, and is one that cannot be refused?
#include "link_shm/geometry.h"

#include <gtest/gtest.h>

#include "link_shm/layout.h"

namespace weft::shm {
namespace {

constexpr Geometry kSmall{16, 16, 16 * 1024};
constexpr Geometry kSmallest{4, 1, 4096};

TEST(Geometry, AZeroedRingHoldsNoMessage) {
  const auto lap = CellWord::unpack(0).lap;
  for (const Geometry& geometry : {kMessageGeometry, kSmall, kSmallest}) {
    RingPosition position(geometry);
    for (; position.count() < 4 * geometry.cells; position.advance()) {
      EXPECT_NE(position.lap(), lap) << position.count();
    }
  }
}

TEST(Geometry, ACellOfTheLastLapIsNotTakenForOneOfThis) {
  for (const Geometry& geometry : {kMessageGeometry, kSmall, kSmallest}) {
    RingPosition before(geometry);
    RingPosition position(geometry);
    while (position.count() < geometry.cells) position.advance();
    for (; position.count() < 4 * geometry.cells; position.advance(), before.advance()) {
      EXPECT_EQ(position.lap(), before.lap() + 1) << position.count();
      EXPECT_EQ(position.index(), before.index()) << position.count();
      EXPECT_EQ(position.index(), position.index_of(before.count())) << position.count();
    }
  }
}

TEST(Geometry, PartsOfASlotFollowEachOtherWithoutOverlap) {
  EXPECT_GE(kCellsAt, sizeof(SlotHeader));
  for (const Geometry& geometry : {kMessageGeometry, kSmall, kSmallest}) {
    EXPECT_GE(geometry.rendezvous_records_at(), kCellsAt + geometry.cells * sizeof(Cell));
    EXPECT_GE(geometry.bulk_at(),
              geometry.rendezvous_records_at() + geometry.rendezvous_records * sizeof(Rendezvous));
    EXPECT_EQ(geometry.bytes(), geometry.bulk_at() + geometry.bulk_bytes);
    EXPECT_LE(geometry.bytes(), kSlotBytes);
    EXPECT_EQ(geometry.rendezvous_records % geometry.rendezvous_block(), 0u);
  }
}

TEST(Geometry, ASmallSlotTakesAFewPages) { EXPECT_LE(kSmall.bytes(), 48u * 1024); }

TEST(Geometry, ThoseThatCanBeAreTaken) {
  for (const Geometry& geometry : {kMessageGeometry, kSmall, kSmallest}) {
    EXPECT_EQ(check_geometry(geometry), geometry);
  }
}

TEST(Geometry, ThoseThatCannotBeAreRefused) {
  const Geometry lies[] = {
      {},                                                   // nothing
      {0, 16, 16384},                                       // no cell
      {16, 0, 16384},                                       // no rendezvous
      {16, 16, 0},                                          // no bulk ring
      {2, 16, 16384},                                       // no quarter to give back
      {16, 16, 2048},                                       // less than a page
      {17, 16, 16384},                                      // no power of two
      {16, 17, 16384},                                      //
      {16, 16, 16385},                                      //
      {16, kMaxRendezvous * 2, 16384},                      // more than are kept account of
      {1u << 31, 16, 16384},                                // beyond the slot
      {16, 1u << 31, 16384},                                //
      {16, 16, 1u << 31},                                   //
      {0x80000000, 0x80000000, 0x80000000},                 //
      {1024, kMaxRendezvous, kMessageGeometry.bulk_bytes},  // each could be, together they cannot
  };
  for (const Geometry& lie : lies) {
    EXPECT_FALSE(check_geometry(lie))
        << lie.cells << ' ' << lie.rendezvous_records << ' ' << lie.bulk_bytes;
  }
}

}  // namespace
}  // namespace weft::shm
