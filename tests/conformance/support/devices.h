// SPDX-License-Identifier: BSD-2-Clause
// How does a test use memory of devices? The devices are those of tests/device: an access by the
// processor is a fault.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fi_domain.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../../device/stand_in.h"
#include "endpoint.h"

namespace weft::conformance {

using devices::StandIn;

// How copies are made, and of which memory.
struct Way {
  const char* name;
  fi_hmem_iface iface;
  std::uint64_t device;
  const char* library;
  bool overrides;
};
inline std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

inline constexpr Way kWays[] = {{"Cuda", FI_HMEM_CUDA, 1, "libcuda.so.1", false},
                                {"Rocr", FI_HMEM_ROCR, 0, "libhsa-runtime64.so.1", false},
                                {"Ze", FI_HMEM_ZE, 1, "libze_loader.so.1", false},
                                {"Override", FI_HMEM_CUDA, 77, "libcuda.so.1", true}};

// The program's own functions for copies, to memory of the stand-in.
inline unsigned override_calls = 0;
inline unsigned override_fails_at = 0;

// Calls copy(bytes, done, part) for the parts of a list behind the first `offset` bytes.
template <class Copy>
ssize_t copy_parts(const iovec* list, std::size_t count, std::size_t offset, std::size_t size,
                   Copy copy) {
  static const StandIn stand_in("libcuda.so.1");
  if (++override_calls == override_fails_at) return -FI_EIO;
  std::size_t done = 0;
  for (std::size_t i = 0; i < count && done < size; ++i) {
    const std::size_t skipped = std::min(offset, list[i].iov_len);
    const std::size_t part = std::min(list[i].iov_len - skipped, size - done);
    offset -= skipped;
    if (part == 0) continue;
    copy(stand_in.bytes(static_cast<std::byte*>(list[i].iov_base) + skipped, part), done, part);
    done += part;
  }
  return static_cast<ssize_t>(done);
}

inline ssize_t copy_from(void* to, std::size_t size, fi_hmem_iface iface, std::uint64_t device,
                         const iovec* list, std::size_t count, std::uint64_t offset) {
  EXPECT_EQ(iface, FI_HMEM_CUDA);
  EXPECT_EQ(device, 77U);
  return copy_parts(list, count, offset, size,
                    [to](const std::byte* from, std::size_t done, std::size_t part) {
                      std::memcpy(static_cast<std::byte*>(to) + done, from, part);
                    });
}

inline ssize_t copy_to(fi_hmem_iface iface, std::uint64_t device, const iovec* list,
                       std::size_t count, std::uint64_t offset, const void* from,
                       std::size_t size) {
  EXPECT_EQ(iface, FI_HMEM_CUDA);
  EXPECT_EQ(device, 77U);
  return copy_parts(list, count, offset, size,
                    [from](std::byte* to, std::size_t done, std::size_t part) {
                      std::memcpy(to, static_cast<const std::byte*>(from) + done, part);
                    });
}

inline fi_hmem_override_ops overriding() {
  return {sizeof(fi_hmem_override_ops), copy_from, copy_to};
}

inline Options device_options(fi_ep_type type, std::uint64_t caps) {
  Options options;
  options.type = type;
  options.caps = caps | FI_HMEM;
  options.mr_mode |= FI_MR_HMEM;
  return options;
}

inline constexpr std::uint64_t kAllRights =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

inline fi_mr_attr attributes_of(const iovec& iov, std::uint64_t rights, fi_hmem_iface iface,
                                std::uint64_t device) {
  fi_mr_attr attributes{};
  attributes.mr_iov = &iov;
  attributes.iov_count = 1;
  attributes.access = rights;
  attributes.iface = iface;
  attributes.device.reserved = device;
  return attributes;
}

// A registered buffer, in memory of the host or of a device.
class Memory {
 public:
  Memory(const Endpoint& endpoint, const Way* way, std::size_t length,
         std::uint64_t rights = kAllRights)
      : length_(length) {
    if (way != nullptr) {
      stand_in_ = std::make_unique<StandIn>(way->library);
      base_ = stand_in_->allocate(std::max<std::size_t>(length, 1),
                                  way->overrides ? 0 : static_cast<int>(way->device));
    } else {
      host_.resize(std::max<std::size_t>(length, 1));
      base_ = host_.data();
    }
    const iovec iov{base_, length};
    fi_mr_attr attributes = attributes_of(iov, rights, way != nullptr ? way->iface : FI_HMEM_SYSTEM,
                                          way != nullptr ? way->device : 0);
    attributes.requested_key = Endpoint::next_key();
    region_ = open_fid<fid_mr>(
        [&](fid_mr** mr) { return fi_mr_regattr(endpoint.domain()->get(), &attributes, 0, mr); });
    const int mode = endpoint.info()->domain_attr->mr_mode;
    address_ = (mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uint64_t>(base_) : 0;
  }
  ~Memory() {
    region_.reset();
    if (stand_in_ != nullptr) stand_in_->free(base_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* at(std::size_t offset = 0) const { return static_cast<std::byte*>(base_) + offset; }
  std::size_t length() const { return length_; }
  void* descriptor() const { return fi_mr_desc(region_.get()); }
  std::uint64_t key() const { return fi_mr_key(region_.get()); }
  std::uint64_t address(std::size_t offset = 0) const { return address_ + offset; }
  void deregister() { region_.reset(); }
  std::byte* bytes() const {
    return stand_in_ != nullptr ? stand_in_->bytes(base_, std::max<std::size_t>(length_, 1))
                                : static_cast<std::byte*>(base_);
  }
  void fill(unsigned seed) const {
    std::byte* const to = bytes();
    for (std::size_t i = 0; i < length_; ++i) to[i] = pattern(seed, i);
  }
  // The first byte of [offset, offset + length) that is not the pattern's, from `first` on.
  std::string complaint(unsigned seed, std::size_t offset, std::size_t length,
                        std::size_t first = 0) const {
    const std::byte* const from = bytes() + offset;
    for (std::size_t i = 0; i < length; ++i) {
      if (from[i] != pattern(seed, first + i)) {
        return "byte " + std::to_string(i) + " of " + std::to_string(length);
      }
    }
    return "";
  }
  static std::byte pattern(unsigned seed, std::size_t i) {
    return static_cast<std::byte>(seed * 37 + i * 7 + (i >> 8) + 1);
  }

 private:
  const std::size_t length_;
  std::unique_ptr<StandIn> stand_in_;
  std::vector<std::byte> host_;
  void* base_ = nullptr;
  Fid<fid_mr> region_;
  std::uint64_t address_ = 0;
};

// Two endpoints of two domains that reach each other.
class Devices {
 protected:
  Devices(const Way& way, fi_ep_type type, std::uint64_t caps_a, std::uint64_t caps_b)
      : way_(way),
        a_(opened(device_options(type, caps_a)), device_options(type, caps_a)),
        b_(opened(device_options(type, caps_b)), device_options(type, caps_b)) {
    pump_.add(&a_);
    pump_.add(&b_);
    if (type == FI_EP_MSG) {
      a_.connect(b_.name());
      EXPECT_TRUE(pump_.until([&] {
        b_.accept();
        return a_.connected() && b_.connected();
      }));
      return;
    }
    to_b_ = a_.insert(b_.name());
    to_a_ = b_.insert(a_.name());
  }
  ~Devices() {
    pump_.remove(&a_);
    pump_.remove(&b_);
    override_fails_at = 0;
  }

  std::shared_ptr<Domain> opened(const Options& options) const {
    auto domain = std::make_shared<Domain>(options);
    fi_hmem_override_ops functions = overriding();
    if (way_.overrides) {
      EXPECT_EQ(fi_set_ops(&domain->get()->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &functions, nullptr),
                0);
    }
    return domain;
  }
  std::unique_ptr<Memory> memory(const Endpoint& endpoint, bool of_device, std::size_t length,
                                 std::uint64_t rights = kAllRights) const {
    return std::make_unique<Memory>(endpoint, of_device ? &way_ : nullptr, length, rights);
  }
  // Posts until it is taken, and drives progress meanwhile.
  template <class Post>
  ssize_t post(Post call) {
    ssize_t rc = -FI_EAGAIN;
    pump_.until([&] { return (rc = call()) != -FI_EAGAIN; });
    return rc;
  }
  Completion await(Endpoint& endpoint, const void* context) {
    std::optional<Completion> found;
    EXPECT_TRUE(pump_.until([&] { return (found = endpoint.take(context)).has_value(); }));
    return found.value_or(Completion{});
  }
  // The copy of that number from now on fails.
  void fail_copy(unsigned number) const {
    if (way_.overrides) {
      override_fails_at = override_calls + number;
    } else {
      StandIn(way_.library).fail(number);
    }
  }
  void fail_no_more() const {
    override_fails_at = 0;
    StandIn(way_.library).fail_no_more();
  }

  const Way way_;
  Endpoint a_;
  Endpoint b_;
  Pump pump_;
  fi_addr_t to_b_ = FI_ADDR_UNSPEC;
  fi_addr_t to_a_ = FI_ADDR_UNSPEC;
};

}  // namespace weft::conformance
