// SPDX-License-Identifier: BSD-2-Clause
// What do the tests of connections within the host share? Three ports, and programs that write down
// what they hear.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "link_shm/mailbox.h"
#include "link_shm/outbox.h"
#include "mailbox_connections.h"
#include "os/loopback_support.h"
#include "os/runtime_dir.h"

namespace weft::device::mailbox_testing {

using Bytes = std::vector<std::byte>;
using Log = std::vector<std::string>;

inline Bytes bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct NoFlowSink final : link::FlowSink {
  void ended(void*, int, int) override {}
};

inline link::Outcome send_over(link::Flow& flow, std::span<const std::byte> bytes,
                               link::MessageOperation operation) {
  const LocalRange sge{const_cast<std::byte*>(bytes.data()), bytes.size()};
  link::SendRequest request;
  request.operation = operation;
  request.must_copy = true;
  request.sges = {&sge, 1};
  request.length = bytes.size();
  return flow.send(request);
}

inline bool is_refused(link::Flow& flow) {
  NoFlowSink sink;
  return flow.check_peer(sink) == link::PeerState::kRefuses;
}

// The program at one end: what its connection reports is a line of `log`.
struct Program final : link::ConnectionUser {
  Log log;
  std::shared_ptr<link::Flow> flow;
  std::uint32_t source = 0;
  link::ConnectionNumber number = 0;
  std::map<std::uint32_t, Program*>* by_source = nullptr;  // of its port
  std::function<void()> react;                             // to each line

  void connected(std::uint32_t its_source, std::shared_ptr<link::Flow> its_flow,
                 std::span<const std::byte> data) override {
    source = its_source;
    flow = std::move(its_flow);
    (*by_source)[source] = this;
    hear("connected " + text_of(data));
  }
  void failed(int error, std::span<const std::byte> data) override {
    hear("failed " + std::to_string(error) + " " + text_of(data));
  }
  void ended() override { hear("ended"); }
  void hear(const std::string& line) {
    log.push_back(line);
    if (react) react();
  }

  link::Outcome send(const std::string& text) const {
    return send_over(*flow, bytes_of(text), link::MessageOperation::kMessage);
  }
};

inline std::string failure(int error, const std::string& data = {}) {
  return "failed " + std::to_string(error) + " " + data;
}

// A mailbox with its connections.
struct Party final : link::InboxSink, link::ListenerUser {
  os::SocketAddress address;
  Options options;
  Stats stats;
  std::unique_ptr<shm::Mailbox> mailbox;
  shm::Sender sender;
  std::map<std::uint32_t, os::SocketAddress> senders;
  std::map<std::uint32_t, Program*> programs;
  std::optional<rdm::PortConnections> connections;
  std::optional<MailboxConnections> mailbox_connections;
  std::vector<std::pair<link::ConnectionNumber, link::ConnectionRequest>> requests;
  std::vector<link::ConnectionNumber> withdrawals;
  bool holds = false;                                 // control messages, which it does not take
  std::vector<std::pair<std::uint32_t, Bytes>> held;  // by their sources
  int refusals = 0;

  Party(const std::string& directory, std::uint16_t port) : address(os::loopback(port)) {
    shm::MailboxOptions box;
    box.directory = directory;
    box.address = address;
    box.on_mad = [this](const os::SocketAddress& from, std::span<const std::byte> datagram) {
      mailbox_connections->take_datagram(from, datagram);
    };
    box.sender.address = address;
    box.sender.geometry = shm::kConnectionGeometry;
    mailbox = std::move(shm::Mailbox::create(box)).value();
    sender = mailbox->sender();
    connections.emplace(port, options.peer_timeout, os::random_number, stats);
    mailbox_connections.emplace(*connections, *mailbox, mailbox->sender(), options, shm::MadSink(),
                                stats);
  }
  ~Party() override = default;

  void source_opened(std::uint32_t source, const os::SocketAddress& from) override {
    senders[source] = from;
  }
  void source_closed(std::uint32_t source, bool) override {
    senders.erase(source);
    mailbox_connections->source_closed(source);
    programs.erase(source);
  }
  void arrived(const link::Arrival& arrival) override {
    ASSERT_NE(arrival.payload, nullptr);
    const Bytes message(arrival.payload, arrival.payload + arrival.length);
    if (arrival.operation == link::MessageOperation::kControl) {
      if (arrival.wants_ack) mailbox->acknowledge(arrival.offer);
      if (holds) return void(held.emplace_back(arrival.source, message));
      if (mailbox_connections->take(arrival.source, senders[arrival.source], message)) return;
    } else if (const auto found = programs.find(arrival.source); found != programs.end()) {
      return found->second->log.push_back(text_of(message));
    }
    ++refusals;
    mailbox->refuse(*this, arrival.source);
  }
  void received(void*, int) override {}

