// SPDX-License-Identifier: BSD-2-Clause
// Which authorization keys does this process have, and how do peers compare theirs without telling
// them? fi_mr(3), fi_endpoint(3)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace weft {

inline constexpr std::size_t kMaxAuthorizationKey = 64;  // bytes
// Different keys that a process has at a time: region slots have 9 bits for the number.
inline constexpr std::uint32_t kMaxAuthorizations = 511;

// All zeros where there is no key.
using AuthorizationHash = std::array<std::byte, 16>;

// Takes the same time wherever they differ: that must not help to find the right one.
bool is_same(const AuthorizationHash& a, const AuthorizationHash& b);

// A key. It is wiped when its last user goes. Immutable.
class Authorization {
 public:
  // 1 to kMaxAuthorizationKey bytes, and the number by which the process knows them.
  Authorization(std::span<const std::byte> key, std::uint32_t number);
  ~Authorization();
  Authorization(const Authorization&) = delete;
  Authorization& operator=(const Authorization&) = delete;

  std::uint32_t number() const { return number_; }
  bool is(std::span<const std::byte> key) const;
  // The first bytes of an HMAC-SHA-256 of the salt: they show others with the key that this process
  // has it.
  AuthorizationHash hash(std::span<const std::byte> salt) const;
  // The Q_Key of its datagrams: always the same, and no privileged one (IBTA 10.2.4).
  std::uint32_t queue_key() const;

 private:
  std::array<std::byte, kMaxAuthorizationKey> key_{};
  const std::size_t size_;
  const std::uint32_t number_;
};

// The key of an object of the process; null: none.
using AuthorizationPtr = std::shared_ptr<const Authorization>;

// 0 of none.
inline std::uint32_t number_of(const AuthorizationPtr& key) {
  return key != nullptr ? key->number() : 0;
}
inline AuthorizationHash hash_of(const AuthorizationPtr& key, std::span<const std::byte> salt) {
  return key != nullptr ? key->hash(salt) : AuthorizationHash{};
}

// The keys of a process: each has one number as long as it is used. Any thread.
class Authorizations {
 public:
  // Errors: EINVAL for a wrong length, ENOSPC when kMaxAuthorizations others are used.
  Result<AuthorizationPtr> take(std::span<const std::byte> key);

 private:
  Mutex mutex_;
  // By their numbers, less 1.
  std::vector<std::weak_ptr<const Authorization>> used_ WEFT_GUARDED_BY(mutex_);
  // Numbers go round: a peer may know one for a moment after its last use.
  std::size_t next_ WEFT_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
