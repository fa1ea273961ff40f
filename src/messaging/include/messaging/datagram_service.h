// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send messages that may be lost, to one peer or to a multicast group?
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "base/stats.h"
#include "device/completion_queue.h"
#include "device/port.h"
#include "link/membership.h"
#include "messaging/calls.h"

namespace weft::messaging {

class PeerFlows;
class MessageSender;

// Sends datagrams and belongs to multicast groups, for an endpoint of the service kDatagram. Used
// with the endpoint's lock held.
class DatagramService {
 public:
  // Everything outlives it; `reports` is the completion queue of sends, or null.
  DatagramService(device::CompletionQueue* reports, device::Port& port, PeerFlows& flows,
                  MessageSender& sender)
      : reports_(reports), port_(port), flows_(flows), sender_(sender) {}

  // As the functions of Endpoint.
  int send(SendCall& call);
  int send_to_group(SendCall& call);
  Result<PeerIndex> join(const os::SocketAddress& address, bool sends, bool receives);
  void leave(PeerIndex group);
  // Notices members of groups that have gone.
  void check_groups();
  // True for a datagram to this endpoint alone (0), and for groups that it belongs to: a sender may
  // not have noticed yet that it left.
  bool accepts(std::uint64_t group) const;
  // Counts a datagram that arrived and is dropped.
  void count_unwanted() { port_.stats().add(Stat::kDatagramsUnwanted); }

 private:
  // A multicast group that the endpoint joined.
  struct Group {
    std::uint64_t number = 0;          // link::group_number()
    link::Membership membership;       // null: it receives nothing
    std::unique_ptr<link::Flow> flow;  // null: it sends nothing
  };

  void hand_over(link::Flow& flow, const SendCall& call);
  void count_lost(int error);
  Group* find_group(PeerIndex peer);

  device::CompletionQueue* const reports_;
  device::Port& port_;
  PeerFlows& flows_;
  MessageSender& sender_;
  std::vector<std::unique_ptr<Group>> groups_;  // in the order of their numbers; null: free
  bool warned_ = false;                         // that shared memory has no room
};

}  // namespace weft::messaging
