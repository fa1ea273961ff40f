// SPDX-License-Identifier: BSD-2-Clause
// How do a test's options become hints, a fabric and a domain?
#include "domain.h"

#include <cstdlib>
#include <cstring>

namespace weft::conformance {

std::string provider_name() {
  const char* name = std::getenv("WEFT_TEST_PROVIDER");
  return name != nullptr ? name : "weft";
}

std::uint32_t usual_format() {
  const char* addresses = std::getenv("WEFT_TEST_ADDRESSES");
  const bool v6 = addresses != nullptr && std::strcmp(addresses, "ipv6") == 0;
  return v6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

bool only_links(const char* link) {
  const char* const links = std::getenv("FI_WEFT_LINKS");
  return links != nullptr && std::strcmp(links, link) == 0;
}

bool map_contract() {
  const char* const contract = std::getenv("FI_WEFT_CONTRACT");
  return contract != nullptr && std::strcmp(contract, "map") == 0;
}

bool contract_lists(const char* bit) {
  const char* const contract = std::getenv("FI_WEFT_CONTRACT");
  if (contract == nullptr) return false;
  return ("," + std::string(contract) + ",").find("," + std::string(bit) + ",") !=
         std::string::npos;
}

std::string authorization_key(int number) {
  std::string key = "authorization key " + std::to_string(number) + " ";
  for (char c = 'A'; key.size() < 64; c = static_cast<char>((c - 'A' + 7) % 26 + 'A')) key += c;
  return key;
}

Options datagrams() {
  Options options;
  options.type = FI_EP_DGRAM;
  options.caps = FI_MSG | FI_SOURCE | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_MULTICAST;
  options.order = 0;
  return options;
}

Info make_hints(const Options& options) {
  Info hints(fi_allocinfo());
  hints->caps = options.caps;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->addr_format = options.addr_format;
  hints->ep_attr->type = options.type;
  if ((options.shares & FI_TRANSMIT) != 0) hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
  if ((options.shares & FI_RECV) != 0) hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  hints->fabric_attr->prov_name = strdup(provider_name().c_str());
  hints->domain_attr->mr_mode = options.mr_mode;
  hints->domain_attr->threading = options.threading;
  hints->domain_attr->data_progress = options.data_progress;
  hints->domain_attr->control_progress = options.control_progress;
  hints->domain_attr->resource_mgmt = options.resource_mgmt;
  hints->domain_attr->av_type = options.av_type;
  hints->tx_attr->op_flags = options.tx_flags;
  hints->tx_attr->msg_order = options.order;
  hints->tx_attr->size = options.tx_size;
  hints->rx_attr->size = options.rx_size;
  hints->rx_attr->msg_order = options.order;
  set_key(*hints->domain_attr, options.domain_key);
  set_key(*hints->ep_attr, options.endpoint_key);
  return hints;
}

Info get_info(const Options& options, const fi_info* hints, int* rc) {
  fi_info* found = nullptr;
  const std::string service = std::to_string(options.port);
  *rc = fi_getinfo(options.api, nullptr, options.port != 0 ? service.c_str() : nullptr,
                   options.port != 0 ? FI_SOURCE : 0, hints, &found);
  return Info(*rc == 0 ? found : nullptr);
}

Fid<fid_wait> open_wait_set(fid_fabric* fabric) {
  fi_wait_attr attributes{FI_WAIT_FD, 0};
  return open_fid<fid_wait>([&](fid_wait** out) { return fi_wait_open(fabric, &attributes, out); });
}

Domain::Domain(const Options& options) {
  int rc = 0;
  info_ = get_info(options, make_hints(options).get(), &rc);
  EXPECT_EQ(rc, 0) << "fi_getinfo for provider " << provider_name() << ": " << fi_strerror(-rc);
  if (info_ == nullptr) return;
  info_->domain_attr->resource_mgmt = options.resource_mgmt;
  fabric_ = open_fid<fid_fabric>(
      [&](fid_fabric** out) { return fi_fabric(info_->fabric_attr, out, nullptr); });
  if (fabric_ == nullptr) return;
  domain_ = open_fid<fid_domain>(
      [&](fid_domain** out) { return fi_domain(fabric_.get(), info_.get(), out, nullptr); });
  if (options.registrations != FI_WAIT_NONE) open_registrations(options.registrations);
  if ((options.shares & FI_TRANSMIT) != 0) {
    shared_transmit_ = open_fid<fid_stx>(
        [&](fid_stx** out) { return fi_stx_context(get(), info_->tx_attr, out, nullptr); });
  }
  if ((options.shares & FI_RECV) != 0) {
    shared_receive_ = open_fid<fid_ep>(
        [&](fid_ep** out) { return fi_srx_context(get(), info_->rx_attr, out, nullptr); });
  }
}

void Domain::open_registrations(fi_wait_obj object) {
  fi_eq_attr attributes{};
  attributes.wait_obj = object;
  registrations_ = open_fid<fid_eq>(
      [&](fid_eq** out) { return fi_eq_open(fabric_.get(), &attributes, out, nullptr); });
  if (registrations_ == nullptr) return;
  EXPECT_EQ(fi_domain_bind(domain_.get(), &registrations_->fid, FI_REG_MR), 0);
}

}  // namespace weft::conformance
