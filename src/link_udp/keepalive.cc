// SPDX-License-Identifier: BSD-2-Clause
// How is a peer's death noticed without asking all the time?
//
// Each context has a time of its next check. A peer with operations outstanding is probed after a
// short silence; an idle one less and less often. A probe without an answer is repeated: the host
// of a dead process answers it with ICMP port unreachable. One probe and its answer prove to both
// ends that the other is alive, for all flows between them.
#include <algorithm>

#include "os/runtime_dir.h"
#include "station_hub.h"

namespace weft::udp {
namespace {

constexpr os::Time::duration kAgain = std::chrono::milliseconds(250);  // without an answer
constexpr os::Time::duration kShortest = std::chrono::milliseconds(500);
constexpr os::Time::duration kLongest = std::chrono::seconds(8);
// What must not be kept longer, of a peer that is listened to no more.
constexpr os::Time::duration kForgotten = std::chrono::seconds(15);

}  // namespace

// A heap with the earliest in front. What it has of a context that is to be looked at earlier by
// now is left there, and does not count.
void StationHub::watch(Context& context, os::Time at) {
  context.watched_at = at;
  watches_.push_back({at, context.number});
  std::push_heap(watches_.begin(), watches_.end());
}

void StationHub::hasten(Context& context) {
  context.used = now_;
  if (context.watched_at > now_ + kShortest) watch(context, now_ + kShortest);
}

void StationHub::look_at_silent_ones() {
  while (!watches_.empty() && watches_.front().at <= now_) {
    const Watch due = watches_.front();
    std::pop_heap(watches_.begin(), watches_.end());
    watches_.pop_back();
    Context* context = find_context(due.context);
    if (context == nullptr || context->watched_at != due.at) continue;
    const os::Time next = context->out != nullptr ? look_at(*context, *context->out)
                                                  : look_at(*context, *context->in);
    context = find_context(due.context);
    if (context != nullptr) watch(*context, next);
  }
}

// How long the peer may be silent. Deadlines are spread over the peers; the requester of a flow
// probes first.
os::Time::duration StationHub::patience(const Context& context, bool eager) const {
  if (eager) return kShortest;
  const auto idle = std::clamp((now_ - context.used) / 2, kShortest, kLongest);
  const auto usual = context.out != nullptr ? idle : idle * 3 / 2;
  return usual + usual / 4 * (context.number % 64) / 64;
}

// Without an answer to so many of them it has died: only time in which this end looks counts.
unsigned StationHub::most_questions() const {
  return static_cast<unsigned>(options_.peer_timeout / kAgain);
}

os::Time StationHub::look_at(Context& context, RdmSender& out) {
  const bool eager = out.expects() || context.active;
  if (eager) context.used = now_;
  if (now_ - context.used >= kShortest) out.trim();
  if (out.state() != RdmSender::State::kOpen) return now_ + kShortest;
  const auto patient = patience(context, eager);
  if (now_ - out.heard() < patient) {
    context.questions = 0;
    return out.heard() + patient;
  }
  if (++context.questions > most_questions()) {
    out.lose(link::PeerState::kDied);
  } else {
    out.probe(now_);
  }
  return now_ + kAgain;
}

os::Time StationHub::look_at(Context& context, RdmReceiver& in) {
  if (context.active) context.used = now_;
  if (now_ - context.used >= kShortest) in.trim();
  const auto patient = patience(context, context.active);
  if (now_ - in.heard() < patient) {
    context.questions = 0;
    return in.heard() + patient;
  }
  if (in.is_shut()) {
    if (now_ - in.heard() > kForgotten) close_source(in, false);
  } else if (++context.questions <= most_questions()) {
    send_cm(in.path(), in.rep());
  } else if (sink_ != nullptr) {
    close_source(in, true);
  }
  return now_ + kAgain;
}

}  // namespace weft::udp
