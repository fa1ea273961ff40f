// SPDX-License-Identifier: BSD-2-Clause
// Which attributes may a domain or an endpoint be opened with? (fi_domain(3), fi_endpoint(3))
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>

#include "support/placements.h"

namespace weft::conformance {
namespace {

using Change = std::function<void(fi_info*)>;

// Any number in an attribute of an enumerated type.
template <class Enumeration>
void put(Enumeration& attribute, int number) {
  std::memcpy(&attribute, &number, sizeof number);
}

void rename(char*& name, const char* text) {
  std::free(name);
  name = strdup(text);
}

class Opening : public testing::TestWithParam<fi_ep_type> {
 protected:
  static Options options() {
    Options options;
    if (GetParam() == FI_EP_DGRAM) options = datagrams();
    options.type = GetParam();
    return options;
  }
  Opening() : domain_(options()) {}

  int open_domain(const Change& change) {
    const Info info(fi_dupinfo(domain_.info()));
    change(info.get());
    fid_domain* opened = nullptr;
    const int rc = fi_domain(domain_.fabric(), info.get(), &opened, nullptr);
    if (rc == 0) fi_close(&opened->fid);
    return rc;
  }
  int open_endpoint(const Change& change) {
    const Info info(fi_dupinfo(domain_.info()));
    change(info.get());
    fid_ep* opened = nullptr;
    const int rc = fi_endpoint(domain_.get(), info.get(), &opened, nullptr);
    if (rc == 0) fi_close(&opened->fid);
    return rc;
  }

