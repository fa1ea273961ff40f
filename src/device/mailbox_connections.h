// SPDX-License-Identifier: BSD-2-Clause
// How are connections within the host made and ended?
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/options.h"
#include "base/stats.h"
#include "cm/agent.h"
#include "link/port_link.h"
#include "link_shm/mad_sender.h"
#include "mad_outbox.h"
#include "os/clock.h"
#include "rdm/flow_message.h"
#include "rdm/port_connections.h"

namespace weft::device {

// The connections of a port through its mailbox. REQ and REJ are management datagrams; the other
// messages of the connection manager are control messages of the slots: that of the REP carries the
// acceptor's data later, that of the RTU the requester's. Neither loses anything but answers that
// MadOutbox may not keep, so that nothing is repeated. One thread at a time.
class MailboxConnections final : public rdm::LinkConnections, cm::User, link::FlowSink {
 public:
  // A link of `port`, which peers know as the address of `sender`, and goes on by its other link
  // for listeners that are elsewhere. `sent` is called for each management datagram, as MadOutbox
  // says, or is none. All else outlives it.
  MailboxConnections(rdm::PortConnections& port, link::PortLink& link, const shm::Sender& sender,
                     const Options& options, shm::MadSink sent, Stats& stats);
  // Withdraws its attempts by REJs to their listeners.
  ~MailboxConnections() override;
  MailboxConnections(const MailboxConnections&) = delete;
  MailboxConnections& operator=(const MailboxConnections&) = delete;

  Result<link::ConnectionNumber> request(const os::SocketAddress& listener,
                                         std::span<const std::byte> data,
                                         link::ConnectionUser& user) override;
  Result<link::ConnectionNumber> accept(const link::ConnectionRequest& request,
                                        std::span<const std::byte> data,
                                        link::ConnectionUser& user) override;
  bool disconnect(link::ConnectionNumber number) override;
  void on_request(const cm::CmEvent& event, link::ListenerUser& listener) override;
  void send(const os::SocketAddress& to, cm::ConnectionId id,
            std::span<const std::byte> message) override;
  os::Time now() override { return os::coarse_now(); }

  // A control message of a source, which has that address. False when the source is to be refused.
  bool take(std::uint32_t source, const os::SocketAddress& address,
            std::span<const std::byte> message);
  // A management datagram of the port that calls itself by that address; empty: by none. Counted
  // like a message of the network: kMalformedPackets for one that cannot be read, kInvalidMessages
  // for one that needs a connection's slot.
  void take_datagram(const os::SocketAddress& address, std::span<const std::byte> message);
  // A source has closed.
  void source_closed(std::uint32_t source);
  // Notices the ends of processes and of times, of many connections each 40 ms unless `at_once`.
  // Before an attempt fails, take_in() has what has arrived handed over; false when it has left
  // something, which the attempt waits for.
  void check(bool at_once, const std::function<bool()>& take_in);
  // When check() is to be called next; Time::max() without an attempt.
  os::Time due() const;
  // Sends datagrams that found no room, as check() does. True when some still wait.
  bool send_again();
  // Calls watch(process) for each peer that is to answer.
  template <class Watch>
  void each_process(Watch watch) const {
    for (const auto& [id, end] : ends_) {
      if (end.facing != nullptr) watch(end.facing->process());
      if (end.listener != nullptr) watch(end.listener->process());
    }
  }

 private:
  enum class EndStage : std::uint8_t { kAsked, kAccepted, kEstablished };
  // This end of a connection, or of an attempt.
  struct ConnectionEnd {
    link::ConnectionUser* user = nullptr;
    EndStage stage = EndStage::kAsked;
    std::shared_ptr<shm::MadSender> listener;  // until it has answered, or has left
    std::optional<shm::MadPlace> req;          // once the REQ is sent
    std::shared_ptr<link::Flow> facing;        // until it is established
    std::weak_ptr<link::Flow> established;     // the same from then on
    std::uint32_t source = 0;                  // of an established one
    os::Time deadline = os::Time::max();       // for the listener to read the REQ, or for the RTU

    // The listener has read the REQ. Of a listener that has left nothing is known.
    bool was_read() const { return listener != nullptr && req && listener->was_read(*req); }
  };

  // A request that the listener has received. A datagram carries no sign of its sender's end, so
  // the mailbox of the sender is looked for.
  struct UndecidedRequest {
    cm::ConnectionId id = 0;
    os::SocketAddress from;
    os::Time looked_at{};
  };

  void handle(const cm::CmEvent& event) override;
  Time last_received(cm::ConnectionId, void*) override { return {}; }
  void ended(void*, int, int) override {}

  Result<link::ConnectionNumber> ask(const os::SocketAddress& listener,
                                     std::span<const std::byte> data, link::ConnectionUser& user);
  bool is_forged(std::uint32_t source, const wire::CmMessage& message) const;
  void hand_over(const os::SocketAddress& address, const wire::CmMad& mad,
                 std::span<const std::byte> more);
  void on_reply(const cm::CmEvent& event, ConnectionEnd& end);
  void establish(cm::ConnectionId id, ConnectionEnd& end, std::span<const std::byte> data);
  void fail(cm::ConnectionId id, int error, std::span<const std::byte> data = {});
  void finish(cm::ConnectionId id);
  bool is_gone(const ConnectionEnd& end);
  void withdraw_abandoned(os::Time now);
  int verdict(const ConnectionEnd& end, os::Time now);
  bool may_come(ConnectionEnd& end, os::Time now);
  rdm::Introduction introduce();
  ConnectionEnd* find(cm::ConnectionId id);

  rdm::PortConnections& port_;
  cm::Agent& agent_;
  const Options& options_;
  const os::SocketAddress name_;
  link::PortLink& link_;
  MadOutbox mads_;
  Stats& stats_;
  link::ListenerUser* listener_ = nullptr;  // of the undecided requests
  std::unordered_map<cm::ConnectionId, ConnectionEnd> ends_;
  std::unordered_map<std::uint32_t, cm::ConnectionId> by_source_;  // that are established
  std::deque<UndecidedRequest> undecided_;  // the one whose requester was looked for last is last
  ConnectionEnd* starting_ = nullptr;       // its REQ is being sent
  std::uint32_t arrived_from_ = 0;          // source of the message that is being taken
  bool in_datagram_ = false;
  int send_error_ = 0;     // of the last message over a slot
  os::Time next_check_{};  // of the ends
  std::uint32_t last_context_ = 0;
};

}  // namespace weft::device
