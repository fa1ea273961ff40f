// SPDX-License-Identifier: BSD-2-Clause
// How is a peer's death noticed without asking all the time?
#include "keepalive.h"

#include <algorithm>

namespace weft::rdm {
namespace {

constexpr os::Time::duration kAgain = std::chrono::milliseconds(250);  // without an answer
constexpr os::Time::duration kShortest = std::chrono::milliseconds(500);
constexpr os::Time::duration kLongest = std::chrono::seconds(8);
// What must not be kept longer, of a peer that is listened to no more.
constexpr os::Time::duration kForgotten = std::chrono::seconds(15);

// A heap with the earliest in front. What it has of a context that is to be looked at earlier by
// now is left there, and does not count.
void watch(Context& context, Watches& watches, os::Time at) {
  context.watched_at = at;
  watches.add(context.number, at);
}

// How long the peer may be silent. Deadlines are spread over the peers; the requester of a flow
// probes first.
os::Time::duration most_silence(const Context& context, bool eager, os::Time now) {
  if (eager) return kShortest;
  const auto idle = std::clamp((now - context.used) / 2, kShortest, kLongest);
  const auto usual = context.out != nullptr ? idle : idle * 3 / 2;
  return usual + usual / 4 * (context.number % 64) / 64;
}

// Without an answer to so many of them it has died: only time in which this end looks counts.
unsigned most_questions(const Shared& shared) {
  return static_cast<unsigned>(shared.options.device->peer_timeout / kAgain);
}

// Returns when to look again.
os::Time look_at(Context& context, RdmSender& out, const Shared& shared) {
  const os::Time now = shared.now;
  const bool eager = out.expects() || context.active;
  if (eager) context.used = now;
  if (now - context.used >= kShortest) out.trim();
  if (!out.flow().is_open()) return now + kShortest;
  const auto patient = most_silence(context, eager, now);
  if (now - out.flow().heard() < patient) {
    context.questions = 0;
    return out.flow().heard() + patient;
  }
  if (++context.questions > most_questions(shared)) {
    out.lose(link::PeerState::kDied);
  } else {
    out.send_req(now);
  }
  return now + kAgain;
}

os::Time look_at(Context& context, RdmReceiver& in, FlowTable& flows, const Shared& shared) {
  const os::Time now = shared.now;
  if (context.active) context.used = now;
  if (now - context.used >= kShortest) in.trim();
  const auto patient = most_silence(context, context.active, now);
  if (now - in.life().heard() < patient) {
    context.questions = 0;
    return in.life().heard() + patient;
  }
  if (in.target().is_shut()) {
    if (now - in.life().heard() > kForgotten) flows.close_source(in, false);
  } else if (++context.questions <= most_questions(shared)) {
    flows.emission().send_cm(in.path(), in.rep());
  } else if (shared.sink != nullptr) {
    flows.close_source(in, true);
  }
  return now + kAgain;
}

}  // namespace

void hasten(Context& context, Watches& watches, os::Time now) {
  context.used = now;
  if (context.watched_at > now + kShortest) watch(context, watches, now + kShortest);
}

void look_at_silent_peers(FlowTable& flows, Shared& shared) {
  Contexts& contexts = flows.contexts();
  while (const auto due = contexts.watches().take_due(shared.now)) {
    Context* context = contexts.find(due->context);
    if (context == nullptr || context->watched_at != due->at) continue;
    const os::Time next = context->out != nullptr ? look_at(*context, *context->out, shared)
                                                  : look_at(*context, *context->in, flows, shared);
    context = contexts.find(due->context);
    if (context != nullptr) watch(*context, contexts.watches(), next);
  }
}

}  // namespace weft::rdm
