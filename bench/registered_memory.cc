// SPDX-License-Identifier: BSD-2-Clause
// How memory is mapped and registered.
#include "registered_memory.h"

#include <sys/mman.h>

#include <cstring>

#include "failure.h"

namespace weft::bench {
namespace {

constexpr std::uint64_t kAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

// Touched at once: page faults belong to no measurement, and FI_MR_ALLOCATED asks for it.
std::byte* map_memory(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) check_system(-1, "mmap");
  std::memset(memory, 0x11, bytes);
  return static_cast<std::byte*>(memory);
}

}  // namespace

RegisteredMemory::RegisteredMemory(const Endpoint& endpoint, std::size_t bytes)
    : bytes_(bytes), memory_(map_memory(bytes)) {
  fid_mr* region = nullptr;
  check_fabric(fi_mr_reg(endpoint.domain(), memory_, bytes, kAccess, 0, endpoint.new_key(), 0,
                         &region, nullptr),
               "fi_mr_reg");
  region_.reset(region);
  endpoint.adopt(region);
  descriptor_ = fi_mr_desc(region);
  if (endpoint.needs_mr(FI_MR_VIRT_ADDR)) remote_base_ = reinterpret_cast<std::uintptr_t>(memory_);
  key_ = fi_mr_key(region);
  if (key_ == FI_KEY_NOTAVAIL) die("fi_mr_key", "no 64-bit key (FI_MR_RAW)");
}

RegisteredMemory::~RegisteredMemory() {
  region_.reset();
  munmap(memory_, bytes_);
}

}  // namespace weft::bench
