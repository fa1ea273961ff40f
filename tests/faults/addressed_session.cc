// SPDX-License-Identifier: BSD-2-Clause
// Is a new endpoint at the address of a dead process reached, and what is left of the messages
// of the dead one?
#include "addressed_session.h"

#include "failure.h"

namespace weft::faults {

namespace {

constexpr std::chrono::milliseconds kGreetingPeriod{300};
constexpr std::size_t kGreetingBytes = 30000;
constexpr int kLateEvery = 16;

}  // namespace

AddressedSession::AddressedSession(const Setting& setting, bool fresh_address)
    : Session(setting), fresh_address_(fresh_address), hello_(&setting.tally), peek_(nullptr) {
  if (!order_.early) return;
  resolve_address();
  begin_streaming();
}

AddressedSession::~AddressedSession() = default;

// How an operation may fail when its peer is not, or no longer, there.
bool AddressedSession::means_gone(int error) const {
  if (!provider_is_weft()) return true;
  return error == FI_ECONNRESET || error == FI_EHOSTUNREACH;
}

void AddressedSession::meet() {
  if (greeting_begun_) return try_greet();
  start();
}

void AddressedSession::start() {
  Ready ready;
  if (!slot_.channel.try_receive(&ready, sizeof ready) || ready.id != order_.id) return;
  require(slot_.port == 0 || slot_.port == ntohs(ready.address.sin_port),
          "a victim opened at another port than it was told");
  slot_.port = ntohs(ready.address.sin_port);
  resolve_address();
  greet();
}

void AddressedSession::resolve_address() {
  if (slot_.address != FI_ADDR_UNSPEC && !fresh_address_) return;
  if (slot_.address != FI_ADDR_UNSPEC) node_.remove(slot_.address);
  Address address = node_.address();
  address.sin_port = htons(slot_.port);
  slot_.address = node_.insert(address);
}

void AddressedSession::begin_streaming() {
  receive_tagged(node_.endpoint(), order_.seed % 2 == 0 ? slot_.address : FI_ADDR_UNSPEC);
  stream(node_.endpoint(), slot_.address);
}

void AddressedSession::greet() {
  greeting_begun_ = true;
  reply_ = std::make_unique<Inbox>(
      node_.endpoint(),
      Inbox::Kind{true, tag_of(order_.id, Use::kReply), FI_ADDR_UNSPEC, 1, kGreetingBytes, false},
      [this](ConstBytes, std::uint64_t) { answered_ = true; }, error_handler());
  greeting_.resize(kGreetingBytes);
  write_payload(greeting_, order_.id, 0);
  wants_hello_ = true;
  begun_ = Clock::now();
  try_greet();
}

// Where the address is kept, the library may still hold the dead predecessor for its owner: then a
// greeting may fail or be lost with it, and is sent again. Where it is fresh, the first one must
// arrive. The newcomer receives one of them only: when it takes long to answer, another stays
// pending until its death.
void AddressedSession::try_greet() {
  require_within(begun_, "a new process at the address of a dead one could not be reached");
  if (answered_ && (!hello_.operation.pending || greetings_ > 1)) {
    const Go go{order_.id};
    slot_.channel.send(&go, sizeof go);
    return begin_streaming();
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
    ++greetings_;
    greeted_ = Clock::now();
    return;
  }
  hello_.operation.pending = false;
  if (status != -FI_EAGAIN) hello_.error = static_cast<int>(-status);
}

std::size_t AddressedSession::more_pending() const {
  return (reply_ ? reply_->pending() : 0) + (hello_.operation.pending ? 1U : 0U);
}

std::string AddressedSession::describe_more() const {
  std::string text = fresh_address_ ? "" : ", address kept";
  if (state_ == State::kMeeting && greeting_begun_) {
    text += std::string(", greeting ") +
            (hello_.operation.pending ? "pending"
             : wants_hello_           ? "not taken"
                                      : "sent") +
            ", last error " + std::to_string(hello_.error);
  }
  return text;
}

bool AddressedSession::part() {
  flood_empty_ = flood_empty_ || empty_flood();
  return flood_empty_ && try_late_post();
}

// Some operations are started toward a peer that is long dead: they too must end.
bool AddressedSession::try_late_post() {
  if (order_.id % kLateEvery != 0) return true;
  if (!late_posted_) late_posted_ = initiator_->post_late();
  return late_posted_ && initiator_->pending() == 0;
}

// Receives the victim's unexpected messages: each of them must be whole or fail.
bool AddressedSession::empty_flood() {
  if (leftover_) {
    if (leftover_->pending() > 0) return false;
    leftover_.reset();
  }
  if (!peeking_) {
    look_for_more();
    return false;
  }
  if (peek_.operation.pending) return false;
  peeking_ = false;
  if (peek_.error == 0) {
    leftover_ = std::make_unique<Inbox>(
        node_.endpoint(),
        Inbox::Kind{true, tag_of(order_.id, Use::kFlood), FI_ADDR_UNSPEC, 1, 64 * 1024, false},
        [](ConstBytes, std::uint64_t) {}, error_handler());
    return false;
  }
  require(peek_.error == FI_ENOMSG, "FI_PEEK failed: " + error_text(peek_.error));
  return true;
}

void AddressedSession::look_for_more() {
  fi_msg_tagged message = {};
  message.addr = FI_ADDR_UNSPEC;
  message.tag = tag_of(order_.id, Use::kFlood);
  message.context = &peek_.operation.context;
  peek_.error = 0;
  peek_.operation.pending = true;
  require_ok(fi_trecvmsg(node_.endpoint(), &message, FI_PEEK | FI_COMPLETION),
             "fi_trecvmsg with FI_PEEK");
  peeking_ = true;
}

void AddressedSession::Single::failed(Operation&, const fi_cq_err_entry& failure) {
  error = failure.err;
  if (errors != nullptr) ++errors->errors[error];
}

}  // namespace weft::faults
