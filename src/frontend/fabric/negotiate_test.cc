// SPDX-License-Identifier: BSD-2-Clause
// Does each attribute follow its rule in fi_getinfo(3), fi_domain(3), fi_endpoint(3), fi_mr(3)?
#include "negotiate.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include "offer.h"

namespace weft::fabric {
namespace {

constexpr std::uint32_t kNow = FI_VERSION(1, 17);
constexpr std::uint32_t kOld = FI_VERSION(1, 4);
constexpr int kMap = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

template <class T>
void expect_answer(const Result<T>& result, T answer) {
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value(), answer);
}

template <class T>
void expect_refused(const Result<T>& result) {
  ASSERT_FALSE(result.ok()) << result.value();
  EXPECT_EQ(result.error().code, FI_ENODATA);
  EXPECT_FALSE(result.error().message.empty());
}

TEST(Caps, NoWishGetsEverythingButMemoryOfDevices) {
  expect_answer(agree_caps(0, kReliableDatagrams), kAllCaps & ~kCapsOnRequest);
}

TEST(Caps, APrimaryCapabilityAloneMeansAllItsModifiersAndNoOtherPrimary) {
  expect_answer(agree_caps(FI_TAGGED, kReliableDatagrams),
                std::uint64_t{FI_TAGGED | FI_SEND | FI_RECV | kDomainCaps});
  expect_answer(agree_caps(FI_RMA, kReliableDatagrams),
                std::uint64_t{FI_RMA | kRmaModifiers | kDomainCaps});
  expect_answer(agree_caps(FI_ATOMIC, kReliableDatagrams),
                std::uint64_t{FI_ATOMIC | kRmaModifiers | kDomainCaps});
}

TEST(Caps, AModifierNarrowsItsPrimary) {
  expect_answer(agree_caps(FI_MSG | FI_SEND, kReliableDatagrams),
                std::uint64_t{FI_MSG | FI_SEND | kDomainCaps});
  expect_answer(agree_caps(FI_RMA | FI_READ, kReliableDatagrams),
                std::uint64_t{FI_RMA | FI_READ | kDomainCaps});
  expect_answer(agree_caps(FI_ATOMIC | FI_REMOTE_WRITE, kReliableDatagrams),
                std::uint64_t{FI_ATOMIC | FI_REMOTE_WRITE | kDomainCaps});
}

TEST(Caps, SourceRmaEventsAndMultiReceiveComeOnlyOnRequest) {
  EXPECT_EQ(
      agree_caps(FI_MSG, kReliableDatagrams).value() & (FI_SOURCE | FI_RMA_EVENT | FI_MULTI_RECV),
      0U);
  expect_answer(agree_caps(FI_MSG | FI_SOURCE, kReliableDatagrams),
                std::uint64_t{FI_MSG | FI_SOURCE | kMessageModifiers | kDomainCaps});
}

TEST(Caps, MulticastIsOfDatagramsAndNeedsMessages) {
  expect_answer(agree_caps(FI_MSG | FI_MULTICAST, kDatagrams),
                std::uint64_t{FI_MSG | FI_MULTICAST | kMessageModifiers | kDomainCaps});
  expect_refused(agree_caps(FI_MULTICAST, kDatagrams));
  expect_refused(agree_caps(FI_TAGGED, kDatagrams));
  expect_refused(agree_caps(FI_RMA, kDatagrams));
}

TEST(Caps, CapabilitiesNotOfferedAreRefused) {
  for (const std::uint64_t bit :
       {FI_MULTICAST, FI_COLLECTIVE, FI_NAMED_RX_CTX, FI_PEER, FI_SHARED_AV, FI_RMA_PMEM,
        FI_SOURCE_ERR, FI_VARIABLE_MSG, FI_AV_USER_ID}) {
    SCOPED_TRACE(bit);
    expect_refused(agree_caps(FI_MSG | bit, kReliableDatagrams));
  }
}

TEST(Caps, UnknownBitsAreRefused) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t cap = std::uint64_t{1} << bit;
    if ((cap & kAllCaps) != 0) continue;
    SCOPED_TRACE(bit);
    expect_refused(agree_caps(FI_MSG | cap, kReliableDatagrams));
  }
}

