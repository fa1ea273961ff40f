// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send messages that may be lost, to one peer or to a multicast group?
#include <algorithm>

#include "messaging/endpoint.h"
#include "os/user_memory.h"

namespace weft::messaging {
namespace {

// Interval between two lookups of an absent peer, so that sends to one stay cheap.
constexpr auto kLookAgain = std::chrono::milliseconds(20);
// No address vector grows to this number: a peer that is used as a group is refused.
constexpr PeerIndex kFirstGroup = PeerIndex{1} << 62;

constexpr std::uint64_t kDatagram = device::kSend | device::kMessage;

// A packet of the network carries that much of the data.
constexpr std::uint64_t kData = 0xFFFF'FFFF;

// It may linger where its completion will be read: that drives what it lingers in.
void make_datagram(SendCall& call, std::uint64_t group, const device::CompletionQueue* reports) {
  call.operation = link::Operation::kDatagram;
  call.data &= kData;
  call.may_linger = reports != nullptr && call.report.wanted();
  call.tag = group;
  call.must_copy = true;
  call.until_delivered = false;
}

}  // namespace

// The way to a peer. Null with EINVAL for an unknown number, with EHOSTUNREACH for an absent peer.
link::Flow* Endpoint::look_for(PeerIndex index, int& error) {
  const auto entry = setup_.addresses->find(index);
  error = entry ? EHOSTUNREACH : EINVAL;
  if (!entry) return nullptr;
  if (index >= peers_.size()) peers_.resize(index + 1);
  Peer& peer = peers_[index];
  if (peer.flow != nullptr) return peer.flow.get();
  const os::Time now = os::coarse_now();
  if (peer.stamp == entry->stamp && now < peer.give_up) return nullptr;
  peer.stamp = entry->stamp;
  peer.give_up = now + kLookAgain;
  auto flow = port_->connect(entry->address);
  if (!flow) return nullptr;
  peer.flow = std::move(flow).value();
  return peer.flow.get();
}

// False when it is to be sent later.
bool Endpoint::hand_over(link::Flow& flow, SendCall& call) {
  switch (flow.send(call).state) {
    case link::Outcome::State::kDone:
      if (call.may_linger && flow.ready()) setup_.bindings.tx->ask_for_progress();
      return true;
    case link::Outcome::State::kPending:  // not of a message that must be copied
      return true;
    case link::Outcome::State::kAgain:
      ++drops_.no_room;
      return true;
    case link::Outcome::State::kTooSoon:
      return false;
    case link::Outcome::State::kFailed:
      ++drops_.no_peer;
      if (call.tag == 0) lose(peers_[call.peer]);
      return true;
  }
  return true;
}

int Endpoint::send_datagram(SendCall& call) {
  const Section section(lock_);
  if (!may_report(call.report)) return EAGAIN;
  // One that only sends has to notice, too, that a peer has died: its queue fills silently.
  if (tick()) [[unlikely]]
    check_peers();
  int error = 0;
  link::Flow* flow = flow_to(call.peer, error);
  if (error == EINVAL) return EINVAL;
  if (!os::readable(call.pieces)) return fail(call.report, kDatagram, Event::kSend, EFAULT, 0);
  make_datagram(call, 0, setup_.bindings.tx);
  if (flow == nullptr) {
    ++drops_.no_peer;
  } else if (!hand_over(*flow, call)) {
    return EAGAIN;
  }
  complete(call.report, kDatagram, Event::kSend);
  return 0;
}

int Endpoint::send_to_group(SendCall& call) {
  const Section section(lock_);
  if (!may_report(call.report)) return EAGAIN;
  if (tick()) [[unlikely]]
    check_peers();
  Group* group = find_group(call.peer);
  if (group == nullptr) return EINVAL;
  if (group->flow == nullptr) return EACCES;
  if (!os::readable(call.pieces)) {
    return fail(call.report, kDatagram | device::kMulticast, Event::kSend, EFAULT, 0);
  }
  make_datagram(call, group->number, setup_.bindings.tx);
  if (!hand_over(*group->flow, call)) return EAGAIN;
  complete(call.report, kDatagram | device::kMulticast, Event::kSend);
  return 0;
}

Group* Endpoint::find_group(PeerIndex peer) {
  if (peer < kFirstGroup || peer - kFirstGroup >= groups_.size()) return nullptr;
  return groups_[peer - kFirstGroup].get();
}

// True for what is sent to this endpoint alone (0), and for groups that it belongs to: a sender may
// not have noticed yet that it left.
bool Endpoint::hears(std::uint64_t group) const {
  return group == 0 || std::any_of(groups_.begin(), groups_.end(), [&](const auto& joined) {
           return joined != nullptr && joined->number == group && joined->membership != nullptr;
         });
}

Result<PeerIndex> Endpoint::join(const os::SocketAddress& address, bool sends, bool receives) {
  const ControlGuard guard(lock_);
  auto group = std::make_unique<Group>();
  group->number = link::group_number(address);
  const bool joined = std::any_of(groups_.begin(), groups_.end(), [&](const auto& other) {
    return other != nullptr && other->number == group->number;
  });
  if (joined) return Error{EADDRINUSE, "the endpoint has joined " + address.text() + " already"};
  if (sends) {
    auto flow = port_->connect_group(address);
    if (!flow) return flow.error();
    group->flow = std::move(flow).value();
  }
  if (receives) {
    auto membership = port_->join(address);
    if (!membership) return membership.error();
    group->membership = std::move(membership).value();
  }
  auto place = std::find(groups_.begin(), groups_.end(), nullptr);
  if (place == groups_.end()) place = groups_.insert(place, nullptr);
  *place = std::move(group);
  return kFirstGroup + static_cast<PeerIndex>(place - groups_.begin());
}

void Endpoint::leave(PeerIndex group) {
  const ControlGuard guard(lock_);
  if (find_group(group) != nullptr) groups_[group - kFirstGroup].reset();
}

std::string Endpoint::dropped_packets() const {
  const ControlGuard guard(lock_);
  return port_->dropped_packets();
}

Drops Endpoint::drops() const {
  const ControlGuard guard(lock_);
  Drops drops = drops_;
  drops.lost = port_->inbox().lost();
  return drops;
}

}  // namespace weft::messaging
