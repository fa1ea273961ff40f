// SPDX-License-Identifier: BSD-2-Clause
// What is remembered of an endpoint that the recorded one speaks to?
#pragma once

#include <memory>
#include <span>

#include "capture/recorder.h"
#include "dialogue.h"
#include "ends.h"

namespace weft::capture {

// One peer, or a multicast group.
class Recorder::Peer {
 public:
  explicit Peer(const Ends& ends) : ends_(ends) {}
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // False when nothing is to be written down (any more).
  bool wanted() const { return ends_.tap.takes(); }
  // What the recorded endpoint asks of the peer, and the other way round. The first use of each is
  // written down as the greeting that it would have been.
  Dialogue& mine() { return have(mine_, true); }
  Dialogue& theirs() { return have(theirs_, false); }
  // The flow that the recorded endpoint asked for, or that of the peer, ends.
  void part(bool mine);
  // A number by which the peer may name an operation.
  std::uint32_t new_exchange() { return ++exchange_ & rdm::kNumberBits; }

  // A datagram, sent or received. It carries the lower half of `data`.
  void datagram(bool sent, std::span<const LocalRange> pieces, bool has_data, std::uint64_t data);
  // The same of one that the peer sent to a group.
  void group_datagram(const os::SocketAddress& group, std::span<const LocalRange> pieces,
                      bool has_data, std::uint64_t data);

 private:
  Dialogue& have(std::unique_ptr<Dialogue>& dialogue, bool asks);

  Ends ends_;
  std::unique_ptr<Dialogue> mine_;
  std::unique_ptr<Dialogue> theirs_;
  std::uint32_t exchange_ = 0;
};

}  // namespace weft::capture