  void requested(link::ConnectionNumber number, link::ConnectionRequest request) override {
    requests.emplace_back(number, std::move(request));
  }
  void withdrawn(link::ConnectionNumber number) override { withdrawals.push_back(number); }

  unsigned poll() { return mailbox->poll(*this); }
  void check() {
    mailbox->check_sources(*this);
    mailbox_connections->check(true, [this] {
      poll();
      return !mailbox->has_newcomers();
    });
  }
  std::size_t attempts() const {
    std::size_t count = 0;
    mailbox_connections->each_process([&](int) { ++count; });
    return count;
  }
};

struct MailboxConnectionsTest : ::testing::Test {
  std::string directory = [] {
    std::string name = "/dev/shm/weft-connections-test-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }();
  std::unique_ptr<Party> listener = std::make_unique<Party>(directory, 7300);
  std::unique_ptr<Party> requester = std::make_unique<Party>(directory, 7301);
  std::unique_ptr<Party> acceptor = std::make_unique<Party>(directory, 7302);
  std::list<Program> programs;
  Program& asking = add(*requester);
  Program& accepting = add(*acceptor);

  MailboxConnectionsTest() {
    EXPECT_TRUE(listener->connections->listen(128, *listener).ok());
    for (Party* const each : {requester.get(), acceptor.get()})
      each->options.request_timeout = std::chrono::milliseconds(200);
  }
  // Flows end before the mailbox whose bell they name.
  ~MailboxConnectionsTest() override {
    programs.clear();
    listener.reset();
    requester.reset();
    acceptor.reset();
    std::filesystem::remove_all(directory);
  }

  Program& add(Party& party) {
    Program& program = programs.emplace_back();
    program.by_source = &party.programs;
    return program;
  }
  Result<link::ConnectionNumber> request(Program& program, const Bytes& data = {}) const {
    auto number = requester->connections->request(listener->address, data, program);
    if (number) program.number = number.value();
    return number;
  }
  Result<link::ConnectionNumber> accept(Program& program, const Bytes& data = {}) const {
    const auto& [of_listener, received] = listener->requests.back();
    listener->connections->forward(of_listener);
    auto number = acceptor->connections->accept(received, data, program);
    if (number) program.number = number.value();
    return number;
  }
  void connect(Program& one, Program& other, const Bytes& data = {}) const {
    ASSERT_TRUE(request(one, data).ok());
    listener->poll();
    ASSERT_TRUE(accept(other, data).ok());
    requester->poll();
    acceptor->poll();
    ASSERT_THAT(one.log, ::testing::ElementsAre("connected " + text_of(data)));
    ASSERT_THAT(other.log, ::testing::ElementsAre("connected "));
  }
  void connect() const { connect(asking, accepting); }
  void disconnect(Party& party, Program& program) const {
    party.connections->disconnect(program.number);
    program.flow.reset();
  }
  // Until nothing arrives any more; the first messages of a source are not counted.
  void settle() const {
    for (int quiet = 0; quiet < 4; ++quiet) {
      for (Party* const each : {listener.get(), requester.get(), acceptor.get()}) {
        if (each == nullptr) continue;
        if (each->poll() != 0) quiet = 0;
        each->check();
      }
    }
  }
  template <class Done>
  bool check_until(Party& party, Done done) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < end) party.check();
    return done();
  }
  // Neither end has a connection, an attempt, or a source any more.
  void expect_nothing_left() const {
    settle();
    for (Party* const each : {listener.get(), requester.get(), acceptor.get()}) {
      if (each == nullptr) continue;
      EXPECT_THAT(each->senders, ::testing::IsEmpty()) << each->address.text();
      EXPECT_EQ(each->attempts(), 0u) << each->address.text();
      EXPECT_FALSE(each->mailbox_connections->send_again()) << each->address.text();
    }
  }
  void expect_data_flow(Program& one, Program& other) const {
    one.log.clear();
    other.log.clear();
    EXPECT_EQ(one.send("to the other").state, link::Outcome::State::kDone);
    EXPECT_EQ(other.send("and back").state, link::Outcome::State::kDone);
    settle();
    EXPECT_THAT(one.log, ::testing::ElementsAre("and back"));
    EXPECT_THAT(other.log, ::testing::ElementsAre("to the other"));
  }
};

}  // namespace weft::device::mailbox_testing
