// SPDX-License-Identifier: BSD-2-Clause
// How does a port reach the memory and the mailbox of a process of its host?
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "device/device.h"
#include "link_shm/peer_mailbox.h"
#include "link_shm/peer_process.h"
#include "link_shm/peer_slot.h"
#include "link_shm/ring_writer.h"
#include "memory/access_guard.h"
#include "memory_message.h"
#include "os/socket_address.h"

namespace weft::queue {

// Each queue pair that peers of its host may access is registered in the region table of its
// process, in this domain, which no program has: the key is its QPN, the rights are those of
// qp_access_flags, the binding is the QPN of its peer, and the base is a QueueEntry. So the barrier
// of a region that closes is that of a queue pair that leaves RTR or RTS. The entry of a queue pair
// that its peer reaches by packets only is disabled. A shared receive queue of an XRC domain has an
// entry, too, with all rights and no binding.
inline constexpr DomainId kDomainOfQueuePairs{~0U};
constexpr RegionKey key_of_shared(std::uint32_t number) {
  return RegionKey{std::uint64_t{1} << 32 | number};
}

// Where the memory is that such an entry gives access to.
struct QueueEntry {
  DomainId domain;          // of protection; that of an XRC target does not count
  std::uint32_t group = 0;  // the number of the XRC domain within the process, or 0

  std::uint64_t packed() const { return std::uint64_t{group} << 32 | domain.v; }
  static QueueEntry of(const void* base) {
    const auto packed = reinterpret_cast<std::uintptr_t>(base);
    return {DomainId{static_cast<std::uint32_t>(packed)}, static_cast<std::uint32_t>(packed >> 32)};
  }
};

// Makes the next cell of a ring, whose payload is written, visible as that message.
void publish(shm::RingWriter& ring, const MessageHead& head, shm::CellKind kind,
             std::size_t inline_length);

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
  // The ring for datagrams from all queue pairs of this number to all of that one. Errors: as
  // claim().
  struct Datagrams {
    explicit Datagrams(std::unique_ptr<shm::PeerSlot> claimed)
        : slot(std::move(claimed)), ring(*slot) {}
    std::unique_ptr<shm::PeerSlot> slot;
    shm::RingWriter ring;
    Time blocked_since = Time::max();  // no room since then
  };
  Result<Datagrams*> datagrams();
  // Two users of its region table: an entry of a queue pair and a region stay pinned for a copy.
  memory::AccessGuard& pairs() { return *pairs_; }
  memory::AccessGuard& memory() { return *memory_; }

 private:
  NearPeer(const shm::Sender& sender, const os::SocketAddress& address,
           const shm::PeerMailbox& mailbox, std::unique_ptr<memory::AccessGuard> pairs,
           std::unique_ptr<memory::AccessGuard> memory)
      : sender_(sender),
        datagram_sender_(sender),
        address_(address),
        file_(mailbox.file()),
        process_(mailbox.file(), 0, mailbox.owner()),
        pairs_(std::move(pairs)),
        memory_(std::move(memory)) {
    datagram_sender_.geometry = kDatagramRings;
  }
  static constexpr shm::Geometry kDatagramRings{128, 1, 64 * 1024};

  const shm::Sender& sender_;
  shm::Sender datagram_sender_;
  const os::SocketAddress address_;
  const os::SharedFilePtr file_;
  shm::PeerProcess process_;
  const std::unique_ptr<memory::AccessGuard> pairs_;
  const std::unique_ptr<memory::AccessGuard> memory_;
  std::unique_ptr<Datagrams> datagrams_;
};

}  // namespace weft::queue
