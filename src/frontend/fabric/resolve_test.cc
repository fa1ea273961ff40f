// SPDX-License-Identifier: BSD-2-Clause
// Do names, flags and hinted addresses lead to the right pair of addresses?
#include "resolve.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <memory>

#include "os/name_lookup.h"

namespace weft::fabric {
namespace {

os::SocketAddress address(const char* host, const char* port = "0") {
  return os::look_up({.node = host, .service = port, .numeric = true}).value().front();
}

// A list that does not depend on the machine; only routes to the loopback are asked for.
std::vector<os::Interface> interfaces() {
  return {
      {"net0",
       2,
       false,
       {{address("192.0.2.2"), 24}, {address("198.51.100.2"), 25}, {address("2001:db8::2"), 64}}},
      {"lo", 1, true, {{address("127.0.0.1"), 8}, {address("::1"), 128}}}};
}

std::vector<AddressPair> pairs_for(const AddressQuery& query) {
  const auto pairs = pair_addresses(query, device::devices_on(interfaces(), ""));
  EXPECT_TRUE(pairs.ok()) << pairs.error().message;
  return pairs.ok() ? pairs.value() : std::vector<AddressPair>();
}

int error_for(const AddressQuery& query) {
  const auto pairs = pair_addresses(query, device::devices_on(interfaces(), ""));
  return pairs.ok() ? 0 : pairs.error().code;
}

std::vector<std::string> sources(const std::vector<AddressPair>& pairs) {
  std::vector<std::string> texts;
  for (const AddressPair& pair : pairs) texts.push_back(pair.source.text());
  return texts;
}

using Texts = std::vector<std::string>;

TEST(NoName, GivesEachDeviceOncePerFamilyWithPortZeroAndNoPeer) {
  const auto pairs = pairs_for({});
  EXPECT_EQ(sources(pairs), (Texts{"192.0.2.2:0", "[2001:db8::2]:0", "127.0.0.1:0", "[::1]:0"}));
  EXPECT_EQ(pairs[0].domain, "weft0");
  EXPECT_EQ(pairs[0].fabric, "192.0.2.0/24");
  EXPECT_EQ(pairs[3].domain, "weft1");
  EXPECT_EQ(pairs[3].fabric, "::1/128");
  EXPECT_FALSE(pairs[0].destination.has_value());
}

TEST(Source, WithoutAnyNameIsInvalid) { EXPECT_EQ(error_for({.flags = FI_SOURCE}), EINVAL); }

TEST(Source, AServiceAloneGivesEveryDeviceThatPort) {
  const auto pairs = pairs_for({.service = "5000", .flags = FI_SOURCE});
  const auto texts = sources(pairs);
  EXPECT_NE(std::find(texts.begin(), texts.end(), "192.0.2.2:5000"), texts.end());
  EXPECT_NE(std::find(texts.begin(), texts.end(), "127.0.0.1:5000"), texts.end());
}

TEST(Source, ANodeGivesItsDeviceOnly) {
  const auto pairs =
      pairs_for({.node = "127.0.0.1", .service = "7", .flags = FI_SOURCE | FI_NUMERICHOST});
  EXPECT_EQ(sources(pairs), Texts{"127.0.0.1:7"});
  EXPECT_EQ(pairs[0].domain, "weft1");
}

TEST(Source, ASecondAddressOfADeviceCanBeAskedFor) {
  const auto pairs = pairs_for({.node = "198.51.100.2", .flags = FI_SOURCE | FI_NUMERICHOST});
  EXPECT_EQ(sources(pairs), Texts{"198.51.100.2:0"});
  EXPECT_EQ(pairs[0].fabric, "198.51.100.0/25");
}

TEST(Source, AnyAddressOfTheLoopbackNetworkIsKeptAsGiven) {
  const auto pairs = pairs_for({.node = "127.0.0.9", .flags = FI_SOURCE | FI_NUMERICHOST});
  EXPECT_EQ(sources(pairs), Texts{"127.0.0.9:0"});
}

TEST(Source, AnAddressOfAnotherHostIsNoSource) {
  EXPECT_EQ(error_for({.node = "203.0.113.1", .flags = FI_SOURCE | FI_NUMERICHOST}), FI_ENODATA);
}

TEST(Destination, OnTheLoopbackIsReachedFromTheLoopback) {
  const auto pairs = pairs_for({.node = "127.0.0.1", .service = "9", .flags = FI_NUMERICHOST});
  ASSERT_EQ(sources(pairs), Texts{"127.0.0.1:0"});
  EXPECT_EQ(pairs[0].destination->text(), "127.0.0.1:9");
  EXPECT_EQ(pairs[0].domain, "weft1");
}

TEST(Destination, AServiceAloneIsThisHost) {
  const auto pairs = pairs_for({.service = "9"});
  ASSERT_FALSE(pairs.empty());
  EXPECT_EQ(pairs[0].destination->text(), "127.0.0.1:9");
}

TEST(Destination, ThatCannotBeFoundIsNoData) {
  EXPECT_EQ(error_for({.node = "not-an-address", .flags = FI_NUMERICHOST}), FI_ENODATA);
  EXPECT_EQ(error_for({.node = "127.0.0.1", .service = "70000"}), FI_ENODATA);
}

class Hinted : public testing::Test {
 protected:
  Hinted() : hints_(fi_allocinfo(), fi_freeinfo) {}
  ~Hinted() override {
    hints_->src_addr = hints_->dest_addr = nullptr;  // they are ours
  }
  void source(const os::SocketAddress& from) {
    source_ = from;
    hints_->src_addr = const_cast<sockaddr*>(source_.get());
    hints_->src_addrlen = source_.length();
  }
  void destination(const os::SocketAddress& to) {
    destination_ = to;
    hints_->dest_addr = const_cast<sockaddr*>(destination_.get());
    hints_->dest_addrlen = destination_.length();
  }
  AddressQuery query() const { return {.flags = FI_NUMERICHOST, .hints = hints_.get()}; }

