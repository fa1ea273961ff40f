// SPDX-License-Identifier: BSD-2-Clause
// Which calls does a process in shortage make, and when has it got what it wanted?
#include "connected_peer.h"

#include <rdma/fi_atomic.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "failure.h"

namespace weft::faults {

namespace {

constexpr std::chrono::milliseconds kAgain{20};      // datagrams may be lost
constexpr std::chrono::milliseconds kAskAgain{300};  // the partner may have failed to connect

}  // namespace

ConnectedPeer::ConnectedPeer(const Mode& mode, const Channel& channel, const Address& partner)
    : mode_(mode),
      channel_(channel),
      partner_address_(partner),
      node_(mode.type, mode.progress),
      switchboard_(node_),
      memory_(std::make_unique<std::uint8_t[]>(2 * kLargeLetter)) {
  for (Operation* operation : {&send_, &receive_, &count_}) operation->target = this;
  send_.memory = {memory_.get(), kLargeLetter};
  receive_.memory = {memory_.get() + kLargeLetter, kLargeLetter};
}

ConnectedPeer::~ConnectedPeer() {
  for (auto& region : regions_) region.reset();
  connection_.reset();
  switchboard_.close();
  node_.close();
}

int ConnectedPeer::open() {
  int status = node_.open_found();
  if (status == 0 && mode_.connects()) status = switchboard_.open();
  if (status == 0 && !mode_.connects()) partner_ = node_.insert(partner_address_);
  return status;
}

const char* ConnectedPeer::failed_call() const {
  return *node_.failed_call() != 0 ? node_.failed_call() : switchboard_.failed_call();
}

int ConnectedPeer::register_some() {
  for (auto& region : regions_) {
    region.reset();
    const int status =
        node_.register_memory({memory_.get(), 2 * kLargeLetter}, next_key_++, region);
    if (status != 0) return status;
  }
  return 0;
}

int ConnectedPeer::ask() {
  if (mode_.listens) {
    const Notice notice{switchboard_.address(), asks_, false};
    channel_.send(&notice, sizeof notice);
    return 0;
  }
  int status = switchboard_.open_endpoint(nullptr, connection_);
  if (status == 0) status = switchboard_.connect(*connection_, partner_address_, 0);
  return status;
}

int ConnectedPeer::accept(const ConnectionEvent& request) {
  if (request.id != asks_) {  // the partner has been asked anew since, or will be
    switchboard_.reject(request);
    return 0;
  }
  connection_.reset();  // an earlier attempt
  int status = switchboard_.open_endpoint(request.request.get(), connection_);
  if (status == 0) status = switchboard_.accept(*connection_);
  // What has taken the request answers it, and where nothing could, we do.
  if (!connection_) switchboard_.reject(request);
  return status;
}

// After a failed connect the next attempt starts anew. Completions that are there already
// still belong to the operations.
int ConnectedPeer::hang_up(int error) {
  connection_.reset();
  while (node_.poll() != 0) {
  }
  send_.pending = receive_.pending = count_.pending = false;
  asked_ = {};
  connected_ = false;
  return error;
}

int ConnectedPeer::heed(ConnectionEvent& event) {
  if (event.what == FI_CONNREQ) return -accept(event);
  if (event.what == FI_SHUTDOWN) return ECONNRESET;
  connected_ = event.what == FI_CONNECTED;
  return event.error;
}

// What was begun before, in the shortage, may still fail of that. It is to do so, and not to stay
// pending, and then the next attempt counts.
int ConnectedPeer::meet(Clock::time_point end) {
  const auto begin = Clock::now();
  while (!connected_) {
    if (Clock::now() > end) return ETIMEDOUT;
    if (!connection_ && Clock::now() - asked_ > kAskAgain) {
      asked_ = Clock::now();
      ++asks_;
      const int status = ask();
      if (status != 0) return hang_up(-status);
    }
    std::optional<ConnectionEvent> event = switchboard_.read();
    const int error = event ? heed(*event) : 0;
    if (error != 0) {
      const bool begun_before = asked_ < begin;
      hang_up(error);
      if (!begun_before) return error;
    }
    node_.poll();
  }
  return 0;
}

int ConnectedPeer::post_receive() {
  answered_ = false;
  if (receive_.pending) return 0;
  const long status = fi_recv(endpoint(), receive_.memory.data(), receive_.memory.size(), nullptr,
                              FI_ADDR_UNSPEC, &receive_.context);
  receive_.pending = status == 0;
  return static_cast<int>(-status);
}

void ConnectedPeer::compose(std::size_t bytes) {
  send_.bytes = bytes;
  const Letterhead letterhead{node_.address(), ++number_};
  fill_pattern(send_.memory.first(bytes), number_);
  std::memcpy(send_.memory.data(), &letterhead, sizeof letterhead);
}

int ConnectedPeer::post_send() {
  const long status =
      fi_send(endpoint(), send_.memory.data(), send_.bytes, nullptr, partner_, &send_.context);
  send_.pending = status == 0;
  return static_cast<int>(-status);
}

int ConnectedPeer::exchange_one(std::size_t bytes, Clock::time_point end) {
  // What an exchange before this one left pending comes first.
  while (send_.pending && Clock::now() < end) node_.poll();
  if (send_.pending) return ETIMEDOUT;
  compose(bytes);
  error_ = 0;
  answered_ = false;
  bool sent = false;
  Clock::time_point sent_at{};
  while (error_ == 0 && !(answered_ && !send_.pending)) {
    const auto now = Clock::now();
    if (now > end) return ETIMEDOUT;
    int status = answered_ ? 0 : post_receive();
    const bool again = !sent || (mode_.loses() && !send_.pending && now - sent_at > kAgain);
    if (status == 0 && again) {
      status = post_send();
      sent = status == 0;
      sent_at = now;
    }
    if (status != 0 && status != EAGAIN) return status;
    node_.poll();
  }
  return error_;
}

int ConnectedPeer::count_up(Clock::time_point end) {
  if (mode_.loses()) return 0;
  const std::uint64_t before = counted_;
  error_ = 0;
  long status = -FI_EAGAIN;
  while (status == -FI_EAGAIN && Clock::now() < end) {
    status = fi_fetch_atomic(endpoint(), &one_, 1, nullptr, &counted_, nullptr, partner_, 0,
                             kCountKey, FI_UINT64, FI_SUM, &count_.context);
    if (status == -FI_EAGAIN) node_.poll();
  }
  if (status != 0) return status == -FI_EAGAIN ? ETIMEDOUT : static_cast<int>(-status);
  count_.pending = true;
  while (count_.pending && Clock::now() < end) node_.poll();
  if (count_.pending) return ETIMEDOUT;
  require(error_ != 0 || counted_ > before || counted_ == 0,
          "an atomic addition brought an older number back");
  return error_;
}

int ConnectedPeer::exchange(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  const std::size_t large = std::min(kLargeLetter, node_.info()->ep_attr->max_msg_size);
  int status = mode_.connects() ? meet(end) : 0;
  if (status == 0) status = exchange_one(kSmallLetter, end);
  if (status == 0) status = exchange_one(large, end);
  return status != 0 ? status : count_up(end);
}

void ConnectedPeer::completed(Operation& operation, const fi_cq_tagged_entry& entry) {
  if (&operation != &receive_) return;
  Letterhead letterhead{};
  std::memcpy(&letterhead, receive_.memory.data(), sizeof letterhead);
  if (letterhead.number != number_) return;  // a late answer to what was given up
  require(entry.len == send_.bytes &&
              std::memcmp(receive_.memory.data(), send_.memory.data(), entry.len) == 0,
          "the partner's answer is wrong");
  answered_ = true;
}

void ConnectedPeer::failed(Operation&, const fi_cq_err_entry& error) { error_ = error.err; }

}  // namespace weft::faults
