// SPDX-License-Identifier: BSD-2-Clause
// Which devices can ids be bound to? (rdma_get_devices(3))
#include <cerrno>
#include <cstdlib>

#include "boundary.h"
#include "device_table.h"

using namespace weft::rdmacm;

extern "C" {

ibv_context** rdma_get_devices(int* count) {
  ibv_context** listed = nullptr;
  at_c_border([&]() -> weft::Status {
    auto devices = DeviceTable::instance().list();
    if (!devices) return devices.error();
    const std::size_t number = devices.value().size();
    listed = static_cast<ibv_context**>(std::calloc(number + 1, sizeof(void*)));
    if (listed == nullptr) return weft::Error{ENOMEM, "no memory"};
    for (std::size_t i = 0; i < number; ++i) listed[i] = devices.value()[i]->context;
    if (count != nullptr) *count = static_cast<int>(number);
    return {};
  });
  if (listed == nullptr && count != nullptr) *count = 0;
  return listed;
}

void rdma_free_devices(ibv_context** list) { std::free(list); }

}  // extern "C"
