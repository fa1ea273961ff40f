// SPDX-License-Identifier: BSD-2-Clause
// Does a contract have every attribute, and does one bad hint among many refuse it?
#include "contract.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <functional>
#include <memory>

#include "offer.h"

namespace weft::fabric {
namespace {

constexpr std::uint32_t kNow = FI_VERSION(1, 17);

struct Hints {
  Hints() : info(fi_allocinfo(), fi_freeinfo) {}
  fi_info* operator->() { return info.get(); }
  std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info;
};

int refusal_of(const std::function<void(fi_info&)>& wish) {
  Hints hints;
  wish(*hints.info);
  const auto contract = agree_contract(kNow, hints.info.get(), kReliableDatagrams);
  return contract.ok() ? 0 : contract.error().code;
}

TEST(Contract, WithoutHintsIsComplete) {
  const auto result = agree_contract(kNow, nullptr, kReliableDatagrams);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Contract& contract = result.value();
  EXPECT_EQ(contract.caps, kAllCaps & ~kCapsOnRequest);
  EXPECT_EQ(contract.ep.type, FI_EP_RDM);
  EXPECT_EQ(contract.ep.max_msg_size, kMaxMessageSize);
  EXPECT_EQ(contract.ep.mem_tag_format, kTagFormat);
  EXPECT_EQ(contract.tx.size, kUsualQueueSize);
  EXPECT_EQ(contract.tx.inject_size, kInjectSize);
  EXPECT_EQ(contract.tx.op_flags, 0U);
  EXPECT_EQ(contract.rx.msg_order, kMessageOrder);
  EXPECT_EQ(contract.domain.mr_mode, 0);
  EXPECT_EQ(contract.domain.mr_key_size, 8U);
  EXPECT_EQ(contract.domain.cq_data_size, 8U);
  EXPECT_EQ(contract.domain.threading, FI_THREAD_SAFE);
}

TEST(Contract, OfDatagramsPromisesNoOrderAndNothingBeyondOnePacket) {
  const auto result = agree_contract(kNow, nullptr, kDatagrams);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Contract& contract = result.value();
  EXPECT_EQ(contract.caps, kDatagramCaps & ~kCapsOnRequest);
  EXPECT_EQ(contract.ep.type, FI_EP_DGRAM);
  EXPECT_EQ(contract.ep.max_msg_size, kMaxDatagramSize);
  EXPECT_EQ(contract.domain.cq_data_size, 4U);
  EXPECT_EQ(contract.tx.inject_size, kMaxDatagramSize);
  EXPECT_EQ(contract.tx.msg_order | contract.rx.msg_order, 0U);
  EXPECT_EQ(contract.tx.caps & (FI_TAGGED | FI_RMA | FI_FENCE), 0U);
  EXPECT_EQ(contract.tx.caps & FI_MULTICAST, std::uint64_t{FI_MULTICAST});
}

TEST(Contract, OfDatagramsRefusesWhatNeedsAnAnswerOfThePeer) {
  const auto refused = [](const std::function<void(fi_info&)>& wish) {
    Hints hints;
    wish(*hints.info);
    return !agree_contract(kNow, hints.info.get(), kDatagrams).ok();
  };
  EXPECT_FALSE(refused([](fi_info&) {}));
  EXPECT_TRUE(refused([](fi_info& i) { i.tx_attr->op_flags = FI_DELIVERY_COMPLETE; }));
  EXPECT_TRUE(refused([](fi_info& i) { i.tx_attr->msg_order = FI_ORDER_SAS; }));
  EXPECT_TRUE(refused([](fi_info& i) { i.rx_attr->msg_order = FI_ORDER_SAS; }));
  EXPECT_TRUE(refused([](fi_info& i) { i.caps = FI_MSG | FI_FENCE; }));
  EXPECT_TRUE(refused([](fi_info& i) { i.ep_attr->max_msg_size = kMaxDatagramSize + 1; }));
  EXPECT_TRUE(refused([](fi_info& i) { i.domain_attr->cq_data_size = 5; }));
}

TEST(Contract, ToleratesHintsWhoseAttributePointersAreNull) {
  fi_info hints{};
  hints.caps = FI_MSG;
  EXPECT_TRUE(agree_contract(kNow, &hints, kReliableDatagrams).ok());
}

TEST(Contract, OffersNoModeWhateverTheApplicationSupports) {
  Hints hints;
  hints->mode = ~std::uint64_t{0};
  const auto result = agree_contract(kNow, hints.info.get(), kReliableDatagrams);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().tx.mode | result.value().rx.mode | result.value().domain.mode, 0U);
}

TEST(Contract, GivenBackAsHintsIsAgreedToUnchanged) {
  Hints hints;
  hints->caps = FI_MSG | FI_RMA | FI_SOURCE;
  hints->tx_attr->size = 17;
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  const Contract first = agree_contract(kNow, hints.info.get(), kReliableDatagrams).value();
  hints->caps = first.caps;
  *hints->tx_attr = first.tx;
  *hints->rx_attr = first.rx;
  *hints->ep_attr = first.ep;
  *hints->domain_attr = first.domain;
  const auto again = agree_contract(kNow, hints.info.get(), kReliableDatagrams);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value().caps, first.caps);
  EXPECT_EQ(again.value().tx.size, 17U);
  EXPECT_EQ(again.value().tx.caps, first.tx.caps);
  EXPECT_EQ(again.value().rx.caps, first.rx.caps);
  EXPECT_EQ(again.value().domain.mr_mode, 0);
  EXPECT_EQ(again.value().domain.threading, FI_THREAD_DOMAIN);
}

