// SPDX-License-Identifier: BSD-2-Clause
// A user of an endpoint in the simulator: asks for everything that can be asked for, and checks
// what comes of it.
#pragma once

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "regions_test_support.h"
#include "simulated_host.h"

namespace weft::rdm::testing {

// Which operations users ask for, and how their endpoints behave.
struct Habits {
  unsigned operations = 30;  // of each user, for each other one
  double not_ready = 0;      // that an endpoint takes no message in
  double placed = 0;         // that a message is written to its receive as it comes
  double late = 0;           // that an offer is not taken, or a message not acknowledged, at once
  double cancelled = 0;      // that a message is withdrawn
  double sleepy = 0.5;       // that an endpoint sleeps between two polls
  std::size_t eager_limit = 4096;
};

class User final : public link::InboxSink, public link::FlowSink {
 public:
  User(Network& network, Regions& regions, const Habits& habits, const RdmOptions& options,
       std::uint8_t number, std::uint8_t users, std::size_t mtu, double full);
  ~User() override;
  User(const User&) = delete;
  User& operator=(const User&) = delete;

  // Opens the flows, once all users are there, and suspects them (link::Flow::suspect()).
  void meet(const std::vector<std::unique_ptr<User>>& users, bool suspects);
  // Polls, then goes on. Returns when it has to be called again, if no packet comes before.
  os::Time turn();
  // All has ended that was asked for.
  bool over() const;
  // Checks that all that the peer has asked for has come, once and in order.
  void judge(const User& peer);
  // After all peers: that their additions are in the counter.
  void judge_counter();
  // That user's end was reported, if it was ever heard of.
  bool knows_dead(std::uint8_t user) const;
  // Work of its own that failed.
  std::size_t failed() const;
  bool any_source_closed() const { return closed_ != 0; }
  const std::string& wrong() const { return wrong_; }

  SimulatedHost host;
  const std::uint8_t number;

 private:
  enum class Does : std::uint8_t { kSend, kWrite, kRead, kAdd };
  struct Asked {
    Does does = Does::kSend;
    std::uint64_t tag = 0;
    Bytes bytes;
    int error = -1;  // of its end, -1 before
    bool pending = false;
    bool must_arrive = true;  // else it may be withdrawn
  };
  struct ToPeer {
    std::unique_ptr<link::Flow> flow;
    std::vector<std::unique_ptr<Asked>> asked;
    unsigned left = 0;
    std::uint64_t next_tag = 1;
    std::uint64_t next_slot = 0;  // of the peer's memory, for writes
  };
  struct FromPeer {
    std::uint64_t last_tag = 0;
    std::set<std::uint64_t> received;
  };
  struct Incoming {
    std::uint8_t from = 0;
    link::Arrival arrival;
    Bytes bytes;
    Bytes rest;  // a second SGE
    bool ended = false;
  };
  static constexpr std::size_t kSlots = 24;
  static constexpr std::size_t kSlot = 3000;
  static constexpr std::size_t kReadable = 10'000;
  static constexpr std::size_t kForPeer = kSlots * kSlot;

  // What message or write number `tag` between two users consists of.
  static Bytes content(unsigned from, unsigned to, std::uint64_t tag, std::size_t length);
  std::uint64_t key_of(unsigned user) const { return first_key_ + user; }
  // Where the part for writes of a user begins; behind it what all may read, and a counter.
  std::uint64_t counter_at() const { return users_ * kForPeer + kReadable; }

  void blame(const std::string& what);
  bool ask(std::uint8_t peer, ToPeer& to);
  link::Outcome send(std::uint8_t peer, ToPeer& to, Asked& asked);
  link::Outcome access(std::uint8_t peer, ToPeer& to, Asked& asked);
  link::Outcome add(std::uint8_t peer, ToPeer& to, Asked& asked);
  void go_on();
  void take(Incoming& incoming);
  void in_order(std::uint8_t from, std::uint64_t tag);
  void came(std::uint8_t from, std::uint64_t tag, std::span<const std::byte> bytes);

  // Of the inbox and of flows.
  void source_opened(std::uint32_t source, const os::SocketAddress& address) override;
  void source_closed(std::uint32_t source, bool died) override;
  unsigned room() const override { return ready_ ? 1000 : 0; }
  bool takes_more_urgently(std::uint32_t) const override { return true; }
  bool arriving(const link::Arrival& arrival) override;
  void arrived(const link::Arrival& arrival) override;
  void received(void* cookie, int error) override;
  void withdrawn(const link::Offer& offer) override;
  void ended(void* cookie, int error, int detail) override;

  Network& network_;
  const Habits habits_;
  const std::uint8_t users_;
  const std::uint64_t first_key_;
  Random random_;
  Bytes memory_;
  Regions& regions_;
  memory::Registration registration_;
  std::unique_ptr<RdmEngine> engine_;
  std::vector<ToPeer> to_;
  std::vector<FromPeer> from_;
  std::map<std::uint32_t, std::uint8_t> sources_;
  std::vector<std::unique_ptr<Incoming>> incoming_;
  std::vector<link::Offer> to_acknowledge_;
  std::set<std::uint8_t> dead_;
  std::uint64_t adds_judged_ = 0;
  unsigned closed_ = 0;
  unsigned idle_turns_ = 0;
  bool ready_ = true;
  std::string wrong_;
};

}  // namespace weft::rdm::testing
