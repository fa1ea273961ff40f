// SPDX-License-Identifier: BSD-2-Clause
// What is an open fabric, and what can be opened on it? fi_fabric(3)
#include "fabric.h"

#include <rdma/fi_errno.h>

#include "boundary.h"
#include "internal.h"
#include "unsupported.h"

namespace weft::fabric {
namespace {

Fabric& object_of(fid_fabric* fabric) { return *static_cast<Fabric*>(fabric); }

// fid_fabric begins with its fid.
Fabric& object_of(fid* fid) { return object_of(reinterpret_cast<fid_fabric*>(fid)); }

int close_fabric(fid* fid) { return object_of(fid).close(); }

int domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
  if (info == nullptr || domain == nullptr || info->domain_attr == nullptr) return -FI_EINVAL;
  return open_domain(object_of(fabric), info, domain, context);
}

// The flags of fi_domain2(3) are for peer providers (FI_PEER).
int domain_with_flags(fid_fabric* fabric, fi_info* info, fid_domain** result, std::uint64_t flags,
                      void* context) {
  if (flags != 0) return -FI_EBADFLAGS;
  return domain(fabric, info, result, context);
}

int eq_open(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** eq, void* context) {
  if (eq == nullptr) return -FI_EINVAL;
  return open_eq(object_of(fabric), attributes, eq, context);
}

int wait_open(fid_fabric* fabric, fi_wait_attr* attributes, fid_wait** set) {
  if (set == nullptr) return -FI_EINVAL;
  return open_wait_set(object_of(fabric), attributes, set);
}

int trywait(fid_fabric* fabric, fid** fids, int count) {
  if (count < 0 || (fids == nullptr && count > 0)) return -FI_EINVAL;
  return try_wait(object_of(fabric), fids, count);
}

fi_ops* fabric_fid_operations() {
  static fi_ops table = [] {
    fi_ops operations = unsupported_operations<fi_ops>();
    operations.close = close_fabric;
    return operations;
  }();
  return &table;
}

int passive_ep(fid_fabric* fabric, fi_info* info, fid_pep** pep, void* context) {
  if (info == nullptr || pep == nullptr) return -FI_EINVAL;
  return open_passive_endpoint(object_of(fabric), info, pep, context);
}

fi_ops_fabric* fabric_operations() {
  static fi_ops_fabric table = [] {
    fi_ops_fabric operations = unsupported_operations<fi_ops_fabric>();
    operations.domain = domain;
    operations.passive_ep = passive_ep;
    operations.eq_open = eq_open;
    operations.wait_open = wait_open;
    operations.trywait = trywait;
    operations.domain2 = domain_with_flags;
    return operations;
  }();
  return &table;
}

}  // namespace

Fabric::Fabric(const fi_fabric_attr& attributes, const Options& options, void* context)
    : fid_fabric{},
      name_(attributes.name),
      requested_api_(attributes.api_version),
      options_(options),
      listed_({this, nullptr, name_, {}, {}}) {
  fid.fclass = FI_CLASS_FABRIC;
  fid.context = context;
  fid.ops = fabric_fid_operations();
  ops = fabric_operations();
  api_version = attributes.api_version;
}

int Fabric::open(const fi_fabric_attr& attributes, const Options& options, fid_fabric** fabric,
                 void* context) {
  return at_c_border([&] {
    *fabric = new Fabric(attributes, options, context);
    return 0;
  });
}

int Fabric::close() {
  if (users_.load() != 0) return -FI_EBUSY;
  delete this;
  return 0;
}

}  // namespace weft::fabric
