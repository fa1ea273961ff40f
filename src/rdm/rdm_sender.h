// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send to one peer over the network?
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/budget.h"
#include "fragments.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "operation.h"
#include "os/clock.h"
#include "rdm/conn_message.h"
#include "rdm/message.h"
#include "roce/path.h"
#include "transport/requester.h"

namespace weft::rdm {

struct Shared;

// The sending half of the way to a peer: asks for a flow, then makes work of requests. One thread
// at a time.
class RdmSender final : transport::WorkSink {
 public:
  enum class Phase : std::uint8_t { kAsking, kOpen, kLost };

  RdmSender(Shared& shared, std::uint32_t context, std::shared_ptr<const roce::Path> path,
            std::size_t path_mtu);

  Phase state() const { return state_; }
  const os::SocketAddress& peer() const { return path_->to; }
  const roce::Path& path() const { return *path_; }
  std::uint64_t station() const { return station_; }
  std::uint32_t context() const { return context_; }
  std::uint32_t connection_id() const { return connection_id_; }
  std::uint32_t peer_connection_id() const { return peer_connection_id_; }
  std::uint32_t peer_context() const { return peer_context_; }
  // Once it is open.
  std::uint64_t identity() const { return flow_identity(connection_id_, peer_connection_id_); }

  // Requests of the program, as link::Flow has them.
  link::Outcome send(const link::SendRequest& request);
  link::Outcome access(const link::AccessRequest& request);
  link::Outcome atomic(const link::AtomicRequest& request);
  bool busy() const { return reported_ != 0; }
  bool ready() const { return !finished_.empty(); }
  void report(link::FlowSink& sink);
  // As link::Flow::cancel(); report() says the end.
  bool cancel(const void* cookie);
  link::PeerState peer_state() const { return peer_state_; }
  // Ends everything: no buffer is used any more. What was copied goes on its way all the same,
  // unless what stands before it cannot.
  void give_up();
  // A flow refers to this sender; and does not any more.
  void hold() { ++holders_; }
  void release();
  // Nothing is in flight and no flow refers to it: it may be destroyed.
  bool finished() const;

  // Lets the peer write the first `length` bytes of the message that it offers over the flow `from`
  // into pieces, for the receive `cookie`.
  void accept(const link::Offer& offer, std::uint64_t from, std::span<const LocalRange> pieces,
              std::uint64_t length, void* cookie);
  // All of them are in place, or one cannot be (receive.error); or they will never be.
  void filled(RdmOperation& receive, os::Time now) { has_answer(receive, now); }
  void abandon(RdmOperation& receive);
  // The same, without a report.
  void detach(RdmOperation& receive);
  // The peer wants so many bytes of a message that it was offered.
  void deliver(RdmOperation& offered, std::uint32_t key, std::uint64_t length, os::Time now);
  // Sends what the peer has asked for, or waits for.
  void answer(const MessageHeader& header, std::span<const std::byte> bytes = {});
  // False while the peer has so many answers to acknowledge that it may ask for nothing more.
  bool may_answer() const { return messages_.may_take(link::kAnswerCost + kMaxAtomicBytes); }
  // The peer answered an operation of this flow.
  void answered(RdmOperation& operation, const MessageHeader& header,
                std::span<const std::byte> bytes, os::Time now);

  // What the peer says. The caller activates the channel afterwards.
  void take(const wire::Packet& response, os::Time now);
  // The peer leaves; all packets before that one have come there.
  void part(std::optional<Psn> expected, os::Time now);
  // Packets of this flow arrived ECN-marked: a CNP came.
  void marked(os::Time now) {
    if (requester_) requester_->marked(now);
  }
  // True when it is about this flow, so that the peer lives.
  bool on_rep(const ConnRep& rep, os::Time now);
  void lose(link::PeerState state);
  // Tells the peer that nothing more will come, if it may have heard of this end.
  void send_disconnect();
  // An ICMP port unreachable from the peer's host; `proven` when it quotes a request of the flow
  // (kMostUnreachable).
  void count_unreachable(bool proven);
  // That is a request to the peer, with what only the two ends know.
  bool has_sent(const wire::Packet& request) const;
  // A REJ for an unknown endpoint: another process may bind the address later.
  void on_rejected();
  // The caller waits for the peer without a limit of time, and is told of an unreachable port.
  void persist() { persisting_ = true; }
  // As link::Flow::doubt().
  void doubt() { doubting_ = true; }
  // Something is expected of the peer.
  bool expects() const { return persisting_ || operations_.count() != 0; }
  // Packets that answered nothing.
  std::uint64_t unasked() const {
    return unasked_ + (requester_ ? requester_->counts().ignored : 0);
  }
  // When the peer was last heard of, and that it was just now; asks whether it is still there.
  os::Time heard() const { return heard_; }
  void hear(os::Time now) {
    heard_ = now;
    unreachable_ = 0;
    if (requester_) requester_->heard();
  }
  void probe(os::Time now);

