// SPDX-License-Identifier: BSD-2-Clause
// How does an owner that polls carry out small accesses to its memory for its senders?
#include "link_shm/assisted_server.h"

#include <atomic>
#include <cstring>

#include "memory/atomic_kernels.h"
#include "memory/explanation.h"

namespace weft::shm {

bool AssistedServer::run(Source& source, const CellWord& word, link::InboxSink& sink) {
  const bool atomic = word.kind == CellKind::kAtomicAssisted;
  const bool write = word.operation == link::MessageOperation::kWriteEvent;
  if (!write && word.operation != link::MessageOperation::kReadEvent) return false;
  if (!atomic && word.kind != CellKind::kAssisted) return false;
  const std::uint64_t position = source.ring.position();
  const Cell& cell = source.ring.cell();
  source.header->assisted_taken.store(position + 1, std::memory_order_relaxed);
  if (source.must_fence) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  const bool wanted = read_once(cell.assisted.withdrawn) == 0;
  const bool done = wanted && (atomic ? carry_out_atomic(source, cell, sink)
                                      : carry_out(source, cell, write, sink));
  const auto state = done ? AssistedState::kDone : AssistedState::kRefused;
  source.header->assisted.word.store(assisted_word(position, state), std::memory_order_release);
  return true;
}

// What its initiator would tell of a region, if it had accessed that itself.
void AssistedServer::report(const Source& source, Access access, link::InboxSink& sink) const {
  if (own_memory_.keys_to_report().empty()) [[likely]]
    return;
  sink.accessed(source.number, access, own_memory_.keys_to_report());
}

void AssistedServer::note_refusal(const Source& source, const Cell& cell, link::InboxSink& sink) {
  const RemoteRange range{read_once(cell.tag), read_once(cell.refused.length),
                          RegionKey{read_once(cell.data)}};
  const Access need = read_once(cell.refused.need);
  const std::uint32_t element = read_once(cell.refused.element);
  const memory::Accessed may = own_memory_.check(need, range, element);
  own_memory_.release();
  if (may.refusal == memory::AccessError::kNone) return;
  sink.refused(source.number, element != 0 ? memory::kAtomicOperation : memory::word_for(need),
               own_memory_.refused(may.refusal, range));
}

bool AssistedServer::carry_out(const Source& source, const Cell& cell, bool write,
                               link::InboxSink& sink) {
  const RemoteRange range{read_once(cell.tag), read_once(cell.assisted.length),
                          RegionKey{read_once(cell.data)}};
  if (range.length > kAssistedBytes) return false;
  std::byte* bytes = source.header->assisted.bytes;
  const std::byte* written = range.length <= kAssistedBytesInCell ? cell.assisted.bytes : bytes;
  const memory::Accessed done = write ? own_memory_.write(range, {written, range.length})
                                      : own_memory_.read(range, {bytes, range.length});
  if (done.ok()) report(source, write ? Access::kRemoteWrite : Access::kRemoteRead, sink);
  return done.ok();
}

bool AssistedServer::carry_out_atomic(const Source& source, const Cell& cell,
                                      link::InboxSink& sink) {
  const AtomicAction action{read_once(cell.atomic.form), read_once(cell.atomic.op),
                            read_once(cell.atomic.type)};
  const RemoteRange range{read_once(cell.tag), read_once(cell.atomic.length),
                          RegionKey{read_once(cell.data)}};
  const std::size_t element = size_of(action.type);
  if (element == 0 || !memory::meaningful(action) || range.length == 0 ||
      range.length > kAtomicAssistedBytes || range.length % element != 0) {
    return false;
  }
  // The sender must not be able to change them while they are used.
  std::byte operands[2 * kAtomicAssistedBytes];
  const std::size_t length = operand_bytes(action, range.length);
  const bool in_cell = length <= kAtomicAssistedBytesInCell;
  std::memcpy(operands, in_cell ? cell.atomic.bytes : source.header->assisted.bytes, length);
  std::byte* fetched = action.fetches() ? source.header->assisted.bytes : nullptr;
  const memory::Accessed done =
      own_memory_.change(action, range, operands, fetched, memory::LockWait::kBrief);
  if (done.ok()) report(source, memory::rights_for(action), sink);
  return done.ok();
}

}  // namespace weft::shm