  Domain domain_;
};

TEST_P(Opening, ADomainNeedsAttributesThatAreOffered) {
  ASSERT_TRUE(domain_.ok());
  constexpr int kAbsurd = 0x7FFF'FFFF;
  const Change wrong[] = {
      [](fi_info* i) { rename(i->domain_attr->name, "no-such-domain"); },
      [](fi_info* i) { put(i->domain_attr->threading, kAbsurd); },
      [](fi_info* i) { put(i->domain_attr->control_progress, kAbsurd); },
      [](fi_info* i) { put(i->domain_attr->data_progress, kAbsurd); },
      [](fi_info* i) { put(i->domain_attr->resource_mgmt, kAbsurd); },
      [](fi_info* i) { put(i->domain_attr->av_type, kAbsurd); },
      [](fi_info* i) { i->domain_attr->mr_mode = FI_MR_LOCAL; },
      [](fi_info* i) { i->domain_attr->mr_mode = kMapModes | FI_MR_ENDPOINT; },
      [](fi_info* i) { i->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_SCALABLE; },
      [](fi_info* i) { i->domain_attr->mr_mode = map_contract() ? +FI_MR_VIRT_ADDR : kMapModes; },
      [](fi_info* i) { i->domain_attr->mr_mode = 1 << 30; },
      [](fi_info* i) { i->domain_attr->mr_key_size = 9; },
      [](fi_info* i) { i->domain_attr->cq_data_size = 9; },
      [](fi_info* i) { i->domain_attr->cq_cnt = std::numeric_limits<std::size_t>::max(); },
      [](fi_info* i) { i->domain_attr->ep_cnt = 65536; },
      [](fi_info* i) { i->domain_attr->max_ep_tx_ctx = 2; },
      [](fi_info* i) { i->domain_attr->mr_iov_limit = 1000; },
      [](fi_info* i) { i->domain_attr->auth_key_size = 1; },
      [](fi_info* i) { i->domain_attr->tclass = FI_TC_NETWORK_CTRL + 1; },
      [](fi_info* i) { i->domain_attr->caps |= FI_SHARED_AV; },
  };
  int number = 0;
  for (const Change& change : wrong) {
    EXPECT_EQ(open_domain(change), -FI_EINVAL) << "change " << number;
    ++number;
  }
  EXPECT_EQ(open_domain([](fi_info*) {}), 0);
}

TEST_P(Opening, AnEndpointNeedsAttributesThatAreOffered) {
  ASSERT_TRUE(domain_.ok());
  constexpr int kAbsurd = 0x7FFF'FFFF;
  constexpr auto kHuge = std::numeric_limits<std::size_t>::max();
  const Change wrong[] = {
      [](fi_info* i) { put(i->ep_attr->type, kAbsurd); },
      [](fi_info* i) { put(i->ep_attr->type, FI_EP_SOCK_STREAM); },
      [](fi_info* i) { i->ep_attr->protocol = FI_PROTO_UDP; },
      [](fi_info* i) { i->ep_attr->protocol_version = 99; },
      [](fi_info* i) { i->ep_attr->max_msg_size = kHuge; },
      [](fi_info* i) { i->ep_attr->tx_ctx_cnt = 2; },
      [](fi_info* i) { i->ep_attr->rx_ctx_cnt = 2; },
      [](fi_info* i) { i->ep_attr->auth_key_size = 1; },
      [](fi_info* i) { i->caps |= FI_COLLECTIVE; },
      [](fi_info* i) { i->tx_attr->caps |= FI_COLLECTIVE; },
      [](fi_info* i) { i->tx_attr->op_flags = FI_COMMIT_COMPLETE; },
      [](fi_info* i) { i->tx_attr->msg_order = FI_ORDER_RAS; },
      [](fi_info* i) { i->tx_attr->comp_order = FI_ORDER_STRICT | FI_ORDER_DATA; },
      [](fi_info* i) { i->tx_attr->inject_size = kHuge; },
      [](fi_info* i) { i->tx_attr->size = kHuge; },
      [](fi_info* i) { i->tx_attr->iov_limit = 1000; },
      [](fi_info* i) { i->tx_attr->rma_iov_limit = 1000; },
      [](fi_info* i) { i->tx_attr->tclass = FI_TC_NETWORK_CTRL + 1; },
      [](fi_info* i) { i->rx_attr->op_flags = FI_PEEK; },
      [](fi_info* i) { i->rx_attr->size = kHuge; },
      [](fi_info* i) { i->rx_attr->iov_limit = 1000; },
  };
  int number = 0;
  for (const Change& change : wrong) {
    EXPECT_EQ(open_endpoint(change), -FI_EINVAL) << "change " << number;
    ++number;
  }
  EXPECT_EQ(open_endpoint([](fi_info*) {}), 0);
}

// Programs take an answer, narrow it and choose their sizes.
TEST_P(Opening, AttributesThatProgramsChangeAreAccepted) {
  ASSERT_TRUE(domain_.ok());
  EXPECT_EQ(open_domain([](fi_info* i) {
              i->mode = FI_CONTEXT;
              i->domain_attr->mode = ~std::uint64_t{0};
              i->domain_attr->threading = FI_THREAD_COMPLETION;
              i->domain_attr->av_type = FI_AV_MAP;
              i->domain_attr->mr_key_size = 4;
              i->domain_attr->ep_cnt = 2;
            }),
            0);
  EXPECT_EQ(open_endpoint([](fi_info* i) {
              i->caps &= ~std::uint64_t{FI_RECV};  // those of the contexts stay
              i->mode = ~std::uint64_t{0};
              i->tx_attr->size = 8;
              i->rx_attr->size = 8;
              i->tx_attr->op_flags = FI_COMPLETION | FI_TRANSMIT_COMPLETE;
              i->rx_attr->op_flags = FI_COMPLETION;
              i->tx_attr->inject_size = 16;
              i->ep_attr->mem_tag_format = 0xFF;
              i->ep_attr->max_msg_size = 100;
              i->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
            }),
            0);
}

TEST(OpeningAnswers, AreAllAccepted) {
  fi_info* found = nullptr;
  ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &found), 0);
  const Info list(found);
  for (fi_info* info = found; info != nullptr; info = info->next) {
    if (provider_name() != info->fabric_attr->prov_name) continue;
    const auto fabric = open_fid<fid_fabric>(
        [&](fid_fabric** out) { return fi_fabric(info->fabric_attr, out, nullptr); });
    const auto domain = open_fid<fid_domain>(
        [&](fid_domain** out) { return fi_domain(fabric.get(), info, out, nullptr); });
    ASSERT_NE(domain, nullptr);
    const auto ep = open_fid<fid_ep>(
        [&](fid_ep** out) { return fi_endpoint(domain.get(), info, out, nullptr); });
    EXPECT_NE(ep, nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Endpoints, Opening, testing::Values(FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM),
                         [](const testing::TestParamInfo<fi_ep_type>& one) {
                           return one.param == FI_EP_RDM   ? "Reliable"
                                  : one.param == FI_EP_MSG ? "Connected"
                                                           : "Datagrams";
                         });

}  // namespace
}  // namespace weft::conformance
