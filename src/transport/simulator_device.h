// SPDX-License-Identifier: BSD-2-Clause
// A device in the simulator: its memory, its users, and its flows to all others.
#pragma once

#include <deque>
#include <set>

#include "plain_memory.h"
#include "simulator.h"

namespace weft::transport::testing {

using Bytes = std::vector<std::byte>;

// The content of message or write number `number` of a flow.
Bytes content(std::uint64_t flow, std::uint64_t number, std::size_t length);

// One end of a flow and its user, which posts work and checks the work of the peer's user.
class FlowEnd final : public work::Target, work::WorkSink {
 public:
  // Both ends draw from the same seed, so that each knows what the other one will do. `way`: from
  // this device to the peer.
  FlowEnd(const Scenario& scenario, std::uint64_t way, std::uint64_t way_back, Settings settings);

  void meet(FlowEnd& peer) { peer_ = &peer; }
  // Posts some of the work that is left.
  void work();
  void take(const wire::Packet& packet, Time now);
  std::size_t next(Time now, std::span<std::byte> out);
  // Packets without AckReq are acknowledged after a delay.
  Time deadline() const {
    const Time since = responder_.unanswered_since();
    const Time due = std::min(requester_.deadline(), asks_at_);
    return since == Time::max() ? due : std::min(due, since + kLazily);
  }
  void tick(Time now);
  bool over() const { return left_ == 0 && pending_.empty(); }

  // Checks that what the peer's user was told has ended well has come here, once, and in order.
  void judge();
  const std::string& wrong() const { return wrong_; }
  const Requester& requester() const { return requester_; }
  void count(Outcome& outcome) const;

 private:
  struct Pending {
    work::Work work;
    std::uint64_t number = 0;
    bool to_be_refused = false;
    bool to_be_lost = false;
    Bytes bytes;
    std::uint64_t original = 0;
  };
  static constexpr std::uint32_t kGoodKey = 0x1234;
  static constexpr std::uint32_t kBadKey = 0x4321;
  static constexpr std::uint32_t kGoneKey = 0x5678;
  static constexpr std::uint8_t kWhy = 5;
  static constexpr std::uint32_t kSharedReceive = 0x12'3456;  // of extended connections
  static constexpr std::uint64_t kWriteArea = 0x10000;
  static constexpr std::uint64_t kReadArea = 0x900000;
  static constexpr std::uint64_t kCounter = 0x2000;

  // What ends tell each other beside their flow: the path MTU that the path carries, as far as they
  // know, and how the requester's packets change. It may arrive at any time, or not at all.
  struct PathMtuChange {
    bool answers = false;
    std::uint8_t changes = 0;  // number of the change: an answer repeats it
    std::size_t carries = 0;
    std::size_t path_mtu = 0;  // from now on
    Psn first;                 // the first unused number; of an answer: that was not executed
  };
  void take_change(const PathMtuChange& change, Time now);
  std::size_t write(const PathMtuChange& change, std::span<std::byte> out) const;
  void narrow(std::size_t carries);

  void blame(const std::string& what);
  void draw(Pending& pending);
  void ended(const work::Ended& work) override;
  void check(const Pending& pending);

  work::RequestVerdict may_use(std::uint32_t shared_receive) override;
  work::RequestVerdict message_begins() override;
  work::RequestVerdict message_goes_on(std::span<const std::byte> bytes) override;
  void message_ends(const work::MessageEnd& end) override;
  void message_breaks() override { message_.clear(); }
  work::RequestVerdict may_access(Access need, const work::RemoteMemory& memory) override;
  work::RequestVerdict write(const work::RemoteMemory& memory, std::uint64_t offset,
                             std::span<const std::byte> bytes) override;
  work::RequestVerdict may_report_immediate() override { return message_begins(); }
  void written(const work::RemoteMemory&, const work::MessageEnd&) override {}
  work::RequestVerdict read(const work::RemoteMemory& memory, std::uint64_t offset,
                            std::span<std::byte> out) override;
  work::RequestVerdict atomic(bool compares, const work::AtomicOperands& what,
                              std::uint64_t& original) override;

  const Scenario& scenario_;
  const std::uint64_t way_;
  const std::uint64_t way_back_;
  FlowEnd* peer_ = nullptr;
  Random random_;
  std::string wrong_;

  // The user that posts.
  struct Write {
    std::uint64_t offset = 0;
    Bytes bytes;
  };
  unsigned left_;
  std::uint64_t next_number_ = 0;
  std::deque<std::unique_ptr<Pending>> pending_;
  std::vector<std::uint64_t> sent_;    // numbers of sends that ended well
  std::vector<Write> writes_;          // the same of writes
  std::set<std::uint64_t> originals_;  // that fetch-adds brought back
  std::uint64_t added_ = 0;
  std::uint64_t swapped_ = 0;  // what the next swap will find
  bool may_fail_ = false;      // work failed: the part that was done is unknown
  std::uint64_t statuses_[Outcome::kStatuses] = {};

  // The user whose memory it is.
  Bytes message_;                        // as far as it has come
  std::vector<std::uint64_t> received_;  // numbers of messages
  Bytes area_;                           // that the peer writes
  Bytes readable_;
  std::uint64_t counter_ = 0;
  std::uint64_t compared_ = 0;

  // The path to the peer.
  std::size_t path_mtu_;  // of the requester's packets
  std::size_t carries_;
  bool changing_ = false;
  std::uint8_t changes_ = 0;       // how often the peer was asked for smaller packets
  std::uint8_t peer_changes_ = 0;  // how often the peer's requests were agreed to
  Psn executed_;                   // then, all before it
  Time asks_at_ = Time::max();
  bool request_owed_ = false;
  bool answer_owed_ = false;

  // Last, because a responder that goes breaks the message that it was at.
  PlainMemory memory_;
  Stats stats_;  // of its requester
  Requester requester_;
  static constexpr Duration kLazily = std::chrono::microseconds(200);
  Responder responder_;
};

}  // namespace weft::transport::testing
