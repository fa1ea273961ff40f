// SPDX-License-Identifier: BSD-2-Clause
// Are the private data of a rejection those that were written?
#include "rdm/connection_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace weft::rdm {
namespace {

constexpr std::size_t kRoomOfRej = 148;

TEST(ConnectionMessage, AServiceIdNamesThePortOfItsListener) {
  EXPECT_EQ(connection_service(0x9C41), 0x5765'6674'0003'9C41ULL);
}

TEST(ConnectionMessage, ARejectionKeepsTheLengthOfItsDataInARejAndBehindIt) {
  for (const std::size_t length : {0, 1, 146, 147, 256}) {
    const std::vector<std::byte> data(length, std::byte{0x5A});
    std::vector<std::byte> bytes = write_rejection(data);
    std::vector<std::byte> more;
    if (bytes.size() > kRoomOfRej) more.assign(bytes.begin() + kRoomOfRej, bytes.end());
    bytes.resize(kRoomOfRej);
    EXPECT_EQ(read_rejection(bytes, more), data) << length;
  }
}

TEST(ConnectionMessage, ALengthBeyondTheMessageMeansNoData) {
  std::vector<std::byte> bytes(kRoomOfRej, std::byte{0xFF});
  EXPECT_TRUE(read_rejection(bytes, {}).empty());
  EXPECT_TRUE(read_rejection({}, {}).empty());
}

TEST(ConnectionMessage, TheEndOfAnAttemptHasTheErrorOfItsSide) {
  cm::CmEvent end;
  end.kind = cm::EventKind::kTimedOut;
  EXPECT_EQ(failure_of(end, true).error, ETIMEDOUT);
  EXPECT_EQ(failure_of(end, false).error, ECONNABORTED);
  end.kind = cm::EventKind::kRejected;
  wire::CmMad rejection;
  rejection.message = wire::CmRej{};
  end.mad = &rejection;
  EXPECT_EQ(failure_of(end, true).error, ECONNREFUSED);
  wire::CmRej other_key;
  std::ranges::copy(write_other_authorization(), other_key.data.begin());
  rejection.message = other_key;
  EXPECT_EQ(failure_of(end, true).error, EACCES);
}

}  // namespace
}  // namespace weft::rdm
