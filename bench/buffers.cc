// SPDX-License-Identifier: BSD-2-Clause
// How the memory is mapped, registered and checked.
#include "buffers.h"

#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include <cstring>

#include "failure.h"

namespace weft::bench {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kRequestedKey = 1;
constexpr std::uint64_t kAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

std::size_t round_to_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Touched at once: page faults belong to no measurement, and FI_MR_ALLOCATED asks for it.
std::byte* map_memory(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) check_system(-1, "mmap");
  std::memset(memory, 0x11, bytes);
  return static_cast<std::byte*>(memory);
}

// Differs from its neighbours, between pages and between seeds.
std::byte pattern(std::uint8_t seed, std::size_t index) {
  return static_cast<std::byte>(seed + 7 * index + 13 * (index >> 8) + 29 * (index >> 16));
}

}  // namespace

Buffers::Buffers(const Endpoint& endpoint, std::size_t size, std::size_t count)
    : size_(size),
      count_(count),
      stride_(round_to_pages(size)),
      half_(stride_ * count),
      memory_(map_memory(2 * half_)) {
  register_memory(endpoint);
}

Buffers::~Buffers() {
  region_.reset();
  munmap(memory_, 2 * half_);
}

void Buffers::register_memory(const Endpoint& endpoint) {
  fid_mr* region = nullptr;
  check_fabric(fi_mr_reg(endpoint.domain(), memory_, 2 * half_, kAccess, 0, kRequestedKey, 0,
                         &region, nullptr),
               "fi_mr_reg");
  region_.reset(region);
  if (endpoint.needs_mr(FI_MR_ENDPOINT)) {
    check_fabric(fi_mr_bind(region, &endpoint.ep()->fid, 0), "fi_mr_bind");
    check_fabric(fi_mr_enable(region), "fi_mr_enable");
  }
  descriptor_ = fi_mr_desc(region);
  const bool by_address = endpoint.needs_mr(FI_MR_VIRT_ADDR);
  const std::uint64_t base = by_address ? reinterpret_cast<std::uintptr_t>(memory_) : 0;
  remote_ = {base, base + half_, fi_mr_key(region)};
  if (remote_.key == FI_KEY_NOTAVAIL) die("fi_mr_key", "no 64-bit key (FI_MR_RAW)");
}

void Buffers::fill_source(std::uint8_t seed) {
  for (std::size_t i = 0; i < size_; ++i) source(0)[i] = pattern(seed, i);
}

void Buffers::clear_target() { std::memset(target(0), 0, size_); }

bool Buffers::target_holds(std::uint8_t seed) const {
  // The peer, or the device, wrote this memory behind the compiler's back.
  const volatile std::byte* bytes = target(0);
  for (std::size_t i = 0; i < size_; ++i) {
    if (bytes[i] != pattern(seed, i)) return false;
  }
  return true;
}

}  // namespace weft::bench
