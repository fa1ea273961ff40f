// SPDX-License-Identifier: BSD-2-Clause
// How do the parts of an endpoint come together, and how does it close?
#include "messaging/endpoint.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace weft::messaging {
namespace {

constexpr auto kCloseTimeout = std::chrono::seconds(2);

}  // namespace

Endpoint::Endpoint(EndpointSetup setup)
    : setup_(std::move(setup)),
      shared_(*setup_.port),
      lock_(shared_.lock()),
      at_(shared_.main()),
      own_queue_(setup_.receives == nullptr
                     ? std::make_unique<ReceiveQueue>(lock_, setup_.receive_room)
                     : nullptr),
      queue_(own_queue_ != nullptr ? *own_queue_ : *setup_.receives),
      sender_(setup_, lock_, flows_, shared_.sleepers(), at_.port->stats()),
      flows_(setup_, shared_, *this, sender_),
      datagrams_(setup_.bindings.tx, *at_.port, flows_, sender_),
      receiver_(setup_, queue_, at_, flows_, datagrams_, peer_),
      peer_(setup_.connection, shared_, *this, flows_, sender_, receiver_) {
  shared_.join(*this);
}

Result<std::unique_ptr<Endpoint>> Endpoint::open(EndpointSetup setup) {
  if (setup.port == nullptr) {
    auto port = SharedPort::open(setup);
    if (!port) return port.error();
    setup.port = std::move(port).value();
  }
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::move(setup)));
  if (Status ok = endpoint->queue_.join(*endpoint); !ok) return ok.error();
  return endpoint;
}

Endpoint::~Endpoint() {
  if (!close()) {
    const ControlGuard guard(lock_);
    leave_queue();
  }
  shared_.leave(*this);
}

// With the lock taken anew each time: other endpoints of the port or the queue go on meanwhile.
Status Endpoint::close() {
  const auto end = std::chrono::steady_clock::now() + kCloseTimeout;
  while (!try_to_close()) {
    if (std::chrono::steady_clock::now() >= end) {
      const ControlGuard guard(lock_);
      at_.closing = false;
      receiver_.begin_closing(true);
      return Error{EBUSY, "a stopped peer is in the middle of a copy to a receive buffer"};
    }
    std::this_thread::yield();
  }
  return {};
}

bool Endpoint::try_to_close() {
  const ControlGuard guard(lock_);
  if (!shared_.withdraw(*this)) return false;
  leave_queue();
  return true;
}

// The buffers of shared receives are not this endpoint's alone: their program is told of those that
// the endpoint takes with it.
void Endpoint::leave_queue() {
  if (own_queue_ == nullptr) receiver_.cancel_under_way();
  queue_.leave(*this);
}

Endpoint::Load Endpoint::load() {
  const ControlGuard guard(lock_);
  const auto sends_here = [this](const std::shared_ptr<RemoteSender>& sender) {
    return sender != nullptr && sender->accepted && sender->receiver == &receiver_;
  };
  const auto sources = std::count_if(at_.senders.begin(), at_.senders.end(), sends_here);
  return {flows_.open(), static_cast<std::size_t>(sources), queue_.waiting(), queue_.bytes_kept()};
}

// One that only sends has to notice, too, that a peer has died: its queue fills silently.
int Endpoint::send_datagram(SendCall& call) {
  const Section section(lock_);
  shared_.check_when_due();
  return datagrams_.send(call);
}

int Endpoint::send_to_group(SendCall& call) {
  const Section section(lock_);
  shared_.check_when_due();
  return datagrams_.send_to_group(call);
}

int Endpoint::cancel(void* context) {
  return queue_.cancel(context) == 0 ? 0 : sender_.cancel(context);
}

void Endpoint::end_poll() {
  if (flows_.has_deaths()) receiver_.settle_deaths();
}

void Endpoint::check_flows() {
  if (at_.closing) return;
  flows_.check_peers();
  datagrams_.check_groups();
}

void Endpoint::check_peers() {
  if (at_.closing) return;
  receiver_.settle_deaths();
  peer_.check();
}

int Endpoint::poll_then_again() {
  const Section section(lock_);
  shared_.progress_inside();
  return EAGAIN;
}

bool Endpoint::watch_processes() { return flows_.watch_processes(); }

}  // namespace weft::messaging
