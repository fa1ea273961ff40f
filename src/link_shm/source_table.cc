// SPDX-License-Identifier: BSD-2-Clause
// Which processes send to a mailbox, and at whose rings does every poll look?
#include "link_shm/source_table.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "link_shm/names.h"
#include "os/barrier.h"

namespace weft::shm {
namespace {

// Polling one idle ring is almost free. Many idle rings make every poll longer, which outweighs the
// barrier of demote() the sooner.
constexpr unsigned kIdlePolls = 20000;
constexpr unsigned kFewRings = 32;

}  // namespace

Source::Source(std::uint32_t slot, SlotMemory mapped)
    : number(slot), memory(std::move(mapped)), header(&memory.header()), ring(memory) {}

void Source::wake(const os::Waker& waker) const {
  if (header->sender_asleep.load(std::memory_order_seq_cst) == 0) return;
  const os::WakerName name = header->waker;
  waker.ring(name);
}

// The state first: a sender takes the lock before it opens the slot, and closes the slot before it
// gives the lock back. Any process may have written the state, so nothing is backed before.
Result<Source*> SourceTable::open(std::uint32_t number) {
  auto state = SlotState::kFree;
  const bool there = file_->copy_out(slot_at(number), &state, sizeof state);
  if (!there || state == SlotState::kFree) return nullptr;
  const auto pid = file_->holder(kSlotLock + number);
  if (!pid && !has_message(number)) {
    release_slot(*file_, number);
    state = SlotState::kFree;
    file_->copy_in(slot_at(number), &state, sizeof state);
    return nullptr;
  }
  Geometry geometry{};
  file_->copy_out(slot_at(number) + offsetof(SlotHeader, geometry), &geometry, sizeof geometry);
  const auto checked = check_geometry(geometry);
  auto memory = SlotMemory::map(*file_, number, checked.value_or(kMessageGeometry));
  if (!memory) return memory.error();
  auto source = std::make_unique<Source>(number, std::move(memory).value());
  const SlotHeader* const header = source->header;
  source->broken = !checked;
  source->must_fence =
      !os::heeds_remote_barriers() || read_once(header->sender_raises_barriers) == 0;
  const Probe probe = header->probe;
  source->process = PeerProcess(file_, kSlotLock + number, pid && reaches(*pid, probe) ? *pid : 0);
  if (sources_.size() <= number) sources_.resize(number + 1);
  sources_[number] = std::move(source);
  while (find(first_free_) != nullptr) ++first_free_;
  return sources_[number].get();
}

bool SourceTable::has_message(std::uint32_t number) const {
  std::uint64_t word = 0;
  return file_->copy_out(slot_at(number) + kCellsAt, &word, sizeof word) &&
         CellWord::unpack(word).lap == 1;
}

void SourceTable::close(Source& source) {
  stop_listening(source);
  // The next sender in this slot finds zeros; it may come as soon as the state says so.
  release_slot(*file_, source.number);
  source.header->attention.store(Attention::kPolled, std::memory_order_relaxed);
  source.header->state.store(SlotState::kFree, std::memory_order_release);
  first_free_ = std::min(first_free_, source.number);
  sources_[source.number].reset();
}

bool SourceTable::back_rendezvous(Source& source, std::uint32_t rendezvous_id) {
  const Geometry& geometry = source.memory.geometry();
  if (rendezvous_id >= geometry.rendezvous_records) return false;
  const std::size_t block = rendezvous_id / geometry.rendezvous_block();
  if (!source.rendezvous_backed[block]) {
    source.rendezvous_backed[block] = source.memory.back_rendezvous_block(rendezvous_id).ok();
  }
  return source.rendezvous_backed[block];
}

void SourceTable::listen(Source& source) {
  source.idle_polls = 0;
  if (source.polled) return;
  source.polled = true;
  polled_.push_back(&source);
  count_polled();
  source.header->attention.store(asleep_ ? Attention::kRing : Attention::kPolled,
                                 std::memory_order_release);
}

void SourceTable::stop_listening(Source& source) {
  if (!source.polled) return;
  source.polled = false;
  std::erase(polled_, &source);
  count_polled();
}

void SourceTable::count_polled() {
  const auto rings = static_cast<unsigned>(polled_.size());
  idle_limit_ = rings > 1 ? kIdlePolls / (1 + rings / kFewRings) : ~0U;
}

// Rings that will be due soon share the barrier.
void SourceTable::demote() {
  if (asleep_) return;
  std::vector<Source*> idle;
  for (Source* const source : polled_) {
    if (!source->broken && source->idle_polls > idle_limit_ / 2) idle.push_back(source);
  }
  if (idle.size() == polled_.size() && !idle.empty()) idle.pop_back();
  if (idle.empty()) return;
  for (Source* const source : idle)
    source->header->attention.store(Attention::kRing, std::memory_order_relaxed);
  os::remote_barrier();
  for (Source* const source : idle) {
    if (source->ring.has_message()) {
      source->header->attention.store(Attention::kPolled, std::memory_order_relaxed);
      source->idle_polls = 0;
    } else {
      stop_listening(*source);
    }
  }
}

void SourceTable::set_asleep(bool asleep) {
  asleep_ = asleep;
  for (Source* source : polled_) {
    source->header->attention.store(asleep ? Attention::kRing : Attention::kPolled,
                                    std::memory_order_relaxed);
  }
}

}  // namespace weft::shm
