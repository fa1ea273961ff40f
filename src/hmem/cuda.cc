// SPDX-License-Identifier: BSD-2-Clause
// How is memory of CUDA devices copied? By the driver API of CUDA, of version 4.0 or later.
#include <atomic>
#include <cstdint>
#include <vector>

#include "driver.h"
#include "os/library.h"

namespace weft::hmem {
namespace {

// The part of cuda.h that is used.
using CudaResult = int;
using CudaDevice = int;
using CudaContext = void*;
using DevicePointer = std::uint64_t;

enum PointerAttribute : int { kContext = 1, kMemoryType = 2, kIsManaged = 8, kOrdinal = 9 };
constexpr unsigned kCudaDeviceMemory = 2;

struct CudaFunctions {
  CudaResult (*init)(unsigned flags) = nullptr;
  CudaResult (*device_count)(int* count) = nullptr;
  CudaResult (*attribute)(void* value, PointerAttribute which, DevicePointer address) = nullptr;
  CudaResult (*retain_primary)(CudaContext* context, CudaDevice device) = nullptr;
  CudaResult (*push)(CudaContext context) = nullptr;
  CudaResult (*pop)(CudaContext* context) = nullptr;
  CudaResult (*to_host)(void* host, DevicePointer from, std::size_t length) = nullptr;
  CudaResult (*from_host)(DevicePointer to, const void* host, std::size_t length) = nullptr;
  CudaResult (*finish)(void* stream) = nullptr;

  bool find_in(const os::Library& library) {
    return library.find("cuInit", init) && library.find("cuDeviceGetCount", device_count) &&
           library.find("cuPointerGetAttribute", attribute) &&
           library.find("cuDevicePrimaryCtxRetain", retain_primary) &&
           library.find("cuCtxPushCurrent_v2", push) && library.find("cuCtxPopCurrent_v2", pop) &&
           library.find("cuMemcpyDtoH_v2", to_host) && library.find("cuMemcpyHtoD_v2", from_host) &&
           library.find("cuStreamSynchronize", finish);
  }
};

DevicePointer number_of(const void* address) { return reinterpret_cast<DevicePointer>(address); }

class Cuda final : public Driver {
 public:
  Cuda(const CudaFunctions& functions, int devices) : cuda_(functions), primary_(devices) {}

  bool has_device(std::uint64_t device) const override { return device < primary_.size(); }

  bool owns(const void* address, std::uint64_t& device) override {
    unsigned type = 0;
    unsigned managed = 0;
    int ordinal = 0;
    if (ask(kMemoryType, address, type) != 0 || type != kCudaDeviceMemory) return false;
    if (ask(kIsManaged, address, managed) == 0 && managed != 0) return false;
    if (ask(kOrdinal, address, ordinal) != 0 || ordinal < 0) return false;
    device = static_cast<std::uint64_t>(ordinal);
    return true;
  }

  // A copy to the device returns when the bytes have left the host: they are there behind the
  // default stream.
  std::int64_t copy(Towards towards, std::uint64_t device, void* there, void* host,
                    std::size_t length) override {
    return in_context(there, device, [&] {
      if (towards == Towards::kHost) return cuda_.to_host(host, number_of(there), length);
      const CudaResult copied = cuda_.from_host(number_of(there), host, length);
      return copied != 0 ? copied : cuda_.finish(nullptr);
    });
  }

 private:
  template <class Value>
  CudaResult ask(PointerAttribute which, const void* address, Value& value) const {
    return cuda_.attribute(&value, which, number_of(address));
  }

  // Memory of a pool belongs to no context: that of the runtime reaches it.
  CudaResult context_of(const void* address, std::uint64_t device, CudaContext& context) {
    const CudaResult asked = ask(kContext, address, context);
    if (asked != 0 || context != nullptr) return asked;
    std::atomic<CudaContext>& primary = primary_.at(device);
    context = primary.load();
    if (context != nullptr) return 0;
    const CudaResult retained = cuda_.retain_primary(&context, static_cast<CudaDevice>(device));
    if (retained == 0) primary.store(context);
    return retained;
  }

  // Threads of Weft have no current context, those of the program any.
  template <class Action>
  CudaResult in_context(const void* address, std::uint64_t device, Action action) {
    CudaContext context = nullptr;
    if (const CudaResult error = context_of(address, device, context); error != 0) return error;
    if (const CudaResult error = cuda_.push(context); error != 0) return error;
    const CudaResult error = action();
    cuda_.pop(&context);
    return error;
  }

  const CudaFunctions cuda_;
  std::vector<std::atomic<CudaContext>> primary_;  // of each device; null: not asked for yet
};

}  // namespace

Result<std::unique_ptr<Driver>> load_cuda() {
  auto library = os::Library::open("libcuda.so.1");
  if (!library) return library.error();
  CudaFunctions functions;
  if (!functions.find_in(library.value())) return Error{ENOSYS, "libcuda.so.1 lacks a function"};
  int devices = 0;
  if (functions.init(0) != 0 || functions.device_count(&devices) != 0 || devices <= 0) {
    return Error{ENOSYS, "libcuda.so.1 finds no device"};
  }
  return std::unique_ptr<Driver>(std::make_unique<Cuda>(functions, devices));
}

}  // namespace weft::hmem
