// SPDX-License-Identifier: BSD-2-Clause
// Do the counts of ports stay in the totals of their domain?
#include "device/port_totals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace weft::device {
namespace {

std::uint64_t packets_of(const PortTotals& totals) {
  Stats sum;
  totals.add_to(sum);
  return sum.of(Stat::kPacketsSent);
}

TEST(PortTotals, AreTheSumsOfThePortsThatWereTakenThere) {
  const auto file = StatsFile::open({});
  const auto totals = std::make_shared<PortTotals>();
  const auto one = totals->take(*file, "192.0.2.1:40000");
  const auto two = totals->take(*file, "192.0.2.1:40001");
  const auto other = file->take("192.0.2.1:40002");
  one->add(Stat::kPacketsSent, 3);
  two->add(Stat::kPacketsSent, 4);
  two->add(Stat::kIcrcErrors, 5);
  other->add(Stat::kPacketsSent, 100);
  Stats sum;
  totals->add_to(sum);
  EXPECT_EQ(sum.of(Stat::kPacketsSent), 7U);
  EXPECT_EQ(sum.of(Stat::kIcrcErrors), 5U);
}

TEST(PortTotals, KeepTheCountsOfClosedPorts) {
  const auto file = StatsFile::open({});
  const auto totals = std::make_shared<PortTotals>();
  auto port = totals->take(*file, "192.0.2.1:40000");
  port->add(Stat::kPacketsSent, 3);
  port.reset();
  EXPECT_EQ(packets_of(*totals), 3U);
  port = totals->take(*file, "192.0.2.1:40000");
  port->add(Stat::kPacketsSent, 4);
  EXPECT_EQ(packets_of(*totals), 7U);
}

TEST(PortTotals, LiveUntilTheirLastPortHasClosed) {
  const auto file = StatsFile::open({});
  auto totals = std::make_shared<PortTotals>();
  const std::weak_ptr<PortTotals> watched = totals;
  auto port = totals->take(*file, "192.0.2.1:40000");
  totals.reset();
  EXPECT_FALSE(watched.expired());
  port.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(PortTotals, NeverGoBackWhilePortsCountAndClose) {
  const auto file = StatsFile::open({});
  const auto totals = std::make_shared<PortTotals>();
  std::atomic<bool> ended{false};
  std::thread counting([&] {
    for (int i = 0; i < 2000; ++i) {
      const auto port = totals->take(*file, "192.0.2.1:40000");
      for (int k = 0; k < 10; ++k) port->add(Stat::kPacketsSent);
    }
    ended = true;
  });
  std::uint64_t last = 0;
  while (!ended) {
    const std::uint64_t now = packets_of(*totals);
    EXPECT_GE(now, last);
    last = now;
  }
  counting.join();
  EXPECT_EQ(packets_of(*totals), 20'000U);
}

}  // namespace
}  // namespace weft::device
