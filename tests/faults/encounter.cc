// SPDX-License-Identifier: BSD-2-Clause
// Which steps does the survivor take with one victim, and what does it require at each?
#include "encounter.h"

#include <sys/wait.h>

#include <algorithm>

#include "failure.h"

namespace weft::faults {

namespace {

constexpr std::chrono::seconds kLimit{
    5};  // the rule is two; a loaded machine may lag, a hang is for ever
constexpr std::chrono::seconds kLifeLimit{20};
constexpr std::chrono::milliseconds kGreetingPeriod{300};
constexpr std::size_t kGreetingBytes = 30000;
constexpr int kLateEvery = 16;

// How an operation may fail when its peer is not, or no longer, there.
bool means_gone(int error) {
  if (!provider_is_weft()) return true;
  return error == FI_ECONNRESET || error == FI_EHOSTUNREACH;
}

}  // namespace

Encounter::Encounter(Node& node, Nursery& nursery, Slot& slot, const Order& order,
                     bool fresh_address, Tally& tally)
    : node_(node),
      nursery_(nursery),
      slot_(slot),
      order_(order),
      fresh_address_(fresh_address),
      tally_(tally),
      random_(order.seed ^ 0x5eed),
      hello_(*this),
      peek_(*this) {
  Arena(slot_.arena).prepare();
  begun_ = Clock::now();
  process_ = nursery_.spawn(order_);
  lifeline_.emplace(process_);
  if (order_.early) {
    resolve_address();
    stream();
  }
}

Encounter::~Encounter() = default;

std::string Encounter::describe() const {
  std::string text = "encounter " + std::to_string(order_.id) + " (" + name_of(order_.action) +
                     ", started by " + name_of(order_.starter) + (order_.early ? ", early" : "") +
                     (order_.blocking ? ", blocking" : "") +
                     (fresh_address_ ? "" : ", address kept") + ", to die after " +
                     std::to_string(order_.kill_after_us) + " us), state " +
                     std::to_string(static_cast<int>(state_));
  if (initiator_) text += ", pending" + initiator_->describe_pending();
  if (state_ == State::kGreeting) {
    text += std::string(", greeting ") +
            (hello_.operation.pending ? "pending"
             : wants_hello_           ? "not taken"
                                      : "sent") +
            ", last error " + std::to_string(hello_.error);
  }
  if (tagged_) text += ", receives pending " + std::to_string(tagged_->pending());
  return text;
}

void Encounter::require_within(Clock::time_point begin, const std::string& what) const {
  if (Clock::now() - begin > kLimit) fail(what + " for more than 5 s in " + describe());
}

void Encounter::step() {
  if (died_ == Clock::time_point{}) {
    if (lifeline_->dead())
      notice_death();
    else if (Clock::now() - begun_ > kLifeLimit)
      fail(describe() + ": the victim did not come to its death");
  }
  switch (state_) {
    case State::kStarting:
      return start();
    case State::kGreeting:
      return try_greet();
    case State::kStreaming:
      return keep_streaming();
    case State::kDraining:
      return drain();
    case State::kEmptying:
      return empty_flood();
    case State::kLate:
      return try_late_post();
    case State::kOver:
      return;
  }
}

bool Encounter::waits_for_completions() const {
  return state_ == State::kOver || ((state_ == State::kStreaming || state_ == State::kDraining) &&
                                    initiator_->pending() > 0 && !churner_);
}

void Encounter::start() {
  Ready ready;
  if (!slot_.channel.try_receive(&ready, sizeof ready) || ready.id != order_.id) return;
  require(slot_.port == 0 || slot_.port == ntohs(ready.address.sin_port),
          "a victim opened at another port than it was told");
  slot_.port = ntohs(ready.address.sin_port);
  resolve_address();
  greet();
}

void Encounter::resolve_address() {
  if (slot_.address != FI_ADDR_UNSPEC && !fresh_address_) return;
  if (slot_.address != FI_ADDR_UNSPEC) node_.remove(slot_.address);
  Address address = node_.address();
  address.sin_port = htons(slot_.port);
  slot_.address = node_.insert(address);
}

void Encounter::greet() {
  state_ = State::kGreeting;
  reply_ = std::make_unique<Inbox>(
      node_,
      Inbox::Kind{true, tag_of(order_.id, Use::kReply), FI_ADDR_UNSPEC, 1, kGreetingBytes, false},
      [this](ConstBytes, std::uint64_t) { answered_ = true; },
      [this](int error, const std::string& what) { on_error(error, what); });
  greeting_.resize(kGreetingBytes);
  write_payload(greeting_, order_.id, 0);
  wants_hello_ = true;
  begun_ = Clock::now();
  try_greet();
}

// Where the address is kept, the library may still hold the dead predecessor for its owner: then a
// greeting may fail or be lost with it, and is sent again. Where it is fresh, the first one must
// arrive.
void Encounter::try_greet() {
  require_within(begun_, "a new process at the address of a dead one could not be reached");
  if (answered_ && !hello_.operation.pending) {
    const Go go{order_.id};
    slot_.channel.send(&go, sizeof go);
    return stream();
  }
  if (hello_.error != 0) {
    if (fresh_address_ || !means_gone(hello_.error))
      fail(describe() + ": greeting failed: " + error_text(hello_.error));
    hello_.error = 0;
    wants_hello_ = true;
    ++tally_.greetings_lost;
  } else if (!wants_hello_ && !answered_ && !fresh_address_ && !hello_.operation.pending &&
             Clock::now() - greeted_ > kGreetingPeriod) {
    wants_hello_ = true;
    ++tally_.greetings_lost;
  }
  if (!wants_hello_) return;
  hello_.operation.pending = true;
  const long status =
      fi_tsend(node_.endpoint(), greeting_.data(), greeting_.size(), nullptr, slot_.address,
               tag_of(order_.id, Use::kHello), &hello_.operation.context);
  if (status == 0) {
    wants_hello_ = false;
    greeted_ = Clock::now();
    return;
  }
  hello_.operation.pending = false;
  if (status != -FI_EAGAIN) hello_.error = static_cast<int>(-status);
}

void Encounter::stream() {
  state_ = State::kStreaming;
  const auto on_error = [this](int error, const std::string& what) { this->on_error(error, what); };
  const fi_addr_t source = order_.seed % 2 == 0 ? slot_.address : FI_ADDR_UNSPEC;
  tagged_ = std::make_unique<Inbox>(
      node_, Inbox::Kind{true, tag_of(order_.id, Use::kStream), source, 8, 40000, true},
      [](ConstBytes, std::uint64_t) {}, on_error);
  const Target target{slot_.address, order_.id, 0, churn_key(slot_.index)};
  initiator_ = std::make_unique<Initiator>(node_, order_.action, target, order_.seed, on_error);
  if (order_.action == Action::kChurn && victim_starts(order_.starter)) {
    churner_ = std::make_unique<Churner>(node_, churn_key(slot_.index), order_.seed);
  }
  keep_streaming();
}

void Encounter::keep_streaming() {
  if (survivor_starts(order_.starter) && died_ == Clock::time_point{}) initiator_->advance();
  if (churner_) churner_->step();
}

void Encounter::on_data(std::uint64_t sequence) {
  PayloadHeader header{};
  if (sequence >= kCells || !read_payload(Arena(slot_.arena).cell(sequence), header) ||
      header.sender != order_.id || header.sequence != sequence) {
    fail(describe() + ": data " + std::to_string(sequence) + " came before its write was whole");
  }
}

// An operation may fail only because its peer is dead, or, where it began early, not yet born.
void Encounter::on_error(int error, const std::string& what) {
  ++tally_.errors[error];
  // The region may be closed, or, where the victim was met early, not registered yet.
  if ((order_.action == Action::kChurn || order_.early) && error == FI_EACCES) return;
  if (!means_gone(error)) fail(what + " failed with " + error_text(error) + " in " + describe());
  if (order_.early) return;
  if (!lifeline_->dying())
    fail(what + " failed although the victim lives: " + error_text(error) + " in " + describe());
}

std::size_t Encounter::pending() const {
  return (initiator_ ? initiator_->pending() : 0) + (tagged_ ? tagged_->pending() : 0) +
         (reply_ ? reply_->pending() : 0) + (hello_.operation.pending ? 1U : 0U);
}

void Encounter::notice_death() {
  if (state_ == State::kStarting || state_ == State::kGreeting) {
    fail(describe() + ": the victim ended before its time, with status " +
         std::to_string(nursery_.reap(process_)));
  }
  died_ = Clock::now();
  had_pending_ = initiator_->pending() > 0;
  tagged_->cancel();
  state_ = State::kDraining;
}

void Encounter::drain() {
  if (pending() > 0) return require_within(died_, "operations stayed pending after the death");
  if (had_pending_) {
    ++tally_.with_pending;
    tally_.slowest =
        std::max(tally_.slowest,
                 std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - died_));
  }
  if (churner_) churner_->finish();
  churner_.reset();
  state_ = State::kEmptying;
}

