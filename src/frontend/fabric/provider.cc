// SPDX-License-Identifier: BSD-2-Clause
// How does libfabric find weft? The entry point of the provider library, fi_provider(3).
#include "provider.h"

#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#include "boundary.h"
#include "fabric.h"
#include "info.h"
#include "log.h"
#include "offer.h"
#include "params.h"
#include "terms.h"

namespace weft::fabric {
namespace {

// What libfabric registers, and what the user set. Without destructors: libfabric still calls
// cleanup() after the static objects of this library have been destroyed.
constinit fi_provider g_provider{};
alignas(Options) std::byte g_storage[sizeof(Options)];
constinit Options* g_options = nullptr;

// libfabric keeps private state in fi_provider::context: an enum of 4 bytes, a bool for logging,
// and one that keeps its utility providers off this one. It only ever sets them, so a provider may
// preset the last. The layout is not documented, hence the versions: these were looked at.
void forbid_layering(fi_provider& provider) {
  constexpr std::size_t kDisableLayering = 5;
  constexpr std::uint32_t kFirstKnown = FI_VERSION(1, 17);
  constexpr std::uint32_t kLastKnown = FI_VERSION(2, 6);
  if (provider.fi_version < kFirstKnown || provider.fi_version > kLastKnown) return;
  constexpr unsigned char kYes = 1;
  std::memcpy(reinterpret_cast<std::byte*>(&provider.context) + kDisableLayering, &kYes, 1);
}

// Users with a registration contract want to know which hints break it.
void log_refusal(const Error& error) {
  if (terms_of(*g_options).contract.empty()) {
    log_info(FI_LOG_CORE, "getinfo: {}", error.message);
  } else {
    log_warning(FI_LOG_CORE, "getinfo: {}", error.message);
  }
}

int getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
            const fi_info* hints, fi_info** info) {
  return at_c_border([&] {
    if (info == nullptr) return -FI_EINVAL;
    *info = nullptr;
    Result<InfoList> found = find_info({version, node, service, flags, hints}, *g_options);
    if (!found) {
      log_refusal(found.error());
      return fabric_status(found.error());
    }
    *info = std::move(found).value().release();
    return 0;
  });
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  return at_c_border([&] {
    if (attributes == nullptr || fabric == nullptr) return -FI_EINVAL;
    if (const Status known = check_fabric(attributes->name, g_options->interface); !known) {
      log_info(FI_LOG_FABRIC, "{}", known.error().message);
      return fabric_status(known.error());
    }
    return Fabric::open(*attributes, *g_options, fabric, context);
  });
}

// libfabric takes its log and variables down afterwards, and may call this when the provider was
// never used or never accepted.
void cleanup() {
  stop_log();
  if (g_options == nullptr) return;
  std::destroy_at(g_options);
  g_options = nullptr;
}

// fi_version is asked at run time: libfabric hides providers that claim an older version than the
// application wants.
fi_provider* start() {
  g_provider.name = kProviderName;
  g_provider.version = kProviderVersion;
  g_provider.fi_version = fi_version();
  g_provider.getinfo = getinfo;
  g_provider.fabric = open_fabric;
  g_provider.cleanup = cleanup;
  start_log(&g_provider);
  define_parameters(g_provider);
  if (g_options == nullptr) g_options = new (g_storage) Options(read_parameters(g_provider));
  if (g_options->disable_layering) forbid_layering(g_provider);
  return &g_provider;
}

}  // namespace
}  // namespace weft::fabric

fi_provider* fi_prov_ini(void) {
  try {
    return weft::fabric::start();
  } catch (...) {
    return nullptr;  // nothing to register
  }
}
