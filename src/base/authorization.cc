// SPDX-License-Identifier: BSD-2-Clause
// Which authorization keys does this process have, and how do peers compare theirs without telling
// them?
#include "base/authorization.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/hmac_sha256.h"

namespace weft {

static_assert(kMaxAuthorizationKey <= kMaxHmacKey);

bool is_same(const AuthorizationHash& a, const AuthorizationHash& b) {
  std::byte difference{};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{};
}

Authorization::Authorization(std::span<const std::byte> key, std::uint32_t number)
    : size_(key.size()), number_(number) {
  std::ranges::copy(key, key_.begin());
}

Authorization::~Authorization() { wipe(key_); }

bool Authorization::is(std::span<const std::byte> key) const {
  return std::ranges::equal(key, std::span(key_).first(size_));
}

// HMAC pads keys with zeros: the length tells those apart that end with zeros.
AuthorizationHash Authorization::hash(std::span<const std::byte> salt) const {
  std::vector<std::byte> message{static_cast<std::byte>(size_)};
  message.insert(message.end(), salt.begin(), salt.end());
  const Sha256Digest code = hmac_sha256(std::span(key_).first(size_), message);
  AuthorizationHash hash;
  std::copy_n(code.begin(), hash.size(), hash.begin());
  return hash;
}

std::uint32_t Authorization::queue_key() const {
  constexpr std::array kUse{std::byte{'U'}, std::byte{'D'}};
  constexpr std::uint32_t kPrivileged = 0x8000'0000;
  const AuthorizationHash code = hash(kUse);
  std::uint32_t key = 0;
  for (std::size_t i = 0; i < sizeof key; ++i)
    key = key << 8 | std::to_integer<std::uint32_t>(code[i]);
  return key & ~kPrivileged;
}

Result<AuthorizationPtr> Authorizations::take(std::span<const std::byte> key) {
  if (key.empty() || key.size() > kMaxAuthorizationKey) {
    return Error{EINVAL, "an authorization key of " + std::to_string(key.size()) + " bytes: 1 to " +
                             std::to_string(kMaxAuthorizationKey) + " are possible"};
  }
  const MutexLock lock(mutex_);
  for (const auto& used : used_) {
    const AuthorizationPtr known = used.lock();
    if (known != nullptr && known->is(key)) return known;
  }
  used_.resize(kMaxAuthorizations);
  for (std::uint32_t i = 0; i < kMaxAuthorizations; ++i) {
    const std::size_t place = (next_ + i) % kMaxAuthorizations;
    if (!used_[place].expired()) continue;
    next_ = place + 1;
    auto added = std::make_shared<const Authorization>(key, static_cast<std::uint32_t>(place + 1));
    used_[place] = added;
    return AuthorizationPtr(std::move(added));
  }
  return Error{ENOSPC, std::to_string(kMaxAuthorizations) +
                           " authorization keys, the most of a process, are used"};
}

}  // namespace weft
