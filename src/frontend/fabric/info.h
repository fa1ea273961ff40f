// SPDX-License-Identifier: BSD-2-Clause
// What does weft answer to fi_getinfo(3)?
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <string>

#include "authorization.h"
#include "base/result.h"
#include "params.h"

namespace weft::fabric {

// Frees a whole list, as its receiver would, and leaves no authorization key in memory.
struct FreeInfo {
  void operator()(fi_info* info) const {
    wipe_keys(info);
    fi_freeinfo(info);
  }
};
using InfoList = std::unique_ptr<fi_info, FreeInfo>;

// The arguments of fi_getinfo(3); every pointer may be null.
struct InfoQuery {
  std::uint32_t api_version = 0;
  const char* node = nullptr;
  const char* service = nullptr;
  std::uint64_t flags = 0;
  const fi_info* hints = nullptr;
};

// A list of at least one fi_info, each allocated by the libfabric that runs (its structures may be
// larger than those that this file was compiled with), best first. prov_name is left to libfabric
// to fill in. `fabric` and `domain` are those of the hints, else the instances that were opened
// first. Errors: FI_EBADFLAGS for unknown flags, EINVAL for FI_SOURCE without node and service,
// FI_ENODATA when nothing meets the hints, ENOMEM. Any thread.
Result<InfoList> find_info(const InfoQuery& query, const Options& options);

// Whether an interface of this host is on the fabric `name` (null: none). Errors: FI_ENODATA when
// none is, those of os::usable_interfaces() when that cannot be told.
Status check_fabric(const char* name, const std::string& interface);

// Whether there is a domain `name` on that fabric. `interface`: Options::interface. Errors: EINVAL
// when there is none, those of os::usable_interfaces() when that cannot be told.
Status check_domain_name(const std::string& name, const std::string& fabric,
                         const std::string& interface);

}  // namespace weft::fabric
