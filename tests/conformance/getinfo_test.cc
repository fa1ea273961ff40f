// SPDX-License-Identifier: BSD-2-Clause
// Which hints match, and what is answered to them? (fi_getinfo(3))
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <vector>

#include "support/domain.h"

namespace weft::conformance {
namespace {

class GetInfo : public testing::Test {
 protected:
  // Asks with the default hints as `change` leaves them.
  int ask(const std::function<void(fi_info*)>& change) {
    const Info hints = make_hints(options_);
    change(hints.get());
    int rc = 0;
    info_ = get_info(options_, hints.get(), &rc);
    return rc;
  }

  Options options_;
  Info info_;
};

TEST_F(GetInfo, EndpointTypesThatAreNotThereDoNotMatch) {
  if (provider_name() != "weft") GTEST_SKIP() << "says what weft does not offer";
  EXPECT_EQ(ask([](fi_info* hints) { hints->ep_attr->type = FI_EP_SOCK_STREAM; }), -FI_ENODATA);
}

TEST_F(GetInfo, AConnectedEndpointHasNoSourcesToTellApart) {
  const auto connected = [&](std::uint64_t more) {
    return ask([&](fi_info* hints) {
      hints->ep_attr->type = FI_EP_MSG;
      hints->caps |= more;
    });
  };
  ASSERT_EQ(connected(0), 0);
  EXPECT_EQ(info_->ep_attr->type, FI_EP_MSG);
  if (provider_name() != "weft") return;
  EXPECT_EQ(connected(FI_SOURCE), -FI_ENODATA);
  EXPECT_EQ(connected(FI_DIRECTED_RECV), -FI_ENODATA);
}

TEST_F(GetInfo, UnknownCapabilitiesDoNotMatch) {
  EXPECT_EQ(ask([](fi_info* hints) { hints->caps |= FI_VARIABLE_MSG; }), -FI_ENODATA);
  for (const std::uint64_t cap : {FI_COLLECTIVE, FI_RMA_PMEM}) {
    EXPECT_EQ(ask([=](fi_info* hints) { hints->caps |= cap; }), -FI_ENODATA) << cap;
  }
}

TEST_F(GetInfo, RequestedCapabilitiesAreAnswered) {
  const std::uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_SOURCE | FI_FENCE |
                             FI_RMA_EVENT | FI_MULTI_RECV;
  ASSERT_EQ(ask([&](fi_info* hints) { hints->caps = caps; }), 0);
  EXPECT_EQ(info_->caps & caps, caps);
  ASSERT_EQ(ask([](fi_info* hints) { hints->caps = FI_MSG; }), 0);
  EXPECT_EQ(info_->caps & (FI_TAGGED | FI_RMA | FI_ATOMIC), 0u) << "not asked for";
}

TEST_F(GetInfo, NothingIsAskedOfTheApplication) {
  ASSERT_EQ(ask([](fi_info* hints) { hints->mode = 0; }), 0);
  EXPECT_EQ(info_->mode, 0u);
}

TEST_F(GetInfo, ThreadingIsEchoed) {
  for (const fi_threading level : {FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_ENDPOINT,
                                   FI_THREAD_COMPLETION, FI_THREAD_DOMAIN}) {
    ASSERT_EQ(ask([&](fi_info* hints) { hints->domain_attr->threading = level; }), 0) << level;
    EXPECT_EQ(info_->domain_attr->threading, level);
  }
}

TEST_F(GetInfo, AddressVectorTypeIsEchoed) {
  for (const fi_av_type type : {FI_AV_MAP, FI_AV_TABLE}) {
    ASSERT_EQ(ask([&](fi_info* hints) { hints->domain_attr->av_type = type; }), 0);
    EXPECT_EQ(info_->domain_attr->av_type, type);
  }
}

// fi_domain(3): hints may leave each of these models open; the answer says which one holds.
TEST_F(GetInfo, ModelsThatHintsLeaveOpenAreAnswered) {
  ASSERT_EQ(ask([](fi_info* hints) {
              hints->domain_attr->threading = FI_THREAD_UNSPEC;
              hints->domain_attr->control_progress = FI_PROGRESS_UNSPEC;
              hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
              hints->domain_attr->resource_mgmt = FI_RM_UNSPEC;
              hints->domain_attr->av_type = FI_AV_UNSPEC;
            }),
            0);
  const fi_domain_attr& answer = *info_->domain_attr;
  EXPECT_EQ(answer.threading, FI_THREAD_SAFE) << "the greatest level of parallelism";
  EXPECT_NE(answer.control_progress, FI_PROGRESS_UNSPEC);
  EXPECT_NE(answer.data_progress, FI_PROGRESS_UNSPEC);
  EXPECT_NE(answer.resource_mgmt, FI_RM_UNSPEC);
  if (provider_name() != "weft") return;
  EXPECT_EQ(answer.av_type, FI_AV_UNSPEC) << "either of them";
}

TEST_F(GetInfo, ProgressModelsAreEchoed) {
  for (const fi_progress model : {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL}) {
    ASSERT_EQ(ask([&](fi_info* hints) { hints->domain_attr->control_progress = model; }), 0);
    EXPECT_EQ(info_->domain_attr->control_progress, model);
    ASSERT_EQ(ask([&](fi_info* hints) { hints->domain_attr->data_progress = model; }), 0);
    EXPECT_EQ(info_->domain_attr->data_progress, model);
  }
}

// fi_domain(3): remote CQ data have four bytes at least where there are any.
TEST_F(GetInfo, RemoteDataHaveFourBytesAtLeast) {
  for (const fi_ep_type type : {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM}) {
    options_ = type == FI_EP_DGRAM ? datagrams() : Options{};
    options_.type = type;
    ASSERT_EQ(ask([](fi_info*) {}), 0) << type;
    const std::size_t size = info_->domain_attr->cq_data_size;
    EXPECT_TRUE(size == 0 || size >= 4) << size;
  }
}

TEST_F(GetInfo, SizesBeyondTheLimitsDoNotMatch) {
  EXPECT_EQ(ask([](fi_info* hints) { hints->tx_attr->inject_size = 1 << 30; }), -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->tx_attr->iov_limit = 10000; }), -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->tx_attr->rma_iov_limit = 10000; }), -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->rx_attr->iov_limit = 10000; }), -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->domain_attr->cq_data_size = 64; }), -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->ep_attr->max_msg_size = ~std::size_t{0}; }),
            -FI_ENODATA);
}

