// SPDX-License-Identifier: BSD-2-Clause
// How do messages through shared memory reach the queue pairs of a UDP number?
#include "memory_inbox.h"

#include <algorithm>
#include <utility>

namespace weft::queue {
namespace {

// The rings towards one queue pair: with the header 40 KiB, of which the 16 KiB of the bulk ring
// get memory with the first message that is longer than a cell.
constexpr shm::Geometry kRings{128, 1, 16 * 1024};
// Parts of 256 KiB, read from the memory of one sender, before others have their turn.
constexpr unsigned kPartsAtOnce = 4;

}  // namespace

Result<std::unique_ptr<MemoryInbox>> MemoryInbox::open(const Surroundings& surroundings,
                                                       std::uint16_t number) {
  device::Device& device = *surroundings.device;
  shm::MailboxOptions box;
  box.directory = device.directory();
  box.address = os::SocketAddress::of_host(AF_INET, &in6addr_any, number);
  box.table = device.regions().name();
  box.service = link::Service::kQueuePairs;
  box.sender.address = box.address;
  box.sender.geometry = kRings;
  auto mailbox = shm::Mailbox::create(box);
  if (!mailbox) return mailbox.error();
  if (Status ok = surroundings.wake.add(mailbox.value()->wake_fd()); !ok) return ok.error();
  std::unique_ptr<MemoryInbox> inbox(new MemoryInbox(surroundings));
  inbox->mailbox_ = std::move(mailbox).value();
  return inbox;
}

MemoryInbox::~MemoryInbox() { parts_.wake.remove(mailbox_->wake_fd()); }

Result<std::shared_ptr<NearPeer>> MemoryInbox::peer(std::uint16_t number) {
  std::weak_ptr<NearPeer>& known = peers_[number];
  std::shared_ptr<NearPeer> peer = known.lock();
  if (peer != nullptr && peer->is_there()) return peer;
  auto opened = NearPeer::open(*parts_.device, mailbox_->sender(), number);
  if (opened) known = opened.value();
  return opened;
}

unsigned MemoryInbox::take() {
  const unsigned taken = mailbox_->poll(*this);
  if (executed_.empty()) [[likely]]
    return taken;
  for (const std::uint32_t source : executed_) mailbox_->acknowledge_all(source);
  executed_.clear();
  return taken;
}

PortClient* MemoryInbox::find(std::uint32_t qpn) const {
  const Attached& attached = clients_[qpn % kPairs];
  return attached.qpn == qpn ? attached.client : nullptr;
}

void MemoryInbox::source_closed(std::uint32_t source, bool /*died*/) {
  std::erase(executed_, source);
  for (const Attached& each : clients_) {
    if (each.client != nullptr) each.client->forget_source(source);
  }
}

std::uint16_t MemoryInbox::postpones(std::uint32_t source, std::uint64_t tag, std::uint64_t data) {
  const MessageHead head = MessageHead::unpack(tag, data);
  PortClient* const client = find(head.to);
  if (client == nullptr) return head.has(kUnreliable) ? 0 : answer_of(AnswerKind::kNotThere);
  const std::uint16_t why = client->postpones(source, head);
  if (why == 0) return 0;
  parts_.port.lock().assert_held();
  parts_.port.touch(*client);
  return why;
}

void MemoryInbox::arrived(const link::Arrival& arrival) {
  parts_.port.lock().assert_held();
  const MessageHead head = MessageHead::unpack(arrival.tag, arrival.data);
  PortClient* const client = find(head.to);
  std::uint16_t why = 0;
  if (client == nullptr) {
    parts_.port.stats().add(Stat::kUnknownQp);
    if (!head.has(kUnreliable)) why = answer_of(AnswerKind::kInvalid);
  } else {
    const bool here = arrival.payload != nullptr || arrival.length == 0;
    why = here ? client->take_message(arrival.source, head, {arrival.payload, arrival.length})
               : answer_of(AnswerKind::kInvalid);
  }
  if (head.has(kInPlace) && ++read_in_place_ % kPartsAtOnce == 0) {
    mailbox_->leave_rest(arrival.source);
  }
  if (why != 0) return mailbox_->fail(arrival.source, why);
  if (executed_.empty() || executed_.back() != arrival.source) executed_.push_back(arrival.source);
}

}  // namespace weft::queue
