// SPDX-License-Identifier: BSD-2-Clause
// Which drivers of devices does this process use?
#include "hmem/drivers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/warning.h"
#include "driver.h"

namespace weft::hmem {
namespace {

constexpr const char* kNames[kMemoryKinds] = {"host", "CUDA", "ROCR", "Level Zero"};

Result<std::unique_ptr<Driver>> load(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kCuda:
      return load_cuda();
    case MemoryKind::kRocr:
      return load_rocr();
    case MemoryKind::kZe:
      return load_ze();
    case MemoryKind::kSystem:
      break;
  }
  return Error{ENOSYS, "no driver copies memory of the host"};
}

std::size_t index_of(MemoryKind kind) { return static_cast<std::size_t>(kind); }

// Calls copy(base, length), which returns 0 or a number of the driver, for the parts of the bytes
// [offset, offset + length) of the list.
template <class Copy>
int for_each_part(MemoryKind kind, std::span<const LocalRange> buffers, std::uint64_t offset,
                  std::uint64_t length, Copy copy) {
  for (const LocalRange& each : buffers) {
    if (length == 0) return 0;
    if (offset >= each.length) {
      offset -= each.length;
      continue;
    }
    const std::uint64_t part = std::min<std::uint64_t>(each.length - offset, length);
    std::byte* const base = static_cast<std::byte*>(each.base) + offset;
    if (const std::int64_t error = copy(base, part); error != 0) {
      warn(fmt::format("{}: a copy of {} bytes at {} failed with {}", name_of(kind), part,
                       static_cast<const void*>(base), error));
      return EIO;
    }
    length -= part;
    offset = 0;
  }
  return length == 0 ? 0 : EINVAL;
}

}  // namespace

const char* name_of(MemoryKind kind) { return kNames[index_of(kind)]; }

Drivers::Drivers() = default;
Drivers::~Drivers() = default;

// Outlives every static destructor: other threads may copy until the process ends.
Drivers& Drivers::of_process() {
  static Drivers& drivers = *new Drivers;
  return drivers;
}

Driver* Drivers::driver(MemoryKind kind) { return loaded_[index_of(kind)].load(); }

Status Drivers::use(const MemoryPlace& place) {
  if (place.is_host()) return {};
  if (driver(place.kind) == nullptr) {
    const std::lock_guard guard(mutex_);
    std::unique_ptr<Driver>& owned = owned_[index_of(place.kind)];
    if (owned == nullptr) {
      auto loaded = load(place.kind);
      if (!loaded) return loaded.error();
      owned = std::move(loaded).value();
      loaded_[index_of(place.kind)].store(owned.get());
    }
  }
  if (driver(place.kind)->has_device(place.device)) return {};
  return Error{EINVAL, fmt::format("{} has no device {}", name_of(place.kind), place.device)};
}

MemoryPlace Drivers::find(const void* address) {
  for (const MemoryKind kind : {MemoryKind::kCuda, MemoryKind::kRocr, MemoryKind::kZe}) {
    Driver* const known = driver(kind);
    std::uint64_t device = 0;
    if (known != nullptr && known->owns(address, device)) return {kind, device};
  }
  return {};
}

int Drivers::to_host(void* host, const MemoryPlace& place, std::span<const LocalRange> buffers,
                     std::uint64_t offset, std::uint64_t length) {
  Driver* const known = driver(place.kind);
  if (known == nullptr) return ENOSYS;
  auto* out = static_cast<std::byte*>(host);
  return for_each_part(place.kind, buffers, offset, length, [&](void* base, std::size_t part) {
    const std::int64_t error = known->to_host(out, place.device, base, part);
    out += part;
    return error;
  });
}

int Drivers::from_host(const MemoryPlace& place, std::span<const LocalRange> buffers,
                       std::uint64_t offset, const void* host, std::uint64_t length) {
  Driver* const known = driver(place.kind);
  if (known == nullptr) return ENOSYS;
  const auto* in = static_cast<const std::byte*>(host);
  return for_each_part(place.kind, buffers, offset, length, [&](void* base, std::size_t part) {
    const std::int64_t error = known->from_host(base, place.device, in, part);
    in += part;
    return error;
  });
}

}  // namespace weft::hmem