TEST(Caps, AModifierWithoutItsPrimaryIsRefused) {
  expect_refused(agree_caps(FI_RMA | FI_SEND, kReliableDatagrams));
  expect_refused(agree_caps(FI_MSG | FI_REMOTE_READ, kReliableDatagrams));
}

TEST(Caps, RmaEventsNeedATarget) {
  expect_refused(agree_caps(FI_MSG | FI_RMA_EVENT, kReliableDatagrams));
  expect_refused(agree_caps(FI_RMA | FI_READ | FI_WRITE | FI_RMA_EVENT, kReliableDatagrams));
  EXPECT_TRUE(agree_caps(FI_RMA | FI_REMOTE_WRITE | FI_RMA_EVENT, kReliableDatagrams).ok());
}

TEST(ContextCaps, NoWishGetsTheContextsShareOfTheEndpoint) {
  const std::uint64_t endpoint = agree_caps(FI_TAGGED | FI_SOURCE, kReliableDatagrams).value();
  expect_answer(agree_context_caps(0, endpoint, kTxCaps), std::uint64_t{FI_TAGGED | FI_SEND});
  expect_answer(agree_context_caps(0, endpoint, kRxCaps),
                std::uint64_t{FI_TAGGED | FI_RECV | FI_SOURCE});
}

TEST(ContextCaps, AContextCannotDoMoreThanItsEndpoint) {
  const std::uint64_t endpoint = agree_caps(FI_TAGGED, kReliableDatagrams).value();
  expect_refused(agree_context_caps(FI_MSG, endpoint, kTxCaps));
  expect_refused(agree_context_caps(FI_TAGGED | FI_RECV, endpoint, kTxCaps));
}

TEST(ContextCaps, ASubsetIsGrantedWithTheModifierItImplies) {
  const std::uint64_t endpoint = agree_caps(FI_TAGGED | FI_MSG, kReliableDatagrams).value();
  expect_answer(agree_context_caps(FI_MSG | FI_LOCAL_COMM, endpoint, kTxCaps),
                std::uint64_t{FI_MSG | FI_SEND});
}

// fi_mr(3): "A provider will clear an mr_mode bit if it is not needed."
TEST(MrMode, BitsNotNeededAreCleared) {
  for (int bits = 0; bits < 1 << 12; bits += FI_MR_LOCAL) {
    expect_answer(agree_mr_mode(kNow, bits, 0), 0);
  }
  expect_answer(agree_mr_mode(kNow, kMap | FI_MR_LOCAL | FI_MR_ENDPOINT, kMap), kMap);
}

TEST(MrMode, RequiredBitsMustBeHinted) {
  expect_answer(agree_mr_mode(kNow, kMap, kMap), kMap);
  for (const int missing : {FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY}) {
    expect_refused(agree_mr_mode(kNow, kMap & ~missing, kMap));
  }
  expect_refused(agree_mr_mode(kNow, 0, kMap));
}

TEST(MrMode, BasicAndScalableAreEchoedWhenAlone) {
  for (const std::uint32_t api : {kOld, kNow}) {
    expect_answer<int>(agree_mr_mode(api, FI_MR_BASIC, 0), FI_MR_BASIC);
    expect_answer<int>(agree_mr_mode(api, FI_MR_BASIC, kMap), FI_MR_BASIC);
    expect_answer<int>(agree_mr_mode(api, FI_MR_SCALABLE, 0), FI_MR_SCALABLE);
    expect_refused(agree_mr_mode(api, FI_MR_SCALABLE, kMap));
    expect_refused(agree_mr_mode(api, FI_MR_BASIC | FI_MR_SCALABLE, 0));
    expect_refused(agree_mr_mode(api, FI_MR_BASIC | FI_MR_LOCAL, 0));
  }
}

