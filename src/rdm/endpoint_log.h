// SPDX-License-Identifier: BSD-2-Clause
// What do tests of endpoints share, over sockets and in the simulator? Sinks that write down what
// they hear, and calls that poll both ends.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bytes_test_support.h"
#include "link/connection.h"
#include "link/flow.h"
#include "link/inbox.h"

namespace weft::rdm::testing {

using roce::testing::Bytes;
using roce::testing::pattern;

// Writes down what arrives, and takes offers into scattered SGEs unless told otherwise.
template <class Endpoint>
struct InboxLog final : link::InboxSink {
  struct Message {
    link::Arrival arrival;
    Bytes bytes;     // when it is in place
    int error = -1;  // of an accepted offer; -1 while it is not in place
    Bytes sges[3];   // where it is taken to
  };
  struct Closed {
    std::uint32_t source;
    bool died;
    bool operator==(const Closed&) const = default;
  };
  Endpoint* endpoint = nullptr;
  bool takes = true;
  bool takes_urgently = false;  // even if not otherwise
  bool places = false;          // messages as they come
  bool accepts = true;
  bool acknowledges = true;
  std::uint64_t most = ~std::uint64_t{0};  // bytes of an offer that are taken
  std::deque<Message> messages;
  std::vector<std::pair<std::uint32_t, os::SocketAddress>> opened;
  std::vector<Closed> closed;
  std::vector<std::pair<Access, std::uint64_t>> accesses;
  std::vector<std::pair<std::string, RefusedAccess>> refusals;  // with their operations

  std::vector<std::uint32_t> withdrawn_ones;  // by their exchanges

  void source_opened(std::uint32_t source, const os::SocketAddress& address) override {
    opened.emplace_back(source, address);
  }
  void source_closed(std::uint32_t source, bool died) override { closed.push_back({source, died}); }
  unsigned room() const override { return takes ? ~0U : 0; }
  bool takes_more_urgently(std::uint32_t) const override { return takes || takes_urgently; }
  bool arriving(const link::Arrival& arrival) override {
    if (!places) return false;
    Message& message = messages.emplace_back();
    message.arrival = arrival;
    accept(message);
    return true;
  }
  void arrived(const link::Arrival& arrival) override {
    Message& message = messages.emplace_back();
    message.arrival = arrival;
    if (arrival.payload != nullptr) {
      message.bytes.assign(arrival.payload, arrival.payload + arrival.length);
      message.error = 0;
      if (arrival.wants_ack && acknowledges) endpoint->acknowledge(arrival.offer);
    } else if (accepts && arrival.length != 0) {
      accept(message);
    }
  }
  void accept(Message& message) {
    const std::uint64_t length = std::min(message.arrival.length, most);
    message.sges[0].resize(1);
    message.sges[1].resize(length / 3);
    message.sges[2].resize(length - 1 - length / 3);
    LocalRange sges[3];
    for (int i = 0; i < 3; ++i) sges[i] = {message.sges[i].data(), message.sges[i].size()};
    endpoint->accept(*this, message.arrival.offer, sges, length, &message);
  }
  void accessed(std::uint32_t, Access access, std::span<const RegionKey> regions) override {
    for (const RegionKey key : regions) accesses.emplace_back(access, key.v);
  }
  void refused(std::uint32_t, const char* operation, const RefusedAccess& access) override {
    refusals.emplace_back(operation, access);
  }
  void withdrawn(const link::Offer& offer) override {
    withdrawn_ones.push_back(offer.rendezvous_id);
  }
  void received(void* cookie, int error) override {
    Message& message = *static_cast<Message*>(cookie);
    message.error = error;
    for (const Bytes& each : message.sges) {
      message.bytes.insert(message.bytes.end(), each.begin(), each.end());
    }
  }
  // The messages of one source.
  std::vector<const Message*> from(std::uint32_t source) const {
    std::vector<const Message*> found;
    for (const Message& each : messages) {
      if (each.arrival.source == source) found.push_back(&each);
    }
    return found;
  }
  // Messages of that kind.
  std::size_t count(link::MessageOperation operation) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        messages, [&](const Message& each) { return each.arrival.operation == operation; }));
  }
};

