// SPDX-License-Identifier: BSD-2-Clause
// What do the libraries of CUDA, ROCm and Level Zero do where there is no device?
//
// Built three times, under their names. Memory of the stand-in's devices is mapped twice: without
// any access where programs see it, so that an access by the processor is a fault, and as ordinary
// memory for the copies of this file. There are two devices.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "stand_in.h"

namespace {

constexpr int kDevices = 2;
constexpr int kFailure = 700;  // CUDA_ERROR_ILLEGAL_ADDRESS
constexpr std::size_t kPage = 4096;

struct Allocation {
  std::size_t length;
  std::byte* bytes;  // the same memory, with access
  int device;
};

std::mutex mutex;
std::map<std::uintptr_t, Allocation>& allocations = *new std::map<std::uintptr_t, Allocation>;
std::atomic<std::uint64_t> copies{0};
std::atomic<std::uint64_t> fails_at{0};
int contexts[kDevices];                   // their addresses are the contexts
thread_local std::vector<void*> current;  // a stack, the last one counts

std::size_t whole_pages(std::size_t length) { return (length + kPage - 1) / kPage * kPage; }

// Where the processor reaches this memory of a device; null when it is none.
std::byte* reachable(const void* address, std::size_t length, int& device) {
  const std::lock_guard guard(mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto found = allocations.upper_bound(at);
  if (found == allocations.begin()) return nullptr;
  --found;
  const std::uintptr_t offset = at - found->first;
  const Allocation& allocation = found->second;
  if (offset >= allocation.length || length > allocation.length - offset) return nullptr;
  device = allocation.device;
  return allocation.bytes + offset;
}

int copy(void* to, const void* from, std::size_t length) {
  const std::uint64_t number = copies.fetch_add(1) + 1;
  if (number == fails_at.load()) return kFailure;
  std::memmove(to, from, length);
  return 0;
}

// Either side may be memory of a device.
int copy_anywhere(void* to, const void* from, std::size_t length) {
  int device = 0;
  void* const target = reachable(to, length, device);
  const void* const source = reachable(from, length, device);
  return copy(target != nullptr ? target : to, source != nullptr ? source : from, length);
}

void* current_context() { return current.empty() ? nullptr : current.back(); }

bool is_of_device(const void* address, int& device) { return reachable(address, 1, device); }

}  // namespace

extern "C" {

// Controls of tests.

void* weft_stand_in_allocate(std::size_t length, int device) {
  const std::size_t mapped = whole_pages(length);
  const int file = ::memfd_create("weft-device", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(mapped)) != 0) return nullptr;
  void* const bytes = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const seen = ::mmap(nullptr, mapped, PROT_NONE, MAP_SHARED, file, 0);
  ::close(file);
  if (bytes == MAP_FAILED || seen == MAP_FAILED) return nullptr;
  const std::lock_guard guard(mutex);
  allocations[reinterpret_cast<std::uintptr_t>(seen)] = {length, static_cast<std::byte*>(bytes),
                                                         device};
  return seen;
}

void weft_stand_in_free(void* address) {
  const std::lock_guard guard(mutex);
  const auto found = allocations.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == allocations.end()) return;
  ::munmap(found->second.bytes, whole_pages(found->second.length));
  ::munmap(address, whole_pages(found->second.length));
  allocations.erase(found);
}

void* weft_stand_in_bytes(const void* address, std::size_t length) {
  int device = 0;
  return reachable(address, length, device);
}

std::uint64_t weft_stand_in_copies() { return copies.load(); }
void weft_stand_in_fail_at(std::uint64_t number) { fails_at.store(number); }

// CUDA.

int cuInit(unsigned) { return 0; }

int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return 0;
}

int cuPointerGetAttribute(void* value, int which, std::uint64_t address) {
  int device = 0;
  if (!is_of_device(reinterpret_cast<const void*>(address), device)) return 1;
  if (which == 1) *static_cast<void**>(value) = &contexts[device];
  if (which == 2) *static_cast<unsigned*>(value) = 2;
  if (which == 8) *static_cast<unsigned*>(value) = 0;
  if (which == 9) *static_cast<int*>(value) = device;
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &contexts[device];
  return 0;
}

