// SPDX-License-Identifier: BSD-2-Clause
// How do tests use the stand-in for a device's driver?
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

extern "C" {
// Memory of that device, which the processor may not touch; null when there is none left.
void* weft_stand_in_allocate(std::size_t length, int device);
void weft_stand_in_free(void* address);
// The same bytes, for the processor; null when they are no memory of a device.
void* weft_stand_in_bytes(const void* address, std::size_t length);
// How many copies the driver has been asked for.
std::uint64_t weft_stand_in_copies();
// The copy of that number, counted from 1, fails; 0: none does.
void weft_stand_in_fail_at(std::uint64_t number);
}

namespace weft::devices {

// The stand-in under the name of a driver's library, as Weft loads it.
class StandIn {
 public:
  explicit StandIn(const char* library) : handle_(::dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
    find("weft_stand_in_allocate", allocate_);
    find("weft_stand_in_free", free_);
    find("weft_stand_in_bytes", bytes_);
    find("weft_stand_in_copies", copies_);
    find("weft_stand_in_fail_at", fail_at_);
  }

  // False where the library is another one, or is not found.
  bool is_there() const { return fail_at_ != nullptr; }
  void* allocate(std::size_t length, int device = 0) const { return allocate_(length, device); }
  void free(void* address) const { free_(address); }
  std::byte* bytes(const void* address, std::size_t length) const {
    return static_cast<std::byte*>(bytes_(address, length));
  }
  std::uint64_t copies() const { return copies_(); }
  // The `next`th copy from now on fails.
  void fail(std::uint64_t next) const { fail_at_(copies_() + next); }
  void fail_no_more() const { fail_at_(0); }

 private:
  template <class Function>
  void find(const char* name, Function*& function) {
    if (handle_ != nullptr) function = reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

  void* const handle_;
  decltype(weft_stand_in_allocate)* allocate_ = nullptr;
  decltype(weft_stand_in_free)* free_ = nullptr;
  decltype(weft_stand_in_bytes)* bytes_ = nullptr;
  decltype(weft_stand_in_copies)* copies_ = nullptr;
  decltype(weft_stand_in_fail_at)* fail_at_ = nullptr;
};

}  // namespace weft::devices
