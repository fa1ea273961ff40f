// SPDX-License-Identifier: BSD-2-Clause
// How does an operation use buffers in memory of devices?
#include "device_staging.h"

#include <algorithm>

namespace weft::fabric {
namespace {

constexpr std::size_t kAlignment = 64;

// Bytes that a buffer takes: its end is no address of the next one.
std::size_t place_of(std::size_t length) { return (length + kAlignment) & ~(kAlignment - 1); }

}  // namespace

DeviceStaging::DeviceStaging(std::initializer_list<LocalUse> uses, const DeviceBuffers& devices) {
  std::size_t total = 0;
  std::size_t number = 0;
  for (const LocalUse& use : uses) {
    List& list = lists_[number];
    list.count = use.buffers->size();
    list.is_filled = includes(kLocalWrite, use.need);
    for (std::size_t i = 0; i < list.count; ++i) {
      StagedBuffer& buffer = list.buffers[i];
      buffer = {(*use.buffers)[i], (*use.buffers)[i], devices.of[number][i]};
      if (buffer.is_staged()) total += place_of(buffer.original.length);
    }
    ++number;
  }
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(total);
  std::byte* next = bytes_.get();
  number = 0;
  for (const LocalUse& use : uses) {
    List& list = lists_[number++];
    for (std::size_t i = 0; i < list.count; ++i) {
      StagedBuffer& buffer = list.buffers[i];
      if (buffer.is_staged()) {
        buffer.staged.base = next;
        next += place_of(buffer.original.length);
      }
      list.sges[i] = buffer.staged;
    }
    *use.buffers = {list.sges, list.count};
  }
}

int DeviceStaging::begin() {
  for (const List& list : lists_) {
    if (list.is_filled) continue;
    for (std::size_t i = 0; i < list.count; ++i) {
      const StagedBuffer& each = list.buffers[i];
      if (!each.is_staged()) continue;
      const int error = each.memory.copier->to_host(each.staged.base, each.memory.place,
                                                    {&each.original, 1}, 0, each.original.length);
      if (error != 0) return error;
    }
  }
  return 0;
}

int DeviceStaging::StagedBuffer::put_back(std::uint64_t offset, std::uint64_t length) const {
  if (!is_staged() || length == 0) return 0;
  return memory.copier->from_host(memory.place, {&original, 1}, offset,
                                  static_cast<const std::byte*>(staged.base) + offset, length);
}

int DeviceStaging::finish() {
  for (const List& list : lists_) {
    if (!list.is_filled) continue;
    for (std::size_t i = 0; i < list.count; ++i) {
      const StagedBuffer& each = list.buffers[i];
      if (const int error = each.put_back(0, each.original.length)) return error;
    }
  }
  return 0;
}

int DeviceStaging::finish_part(std::span<const LocalRange> sges, std::uint64_t length) {
  for (const LocalRange& sge : sges) {
    const std::uint64_t part = std::min<std::uint64_t>(sge.length, length);
    length -= part;
    const StagedBuffer* const buffer = find(sge.base);
    if (buffer == nullptr) continue;
    const auto offset = static_cast<const std::byte*>(sge.base) -
                        static_cast<const std::byte*>(buffer->staged.base);
    if (const int error = buffer->put_back(static_cast<std::uint64_t>(offset), part)) return error;
  }
  return 0;
}

const DeviceStaging::StagedBuffer* DeviceStaging::find(const void* staged) const {
  const auto at = reinterpret_cast<std::uintptr_t>(staged);
  for (const List& list : lists_) {
    for (std::size_t i = 0; i < list.count; ++i) {
      const StagedBuffer& each = list.buffers[i];
      const auto base = reinterpret_cast<std::uintptr_t>(each.staged.base);
      if (each.is_staged() && at >= base && at - base <= each.staged.length) return &each;
    }
  }
  return nullptr;
}

void* DeviceStaging::buffer_of(const void* staged) const {
  const StagedBuffer* const buffer = find(staged);
  if (buffer == nullptr) return const_cast<void*>(staged);
  const auto offset =
      static_cast<const std::byte*>(staged) - static_cast<const std::byte*>(buffer->staged.base);
  return static_cast<std::byte*>(buffer->original.base) + offset;
}

}  // namespace weft::fabric
