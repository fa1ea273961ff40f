// SPDX-License-Identifier: BSD-2-Clause
// How do the messages of a UDP port become events of ids?
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "abi.h"
#include "cm/agent.h"
#include "cm_event.h"
#include "queue/port.h"
#include "roce/datagram_writer.h"

namespace weft::rdmacm {

class CmId;
class CmSpace;

// The connection manager of a UDP number. All functions: with the lock of the space held.
class PortManager final : public queue::PortClient,
                          public std::enable_shared_from_this<PortManager>,
                          cm::CmHost,
                          cm::User {
 public:
  // Errors: those of queue::QpPort::open_manager().
  static Result<std::shared_ptr<PortManager>> open(CmSpace& space, const os::SocketAddress& address,
                                                   bool both_families);

  // Its address, with the number that was chosen.
  const os::SocketAddress& address() const { return address_; }
  bool has_both_families() const { return has_both_families_; }
  // Ids that are bound to it, and how many use it, these included.
  std::vector<CmId*> bound;
  unsigned users = 0;

  // The functions of cm::Agent, by a thread of the program. Errors: theirs.
  Status listen(CmId& id, std::size_t backlog);
  Status connect(CmId& id, const wire::CmReq& req);
  Status resolve(CmId& id, const wire::CmSidrReq& request);
  Status claim(CmId& id);
  Status accept(CmId& id, const wire::CmRep& rep);
  Status answer(CmId& id, wire::CmSidrRep reply);
  Status reject(CmId& id, wire::CmReason reason, std::span<const std::byte> data);
  Status confirm(CmId& id);
  void established(CmId& id);
  void disconnect(CmId& id);
  // Ends all that the id has here, as it is destroyed: its peer hears of it.
  void forget(CmId& id);
  // A number at random for a peer to begin with.
  std::uint32_t new_psn();

  bool is_idle() const { return users == 0 && agent_->connections() == 0 && early_.empty(); }
  void close();

 private:
  PortManager(CmSpace& space, const os::SocketAddress& address, bool both_families)
      : space_(space), address_(address), has_both_families_(both_families) {}
  // queue::PortClient
  void take(const roce::PacketArrival& arrival) override;
  void take_cnp(const roce::PacketArrival&) override {}
  void unreachable(const os::UdpError& error) override;
  Time settle(Time) override { return due(); }
  void tick(Time now) override;
  void finish() override {}
  Time due() override;
  // cm::CmHost
  void send(const cm::Remote& to, cm::ConnectionId id, std::span<const std::byte> message) override;
  std::uint64_t random() override;
  bool is_near(const cm::Remote& remote) override;
  // cm::User
  void handle(const cm::CmEvent& event) override;
  Time last_received(cm::ConnectionId, void*) override { return {}; }

  bool listens() const;
  void take_message(const os::SocketAddress& from, const os::SocketAddress& to,
                    std::span<const std::byte> message);
  // Those whose time has come, and all of them once an id listens.
  void take_early(Time now);
  void on_request(const cm::CmEvent& event);
  void on_query(const cm::CmEvent& event);
  void on_end_of_request(const cm::CmEvent& event);
  void on_reply(CmId& id, const cm::CmEvent& event);
  void on_resolved(CmId& id, const cm::CmEvent& event);
  void on_rejected(CmId& id, const cm::CmEvent& event);
  void report(CmId& id, rdma_cm_event_type type, int status);
  void end(CmId& id);
  void introduce(CmEventRecord& record, const wire::CmIpHeader& header);
  std::optional<os::SocketAddress> own_address(cm::ConnectionId id, const os::SocketAddress& peer);
  // After each call of the agent from outside of a poll.
  void settle_call();

  struct EndOfTimeWait {
    Time at;
    CmId* id;
  };

  struct MessageAddresses {
    os::SocketAddress from;
    os::SocketAddress to;
  };
  // A request that has arrived before an id listens.
  struct EarlyRequest {
    Time until;  // then it is rejected
    MessageAddresses addresses;
    std::vector<std::byte> message;
  };

  CmSpace& space_;
  os::SocketAddress address_;
  const bool has_both_families_;
  queue::QpPort::Attachment attachment_;
  std::unique_ptr<cm::Agent> agent_;
  roce::DatagramWriter packets_;
  std::optional<MessageAddresses> arrival_;           // of the message that is being taken
  std::optional<os::UdpError::What> unreachable_by_;  // while its report is being taken
  std::optional<os::SocketAddress> starts_from_;      // while a connection begins
  // By connection, whose numbers return: at most 65,536.
  std::unordered_map<cm::ConnectionId, os::SocketAddress> own_addresses_;
  std::vector<EndOfTimeWait> time_waits_;  // in their order
  std::deque<EarlyRequest> early_;         // in their order
};

}  // namespace weft::rdmacm
