// SPDX-License-Identifier: BSD-2-Clause
// Is each fi_info complete, owned as libfabric expects, and limited by the hinted names?
#include "info.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>

#include "base/path_mtu.h"
#include "fabric.h"
#include "offer.h"
#include "os/interfaces.h"
#include "os/socket_address.h"

namespace weft::fabric {
namespace {

constexpr std::uint32_t kNow = FI_VERSION(1, 17);

InfoList infos(const InfoQuery& query) {
  Result<InfoList> found = find_info(query, {});
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found.ok() ? std::move(found).value() : nullptr;
}

int error_of(const InfoQuery& query) {
  const Result<InfoList> found = find_info(query, {});
  return found.ok() ? 0 : found.error().code;
}

Options only(const char* interface) {
  Options options;
  options.interface = interface;
  return options;
}

// The loopback is there on every machine.
InfoQuery loopback_query() {
  return {.api_version = kNow, .node = "127.0.0.1", .flags = FI_SOURCE | FI_NUMERICHOST};
}

TEST(Info, HasEveryStructureAndNameAndASourceButNoProviderName) {
  const InfoList list = infos({.api_version = kNow});
  ASSERT_TRUE(list);
  for (const fi_info* info = list.get(); info != nullptr; info = info->next) {
    ASSERT_TRUE(info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr);
    ASSERT_TRUE(info->fabric_attr && info->fabric_attr->name && info->domain_attr->name);
    EXPECT_NE(info->src_addr, nullptr);
    EXPECT_EQ(info->dest_addr, nullptr);
    EXPECT_EQ(info->fabric_attr->prov_name, nullptr);
    EXPECT_EQ(info->nic, nullptr);
    EXPECT_EQ(info->handle, nullptr);
    EXPECT_EQ(info->mode, 0U);
  }
}

TEST(Info, AddressFormatAndLengthMatchTheSource) {
  const InfoList list = infos(loopback_query());
  ASSERT_TRUE(list);
  EXPECT_EQ(list->addr_format, std::uint32_t{FI_SOCKADDR_IN});
  EXPECT_EQ(list->src_addrlen, sizeof(sockaddr_in));
  EXPECT_STREQ(list->fabric_attr->name, "127.0.0.0/8");
}

TEST(Info, HasADestinationWhenAPeerIsNamed) {
  const InfoList list =
      infos({.api_version = kNow, .node = "127.0.0.1", .service = "9", .flags = FI_NUMERICHOST});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->dest_addrlen, sizeof(sockaddr_in));
  EXPECT_NE(list->dest_addr, nullptr);
}

TEST(Info, EveryTypeOfEndpointIsOfferedAtEveryAddress) {
  const InfoList list = infos(loopback_query());
  const fi_info* info = list.get();
  for (const TypeOffer* offer : kTypes) {
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->ep_attr->type, offer->type);
    EXPECT_STREQ(info->domain_attr->name, list->domain_attr->name);
    info = info->next;
  }
  EXPECT_EQ(info, nullptr);
}

TEST(Info, CanBeDuplicatedAndFreedByLibfabric) {
  const InfoList list = infos(loopback_query());
  ASSERT_TRUE(list);
  const InfoList copy(fi_dupinfo(list.get()));
  ASSERT_TRUE(copy);
  EXPECT_STREQ(copy->domain_attr->name, list->domain_attr->name);
  EXPECT_EQ(std::memcmp(copy->src_addr, list->src_addr, list->src_addrlen), 0);
}

TEST(Info, GivenBackAsHintsIsFoundAgain) {
  const InfoList list = infos(loopback_query());
  ASSERT_TRUE(list);
  const InfoList again = infos({.api_version = kNow, .hints = list.get()});
  ASSERT_TRUE(again);
  EXPECT_STREQ(again->domain_attr->name, list->domain_attr->name);
  EXPECT_EQ(again->next, nullptr);
}

TEST(Info, HasEveryTypeOfEndpointUnlessOneIsAskedFor) {
  const InfoList list = infos(loopback_query());
  ASSERT_TRUE(list && list->next && list->next->next);
  EXPECT_EQ(list->ep_attr->type, FI_EP_RDM) << "the most capable one first";
  EXPECT_EQ(list->next->ep_attr->type, FI_EP_MSG);
  EXPECT_EQ(list->next->next->ep_attr->type, FI_EP_DGRAM);
  EXPECT_EQ(list->next->next->next, nullptr);
}