TEST(MrMode, BeforeApi15UnspecMeansWhatFitsAndBitsAreUnknown) {
  expect_answer<int>(agree_mr_mode(kOld, FI_MR_UNSPEC, 0), FI_MR_SCALABLE);
  expect_answer<int>(agree_mr_mode(kOld, FI_MR_UNSPEC, kMap), FI_MR_BASIC);
  expect_refused(agree_mr_mode(kOld, FI_MR_VIRT_ADDR, 0));
}

TEST(MrMode, ARefusalNamesTheMissingBits) {
  const auto refused = agree_mr_mode(kNow, kMap & ~FI_MR_ALLOCATED, kMap | FI_MR_LOCAL);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("FI_MR_LOCAL, FI_MR_ALLOCATED"), std::string::npos)
      << refused.error().message;
}

TEST(MrMode, NamesSayLocalByFiLocalMr) {
  for (const std::uint32_t api : {kOld, kNow}) {
    expect_answer<int>(agree_mr_mode(api, FI_MR_BASIC, kMap | FI_MR_LOCAL, true), FI_MR_BASIC);
    expect_refused(agree_mr_mode(api, FI_MR_BASIC, kMap | FI_MR_LOCAL, false));
    expect_answer<int>(agree_mr_mode(api, FI_MR_SCALABLE, FI_MR_LOCAL, true), FI_MR_SCALABLE);
    expect_refused(agree_mr_mode(api, FI_MR_SCALABLE, FI_MR_LOCAL, false));
  }
  expect_answer<int>(agree_mr_mode(kOld, FI_MR_UNSPEC, kMap | FI_MR_LOCAL, true), FI_MR_BASIC);
  expect_refused(agree_mr_mode(kOld, FI_MR_UNSPEC, kMap | FI_MR_LOCAL, false));
  expect_refused(agree_mr_mode(kNow, kMap, kMap | FI_MR_LOCAL, true));
}

TEST(MrMode, BasicDoesNotSayEverything) {
  for (const int bit : {FI_MR_RAW, FI_MR_MMU_NOTIFY, FI_MR_RMA_EVENT, FI_MR_ENDPOINT}) {
    expect_refused(agree_mr_mode(kNow, FI_MR_BASIC, kMap | bit, true));
    expect_refused(check_mr_mode(kNow, FI_MR_BASIC, kMap | bit, kMap | bit));
  }
}

TEST(MrMode, OfADomainWithoutRemoteAccessesMayBeLess) {
  constexpr int kRequired = kMap | FI_MR_LOCAL;
  constexpr int kLeast = FI_MR_LOCAL | FI_MR_ALLOCATED;
  expect_answer(check_mr_mode(kNow, kLeast, kLeast, kRequired), kLeast);
  expect_answer(check_mr_mode(kNow, kRequired, kLeast, kRequired), kRequired);
  expect_refused(check_mr_mode(kNow, 0, kLeast, kRequired));
  expect_refused(check_mr_mode(kNow, FI_MR_LOCAL, kLeast, kRequired));
}

TEST(MrMode, OfADomainIsOneThatIsAnswered) {
  for (const int required : {0, kMap}) {
    expect_answer(check_mr_mode(kNow, required, required, required), required);
    expect_answer<int>(check_mr_mode(kNow, FI_MR_BASIC, required, required), FI_MR_BASIC);
    expect_refused(check_mr_mode(kNow, FI_MR_LOCAL, required, required));
    expect_refused(check_mr_mode(kNow, kMap | FI_MR_ENDPOINT, required, required));
    expect_refused(check_mr_mode(kNow, FI_MR_VIRT_ADDR, required, required));
  }
  expect_answer<int>(check_mr_mode(kNow, FI_MR_SCALABLE, 0, 0), FI_MR_SCALABLE);
  expect_refused(check_mr_mode(kNow, FI_MR_SCALABLE, kMap, kMap));
  expect_refused(check_mr_mode(kNow, kMap, 0, 0));
  expect_refused(check_mr_mode(kOld, kMap, kMap, kMap));
}

