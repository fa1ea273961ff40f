// SPDX-License-Identifier: BSD-2-Clause
// What does weft offer to libfabric programs? Every capability, limit and default, in one place.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>

#include "link/connection.h"
#include "memory/table_layout.h"

namespace weft::fabric {

inline constexpr char kProviderName[] = "weft";
inline constexpr std::uint32_t kProviderVersion = FI_VERSION(0, 1);

// Capabilities, fi_getinfo(3). A modifier narrows the primary capabilities of its line; none of a
// line means all of it.
inline constexpr std::uint64_t kMessageCaps = FI_MSG | FI_TAGGED;
inline constexpr std::uint64_t kMessageModifiers = FI_SEND | FI_RECV;
inline constexpr std::uint64_t kRmaCaps = FI_RMA | FI_ATOMIC;
inline constexpr std::uint64_t kRmaTargetModifiers = FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr std::uint64_t kRmaModifiers = FI_READ | FI_WRITE | kRmaTargetModifiers;
inline constexpr std::uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;
// Not part of the answer to a program that names no capabilities.
inline constexpr std::uint64_t kCapsOnRequest = FI_HMEM;
inline constexpr std::uint64_t kAllCaps =
    kMessageCaps | kMessageModifiers | kRmaCaps | kRmaModifiers | FI_DIRECTED_RECV | FI_SOURCE |
    FI_FENCE | FI_RMA_EVENT | FI_MULTI_RECV | FI_TRIGGER | kDomainCaps | kCapsOnRequest;

inline constexpr std::uint64_t kDatagramCaps = FI_MSG | kMessageModifiers | FI_MULTICAST |
                                               FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV |
                                               FI_TRIGGER | kDomainCaps | kCapsOnRequest;

// Which of them concern the transmit and which the receive context, fi_endpoint(3).
inline constexpr std::uint64_t kTxCaps = kMessageCaps | FI_SEND | FI_MULTICAST | kRmaCaps |
                                         FI_READ | FI_WRITE | FI_FENCE | FI_TRIGGER | FI_HMEM;
inline constexpr std::uint64_t kRxCaps = kMessageCaps | FI_RECV | kRmaCaps | kRmaTargetModifiers |
                                         FI_DIRECTED_RECV | FI_SOURCE | FI_RMA_EVENT |
                                         FI_MULTI_RECV | FI_TRIGGER | FI_HMEM;

// FI_TRIGGER is a flag of calls, and a default one of aliases, where the endpoint has it.
inline constexpr std::uint64_t kTxFlags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
                                          FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
                                          FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE;
// A datagram is complete when the call returns: there is nothing to fence, and no report of its
// delivery.
inline constexpr std::uint64_t kDatagramTxFlags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
                                                  FI_TRANSMIT_COMPLETE | FI_REMOTE_CQ_DATA |
                                                  FI_MORE | FI_MULTICAST;
inline constexpr std::uint64_t kRxFlags = FI_COMPLETION | FI_MULTI_RECV;

inline constexpr std::uint64_t kMessageOrder =
    FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_SAR | FI_ORDER_SAW |
    FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW |
    FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
inline constexpr std::uint64_t kCompletionOrder = 0;

// What FI_MR_BASIC means, and what the contract "map" demands (FI_WEFT_CONTRACT), as most RNICs do.
inline constexpr int kMapMrModes = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

// The upper bit says that the protocol is the provider's own, fi_endpoint(3).
inline constexpr std::uint32_t kProtocol = 0x8000'5757;
inline constexpr std::uint32_t kProtocolVersion = 1;
// 64 bits, each a field of its own: any mask will do.
inline constexpr std::uint64_t kTagFormat = 0xAAAA'AAAA'AAAA'AAAA;

inline constexpr std::size_t kMaxMessageSize = std::size_t{1} << 46;
inline constexpr std::size_t kInjectSize = 4096;
inline constexpr std::size_t kMaxDatagramSize = 4096;  // less where path_mtu() is less
inline constexpr std::size_t kIovLimit = 8;
inline constexpr std::size_t kRmaIovLimit = 8;
inline constexpr std::size_t kMinMultiReceive = 64;  // FI_OPT_MIN_MULTI_RECV until it is set
inline constexpr std::size_t kUsualQueueSize = 1024;
inline constexpr std::size_t kLargestQueueSize = 65536;
// Of a receive context, which costs nothing before receives are posted: a program that posts more
// than fits waits for messages that its peers may send only later.
inline constexpr std::size_t kUsualReceives = kLargestQueueSize;

inline constexpr std::size_t kConnectionData = link::kMaxConnectionData;  // FI_OPT_CM_DATA_SIZE

inline constexpr std::size_t kObjectCount = 65535;  // completion queues, endpoints, contexts ...
inline constexpr std::size_t kMrCount = std::size_t{1} << 20;
inline constexpr std::size_t kMrIovLimit = memory::kMaxSegments;
inline constexpr std::size_t kMrKeySize = 8;
inline constexpr std::size_t kCqDataSize = 8;
inline constexpr std::size_t kDatagramCqDataSize = 4;  // the immediate data of one packet

// In what one type of endpoint differs from the others.
struct TypeOffer {
  fi_ep_type type;
  std::uint64_t caps;  // all that an application may ask for
  std::uint64_t tx_flags;
  std::uint64_t message_order;
  std::size_t max_message_size;
  std::size_t max_inject_size;
  std::size_t cq_data_size;
};

inline constexpr TypeOffer kReliableDatagrams{
    FI_EP_RDM, kAllCaps, kTxFlags, kMessageOrder, kMaxMessageSize, kInjectSize, kCqDataSize};

// What tells one peer from another means nothing on an endpoint that has one peer only.
inline constexpr TypeOffer kConnected{FI_EP_MSG,       kAllCaps & ~(FI_DIRECTED_RECV | FI_SOURCE),
                                      kTxFlags,        kMessageOrder,
                                      kMaxMessageSize, kInjectSize,
                                      kCqDataSize};

inline constexpr TypeOffer kDatagrams{FI_EP_DGRAM,      kDatagramCaps,    kDatagramTxFlags,   0,
                                      kMaxDatagramSize, kMaxDatagramSize, kDatagramCqDataSize};

// Every type, in the order of fi_getinfo(3)'s answers.
inline constexpr const TypeOffer* kTypes[] = {&kReliableDatagrams, &kConnected, &kDatagrams};

}  // namespace weft::fabric