  // The way to the peer carries no more than that: what is in flight goes in pieces; once nothing
  // is, smaller packets are agreed upon.
  void narrow(std::size_t path_mtu);
  std::size_t carries() const { return carries_; }
  // For pieces that are answers.
  Fragments& fragments() { return fragments_; }

  // Sends what may be sent now.
  void emit(os::Time now);
  // When emit() has something to do.
  os::Time due() const;
  // Nothing has been going on: memory for it is given back.
  void trim();
  // False while something is to be sent, or waits for an answer.
  bool quiet() const;
  // Something has not arrived yet.
  bool owes() const;

 private:
  // What was to be sent before the flow was agreed upon.
  struct Early {
    transport::Work work;
    std::vector<work::Segment> pieces;
  };
  struct Finished {
    void* cookie = nullptr;
    int error = 0;
    int detail = 0;
  };

  link::Outcome may_begin() const;
  void tell(const MessageHeader& header, std::span<const std::byte> bytes = {},
            bool answers = false);
  RdmOperation& begin(void* cookie, bool reported);
  void has_answer(RdmOperation& operation, os::Time now);
  void post(RdmOperation& operation, transport::Work work);
  void post_header(RdmOperation& operation, const MessageHeader& header, std::size_t copied,
                   std::span<const LocalRange> rest, std::uint64_t length);
  void post_access(RdmOperation& operation, const transport::Work& work,
                   std::span<const LocalRange> local, std::uint64_t offset);
  std::uint32_t wire_key(RegionKey key);
  void started(RdmOperation& operation);
  void limit_asking();
  bool waits(os::Time now) const;
  bool fits_req(const link::SendRequest& request) const;
  bool may_join(const link::SendRequest& request) const;
  link::Outcome join(const link::SendRequest& request);
  void tie_up();
  void post_early();
  void ended(const transport::Ended& work) override;
  void end(RdmOperation& operation);
  link::Outcome fault(RdmOperation& operation);
  void report_end(RdmOperation& operation, int error, int detail = 0);
  bool borrows();
  bool take_back(RdmOperation& operation);
  void withdraw(RdmOperation& offer);
  void close();
  void send_req(os::Time now);
  bool narrows() const { return carries_ < path_mtu_; }
  bool may_narrow() const {
    return state_ == Phase::kOpen && narrows() && !requester_->has_begun();
  }
  // The peer has to hear that the way carries less, or that smaller packets come.
  bool has_to_ask() const { return raising_ || may_narrow() || peer_carries_ > carries_; }
  void look_for_hole(os::Time now);
  void look_for_more(os::Time now);
  static constexpr auto kFirstPause = std::chrono::milliseconds(2);  // between two REQs
  void agreed(const ConnRep& rep);

  Shared& shared_;
  const std::uint32_t context_;
  const std::uint32_t connection_id_;
  const std::shared_ptr<const roce::Path> path_;
  std::size_t path_mtu_;          // of the flow
  std::size_t carries_;           // the way to the peer, which may be less
  std::size_t peer_carries_ = 0;  // as far as the peer knows
  // Larger packets: when they are tried (min: a while after the next look), that it is waited until
  // nothing is in flight, that the peer was asked, and how often it was.
  os::Time raise_at_ = os::Time::min();
  bool wants_more_ = false;
  bool raising_ = false;
  std::uint8_t raises_ = 0;
  Budget::Share packets_;   // of Shared::packet_memory
  Budget::Share messages_;  // of Shared::message_memory
  Fragments fragments_;
  Phase state_ = Phase::kAsking;
  link::PeerState peer_state_ = link::PeerState::kAlive;
  std::uint64_t station_ = 0;  // of the peer
  unsigned holders_ = 0;
  bool persisting_ = false;
  bool doubting_ = false;
  os::Time heard_{};
  std::uint64_t unasked_ = 0;  // that came before there was a flow
  unsigned unreachable_ = 0;   // since the peer was last heard of
  std::uint32_t peer_connection_id_ = 0;
  std::uint32_t peer_context_ = 0;
  std::uint32_t peer_key_ = 0;
  os::Time first_req_{};
  os::Time next_req_{};
  // So much longer it asks, if not without end. Time in which this end did not look does not count.
  std::optional<os::Time::duration> asks_for_;
  std::chrono::milliseconds pause_{2};  // until the next
  std::optional<transport::Requester> requester_;
  Operations operations_;
  RdmOperation* bundle_ =
      nullptr;                   // collects small messages, and is posted before anything else is
  std::size_t bundle_room_ = 0;  // bytes
  os::Time sent_at_{};           // that something left without waiting for the next poll
  std::vector<std::byte> early_data_;  // that are said together with the message, before all else
  std::vector<Early> early_;
  std::vector<Finished> finished_;
  std::size_t reported_ = 0;  // operations whose end is reported
  std::size_t reading_ = 0;   // of these, those that read memory of the peer
  Aliases aliases_;
};

}  // namespace weft::rdm
