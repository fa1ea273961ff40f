// SPDX-License-Identifier: BSD-2-Clause
// What does the survivor require of any session, whichever way the two met?
#include "session.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "failure.h"

namespace weft::faults {

namespace {

constexpr std::chrono::seconds kLimit{
    20};  // the rule is two; a loaded machine may lag, a hang is for ever
constexpr std::chrono::seconds kLifeLimit{40};
// Longer than it takes to notice a death, shorter than any wait for a stopped process.
constexpr std::chrono::milliseconds kStandStill{400};
constexpr std::uint64_t kLatestPause = 3000;  // microseconds
constexpr std::uint64_t kProofOfLife = 10;    // operations that complete after a pause

}  // namespace

Session::Session(const Setting& setting)
    : node_(setting.node),
      fork_server_(setting.fork_server),
      slot_(setting.slot),
      order_(setting.order),
      tally_(setting.tally),
      random_(setting.order.seed ^ 0x5eed) {
  Arena(slot_.arena).prepare();
  begun_ = Clock::now();
  process_ = fork_server_.spawn(order_);
  lifeline_.emplace(process_);
}

Session::~Session() = default;

std::string Session::describe() const {
  std::string text = "session " + std::to_string(order_.id) + " (" + name_of(order_.action) +
                     ", started by " + name_of(order_.starter) + (order_.early ? ", early" : "") +
                     (order_.blocking ? ", blocking" : "") + (order_.stopped ? ", stopped" : "") +
                     ", to die after " + std::to_string(order_.kill_after_us) + " us), state " +
                     std::to_string(static_cast<int>(state_)) + describe_more();
  if (initiator_) text += ", pending" + initiator_->describe_pending();
  if (tagged_) text += ", receives pending " + std::to_string(tagged_->pending());
  return text;
}

void Session::require_within(Clock::time_point begin, const std::string& what) const {
  if (Clock::now() - begin > kLimit) fail(what + " for more than 20 s in " + describe());
}

void Session::step() {
  if (died_ == Clock::time_point{}) {
    if (lifeline_->dead())
      notice_death();
    else if (Clock::now() - begun_ > kLifeLimit)
      fail(describe() + ": the victim did not come to its death");
  }
  switch (state_) {
    case State::kMeeting:
      return meet();
    case State::kStreaming:
      return keep_streaming();
    case State::kDraining:
      return drain();
    case State::kParting:
      return leave();
    case State::kOver:
      return;
  }
}

bool Session::waits_for_completions() const {
  const bool waits = state_ == State::kStreaming || state_ == State::kDraining;
  return over() || (waits && death_is_heard() && !churner_ && !order_.stopped);
}

Inbox::OnError Session::error_handler() {
  return [this](int error, const std::string& what) { on_error(error, what); };
}

void Session::receive_tagged(fid_ep* endpoint, fi_addr_t source) {
  tagged_ = std::make_unique<Inbox>(
      endpoint, Inbox::Kind{true, tag_of(order_.id, Use::kStream), source, 8, 40000, true},
      [](ConstBytes, std::uint64_t) {}, error_handler());
}

void Session::stream(fid_ep* endpoint, fi_addr_t peer) {
  state_ = State::kStreaming;
  pause_at_ = Clock::now() + std::chrono::microseconds(random_() % kLatestPause);
  const Target target{endpoint, peer, order_.id, 0, churn_key(slot_.index)};
  initiator_ = std::make_unique<Initiator>(order_.action, target, order_.seed, error_handler());
  if (order_.action == Action::kChurn && victim_starts(order_.starter)) {
    churner_ = std::make_unique<Churner>(node_, churn_key(slot_.index), order_.seed);
  }
  keep_streaming();
}

// To close a region would wait for a process that is stopped in the middle of an access, and
// nothing would resume it.
void Session::keep_streaming() {
  if (survivor_starts(order_.starter) && died_ == Clock::time_point{}) initiator_->advance();
  if (churner_ && pause_ != Pause::kStill) churner_->step();
  if (order_.stopped) pause_victim();
}

// Nothing may fail because of a peer that stands still, and all goes on when it does. Some are
// killed without ever having woken up.
void Session::pause_victim() {
  const auto now = Clock::now();
  const Go go{order_.id};
  Ready answer;
  switch (pause_) {
    case Pause::kBefore:
      if (now < pause_at_) return;
      require(kill(process_, SIGSTOP) == 0, "stopping a victim");
      pause_at_ = now + kStandStill;
      pause_ = Pause::kStill;
      return;
    case Pause::kStill:
      if (now < pause_at_) return;
      ++tally_.stops;
      if (random_() % 4 == 0) return kill_victim();
      require(kill(process_, SIGCONT) == 0, "waking a victim");
      slot_.channel.send(&go, sizeof go);
      completed_before_ = initiator_->completed_count();
      pause_at_ = now;
      pause_ = Pause::kWaking;
      return;
    case Pause::kWaking:
      require_within(pause_at_, "operations did not go on after the victim had stood still");
      awake_ = awake_ || slot_.channel.try_receive(&answer, sizeof answer);
      if (!awake_ || (survivor_starts(order_.starter) && goes_on(order_.action) &&
                      initiator_->completed_count() < completed_before_ + kProofOfLife)) {
        return;
      }
      return kill_victim();
    case Pause::kOver:
      return;
  }
}

void Session::kill_victim() {
  require(kill(process_, SIGKILL) == 0, "killing a victim");
  pause_ = Pause::kOver;
}

void Session::on_data(std::uint64_t sequence) {
  PayloadHeader header{};
  if (sequence >= kCells || !read_payload(Arena(slot_.arena).cell(sequence), header) ||
      header.sender != order_.id || header.sequence != sequence) {
    fail(describe() + ": data " + std::to_string(sequence) + " came before its write was whole");
  }
}

// An operation may fail only because its peer is dead, or, where it began early, not yet born.
void Session::on_error(int error, const std::string& what) {
  ++tally_.errors[error];
  // The region may be closed, or, where the victim was met early, not registered yet.
  if ((order_.action == Action::kChurn || order_.early) && error == FI_EACCES) return;
  if (!means_gone(error)) fail(what + " failed with " + error_text(error) + " in " + describe());
  if (order_.early && may_fail_early(error)) return;
  if (!lifeline_->dying())
    fail(what + " failed although the victim lives: " + error_text(error) + " in " + describe());
}

std::size_t Session::pending() const {
  return (initiator_ ? initiator_->pending() : 0) + (tagged_ ? tagged_->pending() : 0) +
         more_pending();
}

void Session::notice_death() {
  if (state_ == State::kMeeting && !died_early()) {
    fail(describe() + ": the victim ended before its time, with status " +
         std::to_string(fork_server_.reap(process_)));
  }
  died_ = Clock::now();
  had_pending_ = initiator_ && initiator_->pending() > 0;
  state_ = State::kDraining;
  lost();
}

void Session::drain() {
  if (pending() > 0) return require_within(died_, "operations stayed pending after the death");
  if (had_pending_) {
    ++tally_.with_pending;
    tally_.slowest =
        std::max(tally_.slowest,
                 std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - died_));
  }
  if (churner_) churner_->finish();
  churner_.reset();
  state_ = State::kParting;
}

void Session::leave() {
  require_within(died_ + kLimit, "there was no end to what was heard of the dead");
  if (part()) finish();
}

void Session::finish() {
  const int status = fork_server_.reap(process_);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    fail(describe() + ": the victim was not killed but ended with status " +
         std::to_string(status));
  }
  require(Arena(slot_.arena).intact(),
          describe() + ": memory was written that the victim must not write");
  if (initiator_) tally_.completed += initiator_->completed_count();
  ++tally_.kills;
  state_ = State::kOver;
}

}  // namespace weft::faults
