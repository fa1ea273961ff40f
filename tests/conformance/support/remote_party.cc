// SPDX-License-Identifier: BSD-2-Clause
// How do conversations with a peer process begin, go on and end?
#include "remote_party.h"

#include <gtest/gtest-spi.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>

#include "local_party.h"

namespace weft::conformance {
namespace {

Reply failure_reply(const testing::TestPartResult& result) {
  Reply reply;
  reply.arrived = true;
  const std::string text = std::string(result.file_name() == nullptr ? "?" : result.file_name()) +
                           ":" + std::to_string(result.line_number()) + ": " + result.message();
  std::strncpy(reply.text.data(), text.c_str(), reply.text.size() - 1);
  return reply;
}

// Serves one party until the test says goodbye; false when the test is gone.
bool serve_party(Channel* to_test, const Options& options) {
  Pump pump;
  LocalParty party(std::make_shared<Domain>(options), options, &pump);
  if (!to_test->send(party.ok())) return false;
  Request request;
  // The test may be busy for long; it ends this process if something is wrong.
  while (to_test->receive(
      &request, [&pump] { pump.once(); }, 100 * patience())) {
    if (request.what == Request::What::kGoodbye) return true;
    if (!to_test->send(party.call(request))) return false;
  }
  return false;
}

// Everything of the conversation is closed before its failures are told.
bool converse(Channel* to_test, const Options& options) {
  testing::TestPartResultArray results;
  bool more = false;
  {
    testing::ScopedFakeTestPartResultReporter capture(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
    more = serve_party(to_test, options);
  }
  for (int i = 0; more && i < results.size(); ++i) {
    if (!results.GetTestPartResult(i).failed()) continue;
    more = to_test->send(failure_reply(results.GetTestPartResult(i)));
  }
  return more && to_test->send(Reply{});
}

void serve_conversations(Channel& to_test) {
  Options options;
  while (to_test.receive(&options, {}, 100 * patience())) {
    if (!converse(&to_test, options)) return;
  }
}

// Shared files that no other process knows of. The provider asks for the directory once.
void serve_conversations_from_afar(Channel& to_test) {
  char directory[] = "/dev/shm/weft-test-XXXXXX";
  EXPECT_NE(::mkdtemp(directory), nullptr);
  setenv("FI_WEFT_RUNTIME_DIR", directory, 1);
  serve_conversations(to_test);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

}  // namespace

ResidentPeers* ResidentPeers::the_one = nullptr;

ResidentPeers::ResidentPeers() { the_one = this; }
ResidentPeers::~ResidentPeers() { the_one = nullptr; }

std::unique_ptr<PeerProcess> ResidentPeers::borrow(bool far) {
  Peers& idle = far ? the_one->idle_far_ : the_one->idle_;
  if (idle.empty()) {
    return std::make_unique<PeerProcess>(far ? serve_conversations_from_afar : serve_conversations);
  }
  std::unique_ptr<PeerProcess> peer = std::move(idle.back());
  idle.pop_back();
  return peer;
}

void ResidentPeers::give_back(std::unique_ptr<PeerProcess> peer, bool far) {
  (far ? the_one->idle_far_ : the_one->idle_).push_back(std::move(peer));
}

RemoteParty::RemoteParty(const Options& options, Pump* pump)
    : pump_(pump), far_(options.far), process_(ResidentPeers::borrow(far_)) {
  alive_ = process_->channel().send(options) &&
           process_->channel().receive(&ok_, [this] { pump_->once(); });
  EXPECT_TRUE(ok_) << "the peer process could not open its endpoint";
}

RemoteParty::~RemoteParty() {
  if (alive_ && say_goodbye()) {
    ResidentPeers::give_back(std::move(process_), far_);
  } else {
    process_->finish([this] { pump_->once(); });
  }
}

bool RemoteParty::say_goodbye() {
  Request goodbye;
  goodbye.what = Request::What::kGoodbye;
  start(goodbye);
  Reply failure = finish();
  while (alive_ && failure.arrived) {
    ADD_FAILURE() << "in the peer: " << failure.text.data();
    failure = finish();
  }
  return alive_;
}

void RemoteParty::start(const Request& request) {
  if (!alive_) return;
  alive_ = process_->channel().send(request);
  EXPECT_TRUE(alive_) << "the peer process is gone";
}

Reply RemoteParty::finish() {
  Reply reply;
  if (!alive_) return reply;
  alive_ = process_->channel().receive(&reply, [this] { pump_->once(); });
  EXPECT_TRUE(alive_) << "the peer process did not answer";
  return reply;
}

Reply RemoteParty::call(const Request& request) {
  start(request);
  return finish();
}

}  // namespace weft::conformance
