// SPDX-License-Identifier: BSD-2-Clause
// What is an open fabric, and what can be opened on it? fi_fabric(3)
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

#include "base/options.h"
#include "base/usable.h"
#include "fid_object.h"
#include "instances.h"
#include "passive_endpoints.h"

namespace weft::fabric {

// The object behind a fid_fabric of weft. Any thread may use it. It lives until fi_close(3), which
// refuses with -FI_EBUSY while something that was opened on it is still open.
class Fabric : public FidObject<Fabric, fid_fabric>, public Usable {
 public:
  // Opens a fabric. `attributes` must have a name and the API version that the application asked
  // for. `*fabric` belongs to the caller.
  static int open(const fi_fabric_attr& attributes, const Options& options, fid_fabric** fabric,
                  void* context);

  // The subnet, "192.0.2.0/24".
  const std::string& name() const { return name_; }
  // The API version that the application asked for. (The member of fid_fabric is set by libfabric
  // after the call that opens the fabric.)
  std::uint32_t requested_api() const { return requested_api_; }
  // The settings of the user, as they were when the provider was loaded.
  const Options& options() const { return options_; }

  // Those that are open.
  PassiveEndpoints& passive_endpoints() { return passive_endpoints_; }

 private:
  Fabric(const fi_fabric_attr& attributes, const Options& options, void* context);

  std::string name_;
  std::uint32_t requested_api_;
  const Options options_;
  PassiveEndpoints passive_endpoints_;
  const Instances::Listing listed_;
};

}  // namespace weft::fabric