TEST(Threading, EveryLevelIsEchoedAndNoneMeansSafe) {
  expect_answer(agree_threading(FI_THREAD_UNSPEC), FI_THREAD_SAFE);
  for (const fi_threading level : {FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN,
                                   FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT}) {
    expect_answer(agree_threading(level), level);
  }
  expect_refused(agree_threading(77));
}

TEST(Progress, ControlIsAutoUnlessManualIsWished) {
  expect_answer(agree_control_progress(FI_PROGRESS_UNSPEC), FI_PROGRESS_AUTO);
  expect_answer(agree_control_progress(FI_PROGRESS_AUTO), FI_PROGRESS_AUTO);
  expect_answer(agree_control_progress(FI_PROGRESS_MANUAL), FI_PROGRESS_MANUAL);
  expect_answer(agree_control_progress(3), FI_PROGRESS_MANUAL);  // FI_PROGRESS_CONTROL_UNIFIED
  expect_refused(agree_control_progress(4));
}

TEST(Progress, DataIsManualUnlessAutoIsAskedFor) {
  expect_answer(agree_data_progress(FI_PROGRESS_UNSPEC), FI_PROGRESS_MANUAL);
  expect_answer(agree_data_progress(FI_PROGRESS_MANUAL), FI_PROGRESS_MANUAL);
  expect_answer(agree_data_progress(FI_PROGRESS_AUTO), FI_PROGRESS_AUTO);
  expect_refused(agree_data_progress(3));
}

TEST(Progress, ThatAContractDemandsIsTheAnswer) {
  for (const auto agree : {agree_control_progress, agree_data_progress}) {
    expect_answer(agree(FI_PROGRESS_UNSPEC, FI_PROGRESS_MANUAL), FI_PROGRESS_MANUAL);
    expect_answer(agree(FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL), FI_PROGRESS_MANUAL);
    expect_refused(agree(FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL));
    expect_answer(agree(FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO), FI_PROGRESS_AUTO);
    expect_answer(agree(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO), FI_PROGRESS_MANUAL);
  }
}

TEST(ResourceManagement, IsAlwaysEnabled) {
  for (const fi_resource_mgmt hint : {FI_RM_UNSPEC, FI_RM_DISABLED, FI_RM_ENABLED}) {
    expect_answer(agree_resource_mgmt(hint), FI_RM_ENABLED);
  }
  expect_refused(agree_resource_mgmt(9));
}

TEST(AvType, IsTheHint) {
  expect_answer(agree_av_type(FI_AV_UNSPEC), FI_AV_UNSPEC);
  expect_answer(agree_av_type(FI_AV_MAP), FI_AV_MAP);
  expect_answer(agree_av_type(FI_AV_TABLE), FI_AV_TABLE);
  expect_refused(agree_av_type(9));
}

TEST(EndpointType, IsThatOfTheOffer) {
  expect_answer(agree_ep_type(FI_EP_UNSPEC, kDatagrams), FI_EP_DGRAM);
  expect_answer(agree_ep_type(FI_EP_DGRAM, kDatagrams), FI_EP_DGRAM);
  expect_refused(agree_ep_type(FI_EP_RDM, kDatagrams));
  expect_answer(agree_ep_type(FI_EP_UNSPEC, kReliableDatagrams), FI_EP_RDM);
  expect_answer(agree_ep_type(FI_EP_RDM, kReliableDatagrams), FI_EP_RDM);
  expect_refused(agree_ep_type(FI_EP_MSG, kReliableDatagrams));
  expect_refused(agree_ep_type(FI_EP_DGRAM, kReliableDatagrams));
}

