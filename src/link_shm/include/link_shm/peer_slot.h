// SPDX-License-Identifier: BSD-2-Clause
// How does a sender find its peer's mailbox, claim a slot in it and leave it again?
#pragma once

#include <memory>

#include "base/result.h"
#include "link_shm/geometry.h"
#include "link_shm/layout.h"
#include "link_shm/peer_mailbox.h"
#include "link_shm/peer_process.h"
#include "link_shm/slot_memory.h"
#include "os/mapping.h"
#include "os/shared_file.h"
#include "os/socket_address.h"

namespace weft::shm {

// A slot of a living peer's mailbox that this process has claimed and opened. One thread.
class PeerSlot {
 public:
  // Claims a slot in the mailbox of the endpoint at `peer`. Errors: those of Outbox::open().
  static Result<std::unique_ptr<PeerSlot>> claim(const Sender& sender,
                                                 const os::SocketAddress& peer);
  // Closes the slot: the owner takes what the ring holds and frees it. A forked child's copy leaves
  // the slot alone.
  ~PeerSlot();
  PeerSlot(const PeerSlot&) = delete;
  PeerSlot& operator=(const PeerSlot&) = delete;

  const Sender& sender() const { return sender_; }
  os::SharedFile& file() const { return *mailbox_.file(); }
  MailboxHeader& mailbox() const { return mailbox_.header(); }
  SlotMemory& memory() { return memory_; }
  SlotHeader& header() const { return memory_.header(); }
  const Geometry& geometry() const { return geometry_; }

  // The owner of the mailbox, by its lock of the file.
  PeerProcess& owner() { return owner_; }
  bool owner_is_this_process() const { return owner_is_this_process_; }
  // True when the owner has closed the mailbox, or listens to this slot no more.
  bool closed_by_owner() const {
    return header().attention.load(std::memory_order_acquire) == Attention::kGone;
  }
  // Has the owner look at this slot, and wakes it if it sleeps.
  void ring() { ring(number_); }

 private:
  PeerSlot(const Sender& sender, PeerMailbox mailbox);
  Status claim_any();
  Status set_up(std::uint32_t number);
  void introduce();
  void ring(std::uint32_t number);

  const Sender& sender_;
  const Geometry geometry_;
  const PeerMailbox mailbox_;
  PeerProcess owner_;
  const bool owner_is_this_process_;
  std::uint32_t number_ = 0;
  SlotMemory memory_;  // once it is claimed
};

}  // namespace weft::shm