// Writes down how requests ended, by the numbers that are their cookies.
struct FlowLog final : link::FlowSink {
  struct End {
    int error;
    int detail;
    bool operator==(const End&) const = default;
  };
  std::map<std::uint64_t, End> ended_ones;
  unsigned doubled = 0;
  void ended(void* cookie, int error, int detail) override {
    const auto number = reinterpret_cast<std::uint64_t>(cookie);
    if (!ended_ones.emplace(number, End{error, detail}).second) ++doubled;
  }
  bool has(std::uint64_t number) const { return ended_ones.contains(number); }
  int error_of(std::uint64_t number) const { return ended_ones.at(number).error; }
};

// The user of one end of a connection.
struct ConnectionEnd final : link::ConnectionUser {
  void connected(std::uint32_t its_source, std::shared_ptr<link::Flow> its_flow,
                 std::span<const std::byte> its_data) override {
    ++connects;
    source = its_source;
    flow = std::move(its_flow);
    data.assign(its_data.begin(), its_data.end());
  }
  void failed(int its_error, std::span<const std::byte> its_data) override {
    ++failures;
    error = its_error;
    data.assign(its_data.begin(), its_data.end());
  }
  void ended() override { ++ends; }

  bool is_open() const { return connects != 0 && ends == 0; }

  link::ConnectionNumber number = 0;
  std::uint32_t source = 0;
  std::shared_ptr<link::Flow> flow;
  Bytes data;  // of the acceptance or rejection
  int error = 0;
  unsigned connects = 0;
  unsigned failures = 0;
  unsigned ends = 0;
  bool left = false;  // this side has ended it
};

// A tagged message, whose end is known by its tag. Odd ones have data.
inline link::SendRequest tagged(std::uint64_t tag, std::span<const LocalRange> sges,
                                std::size_t length) {
  link::SendRequest request;
  request.operation = link::MessageOperation::kTagged;
  request.tag = tag;
  request.data = ~tag;
  request.has_data = tag % 2 != 0;
  request.sges = sges;
  request.length = length;
  request.cookie = reinterpret_cast<void*>(tag);
  return request;
}

// Expects the message that tagged() describes, in place.
template <class Message>
void expect_message(const Message& message, std::uint64_t tag, const Bytes& bytes) {
  EXPECT_EQ(message.arrival.operation, link::MessageOperation::kTagged);
  EXPECT_EQ(message.arrival.tag, tag);
  EXPECT_EQ(message.arrival.has_data, tag % 2 != 0);
  EXPECT_EQ(message.arrival.data, tag % 2 != 0 ? ~tag : message.arrival.data);
  EXPECT_EQ(message.arrival.length, bytes.size());
  EXPECT_EQ(message.error, 0);
  EXPECT_TRUE(message.bytes == bytes) << "message " << tag << " of " << bytes.size() << " bytes";
}

// An access whose end is known by that number.
inline link::AccessRequest access_of(bool write, const LocalRange& local, const RemoteRange& remote,
                                     std::uint64_t number) {
  link::AccessRequest request;
  request.write = write;
  request.local = {&local, 1};
  request.remote = {&remote, 1};
  request.length = local.length;
  request.cookie = reinterpret_cast<void*>(number);
  return request;
}

// Sends bytes that stay until the message is done; asks again for as long as there is no room.
template <class Peer>
link::Outcome send(Peer& from, Peer& to, link::Flow& flow, std::uint64_t tag,
                   std::span<std::byte> bytes, bool until_delivered = false,
                   bool must_copy = false) {
  const std::size_t half = bytes.size() / 2;
  const LocalRange sges[] = {{bytes.data(), half}, {bytes.data() + half, bytes.size() - half}};
  link::SendRequest request = tagged(tag, sges, bytes.size());
  request.until_delivered = until_delivered;
  request.must_copy = must_copy;
  link::Outcome outcome;
  const auto has_room = [&] {
    outcome = flow.send(request);
    return outcome.state != link::Outcome::State::kAgain;
  };
  until(std::initializer_list<Peer*>{&from, &to}, has_room);
  return outcome;
}

// The way from one to another, which has answered; null when there is none.
template <class Peer>
link::Flow* connect(Peer& from, Peer& to) {
  auto flow = from.open(to.address);
  if (!flow) return nullptr;
  from.flows.push_back(std::move(flow).value());
  link::Flow* const path = from.flows.back().get();
  const bool reached =
      until(std::initializer_list<Peer*>{&from, &to}, [&] { return path->reached(); });
  return reached ? path : nullptr;
}

}  // namespace weft::rdm::testing
