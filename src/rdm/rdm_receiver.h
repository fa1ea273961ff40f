// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint receive from one peer over the network?
#pragma once

#include <memory>

#include "base/budget.h"
#include "os/clock.h"
#include "rdm/conn_message.h"
#include "request_target.h"
#include "roce/path.h"
#include "signs_of_life.h"
#include "transport/responder.h"

namespace weft::rdm {

struct Shared;

// The receiving half of the flow from a peer: its responder, and the agreement of REQ and REP. One
// thread at a time.
class RdmReceiver {
 public:
  // For the peer of `req`, which is answered with `rep`; the inbox calls the peer `number`.
  RdmReceiver(Shared& shared, const ConnReq& req, const ConnRep& rep,
              std::shared_ptr<const roce::Path> path, std::uint32_t number);

  std::uint32_t number() const { return target_.source().number; }
  const ConnReq& req() const { return req_; }
  const ConnRep& rep() const { return rep_; }
  const roce::Path& path() const { return *target_.source().path; }
  std::uint64_t station() const { return req_.me.station; }
  std::uint64_t identity() const { return target_.source().identity; }
  RequestTarget& target() { return target_; }
  const RequestTarget& target() const { return target_; }

  // A request of the peer. The caller activates the context afterwards.
  void take(const wire::Packet& request, os::Time now);
  // Sends the answers that a peer waits for, and the others when their time has come; or all.
  void emit(bool all, os::Time now);
  // When emit() has something to do: os::Time::max() when only the peer can change anything.
  os::Time due() const;

  // The path to the peer carries no more than that: the peer is to send smaller packets, and to ask
  // for smaller ones. True when it does not know yet.
  bool suggest(std::size_t path_mtu);
  // The peer has repeated its REQ, to agree on another path MTU or as a keepalive.
  void agree(const ConnReq& again);
  // Nothing has been going on: memory for it is given back.
  void trim() { target_.trim(); }

  Psn expected() const { return responder_.expected(); }
  SignsOfLife& life() { return life_; }
  const SignsOfLife& life() const { return life_; }

 private:
  Shared& shared_;
  const ConnReq req_;
  ConnRep rep_;
  Budget::Share packets_;  // of Shared::packet_memory
  SignsOfLife life_;
  RequestTarget target_;
  transport::Responder responder_;  // goes first: its end breaks off messages of the target
};

}  // namespace weft::rdm
