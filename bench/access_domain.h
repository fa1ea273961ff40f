// SPDX-License-Identifier: BSD-2-Clause
// Which objects do endpoints of several threads share? Fabric and domain.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <memory>

#include "fabric_object.h"
#include "options.h"

namespace weft::bench {

// Opened by what select_info() chose.
struct AccessDomain {
  Info info;
  FabricObject<fid_fabric> fabric;
  FabricObject<fid_domain> domain;
  std::uint64_t last_key = 0;  // that a region asked for
};

// Fatal on any error.
std::shared_ptr<AccessDomain> open_domain(const Options& options);

}  // namespace weft::bench
