// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send management datagrams to another one of its host?
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "link/flow.h"
#include "link_shm/layout.h"
#include "link_shm/peer_mailbox.h"
#include "link_shm/peer_process.h"

namespace weft::shm {

// Where a management datagram lies in its receiver's mailbox.
struct MadPlace {
  std::uint32_t cell = 0;
  std::uint64_t turn = 0;  // of the cell while it holds that datagram
};

// The way of management datagrams to one mailbox. Nothing is lost on it, but the receiver may end
// before it reads. One thread.
class MadSender {
 public:
  // Finds a mailbox that takes management datagrams. Errors: ECONNREFUSED when that endpoint takes
  // none; those of PeerMailbox::open().
  static Result<std::unique_ptr<MadSender>> open(const Sender& sender,
                                                 const os::SocketAddress& peer);
  MadSender(const MadSender&) = delete;
  MadSender& operator=(const MadSender&) = delete;

  // Errors: EAGAIN when the receiver has to read others first, EMSGSIZE beyond kLongestMad bytes.
  Result<MadPlace> send(std::span<const std::byte> bytes);
  // The receiver has read the datagram.
  bool was_read(const MadPlace& place) const;
  // Of the receiver: alive, left or died.
  link::PeerState peer_state();
  pid_t process() const { return mailbox_.owner(); }

 private:
  MadSender(const Sender& sender, PeerMailbox mailbox);
  MadCell& cell(std::uint32_t number) const {
    return mailbox_.memory().at<MadCell>(kMadsAt)[number];
  }
  bool fill(std::uint32_t number, std::span<const std::byte> bytes, MadPlace& place);

  const Sender& sender_;
  const PeerMailbox mailbox_;
  PeerProcess owner_;
  std::uint32_t next_;  // cell that the next datagram is tried in first
};

}  // namespace weft::shm
