// SPDX-License-Identifier: BSD-2-Clause
// How is memory of ROCm devices copied? By HSA's runtime of version 1.
#include <cstdint>

#include "driver.h"
#include "os/library.h"

namespace weft::hmem {
namespace {

// The parts of hsa.h and hsa_ext_amd.h that are used.
using HsaStatus = std::uint32_t;

struct HsaAgent {
  std::uint64_t handle;
};

struct HsaPointerInfo {
  std::uint32_t size;
  std::uint32_t type;
  void* agent_base;
  void* host_base;
  std::size_t bytes;
  void* user_data;
  HsaAgent owner;
  std::uint32_t global_flags;
};

constexpr std::uint32_t kAllocation = 1;
constexpr std::uint32_t kShared = 4;
constexpr std::uint32_t kDeviceOfAgent = 17;
constexpr std::uint32_t kGpu = 1;

struct HsaFunctions {
  HsaStatus (*init)() = nullptr;
  HsaStatus (*copy)(void* to, const void* from, std::size_t length) = nullptr;
  HsaStatus (*pointer)(const void* address, HsaPointerInfo* info, void* (*allocate)(std::size_t),
                       std::uint32_t* agents, HsaAgent** accessible) = nullptr;
  HsaStatus (*agent)(HsaAgent agent, std::uint32_t attribute, void* value) = nullptr;

  bool find_in(const os::Library& library) {
    return library.find("hsa_init", init) && library.find("hsa_memory_copy", copy) &&
           library.find("hsa_amd_pointer_info", pointer) &&
           library.find("hsa_agent_get_info", agent);
  }
};

class Rocr final : public Driver {
 public:
  explicit Rocr(const HsaFunctions& functions) : hsa_(functions) {}

  // Addresses say which one it is.
  bool has_device(std::uint64_t /*device*/) const override { return true; }

  bool owns(const void* address, std::uint64_t& device) override {
    HsaPointerInfo info{};
    info.size = sizeof info;
    if (hsa_.pointer(address, &info, nullptr, nullptr, nullptr) != 0) return false;
    if (info.type != kAllocation && info.type != kShared) return false;
    std::uint32_t type = 0;
    if (hsa_.agent(info.owner, kDeviceOfAgent, &type) != 0 || type != kGpu) return false;
    device = 0;
    return true;
  }

  std::int64_t copy(Towards towards, std::uint64_t /*device*/, void* there, void* host,
                    std::size_t length) override {
    return towards == Towards::kHost ? hsa_.copy(host, there, length)
                                     : hsa_.copy(there, host, length);
  }

 private:
  const HsaFunctions hsa_;
};

}  // namespace

Result<std::unique_ptr<Driver>> load_rocr() {
  auto library = os::Library::open("libhsa-runtime64.so.1");
  if (!library) return library.error();
  HsaFunctions functions;
  if (!functions.find_in(library.value())) {
    return Error{ENOSYS, "libhsa-runtime64.so.1 lacks a function"};
  }
  if (functions.init() != 0) return Error{ENOSYS, "libhsa-runtime64.so.1 finds no device"};
  return std::unique_ptr<Driver>(std::make_unique<Rocr>(functions));
}

}  // namespace weft::hmem
