// SPDX-License-Identifier: BSD-2-Clause
// How does a port reach the memory and the mailbox of a process of its host?
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "link_shm/peer_mailbox.h"
#include "link_shm/peer_process.h"
#include "link_shm/peer_slot.h"
#include "memory/access_guard.h"
#include "os/socket_address.h"

namespace weft::queue {

// Each queue pair that peers of its host may access is registered in the region table of its
// process, in this domain, which no program has: the key is its QPN, the rights are those of
// qp_access_flags, the binding is the QPN of its peer, and the base is the number of its protection
// domain. So the barrier of a region that closes is that of a queue pair that leaves RTR or RTS.
inline constexpr DomainId kDomainOfQueuePairs{~0U};

// The owner of one UDP number, as the queue pairs of one number of this process see it. With the
// transmit lock of the port.
class NearPeer {
 public:
  // Errors: those of shm::PeerMailbox::open(), memory::RegionTableView::open() and
  // memory::AccessGuard::attach(). `sender` outlives it.
  static Result<std::shared_ptr<NearPeer>> open(device::Device& device, const shm::Sender& sender,
                                                std::uint16_t port);

  // A ring for messages to a queue pair there. Errors: those of shm::PeerSlot::claim().
  Result<std::unique_ptr<shm::PeerSlot>> claim() { return shm::PeerSlot::claim(sender_, address_); }
  // Whether the owner lives and has the number still. Any thread.
  bool is_there() const { return file_->holder(0).has_value(); }
  shm::PeerProcess& process() { return process_; }
  // Two users of its region table: an entry of a queue pair and a region stay pinned for a copy.
  memory::AccessGuard& pairs() { return *pairs_; }
  memory::AccessGuard& memory() { return *memory_; }

 private:
  NearPeer(const shm::Sender& sender, const os::SocketAddress& address,
           const shm::PeerMailbox& mailbox, std::unique_ptr<memory::AccessGuard> pairs,
           std::unique_ptr<memory::AccessGuard> memory)
      : sender_(sender),
        address_(address),
        file_(mailbox.file()),
        process_(mailbox.file(), 0, mailbox.owner()),
        pairs_(std::move(pairs)),
        memory_(std::move(memory)) {}

  const shm::Sender& sender_;
  const os::SocketAddress address_;
  const os::SharedFilePtr file_;
  shm::PeerProcess process_;
  const std::unique_ptr<memory::AccessGuard> pairs_;
  const std::unique_ptr<memory::AccessGuard> memory_;
};

}  // namespace weft::queue
