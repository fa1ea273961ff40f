// SPDX-License-Identifier: BSD-2-Clause
// Where do requests for connections arrive?
#include "connect/listener.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "device/device.h"
#include "link/place.h"

namespace weft::connect {
namespace {

constexpr int kPolls = 16;
constexpr auto kCheckEvery = std::chrono::milliseconds(200);
// Requests may be forged: of so many the oldest ends.
constexpr std::size_t kMostUndecided = 4096;

// Of a port without regions: nothing there can be accessed.
device::PortSetup setup_for(device::Device& device, const os::SocketAddress& name,
                            const Options& options) {
  device::PortSetup setup;
  setup.domain = device.new_domain();
  setup.name = name;
  setup.listens = true;
  setup.options = &options;
  return setup;
}

}  // namespace

Result<std::shared_ptr<Listener>> Listener::open(std::shared_ptr<device::Device> device,
                                                 const link::Place& place,
                                                 const os::SocketAddress& name,
                                                 const Options& options, RequestSink& sink) {
  std::shared_ptr<Listener> listener(new Listener(sink));
  const device::PortSetup setup = setup_for(*device, name, options);
  auto port = device::Port::open(std::move(device), place, setup);
  if (!port) return port.error();
  listener->port_ = std::move(port).value();
  if (Status ok = listener->port_->connections().listen(kMostUndecided, *listener); !ok)
    return ok.error();
  return listener;
}

// Requests that have arrived and were not read yet are rejected, too.
Listener::~Listener() {
  if (port_ == nullptr) return;
  const std::lock_guard guard(mutex_);
  sink_ = nullptr;
  port_->inbox().poll(*this);
  auto& connections = port_->connections();
  for (const ReceivedRequest& each : std::exchange(undecided_, {})) {
    if (each.stage == RequestStage::kGiven) {
      if (!each.request.within_host) connections.delay(each.number);
      connections.forward(each.number);
    } else {
      connections.reject(each.number, {});
    }
  }
}

void Listener::end_reports() {
  const std::lock_guard guard(mutex_);
  sink_ = nullptr;
}

void Listener::set_backlog(std::size_t count) {
  const std::lock_guard guard(mutex_);
  backlog_ = count;
  port_->connections().set_backlog(std::max(count, kMostUndecided));
  report();
}

Listener::RequestList::iterator Listener::find(link::ConnectionNumber number) {
  return std::find_if(undecided_.begin(), undecided_.end(),
                      [&](const ReceivedRequest& each) { return each.number == number; });
}

// False when that request has ended.
bool Listener::erase(link::ConnectionNumber number) {
  const auto found = find(number);
  if (found == undecided_.end()) return false;
  if (found->stage == RequestStage::kReported) --reported_;
  undecided_.erase(found);
  return true;
}

// Reports the next requests, up to the backlog.
void Listener::report() {
  if (sink_ == nullptr) return;
  for (auto each = undecided_.begin(); each != undecided_.end() && reported_ < backlog_;) {
    const auto entry = each++;
    if (entry->stage != RequestStage::kWaiting) continue;
    const link::ConnectionNumber number = entry->number;
    if (sink_->requested({std::move(entry->request), weak_from_this(), number})) {
      entry->stage = RequestStage::kReported;
      ++reported_;
    } else {
      undecided_.erase(entry);
      port_->connections().forward(number);
    }
  }
}

void Listener::reject(link::ConnectionNumber number, std::span<const std::byte> data) {
  const std::lock_guard guard(mutex_);
  if (erase(number)) port_->connections().reject(number, data);
  if (sink_ != nullptr) sink_->decided(number);
  report();
}

bool Listener::give(link::ConnectionNumber number) {
  const std::lock_guard guard(mutex_);
  const auto found = find(number);
  if (found == undecided_.end()) return true;
  if (found->stage == RequestStage::kGiven) return false;
  found->stage = RequestStage::kGiven;
  --reported_;
  report();
  return true;
}

void Listener::take_back(link::ConnectionNumber number) {
  const std::lock_guard guard(mutex_);
  const auto found = find(number);
  if (found == undecided_.end()) return;
  found->stage = RequestStage::kReported;
  ++reported_;
}

bool Listener::holds(link::ConnectionNumber number) {
  const std::lock_guard guard(mutex_);
  take_in();
  return find(number) != undecided_.end();
}

void Listener::forward(link::ConnectionNumber number) {
  const std::lock_guard guard(mutex_);
  if (erase(number)) port_->connections().forward(number);
  if (sink_ != nullptr) sink_->decided(number);
}

void Listener::requested(link::ConnectionNumber number, link::ConnectionRequest request) {
  undecided_.push_back({number, RequestStage::kWaiting, std::move(request)});
}

void Listener::withdrawn(link::ConnectionNumber number) {
  const auto found = find(number);
  if (found == undecided_.end()) return;
  const bool known = found->stage == RequestStage::kReported;
  erase(number);
  if (known && sink_ != nullptr) sink_->withdrawn(number);
}

void Listener::source_opened(std::uint32_t source, const os::SocketAddress& address) {
  addresses_[source] = address;
}

void Listener::source_closed(std::uint32_t source, bool) {
  addresses_.erase(source);
  port_->end_connection_of(source);
}

// A source that sends anything but a request is refused.
void Listener::arrived(const link::Arrival& arrival) {
  if (arrival.operation != link::MessageOperation::kControl)
    return port_->inbox().refuse(*this, arrival.source);
  const os::SocketAddress address = addresses_[arrival.source];
  port_->take_control(*this, arrival, address);
}

void Listener::take_in() {
  for (int i = 0; i < kPolls && port_->inbox().poll(*this) != 0; ++i) {
  }
  const os::Time now = os::coarse_now();
  port_->send_requests_again();
  if (now >= next_check_) {
    next_check_ = now + kCheckEvery;
    port_->inbox().check_sources(*this);
    port_->check_connections(false, [] {});
  }
  report();
}

void Listener::progress() {
  polls_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard guard(mutex_);
  take_in();
}

bool Listener::fall_asleep() {
  const std::lock_guard guard(mutex_);
  ++sleepers_;
  const bool quiet = port_->fall_asleep() && !port_->send_requests_again();
  // Going to sleep has undone the ring for the threads that slept before.
  if (!quiet && sleepers_ > 1) port_->wake_set().ring();
  return quiet;
}

void Listener::wake_up() {
  const std::lock_guard guard(mutex_);
  if (--sleepers_ == 0) port_->inbox().wake_up();
}

void reject(std::shared_ptr<device::Device> device, const link::Place& place,
            const Options& options, const link::ConnectionRequest& request) {
  const device::PortSetup setup = setup_for(*device, place.address, options);
  auto port = device::Port::open(std::move(device), place, setup);
  if (port) port.value()->connections().reject(request);
}

}  // namespace weft::connect
