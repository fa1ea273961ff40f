// SPDX-License-Identifier: BSD-2-Clause
// What must hold for the one who survives, from a victim's birth to after its death?
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "action.h"
#include "arena.h"
#include "churner.h"
#include "inbox.h"
#include "initiator.h"
#include "node.h"
#include "nursery.h"

namespace weft::faults {

// A place for one victim at a time. The next one in it opens its endpoint at the same address.
struct Slot {
  std::uint16_t index = 0;
  std::uint16_t port = 0;  // 0 until the first victim has chosen one
  fi_addr_t address = FI_ADDR_UNSPEC;
  Channel channel;
  Bytes arena;
};

// What happened in all encounters of a run, for the report at its end.
struct Tally {
  std::uint64_t kills = 0;
  std::uint64_t completed = 0;
  std::uint64_t with_pending = 0;    // deaths with operations pending toward the victim
  std::uint64_t greetings_lost = 0;  // a greeting to a reused address that went to the dead
  std::map<int, std::uint64_t> errors;
  std::chrono::milliseconds slowest{
      0};  // from a death to the end of the last operation pending then
};

// The survivor's side of one victim's life. Every step() is short; call it between polls until
// over().
class Encounter {
 public:
  // `fresh_address`: takes the slot's address out of the address vector and puts it in again,
  // rather than keep using what stood for the predecessor.
  Encounter(Node& node, Nursery& nursery, Slot& slot, const Order& order, bool fresh_address,
            Tally& tally);
  ~Encounter();

  void step();
  bool over() const { return state_ == State::kOver; }
  // True while nothing but the victim's death can be waited for: the survivor may block in
  // fi_cq_sread.
  bool waits_for_completions() const;
  std::uint64_t id() const { return order_.id; }
  // Data that came with a write of this victim.
  void on_data(std::uint64_t sequence);
  std::string describe() const;

 private:
  enum class State { kStarting, kGreeting, kStreaming, kDraining, kEmptying, kLate, kOver };
  using Clock = std::chrono::steady_clock;

  void start();
  void resolve_address();
  void greet();
  void try_greet();
  void stream();
  void keep_streaming();
  void notice_death();
  void drain();
  void empty_flood();
  void try_late_post();
  void finish();
  void on_error(int error, const std::string& what);
  void require_within(Clock::time_point begin, const std::string& what) const;
  std::size_t pending() const;

  // The greeting, and the search for unexpected messages that nobody took.
  struct Single final : CompletionTarget {
    explicit Single(Encounter& encounter) : owner(encounter) { operation.target = this; }
    void completed(Operation&, const fi_cq_tagged_entry& entry) override;
    void failed(Operation&, const fi_cq_err_entry& error) override;
    Encounter& owner;
    Operation operation;
    int error = 0;
  };

  Node& node_;
  Nursery& nursery_;
  Slot& slot_;
  Order order_;
  bool fresh_address_;
  Tally& tally_;
  std::mt19937_64 random_;
  State state_ = State::kStarting;
  pid_t process_ = 0;
  std::optional<Lifeline> lifeline_;
  Clock::time_point begun_{};
  Clock::time_point died_{};
  Clock::time_point late_begun_{};
  Clock::time_point greeted_{};
  bool had_pending_ = false;
  std::vector<std::uint8_t> greeting_;
  Single hello_;
  bool wants_hello_ = false;
  bool answered_ = false;
  std::unique_ptr<Inbox> reply_;
  std::unique_ptr<Inbox> tagged_;
  std::unique_ptr<Initiator> initiator_;
  std::unique_ptr<Churner> churner_;
  Single peek_;
  bool peeking_ = false;
  bool late_posted_ = false;
  std::unique_ptr<Inbox> leftover_;
};

}  // namespace weft::faults
