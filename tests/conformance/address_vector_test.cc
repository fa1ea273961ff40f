// SPDX-License-Identifier: BSD-2-Clause
// What can be put into an address vector, found there and taken out again? (fi_av(3))
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <vector>

#include "support/placements.h"

namespace weft::conformance {
namespace {

sockaddr_in ipv4(std::uint32_t host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(host);
  return address;
}
constexpr std::uint32_t kLoopback = 0x7F000001;

class AddressVector : public testing::TestWithParam<fi_av_type> {
 protected:
  AddressVector() {
    options_.av_type = GetParam();
    domain_ = std::make_shared<Domain>(options_);
    endpoint_ = std::make_unique<Endpoint>(domain_, options_);
  }
  fid_av* av() { return endpoint_->av(); }
  bool table() const { return GetParam() == FI_AV_TABLE; }

  fi_addr_t insert(std::uint16_t port) {
    const sockaddr_in address = ipv4(kLoopback, port);
    fi_addr_t result = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(av(), &address, 1, &result, 0, nullptr), 1);
    EXPECT_NE(result, FI_ADDR_NOTAVAIL);
    return result;
  }
  void expect_lookup(fi_addr_t entry, std::uint16_t port) {
    sockaddr_in found{};
    std::size_t size = sizeof found;
    ASSERT_EQ(fi_av_lookup(av(), entry, &found, &size), 0);
    EXPECT_EQ(size, sizeof found);
    EXPECT_EQ(found.sin_family, AF_INET);
    EXPECT_EQ(ntohs(found.sin_port), port);
    EXPECT_EQ(ntohl(found.sin_addr.s_addr), kLoopback);
  }

  Options options_;
  std::shared_ptr<Domain> domain_;
  std::unique_ptr<Endpoint> endpoint_;
};

TEST_P(AddressVector, InsertedAddressesAreFoundAgain) {
  ASSERT_TRUE(endpoint_->ok());
  const fi_addr_t first = insert(41001);
  const fi_addr_t second = insert(41002);
  EXPECT_NE(first, second);
  expect_lookup(first, 41001);
  expect_lookup(second, 41002);
}

TEST_P(AddressVector, ManyAddressesGoInWithOneCall) {
  ASSERT_TRUE(endpoint_->ok());
  constexpr std::size_t kCount = 1000;
  std::vector<sockaddr_in> addresses;
  for (std::size_t i = 0; i < kCount; ++i) {
    addresses.push_back(ipv4(kLoopback, static_cast<std::uint16_t>(20000 + i)));
  }
  std::vector<fi_addr_t> results(kCount, FI_ADDR_NOTAVAIL);
  ASSERT_EQ(fi_av_insert(av(), addresses.data(), kCount, results.data(), 0, nullptr),
            static_cast<int>(kCount));
  EXPECT_EQ(std::set<fi_addr_t>(results.begin(), results.end()).size(), kCount);
  for (std::size_t i = 0; i < kCount; i += 97) {
    expect_lookup(results[i], static_cast<std::uint16_t>(20000 + i));
  }
  EXPECT_EQ(fi_av_remove(av(), results.data(), kCount, 0), 0);
}

TEST_P(AddressVector, TableIndicesCountFromZero) {
  ASSERT_TRUE(endpoint_->ok());
  if (!table()) GTEST_SKIP() << "a map gives out any values";
  for (std::uint16_t i = 0; i < 10; ++i) {
    EXPECT_EQ(insert(static_cast<std::uint16_t>(42000 + i)), i);
  }
  const std::array<sockaddr_in, 2> more{ipv4(kLoopback, 42100), ipv4(kLoopback, 42101)};
  EXPECT_EQ(fi_av_insert(av(), more.data(), 2, nullptr, 0, nullptr), 2);  // Indices are known.
  expect_lookup(10, 42100);
  expect_lookup(11, 42101);
}

TEST_P(AddressVector, LowestFreeTableIndexIsUsedAgain) {
  ASSERT_TRUE(endpoint_->ok());
  if (!table()) GTEST_SKIP() << "a map gives out any values";
  std::array<fi_addr_t, 4> entries{insert(1001), insert(1002), insert(1003), insert(1004)};
  EXPECT_EQ(fi_av_remove(av(), &entries[2], 1, 0), 0);
  EXPECT_EQ(fi_av_remove(av(), &entries[1], 1, 0), 0);
  EXPECT_EQ(insert(1005), entries[1]);
  EXPECT_EQ(insert(1006), entries[2]);
  EXPECT_EQ(insert(1007), 4u);
  expect_lookup(entries[1], 1005);
  expect_lookup(entries[3], 1004);
}

TEST_P(AddressVector, RemovedAddressIsUnknownUntilInsertedAgain) {
  ASSERT_TRUE(endpoint_->ok());
  fi_addr_t entry = insert(43000);
  EXPECT_EQ(fi_av_remove(av(), &entry, 1, 0), 0);
  if (table()) {
    sockaddr_in found{};
    std::size_t size = sizeof found;
    EXPECT_LT(fi_av_lookup(av(), entry, &found, &size), 0);
  }
  expect_lookup(insert(43000), 43000);
}

TEST_P(AddressVector, LookupTellsTheSizeItNeeds) {
  ASSERT_TRUE(endpoint_->ok());
  const fi_addr_t entry = insert(44000);
  std::array<std::uint8_t, sizeof(sockaddr_in)> bytes;
  bytes.fill(0xEE);
  std::size_t size = 4;
  EXPECT_EQ(fi_av_lookup(av(), entry, bytes.data(), &size), 0);
  EXPECT_EQ(size, sizeof(sockaddr_in));
  const sockaddr_in whole = ipv4(kLoopback, 44000);
  EXPECT_EQ(std::memcmp(bytes.data(), &whole, 4), 0);
  EXPECT_EQ(std::count(bytes.begin() + 4, bytes.end(), 0xEE), 12) << "wrote past the given size";
}

TEST_P(AddressVector, InvalidAddressIsNotInserted) {
  ASSERT_TRUE(endpoint_->ok());
  sockaddr_in bad = ipv4(kLoopback, 1);
  bad.sin_family = AF_UNIX;
  fi_addr_t result = 0;
  EXPECT_EQ(fi_av_insert(av(), &bad, 1, &result, 0, nullptr), 0);
  EXPECT_EQ(result, FI_ADDR_NOTAVAIL);
}

TEST_P(AddressVector, GoodAddressesBesideABadOneAreCounted) {
  ASSERT_TRUE(endpoint_->ok());
  std::array<sockaddr_in, 3> addresses{ipv4(kLoopback, 51), ipv4(kLoopback, 52),
                                       ipv4(kLoopback, 53)};
  addresses[1].sin_family = AF_UNIX;
  std::array<fi_addr_t, 3> results{};
  std::array<int, 3> errors{-1, -1, -1};
  EXPECT_EQ(fi_av_insert(av(), addresses.data(), 3, results.data(), FI_SYNC_ERR, errors.data()), 2);
  EXPECT_EQ(errors[0], 0);
  EXPECT_NE(errors[1], 0);
  EXPECT_EQ(errors[2], 0);
  EXPECT_EQ(results[1], FI_ADDR_NOTAVAIL);
  expect_lookup(results[0], 51);
  expect_lookup(results[2], 53);
}

TEST_P(AddressVector, NodeAndServiceNameAnAddress) {
  ASSERT_TRUE(endpoint_->ok());
  fi_addr_t result = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insertsvc(av(), "127.0.0.1", "45678", &result, 0, nullptr), 1);
  expect_lookup(result, 45678);
}