TEST(Contract, TellsRequiredModesToProgramsWithoutHints) {
  Terms map;
  map.mr_modes = kMapMrModes;
  const auto mode_for = [&](std::uint32_t api, const fi_info* hints) {
    const auto contract = agree_contract(api, hints, kReliableDatagrams, map);
    return contract.ok() ? contract.value().domain.mr_mode : -1;
  };
  EXPECT_EQ(mode_for(kNow, nullptr), kMapMrModes);
  EXPECT_EQ(mode_for(FI_VERSION(1, 4), nullptr), FI_MR_BASIC);
  Hints hints;
  EXPECT_EQ(mode_for(kNow, hints.info.get()), -1) << "hints that do not offer them";
  hints->domain_attr->mr_mode = ~3;
  EXPECT_EQ(mode_for(kNow, hints.info.get()), kMapMrModes);
  hints->domain_attr->mr_mode = 0;
  hints->caps = FI_MSG | FI_TAGGED;
  EXPECT_EQ(mode_for(kNow, hints.info.get()), 0) << "messages need no region";
}

TEST(Contract, WithoutTheNetworkReachesThisHostOnly) {
  Terms local;
  local.domain_caps = FI_LOCAL_COMM;
  const auto result = agree_contract(kNow, nullptr, kReliableDatagrams, local);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().caps & kDomainCaps, std::uint64_t{FI_LOCAL_COMM});
  EXPECT_EQ(result.value().domain.caps, std::uint64_t{FI_LOCAL_COMM});
  Hints hints;
  hints->caps = FI_MSG | FI_REMOTE_COMM;
  EXPECT_FALSE(agree_contract(kNow, hints.info.get(), kReliableDatagrams, local).ok());
  hints->caps = FI_MSG | FI_LOCAL_COMM;
  EXPECT_TRUE(agree_contract(kNow, hints.info.get(), kReliableDatagrams, local).ok());
}

TEST(Contract, KeepsTheTagFormatOfTheApplication) {
  Hints hints;
  hints->ep_attr->mem_tag_format = 0x00E0'0000'7FFF'FFFF;
  EXPECT_EQ(agree_contract(kNow, hints.info.get(), kReliableDatagrams).value().ep.mem_tag_format,
            0x00E0'0000'7FFF'FFFFU);
}

TEST(Contract, IgnoresPrefixSpaceAndBufferSpaceThatItDoesNotNeed) {
  Hints hints;
  hints->ep_attr->msg_prefix_size = 64;
  hints->rx_attr->total_buffered_recv = 1 << 20;
  const auto result = agree_contract(kNow, hints.info.get(), kReliableDatagrams);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().ep.msg_prefix_size, 0U);
  EXPECT_EQ(result.value().rx.total_buffered_recv, 0U);
}

TEST(Contract, TransmitAndReceiveOrdersAreTheWishedOnes) {
  Hints hints;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  const auto result = agree_contract(kNow, hints.info.get(), kReliableDatagrams);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().tx.msg_order, std::uint64_t{FI_ORDER_SAS});
  EXPECT_EQ(result.value().rx.msg_order, std::uint64_t{FI_ORDER_SAS});
}

// What one Debian program each asks for.
TEST(Contract, MeetsTheHintsOfOpenMpi) {
  Hints hints;
  hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->tx_attr->op_flags = hints->rx_attr->op_flags = FI_COMPLETION;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->cq_data_size = 4;
  hints->domain_attr->av_type = FI_AV_MAP;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  const auto result = agree_contract(FI_VERSION(1, 5), hints.info.get(), kReliableDatagrams);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value().domain.mr_mode, 0);
  EXPECT_EQ(result.value().domain.av_type, FI_AV_MAP);
}

