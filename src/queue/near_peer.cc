// SPDX-License-Identifier: BSD-2-Clause
// How does a port reach the memory and the mailbox of a process of its host?
#include "near_peer.h"

#include <cstring>
#include <utility>

#include "link_shm/names.h"
#include "os/process_memory.h"

namespace weft::queue {
namespace {

// The owner may write on while the name is read.
std::string table_of(const shm::MailboxHeader& header) {
  char name[sizeof header.table];
  std::memcpy(name, header.table, sizeof name);
  return {name, strnlen(name, sizeof name)};
}

}  // namespace

void publish(shm::RingWriter& ring, const MessageHead& head, shm::CellKind kind,
             std::size_t inline_length) {
  link::SendRequest cell;
  cell.operation = link::MessageOperation::kQueuePair;
  cell.tag = head.tag();
  cell.data = head.data();
  ring.publish(cell, kind, false, inline_length);
}

Result<std::shared_ptr<NearPeer>> NearPeer::open(device::Device& device, const shm::Sender& sender,
                                                 std::uint16_t port) {
  const os::SocketAddress address =
      os::SocketAddress::of_host(sender.address.family(), &in6addr_any, port);
  auto mailbox = shm::PeerMailbox::open(sender, address, shm::kHeaderBytes);
  if (!mailbox) return mailbox.error();
  std::shared_ptr<memory::RegionTableView> table = device.regions_of_users();
  if (mailbox.value().owner() != os::process_id()) {
    auto opened = memory::RegionTableView::open(
        sender.directory, table_of(mailbox.value().header()), table->stripes());
    if (!opened) return opened.error();
    table = std::move(opened).value();
  }
  std::unique_ptr<memory::AccessGuard> guards[2];
  for (auto& guard : guards) {
    auto attached = memory::AccessGuard::attach(table);
    if (!attached) return attached.error();
    guard = std::move(attached).value();
  }
  return std::shared_ptr<NearPeer>(
      new NearPeer(sender, address, mailbox.value(), std::move(guards[0]), std::move(guards[1])));
}

Result<NearPeer::Datagrams*> NearPeer::datagrams() {
  const bool usable =
      datagrams_ != nullptr && !datagrams_->ring.gone() && !datagrams_->slot->closed_by_owner();
  if (usable) return datagrams_.get();
  datagrams_.reset();
  auto slot = shm::PeerSlot::claim(datagram_sender_, address_);
  if (!slot) return slot.error();
  datagrams_ = std::make_unique<Datagrams>(std::move(slot).value());
  return datagrams_.get();
}

}  // namespace weft::queue
