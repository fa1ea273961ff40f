// SPDX-License-Identifier: BSD-2-Clause
// Which flow leads to a peer, and does the peer still live?
#pragma once

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/port.h"
#include "link/flow.h"
#include "messaging/address_vector.h"
#include "messaging/busy_flows.h"
#include "messaging/endpoint_setup.h"
#include "messaging/sleepers.h"
#include "os/clock.h"

namespace weft::messaging {

class Endpoint;
class SharedPort;

// In place of EAGAIN: the endpoint is polled before the caller is told to call again.
inline constexpr int kPollThenAgain = -EAGAIN;

// The flows of an endpoint, by the numbers of its address vector. They are opened at the first use;
// a number that was taken out of the address vector, or means another address now, loses its flow.
// Such a flow lives on until the peer has taken in all messages, and is used again if the address
// comes back before: a new flow could overtake it. A connected endpoint has one, for whatever
// number. Used with the endpoint's lock held.
class PeerFlows {
 public:
  // Everything outlives the table, which is that of `endpoint`. `sink` hears how pending requests
  // end.
  PeerFlows(const EndpointSetup& setup, SharedPort& port, Endpoint& endpoint, link::FlowSink& sink);

  // The flow to a peer, which may stay pending; null without one, with the reason in `error`:
  // EINVAL for an unknown number; ENOSPC where datagrams find no room in shared memory;
  // EHOSTUNREACH for a peer that is not there, and, unless datagrams
  // are sent, has not come within Options::connect_timeout; kPollThenAgain until then; ENOTCONN and
  // ESHUTDOWN before and after the connection of a connected endpoint; others of
  // device::Port::connect().
  link::Flow* find(PeerIndex peer, int& error) {
    peer &= mask_;
    if (version_ == addresses_.version() && peer < peers_.size() && peers_[peer].flow != nullptr)
        [[likely]] {
      return peers_[peer].flow.get();
    }
    return connect(peer, error);
  }
  // For a flow that has answered ECONNRESET: gives it up, and finds the flow to the endpoint that
  // has taken the peer's address; null without one.
  link::Flow* find_successor(PeerIndex peer);
  // Gives up the flow to a peer, if there is one: what is pending there is reported.
  void lose(PeerIndex peer) { lose(peers_[peer]); }
  // How many numbers have been used.
  std::size_t size() const { return peers_.size(); }
  // How many of them have a flow.
  std::size_t open() const {
    const auto open = [](const Peer& peer) { return peer.flow != nullptr; };
    return static_cast<std::size_t>(std::count_if(peers_.begin(), peers_.end(), open));
  }

  // The flow of a connected endpoint, or null.
  link::Flow* only() const { return peers_.empty() ? nullptr : peers_[0].flow.get(); }
  // Makes `flow` that one: find() answers from now on.
  void set_only(std::shared_ptr<link::Flow> flow);
  // Gives it up: find() answers ESHUTDOWN.
  void end_only();

  // Remembers that something is pending on a flow of this table.
  void add_busy(link::Flow& flow) { busy_.add(flow, sink_); }
  // Withdraws the send of `cookie`; false when it goes on (link::Flow::cancel).
  bool cancel(void* cookie) { return busy_.cancel(cookie, sink_); }
  // Ends all flows; nothing of them is reported. The port goes on for other endpoints.
  void clear() {
    busy_.remove_all(sink_);
    peers_.clear();
    left_.clear();
  }
  // Has the ends of the peers' processes wake sleepers. False when one has ended already.
  bool watch_processes();

  // Asks whether the peers still live, and gives up the flows to those that do not.
  void check_peers();
  // Remembers that the peer with that lowest number has died, for settle_deaths().
  void add_death(PeerIndex peer);
  // True when deaths have not been settled.
  bool has_deaths() const { return !died_.empty(); }
  // Calls settle(number, whether a flow leads to a successor) for each death, unless it is not
  // known yet whether that flow leads to a living process.
  template <class Settle>
  void settle_deaths(Settle settle) {
    std::erase_if(died_, [&](PeerIndex index) {
      const link::Flow* const flow = index < peers_.size() ? peers_[index].flow.get() : nullptr;
      if (flow != nullptr && !flow->reached()) return false;
      settle(index, flow != nullptr);
      return true;
    });
  }
  // Settles them all by doing nothing.
  void forget_deaths() { died_.clear(); }

 private:
  struct Peer {
    std::shared_ptr<link::Flow> flow;
    std::uint64_t stamp = 0;    // of the entry that it was opened for
    os::SocketAddress address;  // of that entry
    // When an absent peer counts as unreachable; 0: not tried. For datagrams: the time of the next
    // lookup.
    os::Time give_up{};
    bool died = false;  // the last process at this address, and no other one was found since
    int absence = EHOSTUNREACH;  // for datagrams: why the last lookup found none
  };

  // The flow to an address that was taken out of the address vector.
  struct LeftFlow {
    std::shared_ptr<link::Flow> flow;
    os::SocketAddress address;
  };

  link::Flow* connect(PeerIndex index, int& error);
  link::Flow* connect_reliably(Peer& peer, const AddressVector::AddressEntry& entry, int& error);
  link::Flow* look_for(Peer& peer, const AddressVector::AddressEntry& entry, int& error);
  Status open(Peer& peer, const AddressVector::AddressEntry& entry);
  std::shared_ptr<link::Flow> take_left(const os::SocketAddress& address);
  void follow_addresses();
  void leave(Peer& peer);
  void lose(Peer& peer);
  void lose(PeerIndex number, link::PeerState state);

  const AddressVector& addresses_;
  const EndpointSetup& setup_;
  SharedPort& shared_;
  Endpoint& endpoint_;
  device::Port& port_;
  Sleepers& sleepers_;
  BusyFlows& busy_;
  link::FlowSink& sink_;
  std::vector<Peer> peers_;     // by number
  std::vector<LeftFlow> left_;  // nothing is pending on them
  const PeerIndex mask_;       // 0 for a connected endpoint: whatever its callers say, it is peer 0
  std::uint64_t version_ = 0;  // of the address vector when it was last looked at
  int refusal_ = ENOTCONN;     // what a connected endpoint answers without a flow
  std::vector<PeerIndex> died_;  // peers whose end has not been acted upon
};

}  // namespace weft::messaging
