// SPDX-License-Identifier: BSD-2-Clause
// How does a process access its own registered memory for a peer?
#include "memory/own_memory.h"

#include <cerrno>
#include <cstring>

#include "memory/atomic_kernels.h"
#include "os/user_memory.h"

namespace weft::memory {
namespace {

// Copies of granted bytes, which the processor makes unless they are memory of a device: EIO where
// its copier fails. An errno, or 0.
int load(const DeviceMemory& device, std::span<const LocalRange> from, std::span<std::byte> out) {
  if (device.copier != nullptr) [[unlikely]]
    return device.copier->to_host(out.data(), device.place, from, 0, out.size()) != 0 ? EIO : 0;
  return os::gather(out.data(), from, out.size()) ? 0 : EFAULT;
}

int store(const DeviceMemory& device, std::span<const LocalRange> to,
          std::span<const std::byte> bytes, std::uint64_t offset) {
  if (device.copier != nullptr) [[unlikely]]
    return device.copier->from_host(device.place, to, offset, bytes.data(), bytes.size()) != 0 ? EIO
                                                                                               : 0;
  return os::scatter(to, bytes.data(), bytes.size(), offset) ? 0 : EFAULT;
}

// The caller holds the stripes of `here`. An errno, or 0.
int change_in_place(const DeviceMemory& device, const AtomicAction& action, const LocalRange& here,
                    const std::byte* operand, const std::byte* compare, std::byte* fetched) {
  std::byte initial[kMaxAtomicBytes];
  std::byte value[kMaxAtomicBytes];
  if (const int error = load(device, {&here, 1}, {initial, here.length})) return error;
  std::memcpy(value, initial, here.length);
  apply(action, value, operand, compare, here.length);
  const bool changes = std::memcmp(value, initial, here.length) != 0;
  if (changes) {
    if (const int error = store(device, {&here, 1}, {value, here.length}, 0)) return error;
  }
  if (fetched != nullptr) std::memcpy(fetched, initial, here.length);
  return 0;
}

}  // namespace

bool OwnMemory::attach() {
  if (guard_ == nullptr && table_ != nullptr) {
    auto guard = AccessGuard::attach(table_);
    if (guard) guard_ = (own_guard_ = std::move(guard).value()).get();
  }
  return guard_ != nullptr;
}

Accessed OwnMemory::pin(Access served, Access need, const RemoteRange& range, std::size_t element) {
  writable_ = false;
  if (!attach()) return {AccessError::kNone, ENOMEM};
  const Grant grant = guard_->check_and_pin({domain_, served, endpoint_, authorization_}, need,
                                            {&range, 1}, element);
  if (!grant.ok()) return {grant.error, 0};
  pinned_ = range;
  return {};
}

void OwnMemory::release() {
  writable_ = false;
  if (guard_ != nullptr) guard_->release();
}

Accessed OwnMemory::check(Access need, const RemoteRange& range, std::size_t element) {
  const bool atomic = element != 0;
  const Accessed allowed =
      pin(atomic ? served_.atomics : served_.rma, need, range, atomic ? element : 1);
  writable_ = allowed.ok() && !atomic && need == Access::kRemoteWrite;
  return allowed;
}

bool OwnMemory::is_pinned(const RemoteRange& part) const {
  const std::uint64_t offset = part.address - pinned_.address;
  return part.key == pinned_.key && offset <= pinned_.length &&
         part.length <= pinned_.length - offset;
}

Accessed OwnMemory::write(const RemoteRange& range, std::span<const std::byte> bytes) {
  Accessed done;
  if (!writable_ || bytes.empty() || !is_pinned(range)) {
    done = pin(served_.rma, Access::kRemoteWrite, range);
  }
  const std::uint64_t offset = range.address - pinned_.address;
  if (done.ok()) done.error = store(guard_->device_memory(), guard_->granted(), bytes, offset);
  release();
  return done;
}

Accessed OwnMemory::read(const RemoteRange& range, std::span<std::byte> bytes) {
  Accessed done = pin(served_.rma, Access::kRemoteRead, range);
  if (done.ok()) done.error = load(guard_->device_memory(), guard_->granted(), bytes);
  release();
  return done;
}

Access OwnMemory::right_for(const AtomicAction& action) const {
  return served_.atomic_right ? Access::kRemoteAtomic : rights_for(action);
}

Accessed OwnMemory::change(const AtomicAction& action, const RemoteRange& range,
                           const std::byte* operands, std::byte* fetched, LockWait wait) {
  Accessed done = pin(served_.atomics, right_for(action), range, size_of(action.type));
  if (done.ok()) done.error = change_places(action, operands, fetched, wait);
  release();
  return done;
}

// Segment by segment. With the brief patience another user repeats the operation after EBUSY: so
// nothing may have been changed then.
int OwnMemory::change_places(const AtomicAction& action, const std::byte* operands,
                             std::byte* fetched, LockWait wait) {
  const std::span<const LocalRange> places = guard_->granted();
  if (places.size() > 1 && wait == LockWait::kBrief) return EBUSY;
  const std::byte* compares = operands + (action.has_operand() ? pinned_.length : 0);
  const DeviceMemory device = guard_->device_memory();
  std::size_t offset = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const LocalRange& here = places[i];
    if (here.length == 0) continue;
    int error = guard_->lock(i, wait);
    if (error == 0) {
      error = change_in_place(device, action, here, operands + offset, compares + offset,
                              fetched != nullptr ? fetched + offset : nullptr);
    }
    guard_->unlock();
    if (error != 0) return error;
    offset += here.length;
  }
  return 0;
}

RefusedAccess OwnMemory::refused(AccessError refusal, const RemoteRange& range) const {
  if (guard_ != nullptr) return guard_->refused(refusal, {&range, 1});
  return {.reason = static_cast<int>(refusal), .range = range};
}

std::span<const RegionKey> OwnMemory::keys_to_report() const {
  if (guard_ == nullptr) return {};
  return guard_->keys_to_report();
}

}  // namespace weft::memory
