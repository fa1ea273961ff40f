// SPDX-License-Identifier: BSD-2-Clause
// Does everything arrive when every process talks to every other one?
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "support/world.h"

namespace weft::conformance {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kMostPeers =
    32;  // each has many times its memory and takes many times longer
#else
constexpr std::size_t kMostPeers = 100;
#endif
constexpr std::size_t kSizes[] = {8, 0, 64, 1000, 4097, 30000};

// From each to each: every size, and in a small crowd more of them.
std::size_t messages_in(std::size_t crowd) { return std::size(kSizes) * (crowd <= 16 ? 4 : 1); }

std::size_t size_of(std::size_t i) { return kSizes[i % std::size(kSizes)]; }
std::uint64_t seed_of(std::size_t from, std::size_t to, std::size_t i) {
  return (from + 1) * 1000000 + (to + 1) * 1000 + i;
}

struct Start {
  std::size_t count;
  std::size_t self;
  std::array<Address, kMostPeers> names;
};

// One member of the crowd: sends to all others and receives from all others, told by tag.
class Member {
 public:
  Member(const Options& options, Pump* pump)
      : party_(std::make_shared<Domain>(options), options, pump) {}
  LocalParty& party() { return party_; }

  void meet(const Start& start) {
    for (std::size_t i = 0; i < start.count; ++i) {
      peers_.push_back(i == start.self ? FI_ADDR_NOTAVAIL : party_.insert(start.names[i]));
    }
    self_ = start.self;
  }
  void talk() {
    const std::size_t messages = messages_in(peers_.size());
    for (std::size_t i = 0; i < messages; ++i) {
      for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
        if (peer != self_) receive_one(peer, i);
      }
    }
    for (std::size_t i = 0; i < messages; ++i) {
      for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
        if (peer != self_) send_one(peer, i);
      }
    }
  }
  void check() {
    for (const Expected& one : received_) {
      const Completion c = party_.wait_success(one.token);
      EXPECT_EQ(c.length, size_of(one.index));
      party_.expect_data(one.token, seed_of(one.peer, self_, one.index), size_of(one.index));
    }
    for (const Token token : sent_) party_.wait_success(token);
  }

 private:
  struct Expected {
    Token token;
    std::size_t peer;
    std::size_t index;
  };
  void receive_one(std::size_t peer, std::size_t i) {
    const Token token =
        party_.post({.kind = Kind::kTrecv, .length = size_of(i), .tag = (peer << 32) | i});
    received_.push_back({token, peer, i});
  }
  void send_one(std::size_t peer, std::size_t i) {
    sent_.push_back(party_.post({.kind = Kind::kTsend,
                                 .length = size_of(i),
                                 .seed = seed_of(self_, peer, i),
                                 .peer = peers_[peer],
                                 .tag = (self_ << 32) | i}));
  }

  LocalParty party_;
  std::size_t self_ = 0;
  std::vector<fi_addr_t> peers_;
  std::vector<Expected> received_;
  std::vector<Token> sent_;
};

void join_crowd(Channel& to_test) {
  Pump pump;
  const auto idle = [&pump] { pump.once(); };
  Member member(Options{}, &pump);
  if (!member.party().ok()) return;
  to_test.send(member.party().name());
  Start start{};
  if (!to_test.receive(&start, idle)) return;
  member.meet(start);
  member.talk();
  member.check();
  to_test.send(true);
  bool everybody_done = false;
  to_test.receive(&everybody_done, idle);  // Others may still need this side's progress.
}

class Crowd : public testing::TestWithParam<std::size_t> {};

TEST_P(Crowd, EachEndpointHearsAllOthers) {
  const std::size_t count = GetParam();
  std::vector<std::unique_ptr<PeerProcess>> members;
  for (std::size_t i = 0; i < count; ++i) {
    members.push_back(std::make_unique<PeerProcess>(join_crowd));
  }
  Start start{};
  start.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(members[i]->channel().receive(&start.names[i]));
  }
  for (std::size_t i = 0; i < count; ++i) {
    start.self = i;
    ASSERT_TRUE(members[i]->channel().send(start));
  }
  bool done = false;
  for (auto& member : members) EXPECT_TRUE(member->channel().receive(&done));
  for (auto& member : members) EXPECT_TRUE(member->channel().send(true));
}

INSTANTIATE_TEST_SUITE_P(ManyPeers, Crowd, testing::Values(2, 3, 4, 8, 16, kMostPeers));

// Many endpoints of one process, each of which talks to one of another process.
TEST(ManyPeers, OneProcessWithManyEndpoints) {
  Pump pump;
  const Options options;
  const auto domain = std::make_shared<Domain>(options);
  RemoteParty hub(options, &pump);
  ASSERT_TRUE(hub.ok());
  std::vector<std::unique_ptr<LocalParty>> spokes;
  for (std::uint64_t i = 0; i < kMostPeers; ++i) {
    spokes.push_back(std::make_unique<LocalParty>(domain, options, &pump));
    ASSERT_TRUE(spokes.back()->ok());
  }
  std::vector<Token> received;
  for (std::uint64_t i = 0; i < kMostPeers; ++i) {
    received.push_back(hub.post({.kind = Kind::kTrecv, .length = 3000, .tag = i}));
  }
  for (std::uint64_t i = 0; i < kMostPeers; ++i) {
    const fi_addr_t to_hub = spokes[i]->insert(hub.name());
    spokes[i]->wait_success(spokes[i]->post(
        {.kind = Kind::kTsend, .length = 3000, .seed = i + 1, .peer = to_hub, .tag = i}));
  }
  for (std::uint64_t i = 0; i < kMostPeers; ++i) {
    hub.wait_success(received[i]);
    hub.expect_data(received[i], i + 1, 3000);
  }
}

}  // namespace
}  // namespace weft::conformance
