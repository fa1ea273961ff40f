// SPDX-License-Identifier: BSD-2-Clause
// Which drivers of devices does this process use?
#include "hmem/drivers.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/slices.h"
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

int Drivers::copy(Towards towards, void* host, const MemoryPlace& place,
                  std::span<const LocalRange> buffers, std::uint64_t offset, std::uint64_t length) {
  Driver* const known = driver(place.kind);
  if (known == nullptr) return ENOSYS;
  std::vector<LocalRange> parts(buffers.size());
  parts.resize(slice(buffers, offset, length, parts.data()));
  if (total_length(parts) != length) return EINVAL;
  auto* at = static_cast<std::byte*>(host);
  for (const LocalRange& each : parts) {
    const std::int64_t error = known->copy(towards, place.device, each.base, at, each.length);
    if (error != 0) {
      warn(fmt::format("{}: a copy of {} bytes at {} failed with {}", name_of(place.kind),
                       each.length, each.base, error));
      return EIO;
    }
    at += each.length;
  }
  return 0;
}

int Drivers::to_host(void* host, const MemoryPlace& place, std::span<const LocalRange> buffers,
                     std::uint64_t offset, std::uint64_t length) {
  return copy(Towards::kHost, host, place, buffers, offset, length);
}

// A driver only reads it then.
int Drivers::from_host(const MemoryPlace& place, std::span<const LocalRange> buffers,
                       std::uint64_t offset, const void* host, std::uint64_t length) {
  return copy(Towards::kDevice, const_cast<void*>(host), place, buffers, offset, length);
}

}  // namespace weft::hmem
