// SPDX-License-Identifier: BSD-2-Clause
// What every transfer takes its bytes from: memory of this process, registered.
#pragma once

#include <cstddef>
#include <cstdint>

#include "endpoint.h"

namespace weft::bench {

// BYTES of page-aligned, touched memory in one region, for every kind of access.
class RegisteredMemory {
 public:
  // Fatal on any error.
  RegisteredMemory(const Endpoint& endpoint, std::size_t bytes);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  std::byte* begin() const { return memory_; }
  // For calls of this process: FI_MR_LOCAL.
  void* descriptor() const { return descriptor_; }
  // For RMA of a peer: where begin() is, and the key.
  std::uint64_t remote_base() const { return remote_base_; }
  std::uint64_t key() const { return key_; }

 private:
  std::size_t bytes_;
  std::byte* memory_;
  FabricObject<fid_mr> region_;
  void* descriptor_ = nullptr;
  std::uint64_t remote_base_ = 0;
  std::uint64_t key_ = 0;
};

}  // namespace weft::bench
