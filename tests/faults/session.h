// SPDX-License-Identifier: BSD-2-Clause
// What must hold for the survivor, from a victim's birth to after its death?
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
#include "fork_server.h"
#include "inbox.h"
#include "initiator.h"
#include "node.h"
#include "switchboard.h"

namespace weft::faults {

// A place for one victim at a time. Without connections the next one in it opens its endpoint at
// the same address.
struct Slot {
  std::uint16_t index = 0;
  std::uint16_t port = 0;  // 0 until the first victim has chosen one
  fi_addr_t address = FI_ADDR_UNSPEC;
  Channel channel;
  Bytes arena;
};

// What happened in all sessions of a run, for the report at its end.
struct Tally {
  std::uint64_t kills = 0;
  std::uint64_t completed = 0;
  std::uint64_t with_pending = 0;    // deaths with operations pending toward the victim
  std::uint64_t stops = 0;           // victims that stood still for a while
  std::uint64_t greetings_lost = 0;  // a greeting to a reused address that went to the dead
  std::map<int, std::uint64_t> errors;
  std::chrono::milliseconds slowest{
      0};  // from a death to the end of the last operation pending then
};

// The two sides of a session, and the place of its log. Referenced objects outlive the session.
struct Setting {
  Node& node;
  ForkServer& fork_server;
  Slot& slot;
  Order order;
  Tally& tally;
};

// The survivor's side of one victim's life. Every step() is short; call it between polls until
// over(). Derived classes define how the two meet and what is left when the victim has
// died.
class Session {
 public:
  virtual ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void step();
  bool over() const { return state_ == State::kOver; }
  // True while nothing but the victim's death can be waited for: the survivor may block in
  // fi_cq_sread.
  bool waits_for_completions() const;
  std::uint64_t id() const { return order_.id; }
  // Data that came with a write of this victim.
  void on_data(std::uint64_t sequence);
  // An event that concerns this session; true if that was one.
  virtual bool on_event(ConnectionEvent&) { return false; }
  std::string describe() const;

 protected:
  enum class State { kMeeting, kStreaming, kDraining, kParting, kOver };
  using Clock = std::chrono::steady_clock;

  // Has the victim made.
  explicit Session(const Setting& setting);

  // The next step toward each other; stream() once they have met.
  virtual void meet() = 0;
  // The victim has died before. True if that may be; then the session goes on with drain().
  virtual bool died_early() = 0;
  // Whether an operation may end with this error when the peer is gone; and whether even before.
  virtual bool means_gone(int error) const = 0;
  virtual bool may_fail_early(int error) const = 0;
  // The victim's end has been noticed.
  virtual void lost() = 0;
  // Nothing is pending any more: hears what else there is of the dead, tries what they cannot
  // answer any more; true when that is all.
  virtual bool part() = 0;
  // Something is pending that the victim's death ends.
  virtual bool death_is_heard() const = 0;
  // Operations that only the derived class knows of.
  virtual std::size_t more_pending() const = 0;
  virtual std::string describe_more() const = 0;

  // Receives tagged messages of this victim.
  void receive_tagged(fid_ep* endpoint, fi_addr_t source);
  // Begins to exchange operations.
  void stream(fid_ep* endpoint, fi_addr_t peer);
  void on_error(int error, const std::string& what);
  Inbox::OnError error_handler();
  void require_within(Clock::time_point begin, const std::string& what) const;
  std::size_t pending() const;

  Node& node_;
  ForkServer& fork_server_;
  Slot& slot_;
  const Order order_;
  Tally& tally_;
  std::mt19937_64 random_;
  State state_ = State::kMeeting;
  std::optional<Lifeline> lifeline_;
  Clock::time_point begun_{};
  Clock::time_point died_{};
  std::unique_ptr<Inbox> tagged_;
  std::unique_ptr<Initiator> initiator_;

 private:
  // What becomes of a victim that is to stand still.
  enum class Pause { kBefore, kStill, kWaking, kOver };

  void keep_streaming();
  void pause_victim();
  void kill_victim();
  void notice_death();
  void drain();
  void leave();
  void finish();

  pid_t process_ = 0;
  bool had_pending_ = false;
  std::unique_ptr<Churner> churner_;
  Pause pause_ = Pause::kBefore;
  Clock::time_point pause_at_{};
  bool awake_ = false;  // the victim says so
  std::uint64_t completed_before_ = 0;
};

}  // namespace weft::faults
