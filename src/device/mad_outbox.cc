// SPDX-License-Identifier: BSD-2-Clause
// How do management datagrams of a port reach others within the host?
#include "mad_outbox.h"

#include <cerrno>
#include <utility>

namespace weft::device {
namespace {

// Errors of a way to a mailbox that is gone, or takes no datagrams.
bool is_unreachable(int error) { return shm::means_absent(error) || error == ECONNREFUSED; }

}  // namespace

Result<std::shared_ptr<shm::MadSender>> MadOutbox::sender_to(const os::SocketAddress& address) {
  auto known = senders_[address].lock();
  if (known != nullptr && known->peer_state() == link::PeerState::kAlive) return known;
  std::erase_if(senders_, [](const auto& each) { return each.second.expired(); });
  auto opened = shm::MadSender::open(sender_, address);
  if (!opened) return opened.error();
  std::shared_ptr<shm::MadSender> sender = std::move(opened).value();
  senders_[address] = sender;
  return sender;
}

bool MadOutbox::is_gone(const os::SocketAddress& address) {
  const auto sender = sender_to(address);
  return !sender && is_unreachable(sender.error().code);
}

MadOutbox::Attempt MadOutbox::try_to_send(const os::SocketAddress& to,
                                          std::span<const std::byte> datagram) {
  auto sender = sender_to(to);
  if (!sender) return {{}, !is_unreachable(sender.error().code)};
  const auto place = sender.value()->send(datagram);
  if (!place) return {{}, place.error().code == EAGAIN};
  if (sent_) sent_(to, datagram);
  return {place.value(), false};
}

std::optional<shm::MadPlace> MadOutbox::send(const os::SocketAddress& to, std::uint32_t id,
                                             std::span<const std::byte> datagram) {
  const Attempt attempt = try_to_send(to, datagram);
  if (attempt.again) unsent_.push_back({to, id, {datagram.begin(), datagram.end()}});
  return attempt.place;
}

bool MadOutbox::send_again(const Sent& sent) {
  if (unsent_.empty()) return false;
  if (const os::Time now = os::coarse_now(); std::exchange(tried_, now) == now) return true;
  std::erase_if(unsent_, [&](const Unsent& each) {
    const Attempt attempt = try_to_send(each.to, each.datagram);
    if (attempt.place) sent(each.id, *attempt.place);
    return !attempt.again;
  });
  return !unsent_.empty();
}

bool MadOutbox::drop(std::uint32_t id) {
  return std::erase_if(unsent_, [id](const Unsent& each) { return each.id == id; }) != 0;
}

}  // namespace weft::device
