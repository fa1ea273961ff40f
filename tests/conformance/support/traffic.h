// SPDX-License-Identifier: BSD-2-Clause
// What does one side of a point of the matrix do with each of its partners, and what must come of
// it?
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "guarded_buffer.h"
#include "station.h"

namespace weft::conformance {

// Where a partner may read, write and count.
struct Opening {
  std::uint64_t key = 0;
  std::uint64_t base = 0;
};

// A few operations of the point's kind toward each partner, and as many from each of them.
// Everybody prepare()s before anybody run()s; everybody has run before anybody verify()s. Sides are
// numbered: `self` is this one, `others` are the partners.
class Traffic {
 public:
  Traffic(Station& station, const Point& point, std::size_t self, std::vector<std::size_t> others);

  Opening prepare(std::size_t partner);
  void know(std::size_t partner, const Opening& opening) { openings_[partner] = opening; }
  // Returns when all that is to be reported here was.
  void run();
  // Data, order and counts are what they should be, and nothing was reported twice.
  void verify();

 private:
  enum class Role { kOperation, kReceive, kMany, kFarewell, kFarewellReceive };
  // One operation with its context, from which a completion leads back to it.
  struct Action {
    Action(Role role, std::size_t partner, std::size_t index, std::size_t bytes)
        : role(role), partner(partner), index(index), buffer(bytes, index % 3) {}
    fi_context2 context{};  // first
    Role role;
    std::size_t partner;
    std::size_t index;  // among those of its role and partner
    GuardedBuffer buffer;
    Operation operation;
    Atomic atomic;
    std::vector<Completion> completions;
  };
  // A partner as a target and as a source of remote accesses.
  struct Window {
    std::unique_ptr<GuardedBuffer> buffer;
    Fid<fid_mr> region;
    std::uint64_t next_data = 0;
  };

  bool silent() const { return point_.report == Report::kSilent; }
  bool selected() const { return point_.report == Report::kSelected; }
  bool says_farewell() const { return point_.type != FI_EP_DGRAM; }
  std::uint64_t seed(std::size_t from, std::size_t to, std::size_t index) const;
  std::uint64_t sent_by_us(std::size_t partner, std::size_t index) const {
    return seed(self_, others_[partner], index);
  }
  std::uint64_t sent_to_us(std::size_t partner, std::size_t index) const {
    return seed(others_[partner], self_, index);
  }

  Action& add(Role role, std::size_t partner, std::size_t index, std::size_t bytes);
  void receive(Role role, std::size_t partner, std::size_t index, bool tagged, std::size_t bytes);
  void receive_many(std::size_t partner);
  Opening open_window(std::size_t partner);
  void start(std::size_t partner, std::size_t index);
  void start_atomic(Action& action);
  void say_farewell(std::size_t partner);
  void post(Action& action);
  Atomic atomic_of(std::size_t from, std::size_t to, std::size_t index) const;
  Bytes after(std::size_t from, std::size_t to, std::size_t count) const;

  void hear(const Completion& completion);
  void hear_of_data(const Completion& completion);
  std::size_t completions_per_partner() const;
  std::map<std::uint64_t, std::uint64_t> counts() const;
  void wait_for_counts();
  void take_back_buffers();

  void check(Action& action);
  void check_source(const Action& action, std::uint64_t flags);
  void check_received(const Action& action);
  void check_many(const Action& action);
  void check_result(Action& action);
  void check_window(std::size_t partner);
  bool is_next(const GuardedBuffer& buffer, std::size_t partner, std::size_t index,
               std::size_t offset);

  Station& station_;
  const Point point_;
  const std::size_t self_;
  const std::vector<std::size_t> others_;
  const std::size_t bytes_;
  const std::size_t each_;  // operations toward each partner
  std::deque<Action> actions_;
  std::vector<Opening> openings_;
  std::vector<Window> windows_;
  std::vector<std::set<std::size_t>> came_;  // of each partner: which of its datagrams
  std::size_t expected_ = 0;                 // completions
};

}  // namespace weft::conformance