TEST(Contract, RefusesNumbersThatTheirEnumerationDoesNotHave) {
  const int absurd = 0x7FFF'FFFF;
  const auto put = [&](auto& member) { std::memcpy(&member, &absurd, sizeof absurd); };
  EXPECT_EQ(refusal_of([&](fi_info& i) { put(i.domain_attr->threading); }), FI_ENODATA);
  EXPECT_EQ(refusal_of([&](fi_info& i) { put(i.domain_attr->control_progress); }), FI_ENODATA);
  EXPECT_EQ(refusal_of([&](fi_info& i) { put(i.domain_attr->data_progress); }), FI_ENODATA);
  EXPECT_EQ(refusal_of([&](fi_info& i) { put(i.domain_attr->resource_mgmt); }), FI_ENODATA);
  EXPECT_EQ(refusal_of([&](fi_info& i) { put(i.domain_attr->av_type); }), FI_ENODATA);
  EXPECT_EQ(refusal_of([&](fi_info& i) { put(i.ep_attr->type); }), FI_ENODATA);
}

TEST(Contract, MultiReceiveIsOfferedOnRequest) {
  EXPECT_EQ(refusal_of([](fi_info& i) { i.rx_attr->op_flags = FI_MULTI_RECV; }), 0) << "all caps";
  EXPECT_EQ(refusal_of([](fi_info& i) {
              i.caps = FI_MSG;
              i.rx_attr->op_flags = FI_MULTI_RECV;
            }),
            FI_ENODATA);
  EXPECT_EQ(refusal_of([](fi_info& i) {
              i.caps = FI_MSG;
              i.rx_attr->caps = FI_MULTI_RECV;
            }),
            FI_ENODATA);
  EXPECT_EQ(refusal_of([](fi_info& i) {
              i.caps = FI_MSG | FI_MULTI_RECV;
              i.rx_attr->op_flags = FI_MULTI_RECV;
            }),
            0);
}

TEST(Contract, IsRefusedForAnySingleHintThatCannotBeMet) {
  const std::function<void(fi_info&)> wishes[] = {
      [](fi_info& i) { i.caps = FI_COLLECTIVE; },
      [](fi_info& i) { i.tx_attr->caps = FI_COLLECTIVE; },
      [](fi_info& i) { i.tx_attr->op_flags = FI_COMMIT_COMPLETE; },
      [](fi_info& i) { i.tx_attr->msg_order = FI_ORDER_RAS; },
      [](fi_info& i) { i.tx_attr->comp_order = FI_ORDER_STRICT; },
      [](fi_info& i) { i.tx_attr->inject_size = kInjectSize + 1; },
      [](fi_info& i) { i.tx_attr->size = kLargestQueueSize + 1; },
      [](fi_info& i) { i.tx_attr->iov_limit = kIovLimit + 1; },
      [](fi_info& i) { i.tx_attr->rma_iov_limit = kRmaIovLimit + 1; },
      [](fi_info& i) { i.tx_attr->tclass = FI_TC_NETWORK_CTRL + 1; },
      [](fi_info& i) { i.rx_attr->caps = FI_COLLECTIVE; },
      [](fi_info& i) { i.rx_attr->op_flags = FI_TRIGGER; },
      [](fi_info& i) { i.rx_attr->msg_order = FI_ORDER_WAS; },
      [](fi_info& i) { i.rx_attr->comp_order = FI_ORDER_DATA; },
      [](fi_info& i) { i.rx_attr->size = SIZE_MAX; },
      [](fi_info& i) { i.rx_attr->iov_limit = kIovLimit + 1; },
      [](fi_info& i) { i.ep_attr->type = FI_EP_MSG; },
      [](fi_info& i) { i.ep_attr->protocol = FI_PROTO_UDP; },
      [](fi_info& i) { i.ep_attr->protocol_version = kProtocolVersion + 1; },
      [](fi_info& i) { i.ep_attr->max_msg_size = kMaxMessageSize + 1; },
      [](fi_info& i) { i.ep_attr->max_order_raw_size = kMaxMessageSize + 1; },
      [](fi_info& i) { i.ep_attr->tx_ctx_cnt = 2; },
      [](fi_info& i) { i.ep_attr->rx_ctx_cnt = 2; },
      [](fi_info& i) { i.domain_attr->caps = FI_SHARED_AV; },
      [](fi_info& i) { i.domain_attr->mr_key_size = 9; },
      [](fi_info& i) { i.domain_attr->mr_iov_limit = kMrIovLimit + 1; },
      [](fi_info& i) { i.domain_attr->cq_data_size = 9; },
      [](fi_info& i) { i.domain_attr->max_ep_tx_ctx = 2; },
      [](fi_info& i) { i.domain_attr->max_ep_srx_ctx = kObjectCount + 1; },
      [](fi_info& i) { i.domain_attr->cq_cnt = kObjectCount + 1; },
      [](fi_info& i) { i.domain_attr->mr_mode = FI_MR_BASIC | FI_MR_LOCAL; },
  };
  std::size_t number = 0;
  for (const auto& wish : wishes) {
    EXPECT_EQ(refusal_of(wish), FI_ENODATA) << "wish number " << number;
    ++number;
  }
  EXPECT_EQ(refusal_of([](fi_info&) {}), 0);
}

}  // namespace
}  // namespace weft::fabric
