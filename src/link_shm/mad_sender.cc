// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send management datagrams to another one of its host?
#include "link_shm/mad_sender.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "os/process_memory.h"

namespace weft::shm {

// Senders begin at different cells, so that they seldom meet.
MadSender::MadSender(const Sender& sender, PeerMailbox mailbox)
    : sender_(sender),
      mailbox_(std::move(mailbox)),
      owner_(mailbox_.file(), 0, mailbox_.owner()),
      next_(static_cast<std::uint32_t>(os::process_id()) * 7 % kMads) {}

Result<std::unique_ptr<MadSender>> MadSender::open(const Sender& sender,
                                                   const os::SocketAddress& peer) {
  auto mailbox = PeerMailbox::open(sender, peer, kSlotsAt);
  if (!mailbox && mailbox.error().code == EINVAL) {  // too short for cells
    mailbox = PeerMailbox::open(sender, peer, kHeaderBytes);
    if (mailbox) return Error{ECONNREFUSED, peer.text() + " takes no connections"};
  }
  if (!mailbox) return mailbox.error();
  if (read_once(mailbox.value().header().takes_mads) == 0)
    return Error{ECONNREFUSED, peer.text() + " takes no connections"};
  return std::unique_ptr<MadSender>(new MadSender(sender, std::move(mailbox).value()));
}

Result<MadPlace> MadSender::send(std::span<const std::byte> bytes) {
  if (bytes.size() > kLongestMad) {
    return Error{EMSGSIZE, std::to_string(bytes.size()) + " bytes of a management datagram, the " +
                               "limit is " + std::to_string(kLongestMad)};
  }
  if (mailbox_.file()->inherited()) return Error{EAGAIN, "this is the parent's endpoint"};
  MadPlace place;
  for (std::uint32_t tried = 0; tried < kMads; ++tried) {
    const std::uint32_t number = std::exchange(next_, (next_ + 1) % kMads);
    if (!fill(number, bytes, place)) continue;
    mark_mads(mailbox_.header(), std::uint64_t{1} << number);
    mailbox_.wake_owner(*sender_.waker);
    return place;
  }
  // Senders may have ended before they marked their cells.
  mark_mads(mailbox_.header(), ~std::uint64_t{0});
  mailbox_.wake_owner(*sender_.waker);
  return Error{EAGAIN, "the receiver has to read other datagrams first"};
}

bool MadSender::fill(std::uint32_t number, std::span<const std::byte> bytes, MadPlace& place) {
  MadCell& to = cell(number);
  if (to.turn.load(std::memory_order_relaxed) % 2 != 0) return false;
  if (!mailbox_.file()->claim(kMadLock + number)) return false;
  const std::uint64_t turn = to.turn.load(std::memory_order_acquire);
  const bool free = turn % 2 == 0;
  if (free) {
    to.order = mailbox_.header().mad_order.fetch_add(1, std::memory_order_relaxed);
    to.address_length = sender_.address.length();
    std::memcpy(to.address, sender_.address.get(), sender_.address.length());
    to.length = static_cast<std::uint32_t>(bytes.size());
    std::ranges::copy(bytes, to.bytes);
    to.turn.store(turn + 1, std::memory_order_release);
    place = {number, turn + 1};
  }
  mailbox_.file()->disclaim(kMadLock + number);
  return free;
}

bool MadSender::was_read(const MadPlace& place) const {
  return cell(place.cell).turn.load(std::memory_order_acquire) != place.turn;
}

link::PeerState MadSender::peer_state() {
  if (mailbox_.header().closed.load(std::memory_order_acquire) != 0) return link::PeerState::kLeft;
  return owner_.holds_lock() ? link::PeerState::kAlive : link::PeerState::kDied;
}

}  // namespace weft::shm
