// SPDX-License-Identifier: BSD-2-Clause
// What do the two sides of a connection, its end and its listeners share?
#pragma once

#include "base/answer_limiter.h"
#include "base/result.h"
#include "base/stats.h"
#include "cm/host.h"
#include "cm/options.h"
#include "deadlines.h"
#include "entries.h"
#include "listeners.h"
#include "messages.h"
#include "peers.h"
#include "reports.h"
#include "request_limiter.h"

namespace weft::cm {

// The state of an agent, and the steps of its connections that occur in several of its parts.
struct Core {
  Core(CmHost& its_host, const AgentOptions& its_options, Stats& its_stats);

  // Sends a message, keeps it, and repeats it by timer.
  void start(CmConnection& connection, std::vector<std::byte> message, const RepeatTimes& times,
             unsigned repetitions, Time now);
  // What becomes due, or must be kept, is written there.
  static Task& task_of(CmConnection& connection);
  // At `until` its state ends; nothing is repeated by timer. What is kept stays.
  void wait(CmConnection& connection, Time until);
  // Nothing is due or kept any more.
  void drop_task(CmConnection& connection);
  // Sends a message to each address that is asked.
  void send(const CmConnection& connection, std::span<const std::byte> message);
  // Sends the kept message again, if there is one.
  void repeat(const CmConnection& connection);
  // Sends a message that is not kept, with the transaction id of the REQ.
  void send_once(const CmConnection& connection, const wire::CmMessage& message);
  // Whether an answer that no state stands behind may be sent, within AnswerRates: it counts then.
  // Those to processes of this host always are.
  bool may_answer(const Remote& to, Time now);
  // Sends such an answer.
  void answer(const CmArrival& arrival, const wire::CmMessage& message);
  // The same as a REJ: to a message that names no connection of this side.
  void answer(const CmArrival& arrival, std::uint8_t message, wire::CmReason reason,
              std::uint32_t remote_id);
  // Sends an MRA: the decision about a message takes so long.
  void ask_for_time(const CmConnection& connection, std::uint8_t message, std::uint8_t timeout);
  // Those of its carrier.
  const AnswerTimes& times_of(const CmConnection& connection) const;
  // After each change of its timer.
  void arm(CmConnection& connection);

  // The connection of this id when transaction id and source of the message are its, too. Null also
  // when the sender names an id of its own, other than 0, that is not the known one. The first
  // answer to a request may come from another port of the host: of the process that it was relayed
  // to, or of an acceptor that has adopted it.
  CmConnection* answered(const CmArrival& arrival, ConnectionId id, std::uint32_t remote_id);
  // The connection of this id when source and sender's id are its: of a message with a transaction
  // id of its own.
  CmConnection* between(const CmArrival& arrival, ConnectionId id, std::uint32_t remote_id);

  // Reports the end of a connection. A request that was not reported yet ends unheard.
  void end(const CmConnection& connection, EventKind kind, const CmArrival* arrival = nullptr);
  // It is established: nothing is repeated by timer.
  void settle(CmConnection& connection);
  // Its id rests after its end.
  void rest(CmConnection& connection, Time now);
  // The same for an attempt that has failed: its entry answers repetitions by `kept` for as long as
  // they may come, unless many others fail meanwhile.
  void retire(CmConnection& connection, std::vector<std::byte> kept, Time now);
  // Sends a REJ and retires the attempt. Without `is_sent` it is only kept for a repeated REQ.
  void refuse(CmConnection& connection, wire::CmRej rej, std::span<const std::byte> data, Time now,
              bool is_sent = true);
  // Answers a SIDR_REQ, whose entry then keeps the answer.
  void answer_query(CmConnection& connection, wire::CmSidrRep reply, Time now);
  void forget(CmConnection& connection);

  // The user of a listener decides about a new request, which is half open until then.
  void await_decision(CmConnection& connection, ServiceListener& listener, Time now);
  // The oldest half-open requests end when there are too many.
  void displace(ServiceListener& listener);

  CmHost& host;
  const AgentOptions options;
  Stats& stats;
  // Entries have places in the lists above them.
  WatchedPeers peers;
  Listeners listeners;
  AgeLists refused;    // retired attempts
  AgeList unanswered;  // those with an UnansweredReq
  Entries entries;
  Deadlines<ConnectionId> deadlines;
  Deadlines<PeerKey> peer_deadlines;
  Reports events;
  AnswerLimiter limiter;
  const std::uint64_t source_seed;  // of the hashes that it groups sources by
  RequestLimiter requests;
};

// Of a connection id that means no connection in the right state.
Error no_connection(ConnectionId id);
Error no_free_id();
// When private data have more than `limit` bytes.
Status check_length(std::span<const std::byte> data, std::size_t limit);

}  // namespace weft::cm