TEST_F(GetInfo, SizesWithinTheLimitsAreGranted) {
  ASSERT_EQ(ask([](fi_info* hints) {
              hints->tx_attr->size = 64;
              hints->rx_attr->size = 64;
              hints->tx_attr->inject_size = 64;
              hints->domain_attr->cq_data_size = 4;
            }),
            0);
  EXPECT_GE(info_->tx_attr->size, 64u);
  EXPECT_GE(info_->rx_attr->size, 64u);
  EXPECT_GE(info_->tx_attr->inject_size, 64u);
  EXPECT_GE(info_->domain_attr->cq_data_size, 4u);
}

TEST_F(GetInfo, OrderAndFlagsAreGranted) {
  const std::uint64_t order = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_RAW;
  ASSERT_EQ(ask([&](fi_info* hints) {
              hints->tx_attr->msg_order = order;
              hints->rx_attr->msg_order = order;
              hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
            }),
            0);
  EXPECT_EQ(info_->tx_attr->msg_order & order, order);
  EXPECT_EQ(info_->rx_attr->msg_order & order, order);
  EXPECT_EQ(info_->tx_attr->op_flags, FI_DELIVERY_COMPLETE | FI_COMPLETION);
  EXPECT_EQ(ask([](fi_info* hints) { hints->tx_attr->op_flags = 1ull << 57; }), -FI_ENODATA);
}

TEST_F(GetInfo, UnknownNamesDoNotMatch) {
  EXPECT_EQ(ask([](fi_info* hints) { hints->domain_attr->name = strdup("no-such-domain"); }),
            -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->fabric_attr->name = strdup("no-such-fabric"); }),
            -FI_ENODATA);
}

TEST_F(GetInfo, AnswersCanBeAskedForAgain) {
  ASSERT_EQ(ask([](fi_info*) {}), 0);
  int rc = 0;
  const Info again = get_info(options_, info_.get(), &rc);
  ASSERT_EQ(rc, 0);
  EXPECT_STREQ(again->domain_attr->name, info_->domain_attr->name);
  EXPECT_STREQ(again->fabric_attr->name, info_->fabric_attr->name);
  EXPECT_EQ(again->caps, info_->caps);
  EXPECT_EQ(again->domain_attr->mr_mode, info_->domain_attr->mr_mode);
}

