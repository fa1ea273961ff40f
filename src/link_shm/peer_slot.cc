// SPDX-License-Identifier: BSD-2-Clause
// How does a sender find its peer's mailbox, claim a slot in it and leave it again?
#include "link_shm/peer_slot.h"

#include <cerrno>
#include <cstring>

#include "link_shm/names.h"
#include "link_shm/slot_memory.h"
#include "os/barrier.h"
#include "os/interfaces.h"
#include "os/process_memory.h"

namespace weft::shm {

PeerSlot::PeerSlot(const Sender& sender, os::SharedFilePtr file, os::Mapping mailbox, pid_t owner)
    : sender_(sender),
      geometry_(sender.geometry),
      file_(std::move(file)),
      mailbox_memory_(std::move(mailbox)),
      owner_(file_, 0, owner),
      owner_is_this_process_(owner == os::process_id()) {}

Result<os::SharedFilePtr> PeerSlot::find_mailbox(const Sender& sender,
                                                 const os::SocketAddress& peer) {
  auto file = os::SharedFile::open(mailbox_path(sender.directory, peer));
  if (file || file.error().code != ENOENT) return file;
  if (!os::is_local_address(peer.get())) {
    return Error{EHOSTUNREACH,
                 peer.text() + " is on another host, which shared memory does not reach"};
  }
  return os::SharedFile::open(mailbox_path(sender.directory, any_host(peer)));
}

Result<std::unique_ptr<PeerSlot>> PeerSlot::claim(const Sender& sender,
                                                  const os::SocketAddress& peer) {
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
    if (errno == ESRCH && !file.value()->holder(0))
      return Error{ENOENT, "the endpoint at " + peer.text() + " has just closed"};
    return Error{EPERM, "the process of " + peer.text() + " may not be reached (process_vm_readv)"};
  }
  std::unique_ptr<PeerSlot> slot(
      new PeerSlot(sender, file.value(), std::move(memory).value(), *pid));
  if (Status ok = slot->claim_any(); !ok) return ok.error();
  slot->introduce();
  return slot;
}

Status PeerSlot::claim_any() {
  const std::uint32_t first = mailbox().first_free.load(std::memory_order_relaxed);
  for (std::uint32_t n = 0; n < kSlots; ++n) {
    const std::uint32_t i = (first + n) % kSlots;
    if (!file_->claim(kSlotLock + i)) continue;
    Status ready = set_up(i);
    if (ready) return {};
    file_->disclaim(kSlotLock + i);
    if (ready.error().code != EBUSY) return ready;
    // Its last sender has left without the owner's notice: let it look.
    ring(i);
  }
  return Error{EUSERS, std::to_string(kSlots) + " peers send to this endpoint, the most possible"};
}

Status PeerSlot::set_up(std::uint32_t number) {
  if (Status ok = back_header(*file_, number); !ok) return ok;
  auto memory = map_slot(*file_, number, geometry());
  if (!memory) return memory.error();
  const auto* header = memory.value().at<SlotHeader>(0);
  if (header->state.load(std::memory_order_acquire) != SlotState::kFree) return Error{EBUSY, {}};
  // Not before: until it sets that state the owner may be giving this memory back.
  if (Status ok = back_basics(*file_, number, geometry()); !ok) return ok;
  memory_ = std::move(memory).value();
  number_ = number;
  return {};
}

void PeerSlot::introduce() {
  SlotHeader& slot = header();
  slot.geometry = geometry();
  slot.address_length = sender_.address.length();
  std::memcpy(slot.address, sender_.address.get(), sender_.address.length());
  slot.waker = sender_.waker->name();
  slot.probe = own_probe();
  slot.sender_asleep.store(0, std::memory_order_relaxed);
  slot.sender_raises_barriers = os::can_raise_remote_barriers();
  slot.assisted.word.store(0, std::memory_order_relaxed);
  slot.assisted_taken.store(0, std::memory_order_relaxed);
  slot.cells_consumed.store(0, std::memory_order_relaxed);
  slot.bulk_consumed.store(0, std::memory_order_relaxed);
  slot.attention.store(Attention::kRing, std::memory_order_relaxed);
  slot.state.store(SlotState::kOpen, std::memory_order_release);
  os::heeds_remote_barriers();
  ring();
}

// The bell first: a sender that is stopped in between leaves the mark, so that others ring, too. By
// the time that it goes on, the owner may have slept anew: that mark is not this sender's to clear.
void PeerSlot::ring(std::uint32_t number) {
  mark_rung(mailbox(), number);
  std::uint32_t sleep = mailbox().asleep.load();
  if (sleep == 0) return;
  const os::WakerName waker = mailbox().waker;
  sender_.waker->ring(waker);
  mailbox().asleep.compare_exchange_strong(sleep, 0);
}

PeerSlot::~PeerSlot() {
  if (memory_.base() == nullptr || file_->inherited()) return;
  header().state.store(SlotState::kClosed, std::memory_order_seq_cst);
  ring();
  file_->disclaim(kSlotLock + number_);
}

}  // namespace weft::shm
