// SPDX-License-Identifier: BSD-2-Clause
// Which GIDs does a port have? ibv_query_gid(3), ibv_query_gid_ex(3), ibv_query_gid_table(3)
#include <algorithm>
#include <cstring>

#include "boundary.h"
#include "context.h"
#include "port_number.h"

namespace weft::verbs {
namespace {

// Of the file gid_attrs/types in sysfs, which has no number of its own for InfiniBand.
enum class SysfsGidType : int { kIbOrRoceV1 = 0, kRoceV2 = 1 };

const OwnGid* find(ibv_context* context, std::uint32_t port, std::int64_t index) {
  if (!is_port(port) || index < 0) return nullptr;
  return DeviceContext::of(context).device().gids.find(static_cast<std::uint64_t>(index));
}

ibv_gid_entry entry_of(const DeviceState& device, std::uint32_t index) {
  ibv_gid_entry entry{};
  std::memcpy(entry.gid.raw, device.gids.find(index)->gid.data(), sizeof entry.gid.raw);
  entry.gid_index = index;
  entry.port_num = 1;
  entry.gid_type = IBV_GID_TYPE_ROCE_V2;
  entry.ndev_ifindex = device.offered.interface.index;
  return entry;
}

// Programs of other headers have shorter or longer entries.
void write_entry(std::byte* to, std::size_t size, const ibv_gid_entry& entry) {
  std::memset(to, 0, size);
  std::memcpy(to, &entry, std::min(size, sizeof entry));
}

}  // namespace
}  // namespace weft::verbs

using weft::verbs::DeviceContext;
using weft::verbs::SysfsGidType;

int ibv_query_gid(ibv_context* context, std::uint8_t port_num, int index, ibv_gid* gid) {
  const weft::verbs::OwnGid* own = weft::verbs::find(context, port_num, index);
  if (own == nullptr || gid == nullptr) return weft::verbs::minus_one_with(EINVAL);
  std::memcpy(gid->raw, own->gid.data(), sizeof gid->raw);
  return 0;
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port_num, std::uint32_t gid_index,
                      ibv_gid_entry* entry, std::uint32_t flags, std::size_t entry_size) {
  if (flags != 0 || weft::verbs::find(context, port_num, gid_index) == nullptr) {
    return weft::verbs::status_with(EINVAL);
  }
  weft::verbs::write_entry(reinterpret_cast<std::byte*>(entry), entry_size,
                           weft::verbs::entry_of(DeviceContext::of(context).device(), gid_index));
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t max_entries,
                             std::uint32_t flags, std::size_t entry_size) {
  const weft::verbs::DeviceState& device = DeviceContext::of(context).device();
  if (flags != 0 || max_entries < device.gids.size()) return -weft::verbs::status_with(EINVAL);
  for (std::uint32_t i = 0; i < device.gids.size(); ++i) {
    weft::verbs::write_entry(reinterpret_cast<std::byte*>(entries) + i * entry_size, entry_size,
                             weft::verbs::entry_of(device, i));
  }
  return static_cast<ssize_t>(device.gids.size());
}

// Version IBVERBS_PRIVATE_34, for ibv_devinfo(1) and pyverbs: in no installed header.
extern "C" int ibv_query_gid_type(ibv_context* context, std::uint8_t port_num, unsigned index,
                                  int* type) {
  if (weft::verbs::find(context, port_num, index) == nullptr) {
    return weft::verbs::minus_one_with(EINVAL);
  }
  *type = static_cast<int>(SysfsGidType::kRoceV2);
  return 0;
}