TEST(Info, OffersDatagramsThatFitIntoAPacketOfTheInterface) {
  const InfoList hints(fi_allocinfo());
  hints->ep_attr->type = FI_EP_DGRAM;
  InfoQuery query = loopback_query();
  query.hints = hints.get();
  const auto interfaces = os::usable_interfaces();
  ASSERT_TRUE(interfaces.ok());
  const std::size_t limit = path_mtu(interfaces.value().back().mtu);
  for (const std::size_t wanted : {std::size_t{0}, std::size_t{1}, limit}) {
    hints->ep_attr->max_msg_size = wanted;
    const InfoList list = infos(query);
    ASSERT_TRUE(list);
    EXPECT_EQ(list->ep_attr->max_msg_size, limit);
    EXPECT_EQ(list->tx_attr->inject_size, limit);
  }
  hints->ep_attr->max_msg_size = limit + 1;
  EXPECT_EQ(error_of(query), FI_ENODATA);
  hints->ep_attr->max_msg_size = 0;
  hints->tx_attr->inject_size = limit + 1;
  EXPECT_EQ(error_of(query), FI_ENODATA);
}

TEST(Flags, UnknownOnesAreRefused) {
  EXPECT_EQ(error_of({.api_version = kNow, .flags = FI_MULTI_RECV}), FI_EBADFLAGS);
  EXPECT_EQ(error_of({.api_version = kNow, .flags = std::uint64_t{1} << 62}), FI_EBADFLAGS);
}

TEST(Flags, ThoseOfLibfabricItselfAreAccepted) {
  EXPECT_EQ(error_of({.api_version = kNow, .flags = std::uint64_t{7} << 58}), 0);
}

TEST(Flags, AnOffloadProviderIsNotFoundHere) {
  EXPECT_EQ(error_of({.api_version = kNow, .flags = std::uint64_t{1} << 61}), FI_ENODATA);
}

TEST(Interface, OnlyTheChosenOneIsOffered) {
  const Result<InfoList> found = find_info({.api_version = kNow}, only("lo"));
  ASSERT_TRUE(found.ok()) << found.error().message;
  for (const fi_info* info = found.value().get(); info != nullptr; info = info->next) {
    EXPECT_STREQ(info->domain_attr->name, found.value()->domain_attr->name);
  }
  EXPECT_FALSE(find_info({.api_version = kNow}, only("no-such-interface")).ok());
}

TEST(FabricExists, ForSubnetsOfThisHostOnly) {
  EXPECT_TRUE(check_fabric("127.0.0.0/8", "").ok());
  EXPECT_FALSE(check_fabric("203.0.113.0/24", "").ok());
  EXPECT_FALSE(check_fabric("", "").ok());
  EXPECT_FALSE(check_fabric(nullptr, "").ok());
}

class NamedHints : public testing::Test {
 protected:
  NamedHints() : hints_(fi_allocinfo()) { hints_->ep_attr->type = FI_EP_RDM; }
  InfoQuery query() const { return {.api_version = kNow, .hints = hints_.get()}; }
  InfoList hints_;
};

TEST_F(NamedHints, ADomainNameSelectsItsDevice) {
  const InfoList all = infos({.api_version = kNow});
  ASSERT_TRUE(all);
  hints_->domain_attr->name = strdup(all->domain_attr->name);
  const InfoList chosen = infos(query());
  ASSERT_TRUE(chosen);
  for (const fi_info* info = chosen.get(); info != nullptr; info = info->next) {
    EXPECT_STREQ(info->domain_attr->name, all->domain_attr->name);
  }
}

TEST_F(NamedHints, AnUnknownDomainIsNoData) {
  hints_->domain_attr->name = strdup("invalid_domain");
  EXPECT_EQ(error_of(query()), FI_ENODATA);
}

TEST_F(NamedHints, AFabricNameSelectsItsSubnet) {
  hints_->fabric_attr->name = strdup("127.0.0.0/8");
  const InfoList chosen = infos(query());
  ASSERT_TRUE(chosen);
  for (const fi_info* info = chosen.get(); info != nullptr; info = info->next) {
    EXPECT_STREQ(info->fabric_attr->name, "127.0.0.0/8");
  }
}

TEST_F(NamedHints, AnOpenFabricSelectsItsSubnet) {
  char name[] = "127.0.0.0/8";
  fi_fabric_attr attributes{};
  attributes.name = name;
  ASSERT_EQ(Fabric::open(attributes, {}, &hints_->fabric_attr->fabric, nullptr), 0);
  fid_fabric* open = hints_->fabric_attr->fabric;
  const InfoList chosen = infos(query());
  ASSERT_TRUE(chosen);
  for (const fi_info* info = chosen.get(); info != nullptr; info = info->next) {
    EXPECT_STREQ(info->fabric_attr->name, "127.0.0.0/8");
  }
  hints_->fabric_attr->name = strdup("::1/128");
  EXPECT_EQ(error_of(query()), FI_ENODATA);
  EXPECT_EQ(fi_close(&open->fid), 0);
}

TEST_F(NamedHints, AnOpenFabricOfAnotherProviderIsNoData) {
  fi_ops_fabric foreign_operations{};
  fid_fabric foreign{};
  foreign.ops = &foreign_operations;
  hints_->fabric_attr->fabric = &foreign;
  EXPECT_EQ(error_of(query()), FI_ENODATA);
}

}  // namespace
}  // namespace weft::fabric
