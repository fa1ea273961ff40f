// SPDX-License-Identifier: BSD-2-Clause
// How do messages through shared memory reach the queue pairs of a UDP number?
#include "memory_inbox.h"

#include <algorithm>
#include <utility>

namespace weft::queue {
namespace {

// The rings towards one queue pair: with the header 48 KiB, of which the 32 KiB of the bulk ring
// get memory with the first message that is longer than a cell.
constexpr shm::Geometry kRings{32, 1, 32 * 1024};

}  // namespace

Result<std::unique_ptr<MemoryInbox>> MemoryInbox::open(std::shared_ptr<device::Device> device,
                                                       std::uint16_t port, os::WakeSet& wake) {
  shm::MailboxOptions box;
  box.directory = device->directory();
  box.address = os::SocketAddress::of_host(AF_INET, &in6addr_any, port);
  box.table = device->regions().name();
  box.service = link::Service::kQueuePairs;
  box.sender.address = box.address;
  box.sender.geometry = kRings;
  auto mailbox = shm::Mailbox::create(box);
  if (!mailbox) return mailbox.error();
  if (Status ok = wake.add(mailbox.value()->wake_fd()); !ok) return ok.error();
  std::unique_ptr<MemoryInbox> inbox(new MemoryInbox(std::move(device), wake));
  inbox->mailbox_ = std::move(mailbox).value();
  return inbox;
}

MemoryInbox::~MemoryInbox() { wake_.remove(mailbox_->wake_fd()); }

void MemoryInbox::detach(std::uint32_t qpn) {
  Attached& attached = clients_[qpn % kPairs];
  if (attached.qpn != qpn) return;
  std::ranges::replace(touched_, attached.client, nullptr);
  attached = {};
}

Result<std::shared_ptr<NearPeer>> MemoryInbox::peer(std::uint16_t port) {
  std::weak_ptr<NearPeer>& known = peers_[port];
  std::shared_ptr<NearPeer> peer = known.lock();
  if (peer != nullptr && peer->is_there()) return peer;
  auto opened = NearPeer::open(*device_, mailbox_->sender(), port);
  if (opened) known = opened.value();
  return opened;
}

void MemoryInbox::poll(std::vector<PortClient*>& got) {
  const unsigned taken = mailbox_->poll(*this);
  if (taken == 0 && touched_.empty()) [[likely]]
    return;
  for (const std::uint32_t source : executed_) mailbox_->acknowledge_all(source);
  executed_.clear();
  for (PortClient* const client : touched_) {
    if (client != nullptr) got.push_back(client);
  }
  touched_.clear();
}

PortClient* MemoryInbox::find(std::uint32_t qpn) const {
  const Attached& attached = clients_[qpn % kPairs];
  return attached.qpn == qpn ? attached.client : nullptr;
}

void MemoryInbox::source_closed(std::uint32_t source, bool /*died*/) {
  std::erase(executed_, source);
}

std::uint16_t MemoryInbox::postpones(std::uint32_t source, std::uint64_t tag, std::uint64_t data) {
  const MessageHead head = MessageHead::unpack(tag, data);
  PortClient* const client = find(head.to);
  if (client == nullptr) return answer_of(AnswerKind::kNotThere);
  const std::uint16_t why = client->postpones(source, head);
  if (why != 0) touched_.push_back(client);
  return why;
}

void MemoryInbox::arrived(const link::Arrival& arrival) {
  const MessageHead head = MessageHead::unpack(arrival.tag, arrival.data);
  PortClient* const client = find(head.to);
  std::uint16_t why = answer_of(AnswerKind::kInvalid);
  if (client != nullptr && (arrival.payload != nullptr || arrival.length == 0)) {
    why = client->take_message(arrival.source, head, {arrival.payload, arrival.length});
  }
  if (client != nullptr) touched_.push_back(client);
  if (why != 0) return mailbox_->fail(arrival.source, why);
  if (executed_.empty() || executed_.back() != arrival.source) executed_.push_back(arrival.source);
}

}  // namespace weft::queue
