// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send messages that may be lost, to one peer or to a multicast group?
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "device/completion_queue.h"
#include "device/port.h"
#include "link/membership.h"
#include "messaging/calls.h"

namespace weft::messaging {

class PeerFlows;
class MessageSender;

// Datagrams that an endpoint did not deliver.
struct Drops {
  std::uint64_t no_peer = 0;  // sent to a peer that was not there
  std::uint64_t no_room = 0;  // sent to a peer whose queue was full
  // Arrived when as much was kept as is kept before a receive, or without room for its report.
  std::uint64_t unwanted = 0;
  std::uint64_t lost = 0;  // came to a link that was full, or did not take them
};

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
  Drops drops() const;
  // Notices members of groups that have gone.
  void check_groups();
  // True for a datagram to this endpoint alone (0), and for groups that it belongs to: a sender may
  // not have noticed yet that it left.
  bool admits(std::uint64_t group) const;
  // Counts a datagram that arrived and is dropped.
  void count_unwanted() { ++drops_.unwanted; }

 private:
  // A multicast group that the endpoint joined.
  struct Group {
    std::uint64_t number = 0;          // link::group_number()
    link::Membership membership;       // null: it receives nothing
    std::unique_ptr<link::Flow> flow;  // null: it sends nothing
  };

  bool hand_over(link::Flow& flow, SendCall& call);
  Group* find_group(PeerIndex peer);

  device::CompletionQueue* const reports_;
  device::Port& port_;
  PeerFlows& flows_;
  MessageSender& sender_;
  std::vector<std::unique_ptr<Group>> groups_;  // in the order of their numbers; null: free
  Drops drops_;
};

}  // namespace weft::messaging
