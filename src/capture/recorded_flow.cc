// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint ask of a peer that it reaches without packets?
#include "recorded_flow.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "link/local_buffers.h"
#include "os/user_memory.h"

namespace weft::capture {

using link::Outcome;

namespace {

// What the peer would have said, unless it cannot have said anything.
std::optional<RequestVerdict> verdict_of(const Outcome& outcome) {
  if (outcome.state == Outcome::State::kDone) return RequestVerdict{};
  if (outcome.state != Outcome::State::kFailed) return std::nullopt;
  if (outcome.error == EACCES) {
    return RequestVerdict{RequestVerdict::Kind::kAccess, static_cast<std::uint8_t>(outcome.detail)};
  }
  if (outcome.error == EFAULT) return RequestVerdict{RequestVerdict::Kind::kOperational, 0};
  return std::nullopt;
}

std::uint64_t word(std::span<const LocalRange> pieces) {
  std::uint64_t value = 0;
  return os::gather(&value, pieces, sizeof value) ? value : 0;
}

}  // namespace

RecordedFlow::~RecordedFlow() {
  if (peer_.wanted()) peer_.part(true);
}

RecordedFlow::Pending& RecordedFlow::remember(void* cookie) {
  Pending& pending = pending_.emplace_back();
  pending.self = std::prev(pending_.end());
  pending.cookie = cookie;
  return pending;
}

Outcome RecordedFlow::send(const link::SendRequest& request) {
  if (!os::readable(request.pieces)) return Outcome::failed(EFAULT);
  Pending& pending = remember(request.cookie);
  link::SendRequest marked = request;
  marked.cookie = &pending;
  const Outcome outcome = flow_->send(marked);
  const bool stays = outcome.state == Outcome::State::kPending;
  if ((stays || outcome.state == Outcome::State::kDone) && peer_.wanted()) sent(request, pending);
  if (!stays) forget(pending);
  return outcome;
}

// As RdmSender does: a message goes whole, or is offered.
void RecordedFlow::sent(const link::SendRequest& request, Pending& pending) {
  if (request.operation == link::Operation::kDatagram) {
    return peer_.datagram(true, request.pieces, request.has_data, request.data);
  }
  const bool whole = request.must_copy || request.length <= recorder_.options_.eager_limit;
  rdm::MessageHeader header = rdm::header_of(request, whole);
  pending.wants_ack = header.wants_ack;
  if (header.wants_ack) header.exchange = pending.exchange = peer_.new_exchange();
  pending.offered = !whole;
  pending.length = request.length;
  pending.count = request.pieces.size();
  std::copy(request.pieces.begin(), request.pieces.end(), pending.pieces.begin());
  peer_.mine().message(header, whole ? request.pieces : std::span<const LocalRange>{});
}

// How much of an offered message the peer took is not known here: all, it seems.
void RecordedFlow::ended(void* cookie, int error, int detail) {
  auto& pending = *static_cast<Pending*>(cookie);
  if (error == 0 && pending.wants_ack && peer_.wanted()) {
    Dialogue& theirs = peer_.theirs();
    if (pending.offered) {
      theirs.want(pending.exchange, pending.length);
      peer_.mine().deliver(pending.exchange, {pending.pieces.data(), pending.count},
                           pending.length);
    } else {
      rdm::MessageHeader taken;
      taken.kind = rdm::MessageKind::kTaken;
      taken.exchange = pending.exchange;
      theirs.message(taken);
    }
  }
  void* const before = pending.cookie;
  forget(pending);
  sink_->ended(before, error, detail);
}

bool RecordedFlow::cancel(void* cookie, link::FlowSink& sink) {
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Pending& each) { return each.cookie == cookie; });
  if (found == pending_.end()) return false;
  rdm::MessageHeader header;
  header.kind = rdm::MessageKind::kWithdrawn;
  header.exchange = found->exchange;
  const bool offered = found->offered;
  sink_ = &sink;
  const bool withdrawn = flow_->cancel(&*found, *this);
  if (withdrawn && offered && peer_.wanted()) peer_.mine().message(header);
  return withdrawn;
}

Outcome RecordedFlow::access(const link::AccessRequest& request) {
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  Pending& pending = remember(request.cookie);
  link::AccessRequest marked = request;
  marked.cookie = &pending;
  const Outcome outcome = flow_->access(marked);
  if (outcome.state != Outcome::State::kPending) forget(pending);
  const auto verdict = verdict_of(outcome);
  if (verdict && peer_.wanted()) accessed(request, *verdict);
  return outcome;
}

void RecordedFlow::accessed(const link::AccessRequest& request, const RequestVerdict& verdict) {
  if (!request.write) return peer_.mine().read(request.remote, request.local, verdict);
  const auto data = request.has_data ? std::optional(request.data) : std::nullopt;
  peer_.mine().write(request.remote, request.local, data, verdict);
}

Outcome RecordedFlow::atomic(const link::AtomicRequest& request) {
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  Pending& pending = remember(request.cookie);
  link::AtomicRequest marked = request;
  marked.cookie = &pending;
  // Where the result goes may be where the operands came from.
  std::vector<std::byte> operands(2 * request.length);
  LocalRange operand{operands.data(), request.operand.empty() ? 0 : request.length};
  LocalRange compare{operands.data() + request.length,
                     request.compare.empty() ? 0 : request.length};
  if (!os::gather(operand.base, request.operand, operand.length) ||
      !os::gather(compare.base, request.compare, compare.length)) {
    forget(pending);
    return Outcome::failed(EFAULT);
  }
  const Outcome outcome = flow_->atomic(marked);
  if (outcome.state != Outcome::State::kPending) forget(pending);
  if (verdict_of(outcome) && peer_.wanted()) {
    marked.operand = {&operand, 1};
    marked.compare = {&compare, 1};
    changed(marked, outcome);
  }
  return outcome;
}

void RecordedFlow::changed(const link::AtomicRequest& request, const Outcome& outcome) {
  const AtomicAction& action = request.action;
  const bool done = outcome.state == Outcome::State::kDone;
  if (!request.has_data && has_opcode(action, request.remote)) {
    return peer_.mine().atomic(request.remote[0], action.compares(), word(request.operand),
                               word(request.compare), done ? word(request.result) : 0,
                               *verdict_of(outcome));
  }
  rdm::MessageHeader header;
  header.kind = rdm::MessageKind::kAtomic;
  header.has_data = request.has_data;
  header.action = action;
  header.exchange = peer_.new_exchange();
  header.tag = request.remote.size();
  header.data = request.data;
  header.length = request.length;
  std::byte ranges[link::kMaxPieces * rdm::kRange];
  const LocalRange parts[] = {
      {ranges, rdm::write_ranges(request.remote, ranges)}, request.operand[0], request.compare[0]};
  peer_.mine().message(header, parts);
  rdm::MessageHeader result;
  result.kind = rdm::MessageKind::kResult;
  result.exchange = header.exchange;
  result.tag = static_cast<std::uint64_t>(outcome.error);
  result.data = static_cast<std::uint64_t>(outcome.detail);
  const bool brings = done && action.fetches();
  peer_.theirs().message(result, brings ? request.result : std::span<const LocalRange>{});
}

void RecordedFlow::progress(link::FlowSink& sink) {
  sink_ = &sink;
  flow_->progress(*this);
}

link::PeerState RecordedFlow::check_peer(link::FlowSink& sink) {
  sink_ = &sink;
  return flow_->check_peer(*this);
}

void RecordedFlow::give_up(link::FlowSink& sink) {
  sink_ = &sink;
  flow_->give_up(*this);
}

}  // namespace weft::capture
