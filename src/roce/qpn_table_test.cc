// SPDX-License-Identifier: BSD-2-Clause
// Does each handler get a QPN of its own, and no number of a former one too soon?
#include "roce/qpn_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include "roce/route.h"

namespace weft::roce {
namespace {

using std::chrono::milliseconds;

struct Handler final : PacketHandler {
  void take(const PacketArrival&) override {}
  void take_cnp(const PacketArrival&) override {}
  void unreachable(const os::UdpError&) override {}
};

constexpr std::uint16_t kPort = 40'000;

struct QpnTableTest : ::testing::Test {
  QpnTable table{kPort};
  Handler handler;
  Handler other;
  os::Time now{std::chrono::hours(1)};

  Result<std::uint32_t> take(QpnUse use = QpnUse::kQueuePair) {
    return table.take(handler, use, now);
  }
  // Takes numbers of queue pairs until there are no more.
  std::vector<std::uint32_t> take_all(QpnTable& of) {
    std::vector<std::uint32_t> all;
    for (;;) {
      const auto qpn = of.take(handler, QpnUse::kQueuePair, now);
      if (!qpn) {
        EXPECT_EQ(qpn.error().code, ENOBUFS);
        return all;
      }
      all.push_back(qpn.value());
    }
  }
};

TEST_F(QpnTableTest, NumbersOfQueuePairsNameThePortAndBeginBehindTheEndpoints) {
  EXPECT_EQ(take().value(), kPort << 8 | 2);
  EXPECT_EQ(take().value(), kPort << 8 | 3);
  EXPECT_EQ(take(QpnUse::kEndpoint).value(), queue_pair_at(kPort));
  EXPECT_EQ(take(QpnUse::kManager).value(), wire::kCmQpn);
  EXPECT_EQ(take(QpnUse::kGroups).value(), wire::kMulticastQpn);
}

TEST_F(QpnTableTest, EachNumberLeadsToItsOwnerAndOthersToNone) {
  const auto own = {QpnUse::kManager, QpnUse::kGroups, QpnUse::kEndpoint, QpnUse::kQueuePair};
  std::vector<std::uint32_t> given;
  for (const QpnUse use : own) given.push_back(take(use).value());
  const auto second = table.take(other, QpnUse::kQueuePair, now);
  EXPECT_EQ(table.owner(second.value()), &other);
  for (const std::uint32_t qpn : given) EXPECT_EQ(table.owner(qpn), &handler);
  const std::uint32_t none[] = {0,
                                2,
                                kPort << 8 | 0,
                                kPort << 8 | 4,
                                kPort << 8 | 255,
                                (kPort + 1) << 8 | 1,
                                (kPort - 1) << 8 | 2};
  for (const std::uint32_t qpn : none) EXPECT_EQ(table.owner(qpn), nullptr) << qpn;
  for (const std::uint32_t qpn : given) table.give_back(qpn, now);
  for (const std::uint32_t qpn : given) EXPECT_EQ(table.owner(qpn), nullptr) << qpn;
}

TEST_F(QpnTableTest, ThereIsOneEndpointOneManagerAndOneMemberOfGroups) {
  for (const QpnUse use : {QpnUse::kManager, QpnUse::kGroups, QpnUse::kEndpoint}) {
    const auto first = take(use);
    const auto second = table.take(other, use, now);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, EADDRINUSE);
    EXPECT_EQ(table.owner(first.value()), &handler);
    table.give_back(first.value(), now);
    EXPECT_EQ(table.take(other, use, now).value(), first.value()) << "it is the port's for good";
  }
}

TEST_F(QpnTableTest, APortHas254NumbersForQueuePairs) {
  const auto all = take_all(table);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 254U);
  EXPECT_EQ(all.size(), 254U);
  EXPECT_EQ(all.back(), kPort << 8 | 255);
}

TEST_F(QpnTableTest, TheNumberOfGroupsIsNotGivenToAQueuePair) {
  QpnTable last(0xFFFF);
  const auto all = take_all(last);
  EXPECT_EQ(all.size(), 253U);
  EXPECT_EQ(std::ranges::count(all, wire::kMulticastQpn), 0);
  EXPECT_EQ(last.owner(wire::kMulticastQpn), nullptr);
}

TEST_F(QpnTableTest, ANumberRestsFor100Ms) {
  const auto all = take_all(table);
  table.give_back(all[100], now);
  EXPECT_EQ(table.owner(all[100]), nullptr);
  now += milliseconds(99);
  EXPECT_FALSE(take());
  now += milliseconds(1);
  EXPECT_EQ(take().value(), all[100]);
  EXPECT_FALSE(take());
}

TEST_F(QpnTableTest, ANumberReturnsOnlyAfterAllOthers) {
  std::set<std::uint32_t> given;
  for (int i = 0; i < 254; ++i) {
    const std::uint32_t qpn = take().value();
    EXPECT_TRUE(given.insert(qpn).second);
    table.give_back(qpn, now);
    now += milliseconds(100);
  }
  EXPECT_TRUE(given.contains(take().value()));
}

TEST_F(QpnTableTest, GivingBackWhatWasNotGivenChangesNothing) {
  for (const std::uint32_t qpn : {0U, wire::kCmQpn, wire::kMulticastQpn, kPort << 8 | 7U}) {
    table.give_back(qpn, now);
  }
  EXPECT_EQ(take_all(table).size(), 254U);
}

TEST_F(QpnTableTest, AnOwnerOfSeveralNumbersIsOneOwner) {
  const std::uint32_t one = take(QpnUse::kManager).value();
  const std::uint32_t two = take(QpnUse::kEndpoint).value();
  EXPECT_EQ(table.owners(), std::vector<PacketHandler*>{&handler});
  table.give_back(one, now);
  EXPECT_TRUE(table.owns_any(handler));
  EXPECT_FALSE(table.owns_any(other));
  table.give_back(two, now);
  EXPECT_FALSE(table.owns_any(handler));
  EXPECT_TRUE(table.owners().empty());
}

}  // namespace
}  // namespace weft::roce
