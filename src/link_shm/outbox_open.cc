// SPDX-License-Identifier: BSD-2-Clause
// How does a sender find its peer's mailbox, take a slot in it and leave it again?
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "link_shm/names.h"
#include "link_shm/outbox.h"
#include "link_shm/paired_copy.h"
#include "link_shm/slot_memory.h"
#include "os/barrier.h"
#include "os/interfaces.h"
#include "os/process_memory.h"

namespace weft::shm {
namespace {

constexpr auto kPartingPatience = std::chrono::seconds(2);

}  // namespace

Outbox::Outbox(const Sender& sender, os::SharedFilePtr file, os::Mapping header, pid_t pid)
    : sender_(sender),
      file_(std::move(file)),
      header_memory_(std::move(header)),
      peer_(file_, 0, pid),
      to_itself_(pid == os::process_id()),
      domain_{header_memory_.at<MailboxHeader>(0)->domain},
      served_(header_memory_.at<MailboxHeader>(0)->served),
      must_fence_(!os::heeds_remote_barriers() ||
                  header_memory_.at<MailboxHeader>(0)->owner_raises_barriers == 0) {}

Result<os::SharedFilePtr> Outbox::find_mailbox(const Sender& sender,
                                               const os::SocketAddress& peer) {
  auto file = os::SharedFile::open(mailbox_path(sender.directory, peer));
  if (file || file.error().code != ENOENT) return file;
  if (!os::is_local_address(peer.get())) {
    return Error{EHOSTUNREACH, peer.text() + " is on another host, to which no link leads yet"};
  }
  return os::SharedFile::open(mailbox_path(sender.directory, any_host(peer)));
}

Result<std::unique_ptr<Outbox>> Outbox::open(const Sender& sender, const os::SocketAddress& peer) {
  auto file = find_mailbox(sender, peer);
  if (!file) return file.error();
  const auto pid = file.value()->holder(0);
  if (!pid) return Error{ENOENT, "no living endpoint at " + peer.text()};
  auto memory = file.value()->map(0, 4096);
  if (!memory) return memory.error();
  const auto* header = memory.value().at<MailboxHeader>(0);
  if (header->magic != kMailboxMagic || header->version != kMailboxVersion) {
    return Error{EPROTO, peer.text() + " has a mailbox of another version"};
  }
  if (header->service != sender.service) {
    return Error{ENOENT, "the endpoint at " + peer.text() + " is of another type"};
  }
  const Probe probe = header->probe;
  if (*pid == 0 || !reaches(*pid, probe)) {
    if (errno == ESRCH && !file.value()->holder(0)) return Error{ENOENT, "it has just ended"};
    return Error{EPERM, "the process of " + peer.text() + " may not be reached (process_vm_readv)"};
  }
  std::unique_ptr<Outbox> box(new Outbox(sender, file.value(), std::move(memory).value(), *pid));
  if (Status ok = box->claim_slot(); !ok) return ok.error();
  box->introduce();
  return box;
}

Status Outbox::claim_slot() {
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    if (!file_->claim(kSlotLock + i)) continue;
    Status ready = set_up_slot(i);
    if (ready) {
      claimed_ = true;
      number_ = i;
      return {};
    }
    file_->disclaim(kSlotLock + i);
    if (ready.error().code != EBUSY) return ready;
    // Its last sender has left without the owner's notice: let it look.
    mark_rung(i);
  }
  return Error{EUSERS, std::to_string(kSlots) + " peers send to this endpoint, the most possible"};
}

Status Outbox::set_up_slot(std::uint32_t number) {
  const std::uint64_t at = slot_at(number);
  if (Status ok = back_header(*file_, number); !ok) return ok;
  auto memory = file_->map(at, kSlotBytes);
  if (!memory) return memory.error();
  auto* slot = memory.value().at<SlotHeader>(0);
  if (slot->state.load(std::memory_order_acquire) != SlotState::kFree) return Error{EBUSY, {}};
  // Not before: until it sets that state the owner may be giving this memory back.
  if (Status ok = back_basics(*file_, number); !ok) return ok;
  memory_ = std::move(memory).value();
  slot_ = slot;
  exchanges_ = memory_.at<Rendezvous>(kExchangesAt);
  cells_ = memory_.at<Cell>(kCellsAt);
  bulk_ = memory_.base() + kBulkAt;
  return {};
}

void Outbox::introduce() {
  std::memset(static_cast<void*>(cells_), 0, kCells * sizeof(Cell));
  slot_->address_length = sender_.address.length();
  std::memcpy(slot_->address, sender_.address.get(), sender_.address.length());
  slot_->waker = sender_.waker->name();
  slot_->probe = own_probe();
  slot_->sender_asleep.store(0, std::memory_order_relaxed);
  slot_->sender_raises_barriers = os::can_raise_remote_barriers();
  slot_->assisted.word.store(0, std::memory_order_relaxed);
  slot_->assisted_taken.store(0, std::memory_order_relaxed);
  slot_->cells_consumed.store(0, std::memory_order_relaxed);
  slot_->bulk_consumed.store(0, std::memory_order_relaxed);
  slot_->attention.store(Attention::kRing, std::memory_order_relaxed);
  slot_->state.store(SlotState::kOpen, std::memory_order_release);
  os::heeds_remote_barriers();
  mark_rung(number_);
}

// The receiver may be copying from this process: the program must not get the buffers back before,
// unless the receiver learns that the message has failed.
void Outbox::part_from(std::uint32_t number, os::Time end) {
  Rendezvous& shared = exchanges_[number];
  auto state = RendezvousState::kOffered;
  if (shared.state.compare_exchange_strong(state, RendezvousState::kIdle)) return;
  while (shared.state.load(std::memory_order_acquire) == RendezvousState::kMatched &&
         file_->holder(0) && std::chrono::steady_clock::now() < end) {
    help_copying(number);
    copier_.flush();
    if (all_copied(shared, std::min(shared.matched_length, pending_[number].length))) return;
    std::this_thread::yield();
  }
  state = RendezvousState::kMatched;
  shared.state.compare_exchange_strong(state, RendezvousState::kAbandoned);
}

void Outbox::end_all(os::Time end, link::FlowSink& sink) {
  for (const std::uint32_t number : active_) {
    part_from(number, end);
    const Rendezvous& shared = exchanges_[number];
    const bool over = shared.state.load(std::memory_order_acquire) == RendezvousState::kDone;
    report(number, over ? ending(shared) : ECONNRESET, sink);
  }
  active_.clear();
  for (const Queued& queued : queue_) sink.ended(queued.request.cookie, ECONNRESET, 0);
  queue_.clear();
}

void Outbox::give_up(link::FlowSink& sink) {
  end_all(std::chrono::steady_clock::now() + kPartingPatience, sink);
}

Outbox::~Outbox() {
  if (!claimed_ || file_->inherited()) return;
  const os::Time end = std::chrono::steady_clock::now() + kPartingPatience;
  for (const std::uint32_t number : active_) part_from(number, end);
  slot_->state.store(SlotState::kClosed, std::memory_order_seq_cst);
  mark_rung(number_);
  file_->disclaim(kSlotLock + number_);
}

}  // namespace weft::shm