// fi_fabric(3), fi_domain(3): the instances that were opened first are referred to.
TEST_F(GetInfo, OpenObjectsAreReferredTo) {
  ASSERT_EQ(ask([](fi_info*) {}), 0);
  EXPECT_EQ(info_->fabric_attr->fabric, nullptr);
  EXPECT_EQ(info_->domain_attr->domain, nullptr);
  auto first = std::make_unique<Domain>(options_);
  const Domain second(options_);
  ASSERT_TRUE(first->ok() && second.ok());
  const auto name_first = [&](fi_info* hints) {
    hints->domain_attr->name = strdup(first->info()->domain_attr->name);
    hints->fabric_attr->name = strdup(first->info()->fabric_attr->name);
  };
  ASSERT_EQ(ask(name_first), 0);
  EXPECT_EQ(info_->fabric_attr->fabric, first->fabric());
  EXPECT_EQ(info_->domain_attr->domain, first->get());
  first.reset();
  ASSERT_EQ(ask([&](fi_info* hints) { hints->domain_attr->domain = second.get(); }), 0);
  EXPECT_EQ(info_->fabric_attr->fabric, second.fabric());
  EXPECT_EQ(info_->domain_attr->domain, second.get());
}

TEST_F(GetInfo, AnOpenDomainRestrictsTheAnswer) {
  const Domain other(options_);
  options_.threading = FI_THREAD_DOMAIN;
  const Domain domain(options_);
  ASSERT_TRUE(other.ok() && domain.ok());
  const auto of_it = [&](fi_info* hints) {
    hints->domain_attr->domain = domain.get();
    hints->domain_attr->threading = FI_THREAD_UNSPEC;
  };
  ASSERT_EQ(ask(of_it), 0);
  for (const fi_info* info = info_.get(); info != nullptr; info = info->next) {
    EXPECT_EQ(info->domain_attr->domain, domain.get());
    EXPECT_EQ(info->fabric_attr->fabric, domain.fabric());
    EXPECT_STREQ(info->domain_attr->name, domain.info()->domain_attr->name);
    EXPECT_STREQ(info->fabric_attr->name, domain.info()->fabric_attr->name);
    EXPECT_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN) << "as it was opened";
  }
  const auto refused = [&](const std::function<void(fi_info*)>& change) {
    return ask([&](fi_info* hints) {
      of_it(hints);
      change(hints);
    });
  };
  EXPECT_EQ(refused([](fi_info* hints) { hints->domain_attr->name = strdup("none"); }),
            -FI_ENODATA);
  EXPECT_EQ(refused([](fi_info* hints) { hints->fabric_attr->name = strdup("none"); }),
            -FI_ENODATA);
  EXPECT_EQ(refused([&](fi_info* hints) { hints->fabric_attr->fabric = other.fabric(); }),
            -FI_ENODATA);
  EXPECT_EQ(refused([](fi_info* hints) { hints->domain_attr->threading = FI_THREAD_SAFE; }),
            -FI_ENODATA);
}

TEST_F(GetInfo, AnObjectThatIsNotOpenDoesNotMatch) {
  fid_domain stranger{};
  EXPECT_EQ(ask([&](fi_info* hints) { hints->domain_attr->domain = &stranger; }), -FI_ENODATA);
  auto brief = std::make_unique<Domain>(options_);
  ASSERT_TRUE(brief->ok());
  fid_domain* const gone = brief->get();
  brief.reset();
  EXPECT_EQ(ask([&](fi_info* hints) { hints->domain_attr->domain = gone; }), -FI_ENODATA);
}

// What goes over the network is not promised where there is none.
TEST_F(GetInfo, PeersAreWhereTheLinksLead) {
  ASSERT_EQ(ask([](fi_info*) {}), 0);
  const bool remote = !only_links("shm");
  for (const std::uint64_t caps : {info_->caps, info_->domain_attr->caps}) {
    EXPECT_EQ((caps & FI_REMOTE_COMM) != 0, remote);
    EXPECT_NE(caps & FI_LOCAL_COMM, 0u);
  }
  EXPECT_EQ(ask([](fi_info* hints) { hints->caps |= FI_REMOTE_COMM; }), remote ? 0 : -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->domain_attr->caps = FI_REMOTE_COMM; }),
            remote ? 0 : -FI_ENODATA);
}

