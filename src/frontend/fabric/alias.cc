// SPDX-License-Identifier: BSD-2-Clause
// What is another name of an endpoint, with default flags of its own? fi_endpoint(3), fi_ep_alias
#include "alias.h"

#include <memory>

#include "ep.h"

namespace weft::fabric {

Alias::Alias(const Handle& original) : Handle(original), use_(*original.endpoint()) {
  fid.ops = alias_fid_operations();
  endpoint_->add_alias(*this);
}

Alias::~Alias() { endpoint_->remove_alias(*this); }

int Alias::open(const Handle& original, std::uint64_t flags, struct fid** alias) {
  std::unique_ptr<Alias> made(new Alias(original));
  if (const int wrong = control_flags(*made, FI_SETOPSFLAG, &flags)) return wrong;
  *alias = &made.release()->fid;
  return 0;
}

}  // namespace weft::fabric
