// SPDX-License-Identifier: BSD-2-Clause
// How do the parts of an endpoint come together, make progress, sleep and close?
#include "messaging/endpoint.h"

#include <chrono>
#include <thread>
#include <utility>

namespace weft::messaging {
namespace {

constexpr auto kClosePatience = std::chrono::seconds(2);

device::PortSetup port_setup(const EndpointSetup& setup) {
  device::PortSetup wanted;
  wanted.domain = setup.domain;
  wanted.served = setup.served;
  wanted.name = setup.name;
  wanted.count_remote_reads = setup.count_remote_reads;
  wanted.count_remote_writes = setup.count_remote_writes;
  wanted.service = setup.service;
  wanted.options = setup.options;
  if (setup.met_over_network != nullptr) wanted.met_over_network = *setup.met_over_network;
  return wanted;
}

}  // namespace

Endpoint::Endpoint(EndpointSetup setup, std::unique_ptr<device::Port> port)
    : setup_(std::move(setup)),
      own_queue_(setup_.receives == nullptr
                     ? std::make_unique<ReceiveQueue>(setup_.locking, setup_.receive_room)
                     : nullptr),
      queue_(own_queue_ != nullptr ? *own_queue_ : *setup_.receives),
      lock_(queue_.lock()),
      port_(std::move(port)),
      sleepers_(port_->wake_set()),
      sender_(setup_, lock_, flows_, sleepers_),
      flows_(setup_, *port_, sleepers_, sender_),
      datagrams_(setup_.bindings.tx, *port_, flows_, sender_),
      receiver_(setup_, queue_, port_->inbox(), flows_, datagrams_, peer_),
      peer_(setup_.connection, *port_, sleepers_, flows_, sender_, receiver_) {}

Result<std::unique_ptr<Endpoint>> Endpoint::open(EndpointSetup setup) {
  auto port = device::Port::open(setup.device, setup.place, port_setup(setup));
  if (!port) return port.error();
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::move(setup), std::move(port).value()));
  if (Status ok = endpoint->queue_.join(*endpoint); !ok) return ok.error();
  return endpoint;
}

Endpoint::~Endpoint() {
  if (close()) return;
  const ControlGuard guard(lock_);
  leave_queue();
}

// With the lock taken anew each time: other endpoints of a shared queue go on meanwhile.
Status Endpoint::close() {
  const auto end = std::chrono::steady_clock::now() + kClosePatience;
  while (!try_to_close()) {
    if (std::chrono::steady_clock::now() >= end) {
      const ControlGuard guard(lock_);
      closing_ = false;
      return Error{EBUSY, "a stopped peer is in the middle of a copy to a receive buffer"};
    }
    std::this_thread::yield();
  }
  return {};
}

bool Endpoint::try_to_close() {
  const ControlGuard guard(lock_);
  closing_ = true;
  if (!port_->inbox().reclaim_buffers()) return false;
  leave_queue();
  return true;
}

// The buffers of shared receives are not this endpoint's alone: their program is told of those that
// the endpoint takes with it.
void Endpoint::leave_queue() {
  if (own_queue_ == nullptr) receiver_.cancel_under_way();
  queue_.leave(*this);
}

// One that only sends has to notice, too, that a peer has died: its queue fills silently.
int Endpoint::send_datagram(SendCall& call) {
  const Section section(lock_);
  if (timer_.count_poll(peers())) [[unlikely]]
    check_peers();
  return datagrams_.send(call);
}

int Endpoint::send_to_group(SendCall& call) {
  const Section section(lock_);
  if (timer_.count_poll(peers())) [[unlikely]]
    check_peers();
  return datagrams_.send_to_group(call);
}

int Endpoint::cancel(void* context) {
  return queue_.cancel(context) == 0 ? 0 : sender_.cancel(context);
}

void Endpoint::check_peers() {
  if (closing_) return;
  flows_.check_peers();
  datagrams_.check_groups();
  port_->inbox().check_sources(receiver_);
  receiver_.settle_deaths();
  peer_.check();
}

void Endpoint::progress_inside() {
  if (closing_) [[unlikely]]
    return;
  peer_.begin_poll();
  port_->inbox().poll(receiver_);
  flows_.progress();
  peer_.end_poll();
  if (timer_.count_poll(peers())) check_peers();
  if (flows_.has_deaths()) [[unlikely]]
    receiver_.settle_deaths();
}

int Endpoint::poll_then_again() {
  const Section section(lock_);
  progress_inside();
  return EAGAIN;
}

void Endpoint::progress() {
  const std::lock_guard guard(lock_.inner());
  progress_inside();
}

void Endpoint::watch_processes() {
  if (setup_.service == link::Service::kDatagram) return;  // nothing of it waits for a peer
  for (const int process : port_->source_processes()) sleepers_.watch(process);
  flows_.watch_processes();
  peer_.watch_process();
}

bool Endpoint::fall_asleep() {
  const Section section(lock_);
  sleepers_.add();
  const bool ended = sleepers_.forget_ended();
  if (timer_.due(peers(), ended)) check_peers();
  watch_processes();
  flows_.set_asleep(true);
  const bool quiet = port_->fall_asleep() && !ended && !peer_.parting_is_due() && !flows_.ready();
  // Going to sleep has undone the ring for threads that slept before.
  if (!quiet && sleepers_.count() > 1) port_->wake_set().ring();
  return quiet;
}

void Endpoint::wake_up() {
  const Section section(lock_);
  if (!sleepers_.remove()) return;
  port_->inbox().wake_up();
  flows_.set_asleep(false);
}

}  // namespace weft::messaging
