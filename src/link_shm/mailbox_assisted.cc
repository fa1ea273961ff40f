// SPDX-License-Identifier: BSD-2-Clause
// How does an owner that polls carry out small accesses to its memory for its senders?
//
// The sender could do it alone, by a system call that reaches into this process, and does when the
// owner does not answer. Here the same access is checked by the same table. A region's memory may
// have gone without the region having been closed: the processor undoes what touches that; where
// it cannot, the kernel copies the bytes, or is asked first.
#include <cstring>

#include "link_shm/mailbox.h"
#include "memory/atomic_kernels.h"
#include "memory/change_in_place.h"
#include "os/all_or_nothing.h"

namespace weft::shm {

memory::AccessGuard* Mailbox::own_table() {
  if (own_table_ == nullptr && options_.regions != nullptr) {
    auto user = memory::AccessGuard::attach(options_.regions);
    if (user) own_table_ = std::move(user).value();
  }
  return own_table_.get();
}

// False when the sender wrote nonsense.
bool Mailbox::run_assisted(Source& source, const Cell& cell, const CellWord& word,
                           link::InboxSink& sink) {
  const bool atomic = word.kind == Kind::kAtomicAssisted;
  const bool write = word.operation == link::Operation::kWriteEvent;
  if (!write && word.operation != link::Operation::kReadEvent) return false;
  if (!atomic && word.kind != Kind::kAssisted) return false;
  source.header->assisted_taken.store(source.next + 1, std::memory_order_relaxed);
  if (source.must_fence) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  const bool wanted = read_once(cell.assisted.withdrawn) == 0;
  const bool done = wanted && (atomic ? carry_out_atomic(source, cell, sink)
                                      : carry_out(source, cell, write, sink));
  const auto state = done ? AssistedState::kDone : AssistedState::kRefused;
  source.header->assisted.word.store(assisted_word(source.next, state), std::memory_order_release);
  return true;
}

// What its initiator would tell of a region, if it had accessed that itself.
void Mailbox::tell(const Source& source, Access access, link::InboxSink& sink) const {
  if (own_table_->to_tell().empty()) [[likely]]
    return;
  sink.accessed(source.number, access, own_table_->to_tell());
}

bool Mailbox::carry_out(const Source& source, const Cell& cell, bool write, link::InboxSink& sink) {
  memory::AccessGuard* table = own_table();
  const RemoteRange range{read_once(cell.tag), read_once(cell.assisted.length),
                          RegionKey{read_once(cell.data)}};
  if (table == nullptr || range.length > kAssistedBytes) return false;
  LocalRange here;
  std::size_t culprit = 0;
  const Access need = write ? Access::kRemoteWrite : Access::kRemoteRead;
  if (table->check_and_pin({options_.domain, options_.served.rma}, need, {&range, 1}, &here,
                           culprit) != memory::AccessError::kNone) {
    return false;
  }
  const bool done = copy_assisted(source, here, write);
  table->release();
  if (done) tell(source, need, sink);
  return done;
}

// Between registered memory and the bytes that the assisted access brings or takes home.
bool Mailbox::copy_assisted(const Source& source, const LocalRange& here, bool write) const {
  if (here.length == 0) return true;
  const std::uint64_t offset = assisted_bytes_at(source.next, write, here.length);
  std::byte* bytes = source.memory.at<std::byte>(offset);
  if (write) {
    return os::all_or_nothing([&] { std::memcpy(here.base, bytes, here.length); }) ||
           file_->copy_out(slot_at(source.number) + offset, here.base, here.length);
  }
  return os::all_or_nothing([&] { std::memcpy(bytes, here.base, here.length); }) ||
         file_->copy_in(slot_at(source.number) + offset, here.base, here.length);
}

bool Mailbox::carry_out_atomic(const Source& source, const Cell& cell, link::InboxSink& sink) {
  memory::AccessGuard* table = own_table();
  const AtomicAction action{read_once(cell.atomic.form), read_once(cell.atomic.op),
                            read_once(cell.atomic.type)};
  const RemoteRange range{read_once(cell.tag), read_once(cell.atomic.length),
                          RegionKey{read_once(cell.data)}};
  const std::size_t element = size_of(action.type);
  if (table == nullptr || element == 0 || !memory::meaningful(action) || range.length == 0 ||
      range.length > kAtomicAssistedBytes || range.length % element != 0) {
    return false;
  }
  // The sender must not be able to change them while they are used.
  std::byte operands[2 * kAtomicAssistedBytes];
  const std::size_t length = operand_bytes(action, range.length);
  const bool in_cell = length <= kAtomicAssistedBytesInCell;
  std::memcpy(operands, in_cell ? cell.atomic.bytes : source.header->assisted.bytes, length);
  LocalRange here;
  std::size_t culprit = 0;
  const Access need = memory::rights_for(action);
  if (table->check_and_pin({options_.domain, options_.served.atomics}, need, {&range, 1}, &here,
                           culprit) != memory::AccessError::kNone) {
    return false;
  }
  const bool done = change(source, action, here, operands);
  table->release();
  if (done) tell(source, need, sink);
  return done;
}

bool Mailbox::change(const Source& source, const AtomicAction& action, const LocalRange& here,
                     const std::byte* operands) {
  memory::StripeLocks& stripes = own_table_->stripes();
  const auto address = reinterpret_cast<std::uint64_t>(here.base);
  std::byte* fetched = action.fetches() ? source.header->assisted.bytes : nullptr;
  const bool done = stripes.lock(address, here.length, memory::Patience::kBrief) == 0 &&
                    memory::change_in_place(action, here, operands, fetched);
  stripes.unlock();
  return done;
}

}  // namespace weft::shm