  std::unique_ptr<fi_info, decltype(&fi_freeinfo)> hints_;

 private:
  os::SocketAddress source_;
  os::SocketAddress destination_;
};

TEST_F(Hinted, AddressFormatSelectsTheFamily) {
  hints_->addr_format = FI_SOCKADDR_IN;
  EXPECT_EQ(sources(pairs_for(query())), (Texts{"192.0.2.2:0", "127.0.0.1:0"}));
  hints_->addr_format = FI_SOCKADDR_IN6;
  EXPECT_EQ(sources(pairs_for(query())), (Texts{"[2001:db8::2]:0", "[::1]:0"}));
  hints_->addr_format = FI_SOCKADDR;
  EXPECT_EQ(pairs_for(query()).size(), 4U);
}

TEST_F(Hinted, AddressFormatsThatAreNotOfIpAreRefused) {
  for (const std::uint32_t format : {FI_SOCKADDR_IB, FI_ADDR_STR, FI_ADDR_EFA, FI_ADDR_CXI}) {
    hints_->addr_format = format;
    EXPECT_EQ(error_for(query()), FI_ENODATA) << format;
  }
}

TEST_F(Hinted, SourceIsTakenWithItsPort) {
  source(address("192.0.2.2", "77"));
  EXPECT_EQ(sources(pairs_for(query())), Texts{"192.0.2.2:77"});
}

TEST_F(Hinted, SourceIsIgnoredWithTheSourceFlag) {
  source(address("192.0.2.2", "77"));
  AddressQuery with_flag = query();
  with_flag.node = "127.0.0.1";
  with_flag.flags |= FI_SOURCE;
  EXPECT_EQ(sources(pairs_for(with_flag)), Texts{"127.0.0.1:0"});
}

TEST_F(Hinted, WildcardSourceKeepsItsPortOnEveryDevice) {
  source(address("0.0.0.0", "77"));
  EXPECT_EQ(sources(pairs_for(query())), (Texts{"192.0.2.2:77", "127.0.0.1:77"}));
}

TEST_F(Hinted, WildcardSourceTowardsAPeerIsTheKernelsChoiceWithItsPort) {
  source(address("0.0.0.0", "77"));
  destination(address("127.0.0.1", "9"));
  EXPECT_EQ(sources(pairs_for(query())), Texts{"127.0.0.1:77"});
}

TEST_F(Hinted, SourceAndDestinationAreKeptTogether) {
  source(address("192.0.2.2", "77"));
  destination(address("192.0.2.9", "9"));
  const auto pairs = pairs_for(query());
  ASSERT_EQ(sources(pairs), Texts{"192.0.2.2:77"});
  EXPECT_EQ(pairs[0].destination->text(), "192.0.2.9:9");
}

TEST_F(Hinted, DestinationIsIgnoredWhenANodeIsGiven) {
  destination(address("192.0.2.9", "9"));
  AddressQuery with_node = query();
  with_node.node = "127.0.0.1";
  EXPECT_EQ(pairs_for(with_node)[0].destination->text(), "127.0.0.1:0");
}

TEST_F(Hinted, SourceAndDestinationOfDifferentFamiliesAreRefused) {
  source(address("192.0.2.2"));
  destination(address("::1", "9"));
  EXPECT_EQ(error_for(query()), FI_ENODATA);
}

TEST_F(Hinted, AnAddressThatIsNotOfTheHintedFormatIsRefused) {
  hints_->addr_format = FI_SOCKADDR_IN6;
  source(address("192.0.2.2"));
  EXPECT_EQ(error_for(query()), FI_ENODATA);
}

TEST_F(Hinted, AWildcardOrCutDestinationIsRefused) {
  destination(address("0.0.0.0", "9"));
  EXPECT_EQ(error_for(query()), FI_ENODATA);
  destination(address("127.0.0.1", "9"));
  hints_->dest_addrlen = 4;
  EXPECT_EQ(error_for(query()), FI_ENODATA);
}

}  // namespace
}  // namespace weft::fabric
