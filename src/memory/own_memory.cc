// SPDX-License-Identifier: BSD-2-Clause
// How does a process access its own registered memory for a peer?
#include "memory/own_memory.h"

#include <algorithm>
#include <cstring>

#include "memory/atomic_kernels.h"
#include "memory/change_in_place.h"
#include "os/all_or_nothing.h"
#include "os/process_memory.h"

namespace weft::memory {
namespace {

// Of a long access the kernel is asked about no more bytes than that at once, and about twice as
// many each time after the first.
constexpr std::uint64_t kMostAtOnce = std::uint64_t{256} * 1024;
constexpr std::uint64_t kLeastAtOnce = 4096;

int copy_by_kernel(os::CopyDirection direction, void* mine, const LocalRange& region) {
  const LocalRange local{mine, region.length};
  return os::copy_process_memory(os::process_id(), direction, {&local, 1}, {&region, 1});
}

// Where the kernel has to look at every page itself.
int change_by_copies(const AtomicAction& action, const LocalRange& here, const std::byte* operands,
                     std::byte* fetched) {
  std::byte initial[kMaxAtomicBytes];
  std::byte value[kMaxAtomicBytes];
  if (const int error = copy_by_kernel(os::CopyDirection::kFromProcess, initial, here)) {
    return error;
  }
  std::memcpy(value, initial, here.length);
  apply(action, value, operands, operands + (action.has_operand() ? here.length : 0), here.length);
  if (std::memcmp(value, initial, here.length) != 0) {
    if (const int error = copy_by_kernel(os::CopyDirection::kToProcess, value, here)) return error;
  }
  if (fetched != nullptr) std::memcpy(fetched, initial, here.length);
  return 0;
}

}  // namespace

bool OwnMemory::attach() {
  if (user_ == nullptr && table_ != nullptr) {
    auto user = AccessGuard::attach(table_);
    if (user) user_ = std::move(user).value();
  }
  return user_ != nullptr;
}

Accessed OwnMemory::check_and_pin(Access served, Access need, const RemoteRange& range,
                                  LocalRange& here) {
  if (!attach()) return {AccessError::kNone, ENOMEM};
  std::size_t culprit = 0;
  return {user_->check_and_pin({domain_, served}, need, {&range, 1}, &here, culprit), 0};
}

Accessed OwnMemory::may(Access need, const RemoteRange& range, bool atomic) {
  LocalRange here;
  const Accessed held = check_and_pin(atomic ? served_.atomics : served_.rma, need, range, here);
  if (user_ != nullptr) user_->release();
  return held;
}

// An access of one part is not worth the question: the kernel copies its bytes.
bool OwnMemory::is_there(os::CopyDirection direction, const LocalRange& here, std::uint64_t ahead) {
  const auto begin = reinterpret_cast<std::uintptr_t>(here.base);
  const bool known = there_.direction == direction && there_.begin <= begin &&
                     begin <= there_.end && here.length <= there_.end - begin;
  if (known) return true;
  if (ahead == 0) return false;
  const std::size_t length = here.length + std::min(ahead, at_once_);
  at_once_ = std::clamp(2 * at_once_, kLeastAtOnce, kMostAtOnce);
  if (!os::have_pages(here.base, length, direction)) return false;
  there_ = {begin, begin + length, direction};
  return true;
}

int OwnMemory::copy(os::CopyDirection direction, void* mine, const LocalRange& here,
                    std::uint64_t ahead) {
  if (here.length == 0) return 0;
  const bool reads = direction == os::CopyDirection::kFromProcess;
  const auto work = [&] {
    std::memcpy(reads ? mine : here.base, reads ? here.base : mine, here.length);
  };
  if (os::all_or_nothing(work)) return 0;
  if (!is_there(direction, here, ahead)) return copy_by_kernel(direction, mine, here);
  work();
  return 0;
}

Accessed OwnMemory::write(const RemoteRange& range, std::span<const std::byte> bytes,
                          std::uint64_t ahead) {
  LocalRange here;
  Accessed done = check_and_pin(served_.rma, Access::kRemoteWrite, range, here);
  if (!done.ok()) return done;
  done.error =
      copy(os::CopyDirection::kToProcess, const_cast<std::byte*>(bytes.data()), here, ahead);
  user_->release();
  return done;
}

Accessed OwnMemory::read(const RemoteRange& range, std::span<std::byte> bytes,
                         std::uint64_t ahead) {
  LocalRange here;
  Accessed done = check_and_pin(served_.rma, Access::kRemoteRead, range, here);
  if (!done.ok()) return done;
  done.error = copy(os::CopyDirection::kFromProcess, bytes.data(), here, ahead);
  user_->release();
  return done;
}

Accessed OwnMemory::change(const AtomicAction& action, const RemoteRange& range,
                           const std::byte* operands, std::byte* fetched, Patience patience) {
  LocalRange here;
  Accessed done = check_and_pin(served_.atomics, rights_for(action), range, here);
  if (!done.ok() || here.length == 0) {
    if (user_ != nullptr) user_->release();
    return done;
  }
  const auto address = reinterpret_cast<std::uint64_t>(here.base);
  done.error = user_->stripes().lock(address, here.length, patience);
  if (done.error == 0 && !change_in_place(action, here, operands, fetched)) {
    done.error = change_by_copies(action, here, operands, fetched);
  }
  user_->stripes().unlock();
  user_->release();
  return done;
}

std::span<const RegionKey> OwnMemory::to_tell() const {
  if (user_ == nullptr) return {};
  return user_->to_tell();
}

}  // namespace weft::memory
