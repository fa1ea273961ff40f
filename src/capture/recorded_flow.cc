// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint ask of a peer that it reaches without packets?
#include "recorded_flow.h"

#include <array>
#include <cerrno>

#include "link/local_buffers.h"
#include "os/user_memory.h"

namespace weft::capture {

using link::Outcome;

RecordedFlow::~RecordedFlow() {
  if (peers_.wanted()) peer_.mine.end();
}

// How the peer answered an access; nothing if it cannot have answered, or nothing is recorded.
std::optional<memory::Accessed> RecordedFlow::verdict_of(const Outcome& outcome) const {
  if (!peers_.wanted()) return std::nullopt;
  if (outcome.state == Outcome::State::kDone) return memory::Accessed{};
  if (outcome.state != Outcome::State::kFailed) return std::nullopt;
  if (outcome.error == EACCES) {
    return memory::Accessed{static_cast<memory::AccessError>(outcome.detail)};
  }
  if (outcome.error == EFAULT) return memory::Accessed{memory::AccessError::kNone, EFAULT};
  return std::nullopt;
}

Outcome RecordedFlow::send(const link::SendRequest& request) {
  if (!os::readable(request.pieces)) return Outcome::failed(EFAULT);
  const Outcome outcome = flow_->send(request);
  const bool pending = outcome.state == Outcome::State::kPending;
  if ((!pending && outcome.state != Outcome::State::kDone) || !peers_.wanted()) return outcome;
  if (request.operation == link::MessageOperation::kDatagram) {
    peers_.own().write_datagram(peer_.address, request.pieces, request.has_data, request.data);
    return outcome;
  }
  if (request.operation == link::MessageOperation::kControl) {
    peers_.own().write_connection_message(peer_.address, request.pieces.front());
    return outcome;
  }
  const link::Arrival message = peer_.mine.send(request);
  if (pending) sent_.insert_or_assign(request.cookie, message);
  return outcome;
}

// How much of an offered message the peer took is not known here: all, it seems.
void RecordedFlow::ended(void* cookie, int error, int detail) {
  if (const auto node = sent_.extract(cookie); !node.empty() && peers_.wanted()) {
    const link::Arrival& message = node.mapped();
    if (error == ECANCELED) {
      peer_.mine.cancel(cookie);
    } else if (error == 0 && message.payload == nullptr) {
      peer_.mine.accept(message.offer, message.length, {});
    } else if (error == 0 && message.wants_ack) {
      peer_.mine.acknowledge(message.offer);
    }
  }
  sink_->ended(cookie, error, detail);
}

bool RecordedFlow::cancel(void* cookie, link::FlowSink& sink) {
  sink_ = &sink;
  return flow_->cancel(cookie, *this);
}

// Its bytes are as they are now: in the local buffers.
Outcome RecordedFlow::access(const link::AccessRequest& request) {
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  const Outcome outcome = flow_->access(request);
  if (const auto verdict = verdict_of(outcome)) {
    link::AccessRequest repeated = request;
    if (!request.write) repeated.local = {};
    peer_.mine.access(repeated, request.local, *verdict);
  }
  return outcome;
}

// The result may go to the buffer of the operands.
Outcome RecordedFlow::atomic(const link::AtomicRequest& request) {
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  std::array<std::byte, kMaxAtomicBytes> operand{};
  std::array<std::byte, kMaxAtomicBytes> compare{};
  if (!os::gather(operand.data(), request.operand, request.length) ||
      !os::gather(compare.data(), request.compare, request.length)) {
    return Outcome::failed(EFAULT);
  }
  const Outcome outcome = flow_->atomic(request);
  if (const auto verdict = verdict_of(outcome)) {
    const LocalRange copies[] = {{operand.data(), request.length},
                                 {compare.data(), request.length}};
    link::AtomicRequest repeated = request;
    repeated.operand = {&copies[0], 1};
    repeated.compare = {&copies[1], 1};
    repeated.result = {};
    peer_.mine.atomic(repeated, request.result, *verdict);
  }
  return outcome;
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