TEST_P(AddressVector, AddressesHaveWords) {
  ASSERT_TRUE(endpoint_->ok());
  const sockaddr_in address = ipv4(kLoopback, 45679);
  std::array<char, 128> text{};
  std::size_t size = text.size();
  const char* words = fi_av_straddr(av(), &address, text.data(), &size);
  ASSERT_EQ(words, text.data());
  EXPECT_NE(std::string(words).find("127.0.0.1"), std::string::npos) << words;
  EXPECT_NE(std::string(words).find("45679"), std::string::npos) << words;
  EXPECT_EQ(size, std::strlen(words) + 1);
  std::array<char, 16> small;
  small.fill('x');
  std::size_t small_size = 8;
  fi_av_straddr(av(), &address, small.data(), &small_size);
  EXPECT_EQ(small_size, size);
  EXPECT_EQ(std::count(small.begin() + 8, small.end(), 'x'), 8) << "wrote past the given size";
}

TEST_P(AddressVector, ReinsertedPeerCanBeReached) {
  Options options;
  options.av_type = GetParam();
  World world(Placement::kTwoProcesses, options);
  ASSERT_TRUE(world.ok());
  world.exchange();
  fi_addr_t peer = world.to_target();
  ASSERT_EQ(fi_av_remove(world.endpoint().av(), &peer, 1, 0), 0);
  const fi_addr_t again = world.endpoint().insert(world.target().name());
  const Token received = world.target().post({.kind = Kind::kRecv, .length = 24});
  world.initiator().wait_success(
      world.initiator().post({.kind = Kind::kSend, .length = 24, .seed = 6, .peer = again}));
  world.target().wait_success(received);
  world.target().expect_data(received, 6, 24);
}

INSTANTIATE_TEST_SUITE_P(Addresses, AddressVector, testing::Values(FI_AV_MAP, FI_AV_TABLE),
                         [](const testing::TestParamInfo<fi_av_type>& one) {
                           return one.param == FI_AV_MAP ? "Map" : "Table";
                         });

}  // namespace
}  // namespace weft::conformance
