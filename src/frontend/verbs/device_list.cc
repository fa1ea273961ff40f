// SPDX-License-Identifier: BSD-2-Clause
// Which devices are there? ibv_get_device_list(3)
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "boundary.h"
#include "context.h"
#include "os/interfaces.h"

namespace weft::verbs {
namespace {

constexpr std::size_t kLeastGids = 4;
constexpr void* no_driver = nullptr;  // never written: other drivers compare its address

std::vector<std::unique_ptr<VerbsDevice>>& devices() {
  static auto* const all = new std::vector<std::unique_ptr<VerbsDevice>>([] {
    std::vector<std::unique_ptr<VerbsDevice>> found;
    const auto interfaces = os::usable_interfaces();
    if (!interfaces) return found;
    const char* const only = std::getenv("WEFT_IFACE");
    int number = 0;
    for (const os::Interface& each : interfaces.value()) {
      const int index = number++;
      if (only != nullptr && each.name != only) continue;
      auto device = std::make_unique<VerbsDevice>();
      device->ops = &no_driver;
      device->index = index;
      device->mtu = each.mtu;
      device->guid = std::hash<std::string>()(each.name) | 1;
      for (const auto& address : each.addresses) device->addresses.push_back(address.address);
      while (device->addresses.size() < kLeastGids) {
        device->addresses.push_back(device->addresses.front());
      }
      device->shown.node_type = IBV_NODE_CA;
      device->shown.transport_type = IBV_TRANSPORT_IB;
      const std::string name = "weft" + std::to_string(index);
      std::strcpy(device->shown.name, name.c_str());
      std::strcpy(device->shown.dev_name, name.c_str());
      found.push_back(std::move(device));
    }
    return found;
  }());
  return *all;
}

}  // namespace
}  // namespace weft::verbs

using namespace weft::verbs;

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  auto& all = devices();
  auto** list = static_cast<ibv_device**>(std::calloc(all.size() + 1, sizeof(void*)));
  for (std::size_t i = 0; i < all.size(); ++i) list[i] = &all[i]->shown;
  if (count != nullptr) *count = static_cast<int>(all.size());
  return list;
}
void ibv_free_device_list(ibv_device** list) { std::free(list); }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
__be64 ibv_get_device_guid(ibv_device* device) {
  return reinterpret_cast<VerbsDevice*>(device)->guid;
}

}  // extern "C"
