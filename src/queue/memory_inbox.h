// SPDX-License-Identifier: BSD-2-Clause
// How do messages through shared memory reach the queue pairs of a UDP number?
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "link/inbox.h"
#include "link_shm/mailbox.h"
#include "memory_message.h"
#include "near_peer.h"
#include "os/wake_set.h"
#include "queue/port.h"

namespace weft::queue {

// The mailbox of a UDP number. With the lock of its port.
class MemoryInbox final : link::InboxSink {
 public:
  // Messages wake the threads that sleep on `wake`, and have clients settled by `port`; both
  // outlive it.
  struct Surroundings {
    std::shared_ptr<device::Device> device;
    QpPort& port;
    os::WakeSet& wake;
  };
  // Errors: those of shm::Mailbox::create() and epoll_ctl(2).
  static Result<std::unique_ptr<MemoryInbox>> open(const Surroundings& surroundings,
                                                   std::uint16_t number);
  ~MemoryInbox() override;

  // Messages for that QPN of the number go to that client.
  void attach(std::uint32_t qpn, PortClient& client) { clients_[qpn % kPairs] = {qpn, &client}; }
  // Messages for that QPN go nowhere from now on.
  void detach(std::uint32_t qpn) {
    if (clients_[qpn % kPairs].qpn == qpn) clients_[qpn % kPairs] = {};
  }

  // The owner of that UDP number. With the transmit lock. Errors: those of NearPeer::open().
  Result<std::shared_ptr<NearPeer>> peer(std::uint16_t number);

  // Hands over what has arrived, and has the clients that it was for settled. Returns how many
  // messages that were.
  unsigned poll() { return executed_.empty() && mailbox_->is_quiet() ? 0 : take(); }
  // Frees the slots of senders that have ended.
  void check_sources() { mailbox_->check_sources(*this); }
  bool fall_asleep() { return mailbox_->fall_asleep(); }
  void wake_up() { mailbox_->wake_up(); }

 private:
  static constexpr std::size_t kPairs = 256;  // of a number
  struct Attached {
    std::uint32_t qpn = 0;
    PortClient* client = nullptr;
  };

  explicit MemoryInbox(const Surroundings& surroundings) : parts_(surroundings) {}
  unsigned take();
  PortClient* find(std::uint32_t qpn) const;

  void source_opened(std::uint32_t /*source*/, const os::SocketAddress& /*address*/) override {}
  void source_closed(std::uint32_t source, bool died) override;
  std::uint16_t postpones(std::uint32_t source, std::uint64_t tag, std::uint64_t data) override;
  void arrived(const link::Arrival& arrival) override;
  void received(void* /*cookie*/, int /*error*/) override {}

  const Surroundings parts_;
  std::unique_ptr<shm::Mailbox> mailbox_;
  std::map<std::uint16_t, std::weak_ptr<NearPeer>> peers_;
  std::array<Attached, kPairs> clients_{};
  unsigned read_in_place_ = 0;           // parts of messages
  std::vector<std::uint32_t> executed_;  // sources that are told so after the poll
};

}  // namespace weft::queue
