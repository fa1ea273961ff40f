// SPDX-License-Identifier: BSD-2-Clause
// How do management datagrams of a port reach others within the host?
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/stats.h"
#include "link_shm/mad_reader.h"
#include "link_shm/mad_sender.h"
#include "os/clock.h"
#include "os/socket_address.h"
#include "roce/address_hash.h"

namespace weft::device {

// Sends management datagrams, and keeps those that find no room. One thread at a time.
class MadOutbox {
 public:
  // Answers that are kept: 0.5 MB. Their receivers may be hostile, and never read their mailboxes.
  static constexpr std::size_t kMostUnsentAnswers = 1024;

  // In the name of `sender`, which outlives it, as do `stats`. `sent` is called for each datagram
  // when it is sent, with the address of its receiver.
  MadOutbox(const shm::Sender& sender, shm::MadSink sent, Stats& stats)
      : sender_(sender), sent_(std::move(sent)), stats_(stats) {}

  // The way to an address, which all that ask for it at a time share. Errors: those of
  // shm::MadSender::open().
  Result<std::shared_ptr<shm::MadSender>> sender_to(const os::SocketAddress& address);
  // No mailbox that takes datagrams is there.
  bool is_gone(const os::SocketAddress& address);
  // Sends a datagram that concerns the connection of that id, or none: 0. Nothing when it has to
  // wait, for room or behind others: send_again() will. The last datagram of a connection waits, in
  // place of earlier ones. An answer that is one too many is lost (kAnswersLimited), as is what
  // goes to a mailbox that is gone.
  std::optional<shm::MadPlace> send(const os::SocketAddress& to, std::uint32_t id,
                                    std::span<const std::byte> datagram, bool is_answer);
  // Sends what waits, once in a tick of the coarse clock: to each receiver until it has no room.
  // Calls sent(id, place) for each. True when something still waits.
  using Sent = std::function<void(std::uint32_t, const shm::MadPlace&)>;
  bool send_again(const Sent& sent);
  // Forgets what could not be sent of that connection; true when there was something.
  bool drop(std::uint32_t id);
  // Closes the ways to mailboxes that nothing waits for.
  void close_idle();

 private:
  struct Unsent {
    std::uint32_t id = 0;
    bool is_answer = false;
    std::vector<std::byte> datagram;
  };
  struct Receiver {
    std::shared_ptr<shm::MadSender> sender;
    std::deque<Unsent> unsent;
  };
  struct Attempt {
    std::optional<shm::MadPlace> place;
    bool again = false;
  };
  Attempt try_to_send(const os::SocketAddress& to, std::span<const std::byte> datagram);
  void keep(Receiver& receiver, Unsent datagram);
  void erase(Receiver& receiver, std::deque<Unsent>::iterator at);
  void send_waiting(const os::SocketAddress& to, Receiver& receiver, const Sent& sent);

  const shm::Sender& sender_;
  const shm::MadSink sent_;
  Stats& stats_;
  std::unordered_map<os::SocketAddress, Receiver, roce::AddressHash> receivers_;
  std::size_t unsent_ = 0;          // of all receivers
  std::size_t unsent_answers_ = 0;  // of these
  os::Time tried_{};                // to send them
};

}  // namespace weft::device