int cuCtxPushCurrent_v2(void* context) {
  current.push_back(context);
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return 201;
  *context = current.back();
  current.pop_back();
  return 0;
}

int cuMemAlloc_v2(std::uint64_t* address, std::size_t length) {
  *address = reinterpret_cast<std::uint64_t>(weft_stand_in_allocate(length, 0));
  return *address != 0 ? 0 : 2;
}

int cuMemFree_v2(std::uint64_t address) {
  weft_stand_in_free(reinterpret_cast<void*>(address));
  return 0;
}

int cuMemcpyDtoH_v2(void* host, std::uint64_t from, std::size_t length) {
  int device = 0;
  const std::byte* const bytes = reachable(reinterpret_cast<void*>(from), length, device);
  if (bytes == nullptr) return 1;
  if (current_context() != &contexts[device]) return 201;
  return copy(host, bytes, length);
}

int cuMemcpyHtoD_v2(std::uint64_t to, const void* host, std::size_t length) {
  int device = 0;
  std::byte* const bytes = reachable(reinterpret_cast<void*>(to), length, device);
  if (bytes == nullptr) return 1;
  if (current_context() != &contexts[device]) return 201;
  return copy(bytes, host, length);
}

int cuCtxGetCurrent(void** context) {
  *context = current_context();
  return 0;
}

int cuStreamSynchronize(void*) { return current_context() != nullptr ? 0 : 201; }

// ROCm.

struct HsaAgentOfStandIn {
  std::uint64_t handle;
};
struct HsaInfoOfStandIn {
  std::uint32_t size;
  std::uint32_t type;
  void* bases[2];
  std::size_t bytes;
  void* user_data;
  HsaAgentOfStandIn owner;
};

std::uint32_t hsa_init() { return 0; }

std::uint32_t hsa_memory_copy(void* to, const void* from, std::size_t length) {
  return static_cast<std::uint32_t>(copy_anywhere(to, from, length));
}

std::uint32_t hsa_amd_pointer_info(const void* address, HsaInfoOfStandIn* info,
                                   void* (*)(std::size_t), std::uint32_t*, HsaAgentOfStandIn**) {
  int device = 0;
  info->type = is_of_device(address, device) ? 1 : 0;
  info->owner = {7};
  return 0;
}

std::uint32_t hsa_agent_get_info(HsaAgentOfStandIn agent, std::uint32_t attribute, void* value) {
  if (agent.handle != 7 || attribute != 17) return 1;
  *static_cast<std::uint32_t*>(value) = 1;
  return 0;
}

// Level Zero.

struct ZePropertiesOfStandIn {
  std::uint32_t type;
  void* next;
  std::uint32_t memory;
};

std::uint32_t zeInit(std::uint32_t) { return 0; }

std::uint32_t zeDriverGet(std::uint32_t* count, void** drivers) {
  *count = 1;
  if (drivers != nullptr) drivers[0] = &contexts;
  return 0;
}

std::uint32_t zeDeviceGet(void*, std::uint32_t* count, void** devices) {
  *count = kDevices;
  for (int i = 0; devices != nullptr && i < kDevices; ++i) devices[i] = &contexts[i];
  return 0;
}

std::uint32_t zeContextCreate(void*, const void*, void** context) {
  *context = &mutex;
  return 0;
}

std::uint32_t zeCommandListCreateImmediate(void*, void* device, const void*, void** list) {
  *list = device;
  return 0;
}

std::uint32_t zeCommandListAppendMemoryCopy(void*, void* to, const void* from, std::size_t length,
                                            void*, std::uint32_t, void**) {
  return static_cast<std::uint32_t>(copy_anywhere(to, from, length));
}

std::uint32_t zeMemGetAllocProperties(void*, const void* address, ZePropertiesOfStandIn* found,
                                      void** owner) {
  int device = 0;
  const bool known = is_of_device(address, device);
  found->memory = known ? 2 : 0;
  if (owner != nullptr) *owner = known ? &contexts[device] : nullptr;
  return 0;
}

}  // extern "C"
