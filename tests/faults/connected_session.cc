// SPDX-License-Identifier: BSD-2-Clause
// Is the end of a connection told once, does it end all that is pending, and is nothing taken
// afterwards?
#include "connected_session.h"

#include "failure.h"

namespace weft::faults {

namespace {

// False while the answer is to try again: the completion queue is full.
bool refused(long status, const std::string& what) {
  require(status == -FI_ESHUTDOWN || status == -FI_EAGAIN || !provider_is_weft(),
          what + " on a connection that is over: " + error_text(status));
  return status != -FI_EAGAIN;
}

}  // namespace

ConnectedSession::ConnectedSession(const Setting& setting, Switchboard& switchboard, bool impatient)
    : Session(setting), switchboard_(switchboard), impatient_(impatient) {}

ConnectedSession::~ConnectedSession() = default;

bool ConnectedSession::means_gone(int error) const {
  if (!provider_is_weft()) return true;
  const bool refused = error == FI_ECONNREFUSED || error == FI_ECONNABORTED;
  return error == FI_ECONNRESET || error == FI_ESHUTDOWN || (refused && !connected_);
}

// One that asks is waited for; one that listens is asked as soon as it has said where.
void ConnectedSession::meet() {
  Ready ready;
  if (order_.asks || endpoint_ || !slot_.channel.try_receive(&ready, sizeof ready) ||
      ready.id != order_.id) {
    return;
  }
  open(nullptr);
  require_ok(switchboard_.connect(*endpoint_, ready.address, order_.id), "fi_connect");
}

void ConnectedSession::open(fi_info* request) {
  require_ok(switchboard_.open_endpoint(request, endpoint_), switchboard_.failed_call());
  const auto ignore = [](ConstBytes, std::uint64_t) {};
  receive_tagged(endpoint_.get(), FI_ADDR_UNSPEC);
  untagged_ = std::make_unique<Inbox>(endpoint_.get(), plain_receives(4), ignore, error_handler());
  packed_ = std::make_unique<Inbox>(endpoint_.get(), packed_receives(), ignore, error_handler());
}

bool ConnectedSession::on_event(ConnectionEvent& event) {
  if (event.what == FI_CONNREQ) {
    if (event.id != order_.id || state_ != State::kMeeting) return false;
    require(!endpoint_, "a second request for one connection");
    open(event.request.get());
    require_ok(switchboard_.accept(*endpoint_), "fi_accept");
    return true;
  }
  if (!endpoint_ || event.endpoint != &endpoint_->fid) return false;
  if (event.what == FI_CONNECTED) {
    connected();
  } else {
    ended(event);
  }
  return true;
}

void ConnectedSession::connected() {
  require(!connected_ && !ended_, "a connection was made twice, or after its end");
  connected_ = true;
  if (died_ != Clock::time_point{}) return;
  const Go go{order_.id};
  if (!order_.early) slot_.channel.send(&go, sizeof go);
  stream(endpoint_.get(), 0);
}

// A victim that dies as the requester gives up; as the listener it refuses, or has accepted
// already.
void ConnectedSession::ended(const ConnectionEvent& event) {
  require(!ended_, "the end of a connection was told twice");
  ended_ = true;
  if (!lifeline_->dying()) fail("a connection ended although the victim lives: " + describe());
  if (event.what == FI_SHUTDOWN) return require(connected_, "what was never connected ended");
  ++tally_.errors[event.error];
  const bool refused = order_.asks ? event.error == FI_ECONNABORTED
                                   : event.error == FI_ECONNREFUSED || event.error == FI_ECONNRESET;
  if (connected_ || !order_.early || (provider_is_weft() && !refused)) {
    fail("a connection ended with " + error_text(event.error) + ": " + describe());
  }
}

void ConnectedSession::lost() {
  if (endpoint_ && impatient_) close_with_all_pending();
}

// Completions that are in the queue already still belong to the operations; no others may come.
void ConnectedSession::close_with_all_pending() {
  for (const auto* inbox : {&tagged_, &untagged_, &packed_}) (*inbox)->stop();
  require_ok(fi_close(&endpoint_.release()->fid), "fi_close of an endpoint whose peer is dead");
  while (node_.poll() != 0) {
  }
  for (auto* inbox : {&tagged_, &untagged_, &packed_}) inbox->reset();
  if (initiator_) tally_.completed += initiator_->completed_count();
  initiator_.reset();
}

std::size_t ConnectedSession::more_pending() const {
  return (untagged_ ? untagged_->pending() : 0) + (packed_ ? packed_->pending() : 0);
}

std::string ConnectedSession::describe_more() const {
  return std::string(order_.asks ? ", asks" : ", is asked") +
         (endpoint_ ? connected_ ? ", connected" : ", connecting" : ", no endpoint") +
         (ended_ ? ", ended" : "");
}

bool ConnectedSession::part() {
  if (!endpoint_) return true;  // it died before anybody knew of it, or was not waited for
  if (!ended_) return false;
  if (!refused(fi_recv(endpoint_.get(), nullptr, 0, nullptr, 0, nullptr), "a receive") ||
      !refused(fi_tsend(endpoint_.get(), nullptr, 0, nullptr, 0, 1, nullptr), "a send") ||
      (initiator_ && !initiator_->post_late())) {
    return false;
  }
  require_ok(fi_shutdown(endpoint_.get(), 0), "fi_shutdown of a connection that is over");
  require(pending() == 0, "an operation was taken after the end of its connection");
  endpoint_.reset();
  return true;
}

}  // namespace weft::faults
