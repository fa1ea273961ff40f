// SPDX-License-Identifier: BSD-2-Clause
// What do the endpoints of one port share?
#include "messaging/shared_port.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "messaging/endpoint.h"

namespace weft::messaging {
namespace {

os::SocketAddress host_of(os::SocketAddress address) {
  address.set_port(0);
  return address;
}

}  // namespace

SharedPort::SharedPort(const EndpointSetup& setup, EndpointPort main)
    : setup_(setup),
      own_lock_(setup.locking),
      lock_(setup.receives != nullptr ? setup.receives->lock() : own_lock_),
      main_(std::move(main)),
      sleepers_(main_.port->wake_set()) {
  if (BiasedLock* biased_lock = setup.locking.biased_lock) exclusive_.emplace(*this, *biased_lock);
}

Result<std::shared_ptr<SharedPort>> SharedPort::open(const EndpointSetup& setup,
                                                     const std::optional<os::UdpPort>& port) {
  device::PortSetup wanted = setup;
  wanted.connected = setup.connection != nullptr;
  auto opened = device::Port::open(setup.device, setup.place, wanted);
  if (!opened) return opened.error();
  EndpointPort main;
  main.port = std::move(opened).value();
  main.name = setup.name;
  std::shared_ptr<SharedPort> shared(new SharedPort(setup, std::move(main)));
  if (setup.connection == nullptr) return shared;
  shared->reserved_ = port;
  shared->router_ = std::make_unique<SourceRouter>(shared->main_);
  shared->main_.sink = shared->router_.get();
  return shared;
}

bool SharedPort::serves(const EndpointSetup& setup) const {
  return setup.receives == setup_.receives && setup.bindings.rx == setup_.bindings.rx &&
         host_of(setup.place.address) == host_of(setup_.place.address) &&
         setup.place.links == setup_.place.links &&
         setup.place.traffic_class == setup_.place.traffic_class && setup.domain == setup_.domain &&
         setup.served == setup_.served && setup.number == setup_.number &&
         setup.authorization == setup_.authorization &&
         setup.count_remote_reads == setup_.count_remote_reads &&
         setup.count_remote_writes == setup_.count_remote_writes &&
         setup.service == setup_.service && setup.options == setup_.options;
}

device::Engine& SharedPort::for_foreign_threads() {
  if (exclusive_) return *exclusive_;
  return *this;
}

void SharedPort::join(Endpoint& endpoint) {
  const ControlGuard guard(lock_);
  endpoints_.push_back(&endpoint);
  if (router_ == nullptr) main_.sink = &endpoint.receiver();
}

void SharedPort::leave(Endpoint& endpoint) {
  const ControlGuard guard(lock_);
  endpoint.flows().clear();
  std::erase(endpoints_, &endpoint);
  std::erase(visits_, &endpoint);
}

// What a forked child closes is its parent's.
bool SharedPort::withdraw(Endpoint& endpoint) {
  if (origin_.inherited()) return true;
  if (router_ == nullptr) {
    main_.closing = true;
    return main_.inbox().reclaim_buffers();
  }
  endpoint.receiver().begin_closing(false);
  endpoint.peer().withdraw();
  main_.poll();
  // A sender that died in the middle of a copy does not end it.
  if (!endpoint.receiver().nothing_under_way()) main_.inbox().check_sources(*main_.sink);
  return endpoint.receiver().nothing_under_way();
}

void SharedPort::visit(Endpoint& endpoint) {
  const bool known = std::find(visits_.begin(), visits_.end(), &endpoint) != visits_.end();
  if (!known) visits_.push_back(&endpoint);
}

// What an endpoint does may ask for further visits.
void SharedPort::begin_visits() {
  for (std::size_t i = 0; i < visits_.size(); ++i) visits_[i]->peer().begin_poll();
}

void SharedPort::end_visits() {
  for (std::size_t i = 0; i < visits_.size(); ++i) visits_[i]->end_poll();
  std::erase_if(visits_, [](const Endpoint* endpoint) { return !endpoint->awaits_visit(); });
}

void SharedPort::progress_inside() {
  if (main_.closing) [[unlikely]]
    return;
  if (!visits_.empty()) [[unlikely]]
    begin_visits();
  main_.inbox().poll(*main_.sink);
  busy_.progress();
  if (!visits_.empty()) [[unlikely]]
    end_visits();
  check_when_due();
}

void SharedPort::progress() {
  const std::lock_guard guard(lock_.inner());
  progress_inside();
}

std::size_t SharedPort::peers() const {
  const std::size_t flows =
      endpoints_.size() == 1 ? endpoints_.front()->flows().size() : endpoints_.size();
  return flows + main_.senders.size();
}

void SharedPort::check_if_it_is_time() {
  if (router_ != nullptr) main_.port->send_requests_again();
  if (timer_.due(peers(), false)) check(false);
}

void SharedPort::check(bool at_once) {
  if (main_.closing) return;
  for (Endpoint* endpoint : endpoints_) endpoint->check_flows();
  main_.inbox().check_sources(*main_.sink);
  if (router_ != nullptr) {
    router_->check(os::coarse_now());
    main_.port->check_connections(at_once, [this] {
      main_.poll();
      main_.inbox().check_sources(*main_.sink);
    });
  }
  for (Endpoint* endpoint : endpoints_) endpoint->check_peers();
}

// False when one has ended already.
bool SharedPort::watch_processes() {
  if (setup_.service == link::Service::kDatagram) return true;  // nothing of it waits for a peer
  bool all = true;
  for (const int process : main_.port->processes()) all = sleepers_.watch(process) && all;
  for (Endpoint* endpoint : endpoints_) all = endpoint->watch_processes() && all;
  return all;
}

void SharedPort::watch_connections() {
  if (sleepers_.count() == 0) return;
  main_.port->wake_for_connections();
  if (!watch_processes()) sleepers_.wake();
}

bool SharedPort::fall_asleep() {
  const Section section(lock_);
  sleepers_.add();
  const bool ended = sleepers_.forget_ended();
  const bool at_once = ended || main_.port->connections_are_due();
  if (timer_.due(peers(), at_once)) check(at_once);
  if (!watch_processes()) {
    check(true);
    static_cast<void>(watch_processes());  // it may have brought new peers
  }
  busy_.set_asleep(true);
  bool quiet = main_.port->fall_asleep() && !main_.port->send_requests_again();
  const bool parts = std::any_of(visits_.begin(), visits_.end(), [](Endpoint* endpoint) {
    return endpoint->peer().parting_is_due();
  });
  quiet = quiet && !ended && !parts && !busy_.ready();
  // Going to sleep has undone the ring for threads that slept before.
  if (!quiet && sleepers_.count() > 1) main_.port->wake_set().ring();
  return quiet;
}

void SharedPort::wake_up() {
  const Section section(lock_);
  if (!sleepers_.remove()) return;
  main_.inbox().wake_up();
  busy_.set_asleep(false);
}

}  // namespace weft::messaging
