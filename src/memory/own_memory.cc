// SPDX-License-Identifier: BSD-2-Clause
// How does a process access its own registered memory for a peer?
#include "memory/own_memory.h"

#include <cerrno>
#include <cstring>

#include "memory/atomic_kernels.h"
#include "os/user_memory.h"

namespace weft::memory {
namespace {

// The caller holds the stripes of `here`. An errno, or 0.
int change_in_place(const AtomicAction& action, const LocalRange& here, const std::byte* operands,
                    std::byte* fetched) {
  std::byte initial[kMaxAtomicBytes];
  std::byte value[kMaxAtomicBytes];
  if (!os::copy_from_user(initial, here.base, here.length)) return EFAULT;
  std::memcpy(value, initial, here.length);
  apply(action, value, operands, operands + (action.has_operand() ? here.length : 0), here.length);
  const bool changes = std::memcmp(value, initial, here.length) != 0;
  if (changes && !os::copy_to_user(here.base, value, here.length)) return EFAULT;
  if (fetched != nullptr) std::memcpy(fetched, initial, here.length);
  return 0;
}

}  // namespace

bool OwnMemory::attach() {
  if (guard_ == nullptr && table_ != nullptr) {
    auto guard = AccessGuard::attach(table_);
    if (guard) guard_ = std::move(guard).value();
  }
  return guard_ != nullptr;
}

Accessed OwnMemory::pin(Access served, Access need, const RemoteRange& range) {
  writable_ = false;
  if (!attach()) return {AccessError::kNone, ENOMEM};
  const Grant grant = guard_->check_and_pin({domain_, served}, need, {&range, 1});
  if (!grant.ok()) return {grant.error, 0};
  pinned_ = range;
  place_ = grant.segments[0];
  return {};
}

void OwnMemory::release() {
  writable_ = false;
  if (guard_ != nullptr) guard_->release();
}

Accessed OwnMemory::check(Access need, const RemoteRange& range, bool atomic) {
  const Accessed allowed = pin(atomic ? served_.atomics : served_.rma, need, range);
  writable_ = allowed.ok() && !atomic && need == Access::kRemoteWrite;
  return allowed;
}

// Null when `part` does not lie in what is pinned.
LocalRange OwnMemory::place_of(const RemoteRange& part) const {
  const std::uint64_t offset = part.address - pinned_.address;
  const bool inside =
      part.key == pinned_.key && offset <= pinned_.length && part.length <= pinned_.length - offset;
  if (!inside) return {};
  return {static_cast<std::byte*>(place_.base) + offset, part.length};
}

Accessed OwnMemory::write(const RemoteRange& range, std::span<const std::byte> bytes) {
  LocalRange here = writable_ ? place_of(range) : LocalRange{};
  Accessed done;
  if (here.length == 0) {
    done = pin(served_.rma, Access::kRemoteWrite, range);
    here = place_;
  }
  if (done.ok() && !os::copy_to_user(here.base, bytes.data(), here.length)) done.error = EFAULT;
  release();
  return done;
}

Accessed OwnMemory::read(const RemoteRange& range, std::span<std::byte> bytes) {
  Accessed done = pin(served_.rma, Access::kRemoteRead, range);
  if (done.ok() && !os::copy_from_user(bytes.data(), place_.base, place_.length)) {
    done.error = EFAULT;
  }
  release();
  return done;
}

Accessed OwnMemory::change(const AtomicAction& action, const RemoteRange& range,
                           const std::byte* operands, std::byte* fetched, Patience patience) {
  Accessed done = pin(served_.atomics, rights_for(action), range);
  if (done.ok() && place_.length != 0) {
    const auto address = reinterpret_cast<std::uint64_t>(place_.base);
    done.error = guard_->stripes().lock(address, place_.length, patience);
    if (done.error == 0) done.error = change_in_place(action, place_, operands, fetched);
    guard_->stripes().unlock();
  }
  release();
  return done;
}

std::span<const RegionKey> OwnMemory::to_tell() const {
  if (guard_ == nullptr) return {};
  return guard_->to_tell();
}

}  // namespace weft::memory
