// SPDX-License-Identifier: BSD-2-Clause
// What does the requesting end of a flow know of its peer, and when does it send a REQ?
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "link/flow.h"
#include "os/clock.h"
#include "rdm/conn_message.h"
#include "rdm/message.h"
#include "roce/path.h"
#include "signs_of_life.h"
#include "wire/packet.h"

namespace weft::rdm {

struct Shared;

enum class FlowPhase : std::uint8_t { kAsking, kOpen, kLost };

// The identity of a flow that this end begins, its phase, its timer for REQs and its signs of life.
// One thread at a time.
class FlowInitiator {
 public:
  FlowInitiator(Shared& shared, std::uint32_t context, std::shared_ptr<const roce::Path> path);

  FlowPhase phase() const { return phase_; }
  bool is_open() const { return phase_ == FlowPhase::kOpen; }
  std::uint32_t context() const { return context_; }
  std::uint32_t connection_id() const { return connection_id_; }
  const roce::Path& path() const { return *path_; }
  const os::SocketAddress& peer() const { return path_->to; }
  // The peer's end, once it is known: zeros before the REP.
  const Introduction& other() const { return other_; }
  std::uint64_t identity() const { return flow_identity(connection_id_, other_.connection_id); }
  link::PeerState peer_state() const { return peer_state_; }

  // A REP has opened the flow.
  void open(const Introduction& other);
  // The flow is over, and why.
  void end(link::PeerState state);

  // The caller waits for the peer without a limit of time, and hears of an unreachable port.
  void persist() { persisting_ = true; }
  bool persists() const { return persisting_; }
  // As link::Flow::doubt().
  void doubt() { doubting_ = true; }
  // Something was posted: without persist() the peer has to answer within the connect timeout. Time
  // in which this end does not look does not count.
  void limit_asking();
  // That time is over.
  bool is_asked_out() const { return !persisting_ && asks_for_ == os::Time::duration::zero(); }

  // The first control message travels in the REQ: its sender may end before the REP arrives. True
  // before the first REQ, while there is none.
  bool takes_early_data() const;
  void set_early_data(std::vector<std::byte> data) { early_data_ = std::move(data); }
  bool has_early_data() const { return !early_data_.empty(); }

  // The REQ that this end sends now, without the path MTU. The pause to the next one doubles.
  ConnReq next_req(os::Time now);
  os::Time next_req_at() const { return next_req_; }
  os::Time first_req_at() const { return first_req_; }
  bool has_asked() const { return next_req_ != os::Time{}; }
  // There is something new to ask for.
  void ask_at_once();

  // When the peer was last heard of, and that it was just now.
  os::Time heard() const { return life_.heard(); }
  void hear(os::Time now) { life_.hear(now); }
  // As SignsOfLife::count_unreachable(); false before the REP, unless the caller waits without a
  // limit, or doubts.
  bool count_unreachable(bool proven);
  // `request` was sent over this flow: its Q_Key was drawn at random, and the peer has told it to
  // this end alone.
  bool has_sent(const wire::Packet& request) const;

 private:
  Shared& shared_;
  const std::uint32_t context_;
  const std::uint32_t connection_id_;
  const std::shared_ptr<const roce::Path> path_;
  FlowPhase phase_ = FlowPhase::kAsking;
  link::PeerState peer_state_ = link::PeerState::kAlive;
  Introduction other_;
  bool persisting_ = false;
  bool doubting_ = false;
  os::Time first_req_{};
  os::Time next_req_{};
  std::optional<os::Time::duration> asks_for_;  // what is left of the connect timeout
  std::chrono::milliseconds pause_;             // until the next REQ
  std::vector<std::byte> early_data_;
  SignsOfLife life_;
};

}  // namespace weft::rdm