// Takes back what the victim sent and nobody received: each such message must be whole or fail.
void Encounter::empty_flood() {
  require_within(died_ + kLimit, "unexpected messages of the dead could not be taken");
  if (leftover_) {
    if (leftover_->pending() > 0) return;
    leftover_.reset();
  }
  if (!peeking_) {
    fi_msg_tagged message = {};
    message.addr = FI_ADDR_UNSPEC;
    message.tag = tag_of(order_.id, Use::kFlood);
    message.context = &peek_.operation.context;
    peek_.error = 0;
    peek_.operation.pending = true;
    require_ok(fi_trecvmsg(node_.endpoint(), &message, FI_PEEK | FI_COMPLETION),
               "fi_trecvmsg with FI_PEEK");
    peeking_ = true;
    return;
  }
  if (peek_.operation.pending) return;
  peeking_ = false;
  if (peek_.error == 0) {
    leftover_ = std::make_unique<Inbox>(
        node_,
        Inbox::Kind{true, tag_of(order_.id, Use::kFlood), FI_ADDR_UNSPEC, 1, 64 * 1024, false},
        [](ConstBytes, std::uint64_t) {},
        [this](int error, const std::string& what) { on_error(error, what); });
    return;
  }
  require(peek_.error == FI_ENOMSG, "FI_PEEK failed: " + error_text(peek_.error));
  late_begun_ = Clock::now();
  state_ = State::kLate;
}

// Some operations are started toward a peer that is long dead: they too must end.
void Encounter::try_late_post() {
  if (order_.id % kLateEvery == 0) {
    require_within(late_begun_, "an operation toward a dead peer did not end");
    if (!late_posted_) late_posted_ = initiator_->post_late();
    if (!late_posted_ || initiator_->pending() > 0) return;
  }
  finish();
}

void Encounter::finish() {
  const int status = nursery_.reap(process_);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    fail(describe() + ": the victim was not killed but ended with status " +
         std::to_string(status));
  }
  require(Arena(slot_.arena).intact(),
          describe() + ": memory was written that the victim must not write");
  tally_.completed += initiator_->completed_count();
  ++tally_.kills;
  state_ = State::kOver;
}

void Encounter::Single::completed(Operation&, const fi_cq_tagged_entry&) {}

void Encounter::Single::failed(Operation&, const fi_cq_err_entry& failure) {
  error = failure.err;
  if (this == &owner.hello_) ++owner.tally_.errors[error];
}

}  // namespace weft::faults
