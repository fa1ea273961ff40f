// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send messages that may be lost, to one peer or to a multicast group?
#include "messaging/datagram_service.h"

#include <algorithm>
#include <utility>

#include "base/warning.h"
#include "messaging/message_sender.h"
#include "messaging/peer_flows.h"
#include "os/fd.h"
#include "os/user_memory.h"

namespace weft::messaging {
namespace {

// No address vector grows to this number: a peer that is used as a group is refused.
constexpr PeerIndex kFirstGroup = PeerIndex{1} << 62;

constexpr std::uint64_t kDatagram = device::kSend | device::kMessage;

// A packet of the network carries that much of the data.
constexpr std::uint64_t kData = 0xFFFF'FFFF;

// It may linger where its completion will be read: that drives what it lingers in.
void make_datagram(SendCall& call, std::uint64_t group, const device::CompletionQueue* reports) {
  call.operation = link::MessageOperation::kDatagram;
  call.data &= kData;
  call.may_linger = reports != nullptr && call.report.wanted();
  call.tag = group;
  call.must_copy = true;
  call.until_delivered = false;
}

}  // namespace

void DatagramService::hand_over(link::Flow& flow, const SendCall& call) {
  const link::Outcome outcome = flow.send(call);
  switch (outcome.state) {
    case link::Outcome::State::kDone:
      if (call.may_linger && flow.ready()) reports_->ask_for_progress();
      break;
    case link::Outcome::State::kPending:  // not of a message that must be copied
      break;
    case link::Outcome::State::kAgain:
      port_.stats().add(Stat::kDatagramsNoRoom);
      break;
    case link::Outcome::State::kFailed:
      count_lost(outcome.error);
      if (call.tag == 0 && !os::lacks_room(outcome.error)) flows_.lose(call.peer);
      break;
  }
}

void DatagramService::count_lost(int error) {
  if (!os::lacks_room(error)) return port_.stats().add(Stat::kDatagramsNoPeer);
  port_.stats().add(Stat::kDatagramsNoMemory);
  if (!std::exchange(warned_, true))
    warn("shared memory has no room for the queue of a peer: datagrams are lost");
}

int DatagramService::send(SendCall& call) {
  if (!sender_.may_start(call.report)) return EAGAIN;
  int error = 0;
  link::Flow* flow = flows_.find(call.peer, error);
  if (error == EINVAL) return EINVAL;
  if (!os::readable(call.sges))
    return sender_.fail(call.report, kDatagram, CounterEvent::kSend, EFAULT, 0);
  make_datagram(call, 0, reports_);
  if (flow == nullptr) {
    count_lost(error);
  } else {
    hand_over(*flow, call);
  }
  sender_.complete(call.report, kDatagram, CounterEvent::kSend);
  return 0;
}

int DatagramService::send_to_group(SendCall& call) {
  if (!sender_.may_start(call.report)) return EAGAIN;
  Group* group = find_group(call.peer);
  if (group == nullptr) return EINVAL;
  if (group->flow == nullptr) return EACCES;
  if (!os::readable(call.sges)) {
    return sender_.fail(call.report, kDatagram | device::kMulticast, CounterEvent::kSend, EFAULT,
                        0);
  }
  make_datagram(call, group->number, reports_);
  hand_over(*group->flow, call);
  sender_.complete(call.report, kDatagram | device::kMulticast, CounterEvent::kSend);
  return 0;
}

DatagramService::Group* DatagramService::find_group(PeerIndex peer) {
  if (peer < kFirstGroup || peer - kFirstGroup >= groups_.size()) return nullptr;
  return groups_[peer - kFirstGroup].get();
}

void DatagramService::check_groups() {
  for (const auto& group : groups_) {
    if (group != nullptr && group->flow != nullptr) group->flow->check_peer(sender_);
  }
}

bool DatagramService::accepts(std::uint64_t group) const {
  return group == 0 || std::any_of(groups_.begin(), groups_.end(), [&](const auto& joined) {
           return joined != nullptr && joined->number == group && joined->membership != nullptr;
         });
}

Result<PeerIndex> DatagramService::join(const os::SocketAddress& address, bool sends,
                                        bool receives) {
  auto group = std::make_unique<Group>();
  group->number = link::group_number(address);
  const bool joined = std::any_of(groups_.begin(), groups_.end(), [&](const auto& other) {
    return other != nullptr && other->number == group->number;
  });
  if (joined) return Error{EADDRINUSE, "the endpoint has joined " + address.text() + " already"};
  if (sends) {
    auto flow = port_.connect_group(address);
    if (!flow) return flow.error();
    group->flow = std::move(flow).value();
  }
  if (receives) {
    auto membership = port_.join(address);
    if (!membership) return membership.error();
    group->membership = std::move(membership).value();
  }
  auto place = std::find(groups_.begin(), groups_.end(), nullptr);
  if (place == groups_.end()) place = groups_.insert(place, nullptr);
  *place = std::move(group);
  return kFirstGroup + static_cast<PeerIndex>(place - groups_.begin());
}

void DatagramService::leave(PeerIndex group) {
  if (find_group(group) != nullptr) groups_[group - kFirstGroup].reset();
}

}  // namespace weft::messaging
