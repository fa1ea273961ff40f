// SPDX-License-Identifier: BSD-2-Clause
// A user of a connection manager that checks each event, and makes any call at any time.
#pragma once

#include <map>

#include "simulated_process.h"

namespace weft::cm::testing {

class SimulatedUser final : public User {
 public:
  static constexpr std::uint64_t kFirstService = 0x1000;
  static constexpr unsigned kServices = 4;  // of a process

  explicit SimulatedUser(Process& process) : process_(process) {}

  // User:
  void handle(const CmEvent& event) override;
  Time last_received(ConnectionId id, void* context) override;

  // Any call.
  void call();
  void listen(std::uint64_t service, std::size_t backlog = 8);
  void stop(ListenerId listener);
  // Null when the agent refuses.
  End* connect(unsigned to, std::uint64_t service, bool watched);
  // The same by SIDR.
  End* resolve(unsigned to, std::uint64_t service);
  void disconnect(End& end);
  void abandon(End& end);
  // Takes over a request that another process has received. Null when its agent knows it.
  End* adopt(const End& asked);
  void decide_request(End& end);
  // Sends data to the peer.
  void talk(const End& end);
  // Ends everything.
  void close();
  void check_backlogs();

  bool welcome_strangers = false;  // requests of hosts that are not part of the simulation

 private:
  struct Listener {
    std::uint64_t service = 0;
    std::size_t backlog = 0;  // the largest that it ever had
  };

  void requested(const CmEvent& event);
  void met(const CmEvent& event);
  void asked(const CmEvent& event);
  void replied(End& end, const CmEvent& event);
  void established(End& end, const CmEvent& event);
  void resolved(End& end, const CmEvent& event);
  void ended(End& end, const CmEvent& event);
  void check_unreachable(const End& end);
  void check_rejection(const End& end, const CmEvent& event);
  End& open_asked(const CmEvent& event, End& requester);
  End* open_trying(const Remote& to, const Result<ConnectionId>& id, End& end);

  bool hand_over(End& end);
  bool forward(End& end);
  void decide_reply(End& end);
  void decide_query(End& end);
  void accept(End& end);
  void answer(End& end);
  void confirm(End& end);
  void reject(End& end);
  void misuse();
  void misuse_no_id(ConnectionId id);
  // Does something, now or later, when the end is then still in its state.
  template <class Action>
  void decide(End& end, Action action) {
    if (process_.shared.maybe(process_.shared.habits.at_once)) return action();
    process_.after(draw_pause(), [&end, state = end.state, action] {
      if (end.state == state) action();
    });
  }
  nanoseconds draw_pause();
  void check(bool holds, const std::string& otherwise) { process_.check(holds, otherwise); }

  Process& process_;
  std::map<ListenerId, Listener> listeners_;
};

}  // namespace weft::cm::testing
