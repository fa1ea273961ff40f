// SPDX-License-Identifier: BSD-2-Clause
// Where do requests for connections arrive?
#include "connect/listener.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace weft::connect {
namespace {

constexpr int kPolls = 16;
constexpr auto kCheckEvery = std::chrono::milliseconds(200);

// Errors of a flow to a requester that is gone.
bool means_gone(int error) {
  return error == ENOENT || error == EPERM || error == ECONNRESET || error == EHOSTUNREACH;
}

// Sends the only message of a flow. True when it is sent, or the peer is gone; false without memory
// or descriptors: try again.
bool say(device::Port& port, const os::SocketAddress& to, const ConnectMessage& message) {
  auto way = port.connect(to, true);
  if (!way) return means_gone(way.error().code);
  const std::vector<std::byte> bytes = encode(message);
  const LocalRange piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  link::SendRequest request;
  request.operation = link::MessageOperation::kControl;
  request.must_copy = true;
  request.pieces = {&piece, 1};
  request.length = bytes.size();
  const link::Outcome outcome = way.value()->send(request);
  return outcome.state == link::Outcome::State::kDone ||
         outcome.state == link::Outcome::State::kPending || means_gone(outcome.error);
}

device::PortSetup options_for(DomainId domain, const os::SocketAddress& name) {
  device::PortSetup options;
  options.domain = domain;
  options.name = name;
  return options;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(std::shared_ptr<device::Device> device,
                                                 const link::Place& place,
                                                 const os::SocketAddress& name, RequestSink& sink) {
  std::unique_ptr<Listener> listener(new Listener(sink));
  const DomainId empty = device->new_domain();  // without a valid key
  auto port = device::Port::open(std::move(device), place, options_for(empty, name));
  if (!port) return port.error();
  listener->port_ = std::move(port).value();
  return listener;
}

// Requests that have arrived and were not read yet are rejected, too.
Listener::~Listener() {
  if (port_ == nullptr) return;
  const std::lock_guard guard(mutex_);
  backlog_ = 0;
  port_->inbox().poll(*this);
  for (const ReceivedRequest& entry : entries_) {
    if (entry.stage != Stage::kReleased) tell(entry.request, ConnectKind::kReject, entry.data);
  }
}

bool Listener::tell(const Request& request, ConnectKind kind, const ConnectData& data) {
  return say(*port_, request.name, {kind, request.token, 0, {}, data});
}

void Listener::say_no(RequestList::iterator entry, const ConnectData& data) {
  entry->stage = Stage::kRejected;
  entry->owed = true;
  entry->data = data;
  if (tell(entry->request, ConnectKind::kReject, data)) entries_.erase(entry);
}

// Sends the answers for which there was no room: no other end would.
void Listener::tell_again() {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    const bool rejected = entry->stage == Stage::kRejected;
    const ConnectKind kind = rejected ? ConnectKind::kReject : ConnectKind::kPending;
    if (entry->owed && tell(entry->request, kind, entry->data)) {
      entry->owed = false;
      if (rejected) entries_.erase(entry);
    }
    entry = next;
  }
}

bool Listener::owes_a_word() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const ReceivedRequest& entry) { return entry.owed; });
}

void Listener::set_backlog(std::size_t count) {
  const std::lock_guard guard(mutex_);
  backlog_ = count;
  announce();
}

// A request that the program is to answer.
Listener::RequestList::iterator Listener::find(std::uint64_t number) {
  return std::find_if(entries_.begin(), entries_.end(), [&](const ReceivedRequest& entry) {
    return entry.number == number && entry.stage == Stage::kAnnounced;
  });
}

bool Listener::reject(std::uint64_t number, const ConnectData& data) {
  const std::lock_guard guard(mutex_);
  const auto entry = find(number);
  if (entry == entries_.end()) return false;
  --announced_;
  say_no(entry, data);
  announce();
  return true;
}

void Listener::release(std::uint64_t number) {
  const std::lock_guard guard(mutex_);
  const auto entry = find(number);
  if (entry == entries_.end()) return;
  --announced_;
  entry->stage = Stage::kReleased;
  announce();
}

bool Listener::turn_down(const Request& request) {
  const std::lock_guard guard(mutex_);
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const ReceivedRequest& one) {
        return one.stage == Stage::kReleased && one.request.token == request.token &&
               one.request.name == request.name;
      });
  if (entry == entries_.end()) return false;
  say_no(entry, {});
  return true;
}

// Reports the next requests, up to the backlog.
void Listener::announce() {
  for (auto entry = entries_.begin(); entry != entries_.end() && announced_ < backlog_;) {
    if (entry->stage != Stage::kWaiting) {
      ++entry;
    } else if (sink_.requested(entry->number, entry->request)) {
      entry->owed = !tell(entry->request, ConnectKind::kPending, {});
      entry->stage = Stage::kAnnounced;
      ++announced_;
      ++entry;
    } else {
      entry = entries_.erase(entry);
    }
  }
}

void Listener::source_closed(std::uint32_t source, bool) {
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const ReceivedRequest& one) { return one.source == source; });
  if (entry == entries_.end()) return;
  if (entry->stage == Stage::kAnnounced) --announced_;
  entries_.erase(entry);
}

// A source that sends anything but one request is refused.
void Listener::arrived(const link::Arrival& arrival) {
  std::array<std::byte, kHeaderBytes + kMaxData> copy;  // the sender may write on
  std::optional<ConnectMessage> message;
  if (arrival.operation == link::MessageOperation::kControl && arrival.payload != nullptr &&
      arrival.length <= copy.size()) {
    std::memcpy(copy.data(), arrival.payload, arrival.length);
    message = decode({copy.data(), arrival.length});
  }
  const bool again = std::any_of(entries_.begin(), entries_.end(), [&](const ReceivedRequest& one) {
    return one.source == arrival.source;
  });
  if (!message || message->kind != ConnectKind::kRequest || again) {
    return port_->inbox().refuse(*this, arrival.source);
  }
  ReceivedRequest& entry = entries_.emplace_back();
  entry.number = next_number_++;
  entry.source = arrival.source;
  entry.request = {message->name, message->origin, std::move(message->data)};
}

// A source that closes right behind its request withdraws it: read both before it is reported.
void Listener::take_in() {
  for (int i = 0; i < kPolls && port_->inbox().poll(*this) != 0; ++i) {
  }
  const os::Time now = os::coarse_now();
  if (now >= next_check_) {
    next_check_ = now + kCheckEvery;
    port_->inbox().check_sources(*this);
    tell_again();
  }
  announce();
}

void Listener::progress() {
  const std::lock_guard guard(mutex_);
  take_in();
}

bool Listener::fall_asleep() {
  const std::lock_guard guard(mutex_);
  ++sleepers_;
  const bool quiet = port_->fall_asleep() && !owes_a_word();
  // Going to sleep has undone the ring for the threads that slept before.
  if (!quiet && sleepers_ > 1) port_->wake_set().ring();
  return quiet;
}

void Listener::wake_up() {
  const std::lock_guard guard(mutex_);
  if (--sleepers_ == 0) port_->inbox().wake_up();
}

void turn_down(std::shared_ptr<device::Device> device, const link::Place& place,
               const Request& request) {
  const DomainId empty = device->new_domain();
  auto port = device::Port::open(std::move(device), place, options_for(empty, place.address));
  if (port) say(*port.value(), request.name, {ConnectKind::kReject, request.token, 0, {}, {}});
}

}  // namespace weft::connect