TEST(ContextCount, IsOneOrSharedNeverSeveral) {
  expect_answer(agree_context_count("tx_ctx_cnt", 0), std::size_t{1});
  expect_answer(agree_context_count("tx_ctx_cnt", 1), std::size_t{1});
  expect_refused(agree_context_count("tx_ctx_cnt", 2));
  expect_answer(agree_context_count("tx_ctx_cnt", FI_SHARED_CONTEXT),
                std::size_t{FI_SHARED_CONTEXT});
}

TEST(TrafficClass, IsTheHintedOne) {
  expect_answer<std::uint32_t>(agree_traffic_class(FI_TC_UNSPEC), FI_TC_UNSPEC);
  expect_answer<std::uint32_t>(agree_traffic_class(FI_TC_BEST_EFFORT), FI_TC_BEST_EFFORT);
  expect_answer<std::uint32_t>(agree_traffic_class(FI_TC_LOW_LATENCY), FI_TC_LOW_LATENCY);
  expect_answer<std::uint32_t>(agree_traffic_class(FI_TC_NETWORK_CTRL), FI_TC_NETWORK_CTRL);
  expect_answer<std::uint32_t>(agree_traffic_class(FI_TC_DSCP | 46), FI_TC_DSCP | 46);
  expect_refused(agree_traffic_class(FI_TC_NETWORK_CTRL + 1));
  expect_refused(agree_traffic_class(FI_TC_DSCP | 64));
  expect_refused(agree_traffic_class(1));
}

TEST(TrafficClass, HasACodePoint) {
  EXPECT_EQ(dscp_of(FI_TC_UNSPEC), 0);
  EXPECT_EQ(dscp_of(FI_TC_BEST_EFFORT), 0);
  EXPECT_EQ(dscp_of(FI_TC_LOW_LATENCY), 46);
  EXPECT_EQ(dscp_of(FI_TC_SCAVENGER), 1);
  EXPECT_EQ(dscp_of(FI_TC_NETWORK_CTRL), 48);
  for (std::uint8_t dscp = 0; dscp < 64; ++dscp) {
    EXPECT_EQ(dscp_of(fi_tc_dscp_set(dscp)), dscp);
  }
}

TEST(Bits, HintsMustBeASubsetAndAreTheAnswer) {
  expect_answer(agree_bits("order", FI_TYPE_MSG_ORDER, FI_ORDER_SAS, kMessageOrder, kMessageOrder),
                std::uint64_t{FI_ORDER_SAS});
  expect_answer(agree_bits("order", FI_TYPE_MSG_ORDER, 0, kMessageOrder, kMessageOrder),
                kMessageOrder);
  expect_refused(agree_bits("order", FI_TYPE_MSG_ORDER, FI_ORDER_SAS | FI_ORDER_RAS, kMessageOrder,
                            kMessageOrder));
}

TEST(Limit, IsTheOfferedOneUpToWhichHintsAreMet) {
  expect_answer(agree_limit("iov_limit", 0, 8), std::size_t{8});
  expect_answer(agree_limit("iov_limit", 3, 8), std::size_t{8});
  expect_answer(agree_limit("iov_limit", 8, 8), std::size_t{8});
  expect_refused(agree_limit("iov_limit", 9, 8));
}

TEST(Size, IsTheWishUpToTheLargest) {
  expect_answer(agree_size("size", 0, 1024, 65536), std::size_t{1024});
  expect_answer(agree_size("size", 7, 1024, 65536), std::size_t{7});
  expect_answer(agree_size("size", 65536, 1024, 65536), std::size_t{65536});
  expect_refused(agree_size("size", 65537, 1024, 65536));
}

TEST(Refusal, NamesTheAttributeTheValueAndTheLimit) {
  const auto refused = agree_limit("max_msg_size", 99, 8);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "max_msg_size 99: the most is 8");
}

TEST(Refusal, SpellsOutBits) {
  const auto refused = agree_caps(FI_MSG | FI_COLLECTIVE, kReliableDatagrams);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("FI_COLLECTIVE"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace weft::fabric