TEST_F(GetInfo, NoMoreEndpointsArePromisedThanThereArePorts) {
  if (provider_name() != "weft") GTEST_SKIP() << "each endpoint of weft's takes a UDP port";
  ASSERT_EQ(ask([](fi_info*) {}), 0);
  unsigned first = 0;
  unsigned last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  ASSERT_GT(last, first);
  EXPECT_GT(info_->domain_attr->ep_cnt, 0u);
  EXPECT_LE(info_->domain_attr->ep_cnt, last - first + 1);
  EXPECT_EQ(ask([&](fi_info* hints) { hints->domain_attr->ep_cnt = last; }), -FI_ENODATA);
}

// Of a rejected connection, fi_cm(3).
TEST_F(GetInfo, ErrorDataAreAsLongAsTheyMayBe) {
  ASSERT_EQ(ask([](fi_info* hints) { hints->ep_attr->type = FI_EP_MSG; }), 0);
  EXPECT_GE(info_->domain_attr->max_err_data, 256u);
}

// An address of this host that the provider uses, with that port, and in words: which interfaces
// and kinds of addresses there are is the host's affair.
struct Own {
  Own(const Options& options, std::uint16_t port) {
    int rc = 0;
    const Info info = get_info(options, make_hints(options).get(), &rc);
    if (info == nullptr || info->src_addr == nullptr) return;
    const auto* raw = static_cast<const std::uint8_t*>(info->src_addr);
    address.assign(raw, raw + info->src_addrlen);
    const std::uint16_t wanted = htons(port);
    static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
    std::memcpy(address.data() + offsetof(sockaddr_in, sin_port), &wanted, sizeof wanted);
    getnameinfo(static_cast<const sockaddr*>(info->src_addr),
                static_cast<socklen_t>(info->src_addrlen), node, sizeof node, nullptr, 0,
                NI_NUMERICHOST);
  }
  bool is(const void* other, std::size_t length) const {
    return length == address.size() && std::memcmp(other, address.data(), length) == 0;
  }

  std::vector<std::uint8_t> address;
  char node[NI_MAXHOST]{};
};

TEST_F(GetInfo, SourceNodeBecomesTheSourceAddress) {
  const Own own(options_, 46001);
  fi_info* found = nullptr;
  const Info hints = make_hints(options_);
  ASSERT_EQ(fi_getinfo(options_.api, own.node, "46001", FI_SOURCE, hints.get(), &found), 0);
  const Info info(found);
  EXPECT_TRUE(own.is(info->src_addr, info->src_addrlen));
}

TEST_F(GetInfo, NodeBecomesTheDestinationAddress) {
  const Own own(options_, 46002);
  fi_info* found = nullptr;
  const Info hints = make_hints(options_);
  ASSERT_EQ(fi_getinfo(options_.api, own.node, "46002", 0, hints.get(), &found), 0);
  const Info info(found);
  EXPECT_TRUE(own.is(info->dest_addr, info->dest_addrlen));
}

TEST_F(GetInfo, SourceFlagWithoutAnAddressIsRefused) {
  fi_info* found = nullptr;
  const Info hints = make_hints(options_);
  const int rc = fi_getinfo(options_.api, nullptr, nullptr, FI_SOURCE, hints.get(), &found);
  const Info info(rc == 0 ? found : nullptr);
  EXPECT_TRUE(rc == -FI_EINVAL || rc == -FI_ENODATA) << rc;
}

TEST_F(GetInfo, ContradictoryRegistrationModesDoNotMatch) {
  EXPECT_EQ(ask([](fi_info* hints) { hints->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_SCALABLE; }),
            -FI_ENODATA);
  EXPECT_EQ(
      ask([](fi_info* hints) { hints->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_VIRT_ADDR; }),
      -FI_ENODATA);
}

TEST_F(GetInfo, WithoutHintsTheProviderIsListed) {
  fi_info* found = nullptr;
  ASSERT_EQ(fi_getinfo(options_.api, nullptr, nullptr, 0, nullptr, &found), 0);
  const Info list(found);
  bool listed = false;
  for (const fi_info* one = list.get(); one != nullptr; one = one->next) {
    listed = listed || provider_name() == one->fabric_attr->prov_name;
  }
  EXPECT_TRUE(listed);
}

}  // namespace
}  // namespace weft::conformance
