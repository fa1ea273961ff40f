// SPDX-License-Identifier: BSD-2-Clause
// Which objects do endpoints of several threads share? Fabric and domain.
#include "access_domain.h"

#include "failure.h"
#include "selection.h"

namespace weft::bench {

std::shared_ptr<AccessDomain> open_domain(const Options& options) {
  auto opened = std::make_shared<AccessDomain>();
  opened->info = select_info(options);
  fid_fabric* fabric = nullptr;
  check_fabric(fi_fabric(opened->info->fabric_attr, &fabric, nullptr), "fi_fabric");
  opened->fabric.reset(fabric);
  fid_domain* domain = nullptr;
  check_fabric(fi_domain(fabric, opened->info.get(), &domain, nullptr), "fi_domain");
  opened->domain.reset(domain);
  return opened;
}

}  // namespace weft::bench
