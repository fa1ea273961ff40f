// SPDX-License-Identifier: BSD-2-Clause
// How do management datagrams of a port reach others within the host?
#include "mad_outbox.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace weft::device {
namespace {

// Ways that may stay open between two calls of close_idle() of the user.
constexpr std::size_t kMostIdle = 64;

// Errors of a way to a mailbox that is gone, or takes no datagrams.
bool is_unreachable(int error) { return shm::means_absent(error) || error == ECONNREFUSED; }

}  // namespace

Result<std::shared_ptr<shm::MadSender>> MadOutbox::sender_to(const os::SocketAddress& address) {
  const auto known = receivers_.find(address);
  const bool open = known != receivers_.end() && known->second.sender != nullptr;
  if (open && known->second.sender->peer_state() == link::PeerState::kAlive)
    return known->second.sender;
  if (receivers_.size() >= kMostIdle) close_idle();
  auto opened = shm::MadSender::open(sender_, address);
  if (!opened) return opened.error();
  std::shared_ptr<shm::MadSender> sender = std::move(opened).value();
  receivers_[address].sender = sender;
  return sender;
}

bool MadOutbox::is_gone(const os::SocketAddress& address) {
  const auto sender = sender_to(address);
  return !sender && is_unreachable(sender.error().code);
}

void MadOutbox::close_idle() {
  std::erase_if(receivers_, [](const auto& each) {
    return each.second.unsent.empty() && each.second.sender.use_count() <= 1;
  });
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
                                             std::span<const std::byte> datagram, bool is_answer) {
  const auto known = receivers_.find(to);
  if (known == receivers_.end() || known->second.unsent.empty()) {
    const Attempt attempt = try_to_send(to, datagram);
    if (!attempt.again) return attempt.place;
  }
  keep(receivers_[to], {id, is_answer, {datagram.begin(), datagram.end()}});
  return std::nullopt;
}

void MadOutbox::keep(Receiver& receiver, Unsent datagram) {
  const auto same = std::find_if(receiver.unsent.begin(), receiver.unsent.end(), [&](auto& each) {
    return each.id == datagram.id && datagram.id != 0;
  });
  if (same != receiver.unsent.end()) erase(receiver, same);
  if (datagram.is_answer && unsent_answers_ == kMostUnsentAnswers)
    return stats_.add(Stat::kAnswersLimited);
  ++unsent_;
  unsent_answers_ += datagram.is_answer ? 1 : 0;
  receiver.unsent.push_back(std::move(datagram));
}

void MadOutbox::erase(Receiver& receiver, std::deque<Unsent>::iterator at) {
  --unsent_;
  unsent_answers_ -= at->is_answer ? 1 : 0;
  receiver.unsent.erase(at);
}

bool MadOutbox::send_again(const Sent& sent) {
  if (unsent_ == 0) return false;
  if (const os::Time now = os::coarse_now(); std::exchange(tried_, now) == now) return true;
  for (auto& [address, receiver] : receivers_) send_waiting(address, receiver, sent);
  return unsent_ != 0;
}

void MadOutbox::send_waiting(const os::SocketAddress& to, Receiver& receiver, const Sent& sent) {
  while (!receiver.unsent.empty()) {
    const Unsent& first = receiver.unsent.front();
    const Attempt attempt = try_to_send(to, first.datagram);
    if (attempt.again) return;
    if (!attempt.place) break;
    sent(first.id, *attempt.place);
    erase(receiver, receiver.unsent.begin());
  }
  while (!receiver.unsent.empty()) erase(receiver, receiver.unsent.begin());  // it is gone
}

bool MadOutbox::drop(std::uint32_t id) {
  if (unsent_ == 0) return false;
  for (auto& [address, receiver] : receivers_) {
    const auto at = std::find_if(receiver.unsent.begin(), receiver.unsent.end(),
                                 [&](const Unsent& each) { return each.id == id; });
    if (at == receiver.unsent.end()) continue;
    erase(receiver, at);
    return true;
  }
  return false;
}

}  // namespace weft::device
