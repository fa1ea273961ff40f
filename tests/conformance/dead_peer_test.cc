// SPDX-License-Identifier: BSD-2-Clause
// Does a request to a process that has ended come to an end? (fi_cq(3))
//
// A request is a send, and a receive of the answer that takes messages of the peer only.
#include <signal.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "support/local_party.h"
#include "support/peer_process.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kLength = 64;
// Well above the timeout of a peer that is not there (FI_WEFT_CONNECT_TIMEOUT_MS).
constexpr auto kSoon = std::chrono::seconds(8);

Options directed() {
  Options options;
  options.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
  return options;
}

// Answers one request of the test, and dies when told to.
void serve(Channel& to_test) {
  Pump pump;
  LocalParty server(std::make_shared<Domain>(directed()), directed(), &pump);
  to_test.send(server.name());
  Address address;
  to_test.receive(&address);
  const fi_addr_t client = server.insert(address);
  server.wait_success(server.post({.kind = Kind::kRecv, .length = kLength}));
  server.wait_success(
      server.post({.kind = Kind::kTsend, .length = kLength, .peer = client, .tag = 1}));
  int order = 0;
  to_test.receive(&order, [&] { pump.once(); });
  raise(SIGKILL);
}

void shelter_server(Channel& to_test) {
  run_to_death([&] { serve(to_test); });
  to_test.send(true);
}

struct Death {
  int delay_ms;  // between the death and the request
  bool polls;    // meanwhile
};

class DeadPeer : public testing::TestWithParam<Death> {
 protected:
  void SetUp() override {
    Address address;
    ASSERT_TRUE(process_.channel().receive(&address));
    server_ = client_.insert(address);
    process_.channel().send(client_.name());
    const Token answer = post_answer(1);
    client_.wait_success(client_.post({.kind = Kind::kSend, .length = kLength, .peer = server_}));
    client_.wait_success(answer);
  }
  Token post_answer(std::uint64_t tag) {
    return client_.post({.kind = Kind::kTrecv, .length = kLength, .peer = server_, .tag = tag});
  }
  void kill() {
    process_.channel().send(0);
    bool dead = false;
    ASSERT_TRUE(process_.channel().receive(&dead));
  }
  void pass_time() {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(GetParam().delay_ms);
    if (!GetParam().polls) return std::this_thread::sleep_until(end);
    pump_.until([&] { return std::chrono::steady_clock::now() >= end; });
  }

  Pump pump_;
  LocalParty client_{std::make_shared<Domain>(directed()), directed(), &pump_};
  PeerProcess process_{shelter_server};
  fi_addr_t server_ = FI_ADDR_NOTAVAIL;
};

TEST_P(DeadPeer, EndsARequest) {
  kill();
  pass_time();
  const Token waiting = post_answer(2);
  const Posted sent = client_.try_post({.kind = Kind::kSend, .length = kLength, .peer = server_});
  if (sent.rc == 0) {
    const auto end = client_.look_for(sent.token, kSoon);
    ASSERT_TRUE(end.has_value()) << "the send has no end";
    if (end->err == 0) {
      const auto received = client_.look_for(waiting, kSoon);
      ASSERT_TRUE(received.has_value()) << "the receive has no end";
      EXPECT_NE(received->err, 0);
      return;
    }
  }
  // fi_cancel(3): or it has failed already.
  if (client_.cancel(waiting) == 0) client_.wait_error(waiting, FI_ECANCELED);
}

// Each of the sends may open a way to where the peer was.
TEST_P(DeadPeer, EndsAReceiveWhileMoreIsSentToIt) {
  const Token waiting = post_answer(2);
  kill();
  pass_time();
  std::vector<std::uint8_t> bytes(kLength);
  std::optional<Completion> received;
  EXPECT_TRUE(pump_.until(
      [&] {
        fi_inject(client_.endpoint().ep(), bytes.data(), bytes.size(), server_);
        received = client_.endpoint().take(client_.context_of(waiting));
        return received.has_value();
      },
      kSoon))
      << "the receive has no end";
  if (received) {
    EXPECT_NE(received->err, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Matching, DeadPeer,
                         testing::Values(Death{0, true}, Death{1, true}, Death{20, true},
                                         Death{250, true}, Death{700, true}, Death{0, false},
                                         Death{300, false}),
                         [](const testing::TestParamInfo<Death>& one) {
                           return std::string(one.param.polls ? "Polls" : "Sleeps") +
                                  std::to_string(one.param.delay_ms) + "ms";
                         });

}  // namespace
}  // namespace weft::conformance
