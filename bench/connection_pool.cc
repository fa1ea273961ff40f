// SPDX-License-Identifier: BSD-2-Clause
// How does one process make and accept many connections at once?
#include "connection_pool.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <sched.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "failure.h"
#include "queue_completions.h"

namespace weft::bench {
namespace {

constexpr std::size_t kBatch = 32;

// Differs in every byte from one connection of a process to the next.
std::uint64_t question_of(std::size_t number) { return (number + 1) * 0x9E37'79B9'7F4A'7C15; }

std::uint64_t load(const std::byte* place) {
  std::uint64_t value = 0;
  std::memcpy(&value, place, sizeof value);
  return value;
}

void store(std::byte* place, std::uint64_t value) { std::memcpy(place, &value, sizeof value); }

}  // namespace

ConnectionPool::ConnectionPool(const Options& options, std::size_t most)
    : endpoint_(options), buffers_(endpoint_, sizeof(std::uint64_t), most), most_(most) {
  connections_.reserve(most);
  made_.reserve(most);
}

// `request`: what came with FI_CONNREQ, or nullptr to ask for a connection. The receive is posted
// first: the peer's message may arrive with the event that it is connected.
ConnectionPool::Connection& ConnectionPool::open(fi_info* request) {
  const std::size_t number = connections_.size();
  if (number == most_) die("connections", "more of them come than were asked for");
  const auto start = Clock::now();
  connections_.push_back(std::make_unique<Connection>(
      Connection{nullptr, number, request == nullptr, {start, start, start}}));
  Connection& connection = *connections_.back();
  connection.ep = endpoint_.open_connection(request, &connection);
  check_fabric(fi_recv(connection.ep, buffers_.target(number), buffers_.size(),
                       buffers_.descriptor(), FI_ADDR_UNSPEC, &connection),
               "fi_recv");
  return connection;
}

void ConnectionPool::start(const std::vector<std::byte>& name) {
  Connection& connection = open(nullptr);
  connection.times.connect = Clock::now();
  check_fabric(fi_connect(connection.ep, name.data(), nullptr, 0), "fi_connect");
  ++started_;
}

void ConnectionPool::make(const std::vector<std::vector<std::byte>>& names, std::size_t under_way) {
  const std::size_t wanted = made_.size() + names.size();
  std::size_t next = 0;
  while (made_.size() < wanted) {
    while (next < names.size() && started_ - made_.size() < under_way) start(names[next++]);
    if (!progress()) sched_yield();  // there may be more processes than cores
  }
}

bool ConnectionPool::progress() {
  const bool event = take_event();
  const bool completion = take_completions();
  if (!to_send_.empty()) send_waiting();
  return event || completion;
}

bool ConnectionPool::take_event() {
  fi_eq_cm_entry entry{};
  std::uint32_t event = 0;
  const ssize_t got = fi_eq_read(endpoint_.events(), &event, &entry, sizeof entry, 0);
  if (got == -FI_EAGAIN) return false;
  if (got == -FI_EAVAIL) take_error();
  check_fabric(got, "fi_eq_read");
  if (event == FI_CONNREQ) {
    accept(entry.info);
  } else if (event == FI_CONNECTED) {
    auto& connection = *static_cast<Connection*>(entry.fid->context);
    if (connection.asked) {
      store(buffers_.source(connection.number), question_of(connection.number));
      to_send_.push_back(&connection);
    }
  } else {
    die("fi_eq_read", "a connection has ended");
  }
  return true;
}

void ConnectionPool::take_error() {
  fi_eq_err_entry error{};
  check_fabric(fi_eq_readerr(endpoint_.events(), &error, 0), "fi_eq_readerr");
  check_fabric(-error.err, "a connection was not made");
}

void ConnectionPool::accept(fi_info* request) {
  const Info owned(request);
  check_fabric(fi_accept(open(request).ep, nullptr, 0), "fi_accept");
}

bool ConnectionPool::take_completions() {
  std::array<fi_cq_tagged_entry, kBatch> entries;
  const auto got = read_queue(endpoint_.queue(), entries);
  for (const fi_cq_tagged_entry& entry : got) {
    // A send has no context.
    if (entry.op_context != nullptr) received(*static_cast<Connection*>(entry.op_context));
  }
  return !got.empty();
}

void ConnectionPool::received(Connection& connection) {
  const std::uint64_t value = load(buffers_.target(connection.number));
  if (!connection.asked) {
    store(buffers_.source(connection.number), ~value);
    to_send_.push_back(&connection);
    return;
  }
  if (value != ~question_of(connection.number)) die("data check", "the wrong bytes arrived");
  connection.times.end = Clock::now();
  made_.push_back(connection.times);
}

void ConnectionPool::send_waiting() {
  while (!to_send_.empty()) {
    const Connection& connection = *to_send_.front();
    const ssize_t rc = fi_send(connection.ep, buffers_.source(connection.number), buffers_.size(),
                               buffers_.descriptor(), FI_ADDR_UNSPEC, nullptr);
    if (rc == -FI_EAGAIN) return;
    check_fabric(rc, "fi_send");
    to_send_.pop_front();
    if (!connection.asked) ++answered_;
  }
}

}  // namespace weft::bench
