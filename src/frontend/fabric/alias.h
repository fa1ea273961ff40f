// SPDX-License-Identifier: BSD-2-Clause
// What is another name of an endpoint, with default flags of its own? fi_endpoint(3), fi_ep_alias
#pragma once

#include <rdma/fi_endpoint.h>

#include "base/usable.h"
#include "handle.h"

namespace weft::fabric {

// The object behind a fid_ep that fi_ep_alias(3) made. Its endpoint, which cannot be closed before
// it, does everything; only default flags are the alias's own.
class Alias : public Handle {
 public:
  // `flags` has FI_TRANSMIT or FI_RECV, and replaces the default flags of that direction. Errors:
  // -FI_EINVAL for both or neither, -FI_EBADFLAGS.
  static int open(const Handle& original, std::uint64_t flags, struct fid** alias);
  ~Alias();

  // The object behind `fid`.
  static Alias& from(struct fid* fid) { return static_cast<Alias&>(Handle::from(fid)); }

 private:
  explicit Alias(const Handle& original);

  const Use use_;
};

// Its table (ep_control.cc).
fi_ops* alias_fid_operations();

}  // namespace weft::fabric
