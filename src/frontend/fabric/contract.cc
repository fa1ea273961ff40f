// SPDX-License-Identifier: BSD-2-Clause
// Which terms do an application and weft agree on? All attributes of one endpoint and its domain.
#include "contract.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <optional>
#include <utility>

#include "authorization.h"
#include "c_enum.h"
#include "completion_error.h"
#include "negotiate.h"
#include "offer.h"

namespace weft::fabric {
namespace {

// Collects the answers and remembers the first refusal.
class Talks {
 public:
  template <class T>
  T settle(Result<T> answer) {
    if (answer.ok()) return std::move(answer).value();
    if (!refusal_) refusal_ = answer.error();
    return T{};
  }
  const std::optional<Error>& refusal() const { return refusal_; }

 private:
  std::optional<Error> refusal_;
};

// An attribute that is an upper limit.
template <class Attributes>
struct Limit {
  const char* name;
  std::size_t Attributes::*member;
  std::size_t offered;
};

constexpr Limit<fi_tx_attr> kTxLimits[] = {
    {"tx iov_limit", &fi_tx_attr::iov_limit, kIovLimit},
    {"tx rma_iov_limit", &fi_tx_attr::rma_iov_limit, kRmaIovLimit},
};

constexpr Limit<fi_rx_attr> kRxLimits[] = {
    {"rx iov_limit", &fi_rx_attr::iov_limit, kIovLimit},
};

constexpr Limit<fi_ep_attr> kEpLimits[] = {
    {"max_order_raw_size", &fi_ep_attr::max_order_raw_size, kMaxMessageSize},
    {"max_order_war_size", &fi_ep_attr::max_order_war_size, kMaxMessageSize},
    {"max_order_waw_size", &fi_ep_attr::max_order_waw_size, kMaxMessageSize},
};

static_assert(kConnectionData <= kMaxErrorData);  // of a rejection

constexpr Limit<fi_domain_attr> kDomainLimits[] = {
    {"cq_cnt", &fi_domain_attr::cq_cnt, kObjectCount},
    {"max_ep_tx_ctx", &fi_domain_attr::max_ep_tx_ctx, 1},
    {"max_ep_rx_ctx", &fi_domain_attr::max_ep_rx_ctx, 1},
    {"cntr_cnt", &fi_domain_attr::cntr_cnt, kObjectCount},
    {"max_err_data", &fi_domain_attr::max_err_data, kMaxErrorData},
};

template <class Attributes, std::size_t kCount>
void settle_limits(Talks& talks, const Limit<Attributes> (&limits)[kCount], const Attributes& hints,
                   Attributes& result) {
  for (const Limit<Attributes>& limit : limits) {
    result.*limit.member =
        talks.settle(agree_limit(limit.name, hints.*limit.member, limit.offered));
  }
}

fi_tx_attr settle_tx(Talks& talks, const TypeOffer& offer, const fi_tx_attr& hints,
                     std::uint64_t endpoint_caps, std::uint64_t applicable) {
  fi_tx_attr tx{};
  settle_limits(talks, kTxLimits, hints, tx);
  tx.inject_size =
      talks.settle(agree_limit("tx inject_size", hints.inject_size, offer.max_inject_size));
  tx.caps = talks.settle(agree_context_caps(hints.caps, endpoint_caps, applicable));
  tx.op_flags =
      talks.settle(agree_bits("tx op_flags", FI_TYPE_OP_FLAGS, hints.op_flags, offer.tx_flags, 0));
  tx.msg_order = talks.settle(agree_bits("tx msg_order", FI_TYPE_MSG_ORDER, hints.msg_order,
                                         offer.message_order, offer.message_order));
  tx.comp_order = talks.settle(
      agree_bits("tx comp_order", FI_TYPE_MSG_ORDER, hints.comp_order, kCompletionOrder, 0));
  tx.size = talks.settle(agree_size("tx size", hints.size, kUsualQueueSize, kLargestQueueSize));
  tx.tclass = talks.settle(agree_traffic_class(hints.tclass));
  return tx;
}

// total_buffered_recv stays 0: it is a hint that a provider may ignore, and later libraries dropped
// it.
fi_rx_attr settle_rx(Talks& talks, const TypeOffer& offer, const fi_rx_attr& hints,
                     std::uint64_t endpoint_caps, std::uint64_t applicable) {
  fi_rx_attr rx{};
  settle_limits(talks, kRxLimits, hints, rx);
  rx.caps = talks.settle(agree_context_caps(hints.caps, endpoint_caps, applicable));
  const std::uint64_t not_asked_for = FI_MULTI_RECV & ~endpoint_caps;
  rx.op_flags = talks.settle(
      agree_bits("rx op_flags", FI_TYPE_OP_FLAGS, hints.op_flags, kRxFlags & ~not_asked_for, 0));
  rx.msg_order = talks.settle(agree_bits("rx msg_order", FI_TYPE_MSG_ORDER, hints.msg_order,
                                         offer.message_order, offer.message_order));
  rx.comp_order = talks.settle(
      agree_bits("rx comp_order", FI_TYPE_MSG_ORDER, hints.comp_order, kCompletionOrder, 0));
  rx.size = talks.settle(agree_size("rx size", hints.size, kUsualReceives, kLargestQueueSize));
  return rx;
}

// msg_prefix_size stays 0: space that the application would give, weft does not need.
fi_ep_attr settle_ep(Talks& talks, const TypeOffer& offer, const fi_ep_attr& hints) {
  fi_ep_attr ep{};
  settle_limits(talks, kEpLimits, hints, ep);
  ep.max_msg_size =
      talks.settle(agree_limit("max_msg_size", hints.max_msg_size, offer.max_message_size));
  ep.type = talks.settle(agree_ep_type(number_of(hints.type), offer));
  if (hints.protocol != FI_PROTO_UNSPEC && hints.protocol != kProtocol) {
    talks.settle(Result<int>(Error{FI_ENODATA, "protocol: only weft's own is offered"}));
  }
  ep.protocol = kProtocol;
  ep.protocol_version = static_cast<std::uint32_t>(
      talks.settle(agree_limit("protocol_version", hints.protocol_version, kProtocolVersion)));
  ep.mem_tag_format = hints.mem_tag_format != 0 ? hints.mem_tag_format : kTagFormat;
  ep.tx_ctx_cnt = talks.settle(agree_context_count("tx_ctx_cnt", hints.tx_ctx_cnt));
  ep.rx_ctx_cnt = talks.settle(agree_context_count("rx_ctx_cnt", hints.rx_ctx_cnt));
  return ep;
}

fi_domain_attr settle_domain(Talks& talks, const TypeOffer& offer, const Terms& terms,
                             Result<int> mr_mode, const fi_domain_attr& hints) {
  // Each endpoint has one context of each kind.
  const Limit<fi_domain_attr> limits_of_terms[] = {
      {"ep_cnt", &fi_domain_attr::ep_cnt, terms.endpoints},
      {"tx_ctx_cnt", &fi_domain_attr::tx_ctx_cnt, terms.endpoints},
      {"rx_ctx_cnt", &fi_domain_attr::rx_ctx_cnt, terms.endpoints},
      {"max_ep_stx_ctx", &fi_domain_attr::max_ep_stx_ctx, terms.endpoints},
      {"max_ep_srx_ctx", &fi_domain_attr::max_ep_srx_ctx, terms.endpoints},
      {"mr_cnt", &fi_domain_attr::mr_cnt, terms.mr_cnt},
      {"mr_iov_limit", &fi_domain_attr::mr_iov_limit, terms.mr_iov_limit},
      {"mr_key_size", &fi_domain_attr::mr_key_size, terms.mr_key_size},
  };
  fi_domain_attr domain{};
  settle_limits(talks, kDomainLimits, hints, domain);
  settle_limits(talks, limits_of_terms, hints, domain);
  domain.cq_data_size =
      talks.settle(agree_limit("cq_data_size", hints.cq_data_size, offer.cq_data_size));
  domain.threading = talks.settle(agree_threading(number_of(hints.threading)));
  domain.control_progress = talks.settle(
      agree_control_progress(number_of(hints.control_progress), terms.control_progress));
  domain.data_progress =
      talks.settle(agree_data_progress(number_of(hints.data_progress), terms.data_progress));
  domain.resource_mgmt = talks.settle(agree_resource_mgmt(number_of(hints.resource_mgmt)));
  domain.av_type = talks.settle(agree_av_type(number_of(hints.av_type)));
  domain.mr_mode = talks.settle(std::move(mr_mode));
  talks.settle(
      agree_bits("domain caps", FI_TYPE_CAPS, hints.caps, terms.domain_caps, terms.domain_caps));
  domain.caps = terms.domain_caps;
  domain.tclass = talks.settle(agree_traffic_class(hints.tclass));
  return domain;
}

// Peers ask for accesses to memory of devices by packets.
void settle_devices(Talks& talks, const Terms& terms, std::uint64_t caps) {
  const bool by_packets = (terms.domain_caps & FI_REMOTE_COMM) != 0;
  if (by_packets || !serves_devices(caps)) return;
  talks.settle(Result<int>(Error{FI_ENODATA, "caps: FI_HMEM of a target needs the network"}));
}

template <class Attributes>
Attributes or_nothing(const Attributes* attributes) {
  return attributes != nullptr ? *attributes : Attributes{};
}

// fi_endpoint(3): the size is 0 where no key is used.
template <class Attributes>
void settle_key(Talks& talks, std::uint32_t api_version, const Attributes& hints,
                Attributes& result) {
  if (!names_key(api_version, hints)) return;
  result.auth_key_size = hints.auth_key_size;
  result.auth_key = hints.auth_key;
  const Status ok = check_key(hints.auth_key, hints.auth_key_size);
  if (!ok) talks.settle(Result<int>(Error{FI_ENODATA, ok.error().message}));
}

// Without domain attributes an application says nothing about registration, and hears what is
// required; without hints FI_LOCAL_MR is part of that.
Result<int> mr_mode_for(std::uint32_t api_version, const fi_info* hints, int required) {
  const bool bits = api_version >= FI_VERSION(1, 5);
  const bool says = hints != nullptr && hints->domain_attr != nullptr;
  const int unsaid = bits ? required : FI_MR_UNSPEC;
  const bool local_mode = hints == nullptr || (hints->mode & FI_LOCAL_MR) != 0;
  return agree_mr_mode(api_version, says ? hints->domain_attr->mr_mode : unsaid, required,
                       local_mode);
}

// The first refusal, with the name of the contract, if one was chosen.
Error refusal_under(const Terms& terms, const Talks& talks) {
  Error error = *talks.refusal();
  if (!terms.contract.empty()) {
    error.message = fmt::format("contract {}: {}", terms.contract, error.message);
  }
  return error;
}

Status acceptable(const Terms& terms, const Talks& talks) {
  if (talks.refusal()) return Error{FI_EINVAL, refusal_under(terms, talks).message};
  return {};
}

}  // namespace

Result<Contract> agree_contract(std::uint32_t api_version, const fi_info* hints,
                                const TypeOffer& full_offer, const Terms& terms) {
  const TypeOffer offer = offer_under(full_offer, terms);
  const fi_info wish = or_nothing(hints);
  Talks talks;
  Contract contract;
  contract.caps = talks.settle(agree_caps(wish.caps, offer));
  settle_devices(talks, terms, contract.caps);
  if (talks.refusal()) return refusal_under(terms, talks);
  contract.tx = settle_tx(talks, offer, or_nothing(wish.tx_attr), contract.caps, kTxCaps);
  contract.rx = settle_rx(talks, offer, or_nothing(wish.rx_attr), contract.caps, kRxCaps);
  contract.ep = settle_ep(talks, offer, or_nothing(wish.ep_attr));
  const int required = mr_modes_for(terms, contract.caps);
  contract.domain = settle_domain(talks, offer, terms, mr_mode_for(api_version, hints, required),
                                  or_nothing(wish.domain_attr));
  settle_key(talks, api_version, or_nothing(wish.domain_attr), contract.domain);
  settle_key(talks, api_version, or_nothing(wish.ep_attr), contract.ep);
  if (talks.refusal()) return refusal_under(terms, talks);
  const bool named = (contract.domain.mr_mode & (FI_MR_BASIC | FI_MR_SCALABLE)) != 0;
  if (named && (required & FI_MR_LOCAL) != 0) contract.mode = FI_LOCAL_MR;
  return contract;
}

Status check_domain(std::uint32_t api_version, const fi_info& info, const Terms& terms) {
  const fi_domain_attr domain = or_nothing(info.domain_attr);
  Talks talks;
  settle_domain(
      talks, kReliableDatagrams, terms,
      check_mr_mode(api_version, domain.mr_mode, mr_modes_for(terms, info.caps), terms.mr_modes),
      domain);
  return acceptable(terms, talks);
}

// Programs narrow the capabilities of the endpoint and leave those of its contexts.
Status check_endpoint(const fi_info& info, const TypeOffer& full_offer, const Terms& terms) {
  const TypeOffer offer = offer_under(full_offer, terms);
  Talks talks;
  talks.settle(agree_bits("caps", FI_TYPE_CAPS, info.caps, offer.caps, 0));
  settle_tx(talks, offer, or_nothing(info.tx_attr), offer.caps, offer.caps);
  settle_rx(talks, offer, or_nothing(info.rx_attr), offer.caps, offer.caps);
  settle_ep(talks, offer, or_nothing(info.ep_attr));
  return acceptable(terms, talks);
}

}  // namespace weft::fabric
