// SPDX-License-Identifier: BSD-2-Clause
// How are connections made and ended by InfiniBand's communication management (IBTA chapter 12)?
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/request_credits.h"
#include "base/result.h"
#include "base/stats.h"
#include "base/time.h"
#include "cm/event.h"
#include "cm/host.h"
#include "cm/options.h"
#include "wire/cm_message.h"

namespace weft::cm {

inline constexpr std::size_t kMaxMorePrivateData = wire::kMaxBytesBehindMad;

// A request for a connection. The agent fills in the communication id, the transaction id and the
// CA GUID; everything else of the REQ is the caller's.
struct ConnectRequest {
  Remote to;
  wire::CmReq req;
  std::vector<std::byte> more = {};  // behind the MAD, at most kMaxMorePrivateData bytes
  RepeatTimes repeats;
  // Once established: both ends are Weft's, so that a probe (LAP, answered by APR) finds out
  // whether the peer lives, and a DREQ carries the transaction id of the REQ. Without it a DREQ
  // counts when both communication ids, the queue pair and the source address match.
  bool watched = false;
  // Another port of the same host. As long as nothing has answered (no MRA either), it is asked,
  // too, after that time, or as soon as `to` is reported as unreachable.
  std::optional<Remote> other = std::nullopt;
  std::chrono::nanoseconds other_after = std::chrono::milliseconds(100);
  // The attempt ends with kUnreachable when `to` and `other`, if there is one, were reported as
  // unreachable before anything answered; after an MRA, when its sender was, in answer to a further
  // REQ.
  bool ends_unreachable = false;
};

// A request for the queue pair of a service. The agent fills in the request id and the transaction
// id; everything else of the SIDR_REQ is the caller's.
struct ResolveRequest {
  Remote to;
  wire::CmSidrReq req;
  RepeatTimes repeats = {};
  bool ends_unreachable = false;  // as that of ConnectRequest
};

// An answer to a request. The agent fills in both communication ids and the CA GUID; everything
// else of the REP is the caller's. Its queue pair (XRC: its EECN) is what a DREQ of the peer must
// name.
struct AcceptRequest {
  wire::CmRep rep;
  std::vector<std::byte> more = {};  // behind the MAD, at most kMaxMorePrivateData bytes
  bool watched = false;
  // Of an adopted request: credits() of the agent that has taken it, which gets one back when the
  // connection is established.
  std::shared_ptr<RequestCredits> credits = nullptr;
  // That agent has sent an MRA: the REP is repeated once less.
  bool delayed = false;
};

// The connection manager of one port, without I/O: messages, calls and the time go in; messages
// (CmHost), events (User) and the time of the next call of advance() come out. One thread at a
// time.
//
// A `user` outlives its listeners, its connections and their events: until they have ended and
// their ends were delivered. A `context` is handed back with events; the agent
// does not use what it points to, so null is allowed.
//
// An answer counts when communication id, transaction id (64 random bits of the request) and source
// address match; the first one to a request may come from any port of the host that was asked,
// which is the peer from then on. Anything else that suggests another instance or a dead peer (a
// REQ with another CA GUID from the address of a watched connection, an ICMP error, a REJ or DREQ
// with the wrong transaction id) starts a probe, and the peer is lost only if it stays unanswered
// (docs/design/connection_manager.md).
class Agent {
 public:
  // `host` and `stats` outlive the agent.
  Agent(CmHost& host, const AgentOptions& options, Stats& stats);
  ~Agent();  // sends nothing and reports nothing
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // A payload for queue pair 1. False when it is malformed or of another class. Both are counted
  // (kConnectionMessages, kMalformedPackets). While many requests await their RTU, of which most
  // are forged then, REQs are taken from the second copy on, and so many a second as RequestRates
  // says; others are counted only (kRequestsHeldBack).
  bool take(const Remote& from, std::span<const std::byte> message, Time now);
  // A message within the host, parsed already, and the bytes behind it.
  void take(const Remote& from, const wire::CmMad& mad, std::span<const std::byte> more, Time now);
  // The network reports that nothing receives packets at that address, which can be forged.
  // Established connections are probed, attempts do what their ConnectRequest says.
  void unreachable(const Remote& peer, Time now);
  // Repeats messages and ends what is overdue.
  void advance(Time now);
  // When advance() has something to do; Time::max() when only a call or a message can change that.
  Time due() const;
  // Reports all events, or those of one carrier's connections; they are kept until then.
  void deliver(std::optional<Carrier> carrier = std::nullopt);
  bool has_events(std::optional<Carrier> carrier = std::nullopt) const;

  // REQs and SIDR_REQs for `service` are reported to `user`. At most `backlog` requests are
  // undecided or await their RTU: beyond that the oldest ends. A backlog of 0 is one of 1. Errors:
  // EADDRINUSE.
  Result<ListenerId> listen(std::uint64_t service, std::size_t backlog, User& user, void* context);
  // As that of listen(). Nothing happens when the listener is unknown.
  void set_backlog(ListenerId listener, std::size_t backlog);
  // Rejects the undecided requests of a listener with `kInvalidService`, without events; accepted
  // ones go on. Nothing happens when the listener is unknown.
  void stop(ListenerId listener, Time now);

