// SPDX-License-Identifier: BSD-2-Clause
// Which locks do the atomic operations of all processes share?
#include "memory/stripe_table.h"

#include <cerrno>

#include "base/warning.h"

namespace weft::memory {
namespace {

constexpr std::uint64_t kFileBytes = kStripes * sizeof(Stripe);
constexpr const char* kFileName = "/stripes-1";
constexpr std::uint64_t kRecordLock = 1;  // byte 0 belongs to all users

}  // namespace

StripeTable::~StripeTable() {
  if (file_ != nullptr) file_->disclaim(kRecordLock + user_);
}

Stripe* StripeTable::open() {
  const std::lock_guard guard(mutex_);
  if (stripes_.load(std::memory_order_relaxed) != nullptr) return stripes_;
  Status opened = directory_.empty() ? Error{ENOENT, "no directory"} : open_file();
  if (!opened && !directory_.empty()) {
    warn("atomic operations on memory that several processes share are not atomic among them: " +
         opened.error().message);
  }
  if (!opened) {
    auto own = os::Mapping::map_private(kFileBytes);
    if (!own) return nullptr;
    memory_ = std::move(own).value();
  }
  stripes_.store(memory_.at<Stripe>(0), std::memory_order_release);
  return stripes_;
}

Status StripeTable::open_file() {
  auto file = os::SharedFile::join(directory_ + kFileName, kFileBytes);
  if (!file) return file.error();
  if (Status ok = file.value()->reserve(0, kFileBytes); !ok) return ok;
  auto memory = file.value()->map(0, kFileBytes);
  if (!memory) return memory.error();
  file_ = std::move(file).value();
  memory_ = std::move(memory).value();
  Status claimed = claim_record();
  if (!claimed) file_.reset();
  return claimed;
}

// Stripes that a dead predecessor in that record still holds are free again.
Status StripeTable::claim_record() {
  while (user_ < kMaxStripeUsers && !file_->claim(kRecordLock + user_)) ++user_;
  if (user_ == kMaxStripeUsers) return Error{EUSERS, "too many processes share their stripes"};
  for (std::uint32_t i = 0; i < kStripes; ++i) {
    auto& holder = memory_.at<Stripe>(0)[i].holder;
    std::uint64_t stale = holder.load(std::memory_order_relaxed);
    if (stale == 0 || StripeWord::unpack(stale).user != user_) continue;
    holder.compare_exchange_strong(stale, 0, std::memory_order_relaxed);
  }
  return {};
}

bool StripeTable::is_there(std::uint32_t user) const {
  if (file_ == nullptr) return user == user_;
  return file_->holder(kRecordLock + user).has_value();
}

}  // namespace weft::memory
