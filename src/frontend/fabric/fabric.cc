// SPDX-License-Identifier: BSD-2-Clause
// What is an open fabric, and what can be opened on it? fi_fabric(3)
#include "fabric.h"

#include <rdma/fi_errno.h>

#include "boundary.h"
#include "fid_object.h"
#include "internal.h"

namespace weft::fabric {
namespace {

int domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
  if (info == nullptr || domain == nullptr || info->domain_attr == nullptr) return -FI_EINVAL;
  return open_domain(Fabric::from(fabric), info, domain, context);
}

// The flags of fi_domain2(3) are for peer providers (FI_PEER).
int domain_with_flags(fid_fabric* fabric, fi_info* info, fid_domain** result, std::uint64_t flags,
                      void* context) {
  if (flags != 0) return -FI_EBADFLAGS;
  return domain(fabric, info, result, context);
}

int eq_open(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** eq, void* context) {
  if (eq == nullptr) return -FI_EINVAL;
  return open_eq(Fabric::from(fabric), attributes, eq, context);
}

int wait_open(fid_fabric* fabric, fi_wait_attr* attributes, fid_wait** set) {
  if (set == nullptr) return -FI_EINVAL;
  return open_wait_set(Fabric::from(fabric), attributes, set);
}

int trywait(fid_fabric* fabric, fid** fids, int count) {
  if (count < 0 || (fids == nullptr && count > 0)) return -FI_EINVAL;
  return try_wait(Fabric::from(fabric), fids, count);
}

constexpr FidCalls kFabricCalls{.close = close_object<Fabric>};

int passive_ep(fid_fabric* fabric, fi_info* info, fid_pep** pep, void* context) {
  if (info == nullptr || pep == nullptr) return -FI_EINVAL;
  return open_passive_endpoint(Fabric::from(fabric), info, pep, context);
}

// A forked child may open objects by its parent's.
constinit fi_ops_fabric fabric_table{
    sizeof(fi_ops_fabric), domain, passive_ep, eq_open, wait_open, trywait, domain_with_flags};

}  // namespace

Fabric::Fabric(const fi_fabric_attr& attributes, const Options& options, void* context)
    : FidObject(FI_CLASS_FABRIC, context, fid_operations<kFabricCalls>()),
      name_(attributes.name),
      requested_api_(attributes.api_version),
      options_(options),
      listed_({this, nullptr, name_, {}, {}}) {
  ops = &fabric_table;
  api_version = attributes.api_version;
}

int Fabric::open(const fi_fabric_attr& attributes, const Options& options, fid_fabric** fabric,
                 void* context) {
  return at_c_border([&] {
    *fabric = new Fabric(attributes, options, context);
    return 0;
  });
}

}  // namespace weft::fabric
