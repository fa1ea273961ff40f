// SPDX-License-Identifier: BSD-2-Clause
// How do management datagrams of a port reach others within the host?
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "link_shm/mad_reader.h"
#include "link_shm/mad_sender.h"
#include "os/clock.h"
#include "os/socket_address.h"
#include "roce/address_hash.h"

namespace weft::device {

// Sends management datagrams, and keeps those that find no room. One thread at a time.
class MadOutbox {
 public:
  // In the name of `sender`, which outlives it. `sent` is called for each datagram when it is sent,
  // with the address of its receiver.
  MadOutbox(const shm::Sender& sender, shm::MadSink sent)
      : sender_(sender), sent_(std::move(sent)) {}

  // The way to an address, which all that ask for it at a time share. Errors: those of
  // shm::MadSender::open().
  Result<std::shared_ptr<shm::MadSender>> sender_to(const os::SocketAddress& address);
  // No mailbox that takes datagrams is there.
  bool is_gone(const os::SocketAddress& address);
  // Sends a datagram that concerns the connection of that id. Nothing when there is no room yet:
  // send_again() will. What goes to a mailbox that is gone is lost.
  std::optional<shm::MadPlace> send(const os::SocketAddress& to, std::uint32_t id,
                                    std::span<const std::byte> datagram);
  // Sends what found no room, once in a tick of the coarse clock; calls sent(id, place) for each.
  // True when something still waits.
  using Sent = std::function<void(std::uint32_t, const shm::MadPlace&)>;
  bool send_again(const Sent& sent);
  // Forgets what could not be sent of that connection; true when there was something.
  bool drop(std::uint32_t id);

 private:
  struct Unsent {
    os::SocketAddress to;
    std::uint32_t id = 0;
    std::vector<std::byte> datagram;
  };
  struct Attempt {
    std::optional<shm::MadPlace> place;
    bool again = false;
  };
  Attempt try_to_send(const os::SocketAddress& to, std::span<const std::byte> datagram);

  const shm::Sender& sender_;
  const shm::MadSink sent_;
  std::unordered_map<os::SocketAddress, std::weak_ptr<shm::MadSender>, roce::AddressHash> senders_;
  std::vector<Unsent> unsent_;
  os::Time tried_{};  // to send it
};

}  // namespace weft::device
