// SPDX-License-Identifier: BSD-2-Clause
// How does an owner that polls carry out small accesses to its memory for its senders?
//
// The sender could do it alone, by a system call that reaches into this process, and does when the
// owner does not answer. Here the same access is checked by the same table. The bytes are copied by
// the kernel, because a region's memory may have gone without the region having been closed.
#include "link_shm/mailbox.h"

namespace weft::shm {

memory::TableUser* Mailbox::own_table() {
  if (own_table_ == nullptr && options_.regions != nullptr) {
    auto user = memory::TableUser::attach(options_.regions);
    if (user) own_table_ = std::move(user).value();
  }
  return own_table_.get();
}

// False when the sender wrote nonsense.
bool Mailbox::run_errand(Source& source, const Cell& cell, link::Operation operation) {
  const bool write = operation == link::Operation::kWriteEvent;
  if (!write && operation != link::Operation::kReadEvent) return false;
  auto& state = source.header->errand.word;
  state.store(errand_word(source.next, ErrandState::kTaken), std::memory_order_relaxed);
  if (source.must_fence) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  const bool done = read_once(cell.errand.withdrawn) == 0 && carry_out(source, cell, write);
  state.store(errand_word(source.next, done ? ErrandState::kDone : ErrandState::kRefused),
              std::memory_order_release);
  return true;
}

bool Mailbox::carry_out(const Source& source, const Cell& cell, bool write) {
  memory::TableUser* table = own_table();
  const RemoteRange range{read_once(cell.tag), read_once(cell.errand.length),
                          RegionKey{read_once(cell.data)}};
  if (table == nullptr || range.length > kErrandBytes) return false;
  LocalRange here;
  std::size_t culprit = 0;
  const Access need = write ? Access::kRemoteWrite : Access::kRemoteRead;
  if (table->hold(options_.domain, need, {&range, 1}, &here, culprit) != memory::Refusal::kNone) {
    return false;
  }
  const std::uint64_t at =
      slot_at(source.number) + errand_bytes_at(source.next, write, range.length);
  const bool done = write ? file_->copy_out(at, here.base, here.length)
                          : file_->copy_in(at, here.base, here.length);
  table->release();
  return done;
}

}  // namespace weft::shm
