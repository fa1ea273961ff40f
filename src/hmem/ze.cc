// SPDX-License-Identifier: BSD-2-Clause
// How is memory of Level Zero devices copied? By the loader of Level Zero, of version 1.
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "driver.h"
#include "os/library.h"

namespace weft::hmem {
namespace {

// The part of ze_api.h that is used.
using ZeResult = std::uint32_t;
using ZeHandle = void*;

struct ZeContextDescription {
  std::uint32_t type = 0xD;
  const void* next = nullptr;
  std::uint32_t flags = 0;
};

struct ZeQueueDescription {
  std::uint32_t type = 0xE;
  const void* next = nullptr;
  std::uint32_t ordinal = 0;
  std::uint32_t index = 0;
  std::uint32_t flags = 0;
  std::uint32_t mode = 1;  // synchronous
  std::uint32_t priority = 0;
};

struct ZeAllocationProperties {
  std::uint32_t type = 0x17;
  void* next = nullptr;
  std::uint32_t memory = 0;
  std::uint64_t id = 0;
  std::uint64_t page_size = 0;
};

constexpr std::uint32_t kZeDeviceMemory = 2;

struct ZeFunctions {
  ZeResult (*init)(std::uint32_t flags) = nullptr;
  ZeResult (*drivers)(std::uint32_t* count, ZeHandle* drivers) = nullptr;
  ZeResult (*devices)(ZeHandle driver, std::uint32_t* count, ZeHandle* devices) = nullptr;
  ZeResult (*context)(ZeHandle driver, const ZeContextDescription* how,
                      ZeHandle* context) = nullptr;
  ZeResult (*list)(ZeHandle context, ZeHandle device, const ZeQueueDescription* how,
                   ZeHandle* list) = nullptr;
  ZeResult (*copy)(ZeHandle list, void* to, const void* from, std::size_t length, ZeHandle signal,
                   std::uint32_t count, ZeHandle* events) = nullptr;
  ZeResult (*properties)(ZeHandle context, const void* address, ZeAllocationProperties* found,
                         ZeHandle* device) = nullptr;

  bool find_in(const os::Library& library) {
    return library.find("zeInit", init) && library.find("zeDriverGet", drivers) &&
           library.find("zeDeviceGet", devices) && library.find("zeContextCreate", context) &&
           library.find("zeCommandListCreateImmediate", list) &&
           library.find("zeCommandListAppendMemoryCopy", copy) &&
           library.find("zeMemGetAllocProperties", properties);
  }
};

class Ze final : public Driver {
 public:
  Ze(const ZeFunctions& functions, ZeHandle context, std::vector<ZeHandle> devices)
      : ze_(functions), context_(context), devices_(std::move(devices)), lists_(devices_.size()) {}

  bool has_device(std::uint64_t device) const override { return device < devices_.size(); }

  bool owns(const void* address, std::uint64_t& device) override {
    ZeAllocationProperties found;
    ZeHandle handle = nullptr;
    if (ze_.properties(context_, address, &found, &handle) != 0) return false;
    if (found.memory != kZeDeviceMemory) return false;
    for (device = 0; device < devices_.size(); ++device) {
      if (devices_[device] == handle) return true;
    }
    return false;
  }

  // Lists of commands belong to one thread at a time.
  std::int64_t copy(Towards towards, std::uint64_t device, void* there, void* host,
                    std::size_t length) override {
    const std::lock_guard guard(mutex_);
    ZeHandle& list = lists_.at(device);
    if (list == nullptr) {
      const ZeQueueDescription how;
      if (const ZeResult error = ze_.list(context_, devices_.at(device), &how, &list); error != 0) {
        list = nullptr;
        return error;
      }
    }
    void* const to = towards == Towards::kHost ? host : there;
    void* const from = towards == Towards::kHost ? there : host;
    return ze_.copy(list, to, from, length, nullptr, 0, nullptr);
  }

 private:
  const ZeFunctions ze_;
  ZeHandle context_;
  const std::vector<ZeHandle> devices_;
  std::mutex mutex_;
  std::vector<ZeHandle> lists_;  // of each device; null: not made yet
};

}  // namespace

// The devices of the first driver, as fi_mr(3) numbers them.
Result<std::unique_ptr<Driver>> load_ze() {
  auto library = os::Library::open("libze_loader.so.1");
  if (!library) return library.error();
  ZeFunctions functions;
  if (!functions.find_in(library.value())) {
    return Error{ENOSYS, "libze_loader.so.1 lacks a function"};
  }
  const Error none{ENOSYS, "libze_loader.so.1 finds no device"};
  std::uint32_t count = 1;
  ZeHandle driver = nullptr;
  if (functions.init(0) != 0 || functions.drivers(&count, &driver) != 0 || count == 0) return none;
  count = 0;
  if (functions.devices(driver, &count, nullptr) != 0 || count == 0) return none;
  std::vector<ZeHandle> devices(count);
  const ZeContextDescription how;
  ZeHandle context = nullptr;
  if (functions.devices(driver, &count, devices.data()) != 0 ||
      functions.context(driver, &how, &context) != 0) {
    return none;
  }
  return std::unique_ptr<Driver>(std::make_unique<Ze>(functions, context, std::move(devices)));
}

}  // namespace weft::hmem
