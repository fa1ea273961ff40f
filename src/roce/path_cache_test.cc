// SPDX-License-Identifier: BSD-2-Clause
// Is a path looked up again neither too often nor too late?
#include "roce/path_cache.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace weft::roce {
namespace {

using std::chrono::milliseconds;

os::SocketAddress peer_at(const std::string& host, std::uint16_t port) {
  const int family = host.find(':') != std::string::npos ? AF_INET6 : AF_INET;
  in6_addr raw{};
  EXPECT_EQ(::inet_pton(family, host.c_str(), &raw), 1);
  return os::SocketAddress::of_host(family, &raw, port);
}

struct PathCacheTest : ::testing::Test {
  int lookups = 0;
  int error = 0;
  std::size_t mtu = 1'500;
  os::Time now{std::chrono::seconds(100)};
  PathCache cache{[this](const os::SocketAddress& peer) -> Result<os::UdpPath> {
    ++lookups;
    if (error != 0) return Error{error, "no path to " + peer.text()};
    return os::UdpPath{peer_at("127.0.0.1", 7), mtu};
  }};
};

TEST_F(PathCacheTest, PortsOfAHostShareALookup) {
  for (std::uint16_t port = 1; port <= 100; ++port) {
    const auto path = cache.find(peer_at("127.0.0.2", port), now);
    EXPECT_EQ(path.value().mtu, 1'500U);
    EXPECT_EQ(path.value().source, peer_at("127.0.0.1", 7));
  }
  EXPECT_EQ(lookups, 1);
  EXPECT_TRUE(cache.find(peer_at("127.0.0.3", 1), now).ok());
  EXPECT_TRUE(cache.find(peer_at("::1", 1), now).ok());
  EXPECT_EQ(lookups, 3);
}

TEST_F(PathCacheTest, AChangeIsFoundAfterTheValidity) {
  EXPECT_EQ(cache.find(peer_at("127.0.0.2", 1), now).value().mtu, 1'500U);
  mtu = 9'000;
  now += PathCache::kValidity - milliseconds(1);
  EXPECT_EQ(cache.find(peer_at("127.0.0.2", 1), now).value().mtu, 1'500U);
  now += milliseconds(1);
  EXPECT_EQ(cache.find(peer_at("127.0.0.2", 1), now).value().mtu, 9'000U);
}

TEST_F(PathCacheTest, ATrimBeforeTheExpiryKeepsPaths) {
  EXPECT_TRUE(cache.find(peer_at("127.0.0.2", 1), now).ok());
  cache.trim(now + PathCache::kValidity - milliseconds(1));
  EXPECT_TRUE(cache.find(peer_at("127.0.0.2", 1), now).ok());
  EXPECT_EQ(lookups, 1);
  cache.trim(now + PathCache::kValidity);
  EXPECT_TRUE(cache.find(peer_at("127.0.0.2", 1), now).ok());
  EXPECT_EQ(lookups, 2);
}

TEST_F(PathCacheTest, ErrorsAreLookedUpAgain) {
  error = ENETUNREACH;
  EXPECT_EQ(cache.find(peer_at("127.0.0.2", 1), now).error().code, ENETUNREACH);
  error = 0;
  EXPECT_TRUE(cache.find(peer_at("127.0.0.2", 1), now).ok());
  EXPECT_EQ(lookups, 2);
}

TEST_F(PathCacheTest, HoldsABoundedNumberOfHosts) {
  const auto visit = [&](std::size_t host) {
    return cache.find(peer_at("127.0.1." + std::to_string(host), 1), now).ok();
  };
  for (std::size_t host = 0; host <= PathCache::kMaxHosts; ++host) EXPECT_TRUE(visit(host));
  EXPECT_TRUE(visit(0));
  EXPECT_EQ(lookups, static_cast<int>(PathCache::kMaxHosts) + 2);
}

}  // namespace
}  // namespace weft::roce
