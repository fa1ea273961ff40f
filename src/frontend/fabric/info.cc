// SPDX-License-Identifier: BSD-2-Clause
// What does weft answer to fi_getinfo(3)?
#include "info.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "c_enum.h"
#include "contract.h"
#include "instances.h"
#include "log.h"
#include "name.h"
#include "resolve.h"
#include "terms.h"

namespace weft::fabric {
namespace {

// Bits that libfabric adds when its utility providers look for a provider to stand on. weft's
// answer does not depend on them, except that it is no offload provider.
constexpr std::uint64_t kInternalFlags = std::uint64_t{7} << 58;
constexpr std::uint64_t kOffloadOnly = std::uint64_t{1} << 61;
// FI_RESCAN of libfabric 2.x: look again. weft always does.
constexpr std::uint64_t kRescan = std::uint64_t{1} << 35;
constexpr std::uint64_t kKnownFlags =
    FI_SOURCE | FI_NUMERICHOST | FI_PROV_ATTR_ONLY | kInternalFlags | kOffloadOnly | kRescan;

Status check_flags(std::uint64_t flags) {
  if ((flags & ~kKnownFlags) != 0) {
    return Error{FI_EBADFLAGS, fmt::format("unknown flags {:#x}", flags & ~kKnownFlags)};
  }
  if ((flags & kOffloadOnly) != 0) return Error{FI_ENODATA, "no offload provider"};
  return {};
}

Result<std::vector<device::OfferedDevice>> devices_to_offer(const std::string& interfaces) {
  auto devices = device::offered_devices(interfaces);
  if (devices && devices.value().empty()) {
    log_warning(FI_LOG_CORE, "no usable network interface{}{}", interfaces.empty() ? "" : " named ",
                interfaces);
  }
  return devices;
}

// The fabric and the domain that the hints name, by name or by an open object; empty and null where
// they name none.
struct Named {
  std::string fabric;
  std::string domain;
  fid_fabric* open_fabric = nullptr;
  std::optional<Instance> open_domain;
};

// Takes a name that must not contradict one that is known already.
bool agree(std::string& known, const std::string& name) {
  if (!known.empty() && !name.empty() && known != name) return false;
  if (!name.empty()) known = name;
  return true;
}

std::string text_or_empty(const char* text) { return text != nullptr ? text : ""; }

Result<Named> names_of(const fi_info* hints) {
  Named named;
  if (hints == nullptr) return named;
  if (const fi_fabric_attr* fabric = hints->fabric_attr; fabric != nullptr) {
    named.fabric = text_or_empty(fabric->name);
    if (fabric->fabric != nullptr) {
      const auto open = Instances::find(fabric->fabric);
      if (!open || !agree(named.fabric, open->fabric_name)) {
        return Error{FI_ENODATA, "the fabric in the hints is not weft's or has another name"};
      }
      named.open_fabric = fabric->fabric;
    }
  }
  const fi_domain_attr* const domain = hints->domain_attr;
  if (domain == nullptr) return named;
  named.domain = text_or_empty(domain->name);
  if (domain->domain == nullptr) return named;
  named.open_domain = Instances::find(domain->domain);
  const bool fits = named.open_domain && agree(named.domain, named.open_domain->domain_name) &&
                    agree(named.fabric, named.open_domain->fabric_name);
  if (!fits || (named.open_fabric != nullptr && named.open_fabric != named.open_domain->fabric)) {
    return Error{FI_ENODATA, "the domain in the hints is not weft's, or not the one that is named"};
  }
  named.open_fabric = named.open_domain->fabric;
  return named;
}

Status keep_named(const Named& named, std::vector<AddressPair>& pairs) {
  std::erase_if(pairs, [&](const AddressPair& pair) {
    return (!named.fabric.empty() && pair.fabric != named.fabric) ||
           (!named.domain.empty() && pair.domain != named.domain);
  });
  if (!pairs.empty()) return {};
  return Error{FI_ENODATA, fmt::format("no domain '{}' on fabric '{}' for these addresses",
                                       named.domain, named.fabric)};
}

// An attribute of a domain that is open is as it was opened with; false when that is not what the
// hints ask for.
template <class T>
bool settle_as_opened(T fi_domain_attr::*attribute, const fi_domain_attr& opened,
                      const fi_domain_attr& hinted, fi_domain_attr& answer) {
  const int there = number_of(opened.*attribute);
  if (there == 0 || there == number_of(answer.*attribute)) return true;
  answer.*attribute = opened.*attribute;
  return number_of(hinted.*attribute) == 0;
}

// The same for mr_mode: bits that the open domain requires beyond the answer may be hinted, too,
// and it lacks none of the answer's.
bool settle_mr_mode(int opened, int hinted, int& answer) {
  if (opened == answer) return true;
  if ((mr_bits(answer) & ~mr_bits(opened)) != 0) return false;
  answer = opened;
  constexpr int kNames = FI_MR_BASIC | FI_MR_SCALABLE;
  const bool covered = ((opened | hinted) & kNames) == 0 && (opened & ~hinted) == 0;
  return hinted == 0 || covered;
}

// The same for the counts of a domain.
bool settle_counts(const fi_domain_attr& opened, const fi_domain_attr& hinted,
                   fi_domain_attr& answer) {
  constexpr std::size_t fi_domain_attr::*kCounts[] = {
      &fi_domain_attr::cq_cnt,     &fi_domain_attr::ep_cnt,         &fi_domain_attr::tx_ctx_cnt,
      &fi_domain_attr::rx_ctx_cnt, &fi_domain_attr::max_ep_stx_ctx, &fi_domain_attr::max_ep_srx_ctx,
      &fi_domain_attr::cntr_cnt,   &fi_domain_attr::mr_cnt};
  return std::all_of(std::begin(kCounts), std::end(kCounts), [&](auto count) {
    if (opened.*count != 0) answer.*count = opened.*count;
    return hinted.*count <= answer.*count;
  });
}

// Keeps the contracts that endpoints of the open domain can have.
Status keep_as_opened(const fi_domain_attr& opened, const fi_domain_attr& hinted,
                      std::vector<Contract>& contracts) {
  std::erase_if(contracts, [&](Contract& contract) {
    fi_domain_attr& answer = contract.domain;
    return !settle_as_opened(&fi_domain_attr::threading, opened, hinted, answer) ||
           !settle_as_opened(&fi_domain_attr::control_progress, opened, hinted, answer) ||
           !settle_as_opened(&fi_domain_attr::data_progress, opened, hinted, answer) ||
           !settle_mr_mode(opened.mr_mode, hinted.mr_mode, answer.mr_mode) ||
           !settle_counts(opened, hinted, answer);
  });
  if (!contracts.empty()) return {};
  return Error{FI_ENODATA, "the domain in the hints was opened with other attributes"};
}

bool is_hinted(const fi_info* hints, const TypeOffer& offer) {
  return hints != nullptr && hints->ep_attr != nullptr &&
         number_of(hints->ep_attr->type) == offer.type;
}

// Memory that fi_freeinfo() gives back with free(3).
// Writes only what this file knows of each structure: later libraries have longer ones.
bool write_contract(const Contract& contract, fi_info& info) {
  info.caps = contract.caps;
  info.mode = contract.mode;
  *info.tx_attr = contract.tx;
  *info.rx_attr = contract.rx;
  *info.ep_attr = contract.ep;
  *info.domain_attr = contract.domain;
  const bool domain_key = own_key(*info.domain_attr);
  return own_key(*info.ep_attr) && domain_key;
}

bool write_addresses(const AddressPair& pair, fi_info& info) {
  info.addr_format = pair.source.family() == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
  return write_address(pair.source, info.src_addr, info.src_addrlen) &&
         (!pair.destination || write_address(*pair.destination, info.dest_addr, info.dest_addrlen));
}

bool write_names(const AddressPair& pair, const Named& named, fi_info& info) {
  info.fabric_attr->fabric =
      named.open_fabric != nullptr ? named.open_fabric : Instances::first_fabric(pair.fabric);
  info.domain_attr->domain = named.open_domain ? named.open_domain->domain
                                               : Instances::first_domain(pair.fabric, pair.domain);
  info.domain_attr->name = ::strdup(pair.domain.c_str());
  info.fabric_attr->name = ::strdup(pair.fabric.c_str());
  return info.domain_attr->name != nullptr && info.fabric_attr->name != nullptr;
}

// `handle`: the passive endpoint whose address the endpoint is to have, fi_endpoint(3), or null.
InfoList make_info(const Contract& contract, const AddressPair& pair, const Named& named,
                   fid_t handle) {
  InfoList info(fi_allocinfo());
  if (!info) return nullptr;
  if (!write_contract(contract, *info)) return nullptr;
  if (contract.ep.type == FI_EP_MSG) info->handle = handle;
  if (!write_addresses(pair, *info) || !write_names(pair, named, *info)) return nullptr;
  return info;
}

// What is agreed to for each type of endpoint that meets the hints. The first refusal of a hinted
// type, or of the first type, when none does.
Result<std::vector<Contract>> agree_contracts(const InfoQuery& query, const Terms& terms) {
  std::vector<Contract> contracts;
  std::optional<Error> refusal;
  for (const TypeOffer* offer : kTypes) {
    const Result<Contract> contract = agree_contract(query.api_version, query.hints, *offer, terms);
    if (contract) {
      contracts.push_back(contract.value());
    } else if (!refusal || is_hinted(query.hints, *offer)) {
      refusal = contract.error();
    }
  }
  if (contracts.empty()) return *refusal;
  return contracts;
}

// The contract at one address, where a datagram has to fit into a packet; nothing when the hints
// ask for longer ones.
std::optional<Contract> contract_at(const AddressPair& pair, Contract contract,
                                    const fi_info* hints) {
  if (contract.ep.type != FI_EP_DGRAM) return contract;
  const bool has_ep = hints != nullptr && hints->ep_attr != nullptr;
  const bool has_tx = hints != nullptr && hints->tx_attr != nullptr;
  const std::size_t needed = std::max<std::size_t>(
      {has_ep ? hints->ep_attr->max_msg_size : 0, has_tx ? hints->tx_attr->inject_size : 0, 1});
  if (pair.path_mtu < needed) return std::nullopt;
  contract.ep.max_msg_size = std::min(contract.ep.max_msg_size, pair.path_mtu);
  contract.tx.inject_size = std::min(contract.tx.inject_size, pair.path_mtu);
  return contract;
}

// Every type at the best address comes before the next address.
Result<InfoList> make_list(const std::vector<Contract>& contracts,
                           const std::vector<AddressPair>& pairs, const Named& named,
                           const fi_info* hints) {
  InfoList first;
  fi_info* last = nullptr;
  for (const AddressPair& pair : pairs) {
    for (const Contract& general : contracts) {
      const auto contract = contract_at(pair, general, hints);
      if (!contract) continue;
      InfoList info = make_info(*contract, pair, named, hints != nullptr ? hints->handle : nullptr);
      if (!info) return Error{ENOMEM, "no memory for fi_info"};
      fi_info* added = info.release();
      if (last == nullptr) {
        first.reset(added);
      } else {
        last->next = added;
      }
      last = added;
    }
  }
  if (!first)
    return Error{FI_ENODATA,
                 "no interface carries packets of the hinted max_msg_size or inject_size"};
  return first;
}

}  // namespace

Result<InfoList> find_info(const InfoQuery& query, const Options& options) {
  const Status flags = check_flags(query.flags);
  if (!flags) return flags.error();
  auto contracts = agree_contracts(query, terms_of(options));
  if (!contracts) return contracts.error();
  const auto named = names_of(query.hints);
  if (!named) return named.error();
  if (named.value().open_domain) {
    const fi_domain_attr& opened = named.value().open_domain->attributes;
    const Status fit = keep_as_opened(opened, *query.hints->domain_attr, contracts.value());
    if (!fit) return fit.error();
  }
  const auto devices = devices_to_offer(options.interface);
  if (!devices) return devices.error();
  auto pairs =
      pair_addresses({query.node, query.service, query.flags, query.hints}, devices.value());
  if (!pairs) return pairs.error();
  const Status kept = keep_named(named.value(), pairs.value());
  if (!kept) return kept.error();
  return make_list(contracts.value(), pairs.value(), named.value(), query.hints);
}

namespace {

template <class Matches>
Result<bool> any_subnet(const std::string& interface, const Matches& matches) {
  const auto devices = devices_to_offer(interface);
  if (!devices) return devices.error();
  for (const device::OfferedDevice& device : devices.value()) {
    for (const os::InterfaceAddress& own : device.interface.addresses) {
      if (matches(device, os::subnet_text(own))) return true;
    }
  }
  return false;
}

}  // namespace

Status check_fabric(const char* name, const std::string& interface) {
  const std::string wanted = text_or_empty(name);
  const auto known = any_subnet(
      interface,
      [&](const device::OfferedDevice&, const std::string& subnet) { return subnet == wanted; });
  if (!known) return known.error();
  if (known.value()) return {};
  return Error{FI_ENODATA, fmt::format("no fabric named '{}'", wanted)};
}

Status check_domain_name(const std::string& name, const std::string& fabric,
                         const std::string& interface) {
  const auto known =
      any_subnet(interface, [&](const device::OfferedDevice& device, const std::string& subnet) {
        return device.name == name && subnet == fabric;
      });
  if (!known) return known.error();
  if (known.value()) return {};
  return Error{FI_EINVAL, fmt::format("no domain '{}' on fabric '{}'", name, fabric)};
}

}  // namespace weft::fabric
