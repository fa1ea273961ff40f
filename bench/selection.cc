// SPDX-License-Identifier: BSD-2-Clause
// What is asked of fi_getinfo(3).
#include "selection.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstring>

#include "failure.h"

namespace weft::bench {
namespace {

constexpr std::uint32_t kApiVersion = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

std::uint64_t capabilities(Operation operation) {
  switch (operation) {
    case Operation::kMessage:
      return FI_MSG;
    case Operation::kTagged:
      return FI_TAGGED;
    case Operation::kRmaWrite:
    case Operation::kRmaRead:
      return FI_MSG | FI_RMA;
    case Operation::kFetchAdd:
    case Operation::kCompareSwap:
      return FI_MSG | FI_ATOMIC;
  }
  return 0;
}

std::uint64_t completion_flags(Completion completion) {
  switch (completion) {
    case Completion::kDefault:
      return 0;
    case Completion::kInject:
      return FI_INJECT_COMPLETE;
    case Completion::kTransmit:
      return FI_TRANSMIT_COMPLETE;
    case Completion::kDelivery:
      return FI_DELIVERY_COMPLETE;
  }
  return 0;
}

fi_ep_type endpoint_type(EndpointType type) {
  switch (type) {
    case EndpointType::kReliable:
      return FI_EP_RDM;
    case EndpointType::kConnected:
      return FI_EP_MSG;
    case EndpointType::kDatagram:
      return FI_EP_DGRAM;
  }
  return FI_EP_UNSPEC;
}

fi_threading threading_model(Threading threading) {
  switch (threading) {
    case Threading::kSafe:
      return FI_THREAD_SAFE;
    case Threading::kFid:
      return FI_THREAD_FID;
    case Threading::kEndpoint:
      return FI_THREAD_ENDPOINT;
    case Threading::kCompletion:
      return FI_THREAD_COMPLETION;
    case Threading::kDomain:
      return FI_THREAD_DOMAIN;
  }
  return FI_THREAD_UNSPEC;
}

Info make_hints(const Options& options, const std::string& provider) {
  Info hints(fi_allocinfo());
  if (!hints) die("fi_allocinfo", "out of memory");
  hints->caps = capabilities(options.operation);
  if (options.receive == Receive::kMulti) hints->caps |= FI_MULTI_RECV;
  hints->tx_attr->op_flags = completion_flags(options.completion);
  hints->ep_attr->type = endpoint_type(options.endpoint);
  hints->domain_attr->threading = threading_model(options.threading);
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  // Regions are registered before there is a connection.
  if (options.endpoint == EndpointType::kConnected) hints->domain_attr->mr_mode &= ~FI_MR_ENDPOINT;
  // Freed by fi_freeinfo(3), hence from malloc.
  if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
  return hints;
}

int get_info(const fi_info& hints, const std::string& address, Info& found) {
  fi_info* list = nullptr;
  const char* node = address.empty() ? nullptr : address.c_str();
  const std::uint64_t flags = address.empty() ? 0 : FI_SOURCE;
  const int rc = fi_getinfo(kApiVersion, node, nullptr, flags, &hints, &list);
  found.reset(list);
  return rc;
}

// Manual progress means no provider thread beside the spinning one, where there is a choice.
int get_info_preferring_manual_progress(fi_info& hints, const std::string& address, Info& found) {
  hints.domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints.domain_attr->control_progress = FI_PROGRESS_MANUAL;
  if (get_info(hints, address, found) == 0) return 0;
  hints.domain_attr->data_progress = FI_PROGRESS_UNSPEC;
  hints.domain_attr->control_progress = FI_PROGRESS_UNSPEC;
  return get_info(hints, address, found);
}

// "tcp" may answer with "tcp;ofi_rxm" besides others: the exact name goes first.
const fi_info* best_match(const fi_info* list, const std::string& provider) {
  for (const fi_info* each = list; each != nullptr; each = each->next) {
    if (provider == each->fabric_attr->prov_name) return each;
  }
  return list;
}

}  // namespace

void start_libfabric() {
  Info hints(fi_allocinfo());
  if (!hints) die("fi_allocinfo", "out of memory");
  hints->fabric_attr->prov_name = strdup("none of this name");
  Info found;
  get_info(*hints, "", found);
}

Info select_info(const Options& options) {
  Info hints = make_hints(options, options.provider);
  Info list;
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  check_fabric(options.progress == Progress::kAuto
                   ? get_info(*hints, options.address, list)
                   : get_info_preferring_manual_progress(*hints, options.address, list),
               "fi_getinfo for provider \"" + options.provider + "\"");
  Info chosen(fi_dupinfo(best_match(list.get(), options.provider)));
  if (!chosen) die("fi_dupinfo", "out of memory");
  return chosen;
}

std::set<std::string> usable_providers(const Options& options) {
  const Info hints = make_hints(options, "");
  Info list;
  get_info(*hints, "", list);
  std::set<std::string> names;
  for (const fi_info* each = list.get(); each != nullptr; each = each->next) {
    names.insert(each->fabric_attr->prov_name);
  }
  return names;
}

}  // namespace weft::bench
