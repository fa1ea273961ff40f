// SPDX-License-Identifier: BSD-2-Clause
// How does a queue pair meet those of its host in shared memory?
#include <utility>

#include "base/warning.h"
#include "memory_inbox.h"
#include "memory_link.h"
#include "os/interfaces.h"
#include "queue/queue_pair.h"
#include "roce/route.h"
#include "target.h"

namespace weft::queue {

// How peers of this host find the queue pair (kDomainOfQueuePairs).
memory::RegionAttributes QueuePair::entry() const {
  memory::RegionAttributes entry;
  entry.domain = kDomainOfQueuePairs;
  entry.access = attributes_.access;
  entry.base = setup_.domain.v;
  entry.length = 1;
  entry.key = RegionKey{qpn()};
  entry.binding = attributes_.destination;
  return entry;
}

// A barrier: when it returns no peer accesses memory through this queue pair.
void QueuePair::leave_table() {
  if (std::exchange(uses_packets_, false)) setup_.port->count_packet_users(-1);
  if (!entry_) return;
  const Status left = setup_.device->regions().remove(*std::exchange(entry_, std::nullopt));
  if (!left) warn(left.error().message);
}

// Through shared memory, if the peer can be reached so; else by packets.
bool QueuePair::begin_sharing() {
  const bool near = setup_.type == QpType::kRc && attachment_.memory != nullptr &&
                    !roce::is_foreign(attributes_.destination) &&
                    os::is_local_address(attributes_.address.remote.get());
  if (!near) return false;
  auto peer = attachment_.memory->peer(roce::port_of(attributes_.destination));
  if (!peer) return false;
  auto entered = setup_.device->regions().add(entry());
  if (!entered) return false;
  entry_ = entered.value();
  // One-sided operations are carried out by posts, without the port's lock.
  memory::AccessGuard& reader = setup_.port->reader();
  memory_.emplace(reader, reader, setup_.domain);
  link_ = std::make_unique<MemoryLink>(
      attributes_, MemoryParts{std::move(peer).value(), qpn(), setup_.domain, *this, *memory_,
                               reader, *target_});
  return true;
}

std::uint16_t QueuePair::postpones(std::uint32_t source, const MessageHead& head) {
  setup_.port->lock().assert_held();
  const bool from_peer = listens() && attributes_.destination == head.from;
  return from_peer ? link_->postpones(source, head) : answer_of(AnswerKind::kNotThere);
}

std::uint16_t QueuePair::take_message(std::uint32_t source, const MessageHead& head,
                                      std::span<const std::byte> bytes) {
  setup_.port->lock().assert_held();
  // The sender may have changed the cell since.
  if (!listens() || attributes_.destination != head.from) return answer_of(AnswerKind::kNotThere);
  if (!std::exchange(communicates_, true) && state() == QpState::kReadyToReceive) {
    raise(QpEvent::kCommunicationEstablished);
  }
  const std::uint16_t why = link_->take_message(source, head, bytes);
  explain_refusal();
  target_->release();
  return why;
}

bool QueuePair::watches() {
  setup_.port->lock().assert_held();
  const MutexLock guard(send_lock_);
  watched_ = link_ != nullptr && link_->watches();
  return watched_;
}

void QueuePair::set_asleep(bool asleep) {
  setup_.port->lock().assert_held();
  const MutexLock guard(send_lock_);
  if (link_ != nullptr) link_->set_asleep(asleep);
}

}  // namespace weft::queue
