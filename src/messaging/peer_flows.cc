// SPDX-License-Identifier: BSD-2-Clause
// Which flow leads to a peer, and does the peer still live?
#include "messaging/peer_flows.h"

#include <utility>

#include "device/device.h"
#include "messaging/shared_port.h"
#include "os/fd.h"

namespace weft::messaging {
namespace {

// Interval between two lookups of an absent peer of datagrams, so that sends to one stay cheap.
constexpr auto kLookAgain = std::chrono::milliseconds(20);

}  // namespace

PeerFlows::PeerFlows(const EndpointSetup& setup, SharedPort& port, Endpoint& endpoint,
                     link::FlowSink& sink)
    : addresses_(*setup.addresses),
      setup_(setup),
      shared_(port),
      endpoint_(endpoint),
      port_(*port.main().port),
      sleepers_(port.sleepers()),
      busy_(port.busy()),
      sink_(sink),
      mask_(setup.connection == nullptr ? ~PeerIndex{0} : 0) {
  // The one peer of a connected endpoint has no entry there.
  if (setup.connection != nullptr) version_ = addresses_.version();
}

link::Flow* PeerFlows::connect(PeerIndex index, int& error) {
  if (setup_.connection != nullptr) {
    error = refusal_;
    return nullptr;
  }
  follow_addresses();
  const auto entry = addresses_.find(index);
  if (!entry) {
    error = EINVAL;
    return nullptr;
  }
  if (index >= peers_.size()) peers_.resize(index + 1);
  Peer& peer = peers_[index];
  if (peer.flow != nullptr) return peer.flow.get();
  if (setup_.service == link::Service::kDatagram) return look_for(peer, *entry, error);
  return connect_reliably(peer, *entry, error);
}

link::Flow* PeerFlows::connect_reliably(Peer& peer, const AddressVector::AddressEntry& entry,
                                        int& error) {
  const Status found = open(peer, entry);
  if (found.ok()) return peer.flow.get();
  // Programs may start in any order: a peer that is not there may still come.
  // EPERM may mean that its process is ending, and another one may take its address.
  const int reason = found.error().code;
  const bool may_come = reason == ENOENT || reason == EPERM;
  error = reason == ENOENT ? EHOSTUNREACH : reason;
  if (!may_come) return nullptr;
  if (peer.died && peer.stamp == entry.stamp) {
    error = EHOSTUNREACH;
    return nullptr;
  }
  const os::Time now = os::coarse_now();
  if (peer.give_up == os::Time{} || peer.stamp != entry.stamp) {
    peer.give_up = now + setup_.options->connect_timeout;
    peer.stamp = entry.stamp;
  }
  if (now < peer.give_up) {
    error = kPollThenAgain;
  } else {
    peer.give_up = {};
  }
  return nullptr;
}

// Datagrams to an absent peer are dropped.
link::Flow* PeerFlows::look_for(Peer& peer, const AddressVector::AddressEntry& entry, int& error) {
  const os::Time now = os::coarse_now();
  error = peer.absence;
  if (peer.stamp == entry.stamp && now < peer.give_up) return nullptr;
  peer.stamp = entry.stamp;
  peer.give_up = now + kLookAgain;
  auto flow = port_.connect(entry.address);
  if (!flow) {
    error = peer.absence = os::lacks_room(flow.error().code) ? ENOSPC : EHOSTUNREACH;
    return nullptr;
  }
  peer.flow = std::move(flow).value();
  return peer.flow.get();
}

link::Flow* PeerFlows::find_successor(PeerIndex peer) {
  peer &= mask_;
  const link::PeerState state = peers_[peer].flow->check_peer(sink_);
  lose(peer, state);
  if (state == link::PeerState::kRefuses || setup_.connection != nullptr) return nullptr;
  const auto entry = addresses_.find(peer);
  if (!entry) return nullptr;
  return open(peers_[peer], *entry).ok() ? peers_[peer].flow.get() : nullptr;
}

Status PeerFlows::open(Peer& peer, const AddressVector::AddressEntry& entry) {
  peer.flow = take_left(entry.address);
  if (peer.flow == nullptr) {
    auto flow = port_.connect(entry.address);
    if (!flow) return flow.error();
    peer.flow = std::move(flow).value();
  }
  peer.address = entry.address;
  if (peer.died && peer.stamp == entry.stamp) peer.flow->suspect();
  peer.stamp = entry.stamp;
  peer.give_up = {};
  if (sleepers_.count() > 0 && !sleepers_.watch(peer.flow->process())) sleepers_.wake();
  return {};
}

// The one that was left last, unless another endpoint has the address by now.
std::shared_ptr<link::Flow> PeerFlows::take_left(const os::SocketAddress& address) {
  const auto left = std::find_if(left_.rbegin(), left_.rend(),
                                 [&](const LeftFlow& each) { return each.address == address; });
  if (left == left_.rend()) return nullptr;
  const std::shared_ptr<link::Flow> flow = std::move(left->flow);
  left_.erase(std::next(left).base());
  return flow->check_peer(sink_) == link::PeerState::kAlive ? flow : nullptr;
}

void PeerFlows::follow_addresses() {
  const std::uint64_t version = addresses_.version();
  if (version == version_) return;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].flow == nullptr) continue;
    const auto entry = addresses_.find(i);
    if (!entry || entry->stamp != peers_[i].stamp) leave(peers_[i]);
  }
  version_ = version;
}

void PeerFlows::leave(Peer& peer) {
  if (peer.flow->busy() || peer.flow->settled()) return lose(peer);
  busy_.remove(*peer.flow);
  left_.push_back({std::move(peer.flow), peer.address});
}

void PeerFlows::set_only(std::shared_ptr<link::Flow> flow) {
  peers_.resize(1);
  peers_[0].flow = std::move(flow);
  refusal_ = ESHUTDOWN;  // the flow may break before the end of the connection is told
}

void PeerFlows::end_only() {
  if (!peers_.empty()) lose(peers_[0]);
  refusal_ = ESHUTDOWN;
}

void PeerFlows::add_death(PeerIndex peer) {
  died_.push_back(peer);
  shared_.visit(endpoint_);
}

bool PeerFlows::watch_processes() {
  bool all = true;
  for (const Peer& peer : peers_) {
    if (peer.flow != nullptr && !sleepers_.watch(peer.flow->process())) all = false;
  }
  return all;
}

void PeerFlows::lose(Peer& peer) {
  if (peer.flow == nullptr) return;
  peer.flow->give_up(sink_);
  busy_.remove(*peer.flow);
  peer.flow.reset();
}

void PeerFlows::lose(PeerIndex number, link::PeerState state) {
  lose(peers_[number]);
  if (state != link::PeerState::kDied) return;
  peers_[number].died = true;
  // It may have died before it sent anything that would have made it a source.
  const PeerIndex index = addresses_.canonical(number);
  if (index != kNoPeer) add_death(index);
  setup_.device->sweep_up();
}

void PeerFlows::check_peers() {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].flow == nullptr) continue;
    const link::PeerState state = peers_[i].flow->check_peer(sink_);
    if (state == link::PeerState::kAlive) {
      if (peers_[i].flow->reached()) peers_[i].died = false;
      continue;
    }
    lose(i, state);
  }
  std::erase_if(left_, [this](const LeftFlow& left) {
    return left.flow->settled() || left.flow->check_peer(sink_) != link::PeerState::kAlive;
  });
}

}  // namespace weft::messaging
