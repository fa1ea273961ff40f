// SPDX-License-Identifier: BSD-2-Clause
// One attribute at a time: does weft meet the hint, and what does it answer?
#include "negotiate.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <array>
#include <initializer_list>
#include <string>

#include "c_enum.h"

namespace weft::fabric {
namespace {

constexpr std::uint32_t kFirstApiWithMrBits = FI_VERSION(1, 5);

Error refusal(std::string message) { return {FI_ENODATA, std::move(message)}; }

std::string bits_text(std::uint64_t bits, fi_type kind) {
  std::array<char, 512> text{};
  return fmt::format("{:#x} {}", bits, fi_tostr_r(text.data(), text.size(), &bits, kind));
}

bool any_of(std::uint64_t bits, std::uint64_t of) { return (bits & of) != 0; }

std::uint64_t with_implied_modifiers(std::uint64_t caps) {
  if (any_of(caps, kMessageCaps) && !any_of(caps, kMessageModifiers)) caps |= kMessageModifiers;
  if (any_of(caps, kRmaCaps) && !any_of(caps, kRmaModifiers)) caps |= kRmaModifiers;
  return caps;
}

// One of the choices that are offered, or `usual` without a hint (the number 0 in all of them).
template <class Choice>
Result<Choice> agree_choice(const char* attribute, const char* noun, int hinted, Choice usual,
                            std::initializer_list<Choice> offered) {
  if (hinted == 0) return usual;
  for (const Choice choice : offered) {
    if (hinted == choice) return choice;
  }
  return refusal(fmt::format("{} {}: unknown {}", attribute, hinted, noun));
}

}  // namespace

Result<std::uint64_t> agree_caps(std::uint64_t hinted, const TypeOffer& offer) {
  if (hinted == 0) return offer.caps & ~kCapsOnRequest;
  if (any_of(hinted, ~offer.caps)) {
    return refusal("caps not offered: " + bits_text(hinted & ~offer.caps, FI_TYPE_CAPS));
  }
  if (any_of(hinted, kMessageModifiers) && !any_of(hinted, kMessageCaps)) {
    return refusal("caps: FI_SEND or FI_RECV without FI_MSG or FI_TAGGED");
  }
  if (any_of(hinted, kRmaModifiers) && !any_of(hinted, kRmaCaps)) {
    return refusal("caps: FI_READ, FI_WRITE or FI_REMOTE_* without FI_RMA or FI_ATOMIC");
  }
  if (any_of(hinted, FI_MULTICAST) && !any_of(hinted, FI_MSG)) {
    return refusal("caps: FI_MULTICAST without FI_MSG");
  }
  const std::uint64_t caps = with_implied_modifiers(hinted);
  if (any_of(caps, FI_RMA_EVENT) && !any_of(caps, kRmaTargetModifiers)) {
    return refusal("caps: FI_RMA_EVENT without FI_REMOTE_READ or FI_REMOTE_WRITE");
  }
  return caps | (offer.caps & kDomainCaps);
}

Result<std::uint64_t> agree_context_caps(std::uint64_t hinted, std::uint64_t endpoint,
                                         std::uint64_t applicable) {
  const std::uint64_t available = endpoint & applicable;
  if (hinted == 0) return available;
  const std::uint64_t missing = hinted & ~(available | kDomainCaps);
  if (missing != 0)
    return refusal("context caps beyond its endpoint's: " + bits_text(missing, FI_TYPE_CAPS));
  return with_implied_modifiers(hinted) & available;
}

namespace {

// Whether FI_MR_BASIC or FI_MR_SCALABLE says all that is required but FI_MR_LOCAL.
bool says_all(int name, int required) {
  const int said = name == FI_MR_BASIC ? kMapMrModes : 0;
  return (required & ~(said | FI_MR_LOCAL)) == 0;
}

Error demanded(int hinted, int missing) {
  return refusal(fmt::format("mr_mode {:#x} without {}", hinted,
                             bits_text(static_cast<std::uint64_t>(missing), FI_TYPE_MR_MODE)));
}

// A hint that is one of the two names, or is nothing for a program that knows no others.
Result<int> agree_mr_name(int hinted, int required, bool local_mode) {
  if ((required & FI_MR_LOCAL) != 0 && !local_mode) {
    return refusal(
        fmt::format("mr_mode {:#x} without FI_MR_LOCAL, which is FI_LOCAL_MR in mode", hinted));
  }
  int name = hinted;
  if (name == FI_MR_UNSPEC) {
    name = says_all(FI_MR_SCALABLE, required) ? FI_MR_SCALABLE : FI_MR_BASIC;
  }
  if (says_all(name, required)) return name;
  return demanded(hinted, required & ~(name == FI_MR_BASIC ? kMapMrModes : 0) & ~FI_MR_LOCAL);
}

}  // namespace

Result<int> agree_mr_mode(std::uint32_t api_version, int hinted, int required, bool local_mode) {
  const bool old = api_version < kFirstApiWithMrBits;
  const bool named = hinted == FI_MR_BASIC || hinted == FI_MR_SCALABLE;
  if (named || (old && hinted == FI_MR_UNSPEC)) return agree_mr_name(hinted, required, local_mode);
  if (old) return refusal(fmt::format("mr_mode {:#x}: its bits came with API 1.5", hinted));
  if ((hinted & (FI_MR_BASIC | FI_MR_SCALABLE)) != 0) {
    return refusal(
        fmt::format("mr_mode {:#x}: FI_MR_BASIC and FI_MR_SCALABLE stand alone", hinted));
  }
  if ((required & ~hinted) != 0) return demanded(hinted, required & ~hinted);
  return required;
}

Result<int> check_mr_mode(std::uint32_t api_version, int mode, int required, int all) {
  const bool named = mode == FI_MR_BASIC || mode == FI_MR_SCALABLE;
  if (named && says_all(mode, required)) return mode;
  const bool bits = api_version >= kFirstApiWithMrBits && (mode == required || mode == all);
  if (bits || (mode == FI_MR_UNSPEC && required == 0)) return mode;
  return refusal(fmt::format("mr_mode {:#x}: fi_getinfo does not return that", mode));
}

Result<fi_threading> agree_threading(int hinted) {
  return agree_choice(
      "threading", "level", hinted, FI_THREAD_SAFE,
      {FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT});
}

namespace {

Result<fi_progress> agree_progress(const char* attribute, int hinted, fi_progress usual,
                                   fi_progress demanded) {
  if (demanded != FI_PROGRESS_UNSPEC) usual = demanded;
  if (demanded == FI_PROGRESS_MANUAL) {
    return agree_choice(attribute, "or unavailable model", hinted, usual, {FI_PROGRESS_MANUAL});
  }
  return agree_choice(attribute, "model", hinted, usual, {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL});
}

}  // namespace

// FI_PROGRESS_CONTROL_UNIFIED of libfabric 1.21: manual, and the program serializes control calls,
// too.
Result<fi_progress> agree_control_progress(int hinted, fi_progress demanded) {
  constexpr int kControlUnified = 3;
  if (hinted == kControlUnified) hinted = FI_PROGRESS_MANUAL;
  return agree_progress("control_progress", hinted, FI_PROGRESS_AUTO, demanded);
}

bool controls_automatically(const fi_domain_attr* attributes, fi_progress demanded) {
  const int model =
      attributes != nullptr ? number_of(attributes->control_progress) : FI_PROGRESS_UNSPEC;
  const auto agreed = agree_control_progress(model, demanded);
  return agreed && agreed.value() == FI_PROGRESS_AUTO;
}

// No thread without a request.
Result<fi_progress> agree_data_progress(int hinted, fi_progress demanded) {
  return agree_progress("data_progress", hinted, FI_PROGRESS_MANUAL, demanded);
}

Result<fi_resource_mgmt> agree_resource_mgmt(int hinted) {
  const auto known = agree_choice("resource_mgmt", "value", hinted, FI_RM_ENABLED,
                                  {FI_RM_DISABLED, FI_RM_ENABLED});
  return known ? FI_RM_ENABLED : known;
}

Result<fi_av_type> agree_av_type(int hinted) {
  return agree_choice("av_type", "type", hinted, FI_AV_UNSPEC, {FI_AV_MAP, FI_AV_TABLE});
}

Result<fi_ep_type> agree_ep_type(int hinted, const TypeOffer& offer) {
  if (hinted == FI_EP_UNSPEC || hinted == offer.type) return offer.type;
  return refusal(fmt::format("endpoint type {}: not offered", hinted));
}

Result<std::size_t> agree_context_count(const char* attribute, std::size_t hinted) {
  if (hinted == FI_SHARED_CONTEXT) return hinted;
  return agree_limit(attribute, hinted, 1);
}

Result<std::uint32_t> agree_traffic_class(std::uint32_t hinted) {
  constexpr std::uint32_t kMostDscp = 63;
  const bool label = hinted >= FI_TC_BEST_EFFORT && hinted <= FI_TC_NETWORK_CTRL;
  const bool dscp = (hinted & ~kMostDscp) == FI_TC_DSCP;
  if (hinted == FI_TC_UNSPEC || label || dscp) return hinted;
  return refusal(fmt::format("tclass {:#x}: neither a label nor a DSCP", hinted));
}

// RFC 4594, and RFC 8622 for the scavenger.
std::uint8_t dscp_of(std::uint32_t traffic_class) {
  switch (traffic_class) {
    case FI_TC_LOW_LATENCY:
      return 46;  // expedited forwarding
    case FI_TC_DEDICATED_ACCESS:
      return 34;  // assured forwarding 41
    case FI_TC_BULK_DATA:
      return 10;  // assured forwarding 11
    case FI_TC_SCAVENGER:
      return 1;  // lower effort
    case FI_TC_NETWORK_CTRL:
      return 48;  // class selector 6
    default:
      return fi_tc_dscp_get(traffic_class);
  }
}

Result<std::uint64_t> agree_bits(const char* attribute, fi_type kind, std::uint64_t hinted,
                                 std::uint64_t offered, std::uint64_t usual) {
  if (hinted == 0) return usual;
  if ((hinted & ~offered) == 0) return hinted;
  return refusal(fmt::format("{} not offered: {}", attribute, bits_text(hinted & ~offered, kind)));
}

Result<std::size_t> agree_limit(const char* attribute, std::size_t hinted, std::size_t offered) {
  if (hinted <= offered) return offered;
  return refusal(fmt::format("{} {}: the most is {}", attribute, hinted, offered));
}

Result<std::size_t> agree_size(const char* attribute, std::size_t hinted, std::size_t usual,
                               std::size_t largest) {
  if (hinted == 0) return usual;
  if (hinted <= largest) return hinted;
  return refusal(fmt::format("{} {}: the most is {}", attribute, hinted, largest));
}

}  // namespace weft::fabric
