// SPDX-License-Identifier: BSD-2-Clause
// Which packets would the operations of one endpoint on another have been?
#include "dialogue.h"

#include <cerrno>
#include <utility>

namespace weft::capture {

using link::Outcome;

bool Dialogue::begin() {
  if (flow_ != nullptr) return true;
  auto flow = asker_.engine().connect(to_);
  if (flow) flow_ = std::move(flow).value();
  return flow_ != nullptr;
}

// A flow has room for a limited number of messages that are not received: the next one begins
// without them.
void Dialogue::repeat(const std::function<Outcome(link::Flow&)>& ask) {
  for (const bool again : {true, false}) {
    if (!begin()) return;
    const Outcome outcome = ask(*flow_);
    const bool stuck = outcome.state == Outcome::State::kAgain || outcome.error == ECONNRESET;
    if (!stuck || !again) break;
    flow_.reset();
  }
  converse();
}

// Until both ends are silent.
void Dialogue::converse() {
  do {
    asker_.turn();
    answerer_.turn();
  } while (asker_.has_packets());
  if (flow_ != nullptr) flow_->progress(asker_);
}

link::Arrival Dialogue::send(const link::SendRequest& request) {
  memory_.begin({});
  repeat([&](link::Flow& flow) { return flow.send(request); });
  return answerer_.last_message();
}

void Dialogue::access(const link::AccessRequest& request, std::span<const LocalRange> read,
                      const memory::Accessed& verdict) {
  memory_.begin(read, verdict);
  repeat([&](link::Flow& flow) { return flow.access(request); });
}

void Dialogue::atomic(const link::AtomicRequest& request, std::span<const LocalRange> fetched,
                      const memory::Accessed& verdict) {
  memory_.begin(fetched, verdict);
  repeat([&](link::Flow& flow) { return flow.atomic(request); });
}

void Dialogue::accept(const link::Offer& offer, std::uint64_t length,
                      std::span<const LocalRange> bytes) {
  memory_.begin(bytes);
  answerer_.engine().accept(answerer_, offer, {}, length, nullptr);
  converse();
}

void Dialogue::acknowledge(const link::Offer& offer) {
  answerer_.engine().acknowledge(offer);
  converse();
}

void Dialogue::cancel(void* cookie) {
  if (flow_ == nullptr) return;
  flow_->cancel(cookie, asker_);
  converse();
}

// The engine closes a flow without a user when it finds it idle twice.
void Dialogue::end() {
  if (flow_ == nullptr) return;
  flow_.reset();
  asker_.engine().check_sources(asker_);
  asker_.engine().check_sources(asker_);
  converse();
}

}  // namespace weft::capture
