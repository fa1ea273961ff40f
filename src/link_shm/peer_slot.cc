// SPDX-License-Identifier: BSD-2-Clause
// How does a sender find its peer's mailbox, claim a slot in it and leave it again?
#include "link_shm/peer_slot.h"

#include <cerrno>
#include <cstring>

#include "link/flow.h"
#include "link_shm/names.h"
#include "os/barrier.h"
#include "os/process_memory.h"

namespace weft::shm {

PeerSlot::PeerSlot(const Sender& sender, PeerMailbox mailbox)
    : sender_(sender),
      geometry_(sender.geometry),
      mailbox_(std::move(mailbox)),
      owner_(mailbox_.file(), 0, mailbox_.owner()),
      owner_is_this_process_(mailbox_.owner() == os::process_id()) {}

Result<std::unique_ptr<PeerSlot>> PeerSlot::claim(const Sender& sender,
                                                  const os::SocketAddress& peer) {
  auto mailbox = PeerMailbox::open(sender, peer, kHeaderBytes);
  if (!mailbox) return mailbox.error();
  if (!mailbox.value().has_key(sender.authorization)) {
    return Error{link::kOtherAuthorization,
                 "the endpoint at " + peer.text() + " has another authorization key"};
  }
  std::unique_ptr<PeerSlot> slot(new PeerSlot(sender, std::move(mailbox).value()));
  if (Status ok = slot->claim_any(); !ok) return ok.error();
  slot->introduce();
  return slot;
}

Status PeerSlot::claim_any() {
  const std::uint32_t first = mailbox().first_free.load(std::memory_order_relaxed);
  for (std::uint32_t n = 0; n < kSlots; ++n) {
    const std::uint32_t i = (first + n) % kSlots;
    if (!file().claim(kSlotLock + i)) continue;
    Status ready = set_up(i);
    if (ready) return {};
    file().disclaim(kSlotLock + i);
    if (ready.error().code != EBUSY) return ready;
    // Its last sender has left without the owner's notice: let it look.
    ring(i);
  }
  return Error{EUSERS, std::to_string(kSlots) + " peers send to this endpoint, the most possible"};
}

Status PeerSlot::set_up(std::uint32_t number) {
  // Nothing else before: until it sets that state the owner may be giving this memory back.
  auto state = SlotState::kFree;
  file().copy_out(slot_at(number), &state, sizeof state);
  if (state != SlotState::kFree) return Error{EBUSY, {}};
  auto memory = SlotMemory::map(file(), number, geometry_);
  if (!memory) return memory.error();
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
  slot.answer.store(0, std::memory_order_relaxed);
  slot.attention.store(Attention::kRing, std::memory_order_relaxed);
  slot.state.store(SlotState::kOpen, std::memory_order_release);
  os::heeds_remote_barriers();
  ring();
}

void PeerSlot::ring(std::uint32_t number) {
  mark_woken(mailbox(), number);
  mailbox_.wake_owner(*sender_.waker);
}

PeerSlot::~PeerSlot() {
  if (!memory_.is_mapped() || file().inherited()) return;
  header().state.store(SlotState::kClosed, std::memory_order_seq_cst);
  ring();
  file().disclaim(kSlotLock + number_);
}

}  // namespace weft::shm
