// SPDX-License-Identifier: BSD-2-Clause
// How does a queue pair for datagrams send and receive packets?
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/psn.h"
#include "base/stats.h"
#include "capture/capture.h"
#include "link.h"
#include "memory_inbox.h"
#include "memory_message.h"
#include "near_peer.h"
#include "roce/packet_output.h"
#include "work/work.h"

namespace weft::queue {

class QpTarget;

// The surroundings of a link for datagrams; all outlive it.
struct DatagramParts {
  std::function<roce::PacketOutput*(int family)> output;  // null: no socket of that family
  work::WorkSink& sink;
  work::LocalMemory& buffers;
  QpTarget& target;
  Stats& stats;
  QpPort& port;
  std::uint32_t qpn = 0;
  std::size_t path_mtu = 0;                             // bytes that a datagram may have
  MemoryInbox* memory = nullptr;                        // null: by packets only
  std::shared_ptr<capture::Capture> capture = nullptr;  // null: none is written
};

// The unreliable datagram service (IBTA 9.8.3). Work ends when its packet was written. Received
// datagrams have the Q_Key of the queue pair, and begin with a global routing header (grh.h). Those
// for queue pairs of this host go through a ring that all pairs of a UDP number share.
class DatagramLink final : public Link {
 public:
  DatagramLink(const QpAttributes& attributes, const DatagramParts& parts)
      : parts_(parts), queue_key_(attributes.queue_key) {}

  void begin_sending(const QpAttributes& attributes) override {
    next_ = attributes.send_psn;
    failed_ = false;
  }
  void post(const QpSendRequest& request) override;
  void flush() override;
  void take_request(const roce::PacketArrival& arrival, Time now) override;
  void take_response(const roce::PacketArrival& arrival, Time now) override;
  void emit_requests(bool polls, Time now) override;
  Time send_due() const override { return posted_.empty() ? Time::max() : Time::min(); }
  void tick(Time /*now*/) override {}
  bool receive_failed() const override { return false; }
  void change(const QpAttributes& attributes) override { queue_key_ = attributes.queue_key; }
  bool is_peer(const os::SocketAddress& /*from*/) const override { return true; }
  std::uint16_t postpones(std::uint32_t /*source*/, const MessageHead& /*head*/) override {
    return 0;
  }
  std::uint16_t take_message(std::uint32_t source, const MessageHead& head,
                             std::span<const std::byte> bytes) override;

 private:
  struct Posted {
    work::Work work;  // its SGEs lie in `sges`
    std::array<work::Segment, work::kMaxWorkSges> sges{};
    std::size_t sge_count = 0;
    os::SocketAddress from;
    os::SocketAddress to;
    std::uint32_t destination = 0;
    std::uint32_t queue_key = 0;
    std::optional<work::CompletionStatus> refusal;
    bool is_near = false;  // within the host
  };
  // The owner of a UDP number of this host.
  struct NearHost {
    std::shared_ptr<NearPeer> peer;  // null: by packets
    Time checked_at;
  };
  enum class NearSend : std::uint8_t { kYes, kNoRoom, kElsewhere };

  const roce::Path& path_for(const Posted& posted);
  bool send(const Posted& posted);
  void forget_absent_hosts();
  NearHost& near_host(std::uint16_t number, Time now);
  NearSend send_near(const Posted& posted, Time now);
  void end_first(work::CompletionStatus status);

  const DatagramParts parts_;
  std::uint32_t queue_key_;
  Psn next_;
  bool failed_ = false;
  std::deque<Posted> posted_;
  static constexpr std::size_t kFewHosts = 16;
  std::map<std::uint16_t, NearHost> near_;
  std::size_t forgets_at_ = kFewHosts;  // the number of hosts that has absent ones forgotten
  std::vector<std::unique_ptr<roce::Path>> paths_;  // of packets that have not been flushed
};

}  // namespace weft::queue