  // The decision about a request (kRequest, kResolve) does not depend on its listener any more: it
  // neither counts towards the backlog nor ends by stop(). Events of it go to `user`. Errors:
  // ENOENT.
  Status claim(ConnectionId id, User& user, void* context);

  // Sends a REQ. Errors: EUSERS when no communication id is free, EINVAL for too long private data,
  // or when `other` is of another host.
  Result<ConnectionId> connect(const ConnectRequest& request, User& user, void* context, Time now);
  // Answers a REQ by a REP. Events go to `user` from now on. Errors: ENOENT when the request has
  // ended meanwhile, EINVAL.
  Status accept(ConnectionId id, const AcceptRequest& reply, User& user, void* context, Time now);
  // A REQ awaits accept(), reject() or forward().
  bool is_undecided(ConnectionId id) const;
  // Another agent of this host adopts an undecided request: nothing is sent, reported or answered
  // any more. The other agent counts an MRA of delay() by AcceptRequest::delayed.
  // Errors: ENOENT.
  Status forward(ConnectionId id, Time now);
  // Takes a REQ that another agent of this host has received from `from`: to be answered by
  // accept() or reject(), without a kRequest; other events of it go to `user`. Errors: EINVAL when
  // `request` is no REQ, EALREADY when that request, or a connection with its communication id or
  // queue pair, lives here, EUSERS.
  Result<ConnectionId> adopt(const Remote& from, const wire::CmMad& request, User& user,
                             void* context, Time now);
  // Answers a REQ or a REP by a REJ, with up to 404 bytes of data: those that do not fit into its
  // 148 stand behind the MAD. Errors: ENOENT, EINVAL.
  Status reject(ConnectionId id, wire::CmReason reason, std::span<const std::byte> data, Time now);
  // As reject(), of a REQ that is refused before a program decides, as it may be forged: the REJ
  // counts towards AnswerRates. When these are used up, a repeated REQ draws it. Errors: ENOENT,
  // EINVAL.
  Status refuse(ConnectionId id, wire::CmReason reason, std::span<const std::byte> data, Time now);
  // A packet from `peer` names a queue pair or context that this end does not know: answered by a
  // REJ with reason 10 that names no connection, within AnswerRates.
  void reject_unknown(const Remote& peer, Time now);
  // Answers a REQ by an MRA now, and each repeated REQ: the decision takes a while. `timeout` is
  // the code of the service timeout (IBTA 12.6.6). Without it a repeated REQ draws an MRA of 2 s.
  // Each call leaves one repetition less to the REP, so that a REQ draws no more packets; without
  // any left, only repeated REQs draw MRAs.
  // Errors: ENOENT, EINVAL.
  Status delay(ConnectionId id, std::uint8_t timeout, Time now);
  // Answers a REP by an RTU with up to 224 bytes: the connection is established. Errors: ENOENT,
  // EINVAL.
  Status confirm(ConnectionId id, std::span<const std::byte> data, Time now);
  // A packet of the queue pair arrived: stands for an RTU that is lost.
  void established(ConnectionId id, Time now);
  // Ends a connection in any state, without an event: by a DREQ with up to 220 bytes, or a REJ with
  // up to 148 before it is established; further bytes are not sent. The user does not hear of the
  // id any more.
  void disconnect(ConnectionId id, std::span<const std::byte> data, Time now);
  // Ends a connection in any state without an event or a message: its peer is known to be gone.
  void abandon(ConnectionId id, Time now);
  // Asks whether the peer of a watched connection lives: kPeerLost after `peer_timeout` if not.
  void probe(ConnectionId id, Time now);
  // The last sign of life of a watched connection's peer that this agent has taken (APR, LAP, RTU);
  // Time{} without one.
  Time last_received(ConnectionId id) const;

  // Resolves a service to a queue pair by a SIDR_REQ (unreliable datagrams): kResolved, after which
  // the id is unknown, kTimedOut, or kUnreachable. Errors: EUSERS.
  Result<ConnectionId> resolve(const ResolveRequest& request, User& user, void* context, Time now);
  // Answers kResolve. The agent fills in the request id, and the service unless the request was
  // claimed. Errors: ENOENT.
  Status answer(ConnectionId id, const wire::CmSidrRep& reply, Time now);

  // For AcceptRequest::credits of another agent. Any thread may use it, also after the agent's end.
  std::shared_ptr<RequestCredits> credits() const;

  // AgentOptions::guid.
  std::uint64_t guid() const;
  // Connections in any state but TimeWait; those and the ids that rest.
  std::size_t connections() const;
  std::size_t entries() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace weft::cm
