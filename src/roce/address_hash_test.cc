// SPDX-License-Identifier: BSD-2-Clause
// How are the addresses of peers told apart in a table?
#include "roce/address_hash.h"

#include <gtest/gtest.h>

#include <set>

#include "os/loopback_support.h"

namespace weft::roce {
namespace {

TEST(AddressHash, TheSameAddressHasTheSameValueInOneTable) {
  const AddressHash hash;
  const AddressHash copy = hash;
  for (const char* host : {"192.0.2.1", "2001:db8::1"}) {
    EXPECT_EQ(hash(os::address_of(host, 5000)), copy(os::address_of(host, 5000)));
  }
}

TEST(AddressHash, EveryPartOfAnAddressCounts) {
  const AddressHash hash;
  std::set<std::size_t> values;
  for (const char* text : {"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:1::1"}) {
    for (const std::uint16_t port : {5000, 5001}) values.insert(hash(os::address_of(text, port)));
  }
  const in6_addr host{{{0xFE, 0x80}}};
  for (const std::uint32_t scope : {1U, 2U}) {
    values.insert(hash(os::SocketAddress::of_host(AF_INET6, &host, 5000, scope)));
  }
  EXPECT_EQ(values.size(), 10U);
}

TEST(AddressHash, OtherHostsCannotKnowWhichAddressesCollide) {
  const os::SocketAddress address = os::address_of("192.0.2.1", 5000);
  EXPECT_NE(AddressHash()(address), AddressHash()(address));
}

}  // namespace
}  // namespace weft::roce
