// SPDX-License-Identifier: BSD-2-Clause
// By packets or through shared memory: how does a queue pair reach its peer?
#include <utility>

#include "base/warning.h"
#include "memory_inbox.h"
#include "memory_link.h"
#include "os/interfaces.h"
#include "packet_link.h"
#include "queue/queue_pair.h"
#include "roce/route.h"
#include "target.h"

namespace weft::queue {

Status QueuePair::begin_packets() {
  roce::PacketOutput* const output =
      attachment_.packets->output(attributes_.address.remote.family());
  if (output == nullptr) return Error{EINVAL, "this host has no sockets of that address family"};
  const bool foreign = roce::is_foreign(attributes_.destination);
  auto path = std::make_shared<roce::Path>();
  path->from = attributes_.address.local;
  path->from.set_port(roce::port_of(qpn()));
  path->to = attributes_.address.remote;
  path->to.set_port(foreign ? wire::kUdpPort : roce::port_of(attributes_.destination));
  path->route = roce::route_between(path->from, path->to);
  const LinkParts parts{*output,
                        *this,
                        *memory_,
                        *target_,
                        setup_.port->stats(),
                        setup_.port->receive_buffer(),
                        setup_.selective && !foreign};
  link_ = std::make_unique<PacketLink>(setup_.type, attributes_, std::move(path), parts);
  uses_packets_ = true;
  setup_.port->count_packet_users(1);
  return {};
}

// How peers of this host find the queue pair (kDomainOfQueuePairs).
memory::RegionAttributes QueuePair::entry(bool shares) const {
  const SharedReceives* const shared = setup_.shared_by_number;
  memory::RegionAttributes entry;
  entry.domain = kDomainOfQueuePairs;
  // A peer that may have no READ outstanding has no right to any (max_dest_rd_atomic).
  const bool reads = attributes_.max_reads_of_peer != 0 || setup_.type == QpType::kUc;
  if (reads) {
    entry.access = attributes_.access;
  } else if (includes(attributes_.access, Access::kRemoteWrite)) {
    entry.access = Access::kRemoteWrite;
  }
  entry.base = QueueEntry{setup_.domain, shared != nullptr ? shared->group() : 0}.packed();
  entry.length = 1;
  entry.key = RegionKey{qpn()};
  entry.binding = attributes_.destination;
  entry.disabled = !shares;
  return entry;
}

// A barrier: when it returns no peer accesses memory through this queue pair.
void QueuePair::leave_table() {
  if (std::exchange(uses_packets_, false)) setup_.port->count_packet_users(-1);
  if (!entry_) return;
  const Status left = setup_.device->regions().remove(*std::exchange(entry_, std::nullopt));
  if (!left) warn(left.error().message);
}

// True: through shared memory. A peer of this host that cannot be reached so learns that it cannot
// reach this end, either.
Result<bool> QueuePair::begin_sharing() {
  const QpAddress& address = attributes_.address;
  const bool near =
      attachment_.memory != nullptr && !roce::is_foreign(attributes_.destination) &&
      (address.remote == address.local || os::is_local_address(address.remote.get())) &&
      attachment_.packets->output(address.remote.family()) != nullptr;
  if (!near) return false;
  auto peer = [this] {
    const MutexLock guard(setup_.port->transmit_lock());
    return attachment_.memory->peer(roce::port_of(attributes_.destination));
  }();
  auto entered = setup_.device->regions().add(entry(peer.ok()));
  if (!entered) return Error{ENOMEM, entered.error().message};
  entry_ = entered.value();
  if (!peer) return false;
  QpPort& port = *setup_.port;
  // One-sided operations are carried out by posts, without the port's lock.
  memory_.emplace(port.reader(), port.reader(), setup_.domain);
  link_ = std::make_unique<MemoryLink>(
      setup_.type, attributes_,
      MemoryParts{std::move(peer).value(), qpn(), setup_.domain, *this, *memory_, port.reader(),
                  *target_, port.stats(), setup_.device->capture(), port.sleepers()});
  return true;
}

// The peer, or the kernel, does not let this end use shared memory any more.
void QueuePair::turn_to_packets() {
  if (const Status closed = setup_.device->regions().replace(*entry_, entry(false)); !closed) {
    warn(closed.error().message);
  }
  const std::unique_ptr<Link> before = std::move(link_);
  memory_.emplace(setup_.port->reader(), setup_.port->writer(), setup_.domain);
  if (!begin_packets()) return;  // it has found sockets of this address family before
  if (state() == QpState::kReadyToSend) link_->begin_sending(attributes_);
  before->hand_over(*link_);
}

// Why a message does not come from the peer of this queue pair; 0: it does.
std::uint16_t QueuePair::refuse_sender(const MessageHead& head) const {
  const bool answers = setup_.type != QpType::kUc && setup_.type != QpType::kUd;
  const bool expected = setup_.type == QpType::kUd || attributes_.destination == head.from;
  const bool fits = expected && head.has(kUnreliable) != answers;
  return listens() && fits ? 0 : answer_of(AnswerKind::kNotThere);
}

std::uint16_t QueuePair::postpones(std::uint32_t source, const MessageHead& head) {
  setup_.port->lock().assert_held();
  if (const std::uint16_t why = refuse_sender(head); why != 0) {
    return head.has(kUnreliable) ? 0 : why;
  }
  return link_->postpones(source, head);
}

// The sender may have changed the cell since it was asked whether to take it.
std::uint16_t QueuePair::take_message(std::uint32_t source, const MessageHead& head,
                                      std::span<const std::byte> bytes) {
  setup_.port->lock().assert_held();
  if (const std::uint16_t why = refuse_sender(head); why != 0) {
    setup_.port->stats().add(Stat::kUnknownQp);
    return head.has(kUnreliable) ? 0 : why;
  }
  if (!std::exchange(communicates_, true) && setup_.type != QpType::kUd &&
      state() == QpState::kReadyToReceive) {
    raise(QpEvent::kCommunicationEstablished);
  }
  if (head.has(kLastPart)) setup_.port->stats().add(Stat::kSharedMessages);
  std::uint16_t why = 0;
  if (head.has(kInPlace)) {
    const MutexLock guard(setup_.port->transmit_lock());
    why = link_->take_message(source, head, bytes);
  } else {
    why = link_->take_message(source, head, bytes);
  }
  explain_refusal();
  target_->release();
  if (why != 0 || receive_failed_) setup_.port->touch(*this);
  return why;
}

void QueuePair::forget_source(std::uint32_t source) {
  setup_.port->lock().assert_held();
  if (link_ != nullptr) link_->forget_source(source);
}

Glance QueuePair::glance() {
  setup_.port->lock().assert_held();
  return link_ != nullptr ? link_->glance() : Glance::kIdle;
}

// Posts look whether it is watched with the send lock held.
bool QueuePair::ends_watch() {
  setup_.port->lock().assert_held();
  const MutexLock guard(send_lock_);
  watched_ = glance() != Glance::kIdle;
  return !watched_;
}

// The port has to watch before the link says whether threads sleep.
void QueuePair::begin_watch() {
  if (std::exchange(watched_, true)) return;
  PortClient& client = *this;
  setup_.port->watch(client);
}

}  // namespace weft::queue
