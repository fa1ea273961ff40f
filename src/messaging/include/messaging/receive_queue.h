// SPDX-License-Identifier: BSD-2-Clause
// Where do receives wait, those of one endpoint or those that several endpoints share?
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "messaging/calls.h"
#include "messaging/matcher.h"
#include "messaging/pool.h"
#include "os/optional_lock.h"

namespace weft::messaging {

class Endpoint;

// The receives of one endpoint, or a shared receive context (fi_endpoint(3)): a receive takes the
// next message that it matches, whichever of the endpoints it came to, and is reported there.
// Endpoints join when they open and leave when they close; what concerns none of them in particular
// is reported by the one that joined first. Threads as its lock says.
class ReceiveQueue {
 public:
  // For `size` receives that wait at a time; with a lock of its own, or with that of the port of
  // its one endpoint, which outlives it.
  ReceiveQueue(const Locking& locking, std::size_t size)
      : own_lock_(std::in_place, locking), lock_(*own_lock_), size_(size) {}
  ReceiveQueue(OptionalLock& lock, std::size_t size) : lock_(lock), size_(size) {}

  // Posts a receive, or looks at what has arrived. A receive of one source's messages, a peek and a
  // claim need an endpoint: EINVAL without one. EAGAIN when as many receives wait as there is room
  // for; one that takes a message at once needs none.
  int receive(const ReceiveCall& call);
  // How many more receives may wait.
  std::size_t room();
  // As Endpoint::cancel().
  int cancel(void* context);
  // As Endpoint::abandon(); reported by the endpoint that joined first.
  void abandon(const ReceiveCall& call, int error);
  // As Endpoint::refuse(); reported by the endpoint that joined first. EACCES without one.
  int refuse(const ReceiveCall& call, const RefusedAccess& refused);

  // For endpoints, all else with the lock held. The lock: one thread at a time in all endpoints
  // that share the queue.
  OptionalLock& lock() { return lock_; }
  // An endpoint joins; takes the lock as a control call. EINVAL when it numbers its peers
  // differently than others do: a receive names its source by number.
  Status join(Endpoint& endpoint);
  // It leaves: messages that came to it and are kept are dropped.
  void leave(Endpoint& endpoint);
  // Nothing can come any more: receives answer `error`, unless a kept message is for them.
  void end(int error) { ended_ = error; }

  // For receivers. Where receives of one kind wait, and messages of that kind are kept.
  Matcher& matcher(bool tagged) { return tagged ? tagged_ : untagged_; }
  Matcher& matcher_of(const QueuedUnexpected& message) {
    return matcher(message.arrival.operation == link::MessageOperation::kTagged);
  }
  // Receives that wait.
  std::size_t waiting() const { return tagged_.waiting() + untagged_.waiting(); }
  // Of messages that are kept.
  std::size_t bytes_kept() const { return tagged_.bytes_kept() + untagged_.bytes_kept(); }
  // As Matcher::forget().
  void forget(const RemoteSender& gone);
  void forget(const RemoteSender& sender, std::uint32_t rendezvous_id);
  // The next part of a posted multi-receive, for a message of that length.
  Receive& part_of(Receive& whole, std::uint64_t length);
  // Takes a part from its whole; true when it was the last one, with which the buffer goes back to
  // the program.
  bool leave_whole(Receive& part);
  // Takes back a receive that has been reported.
  void give(Receive& receive) {
    if (receive.counter) [[unlikely]]
      receive.counter = {};
    if (receive.staging != nullptr) [[unlikely]]
      receive.staging.reset();
    receives_.give(receive);
  }
  // Posts a receive whose message was withdrawn while it was under way.
  void post_again(Receive& receive, bool tagged);

 private:
  Receive& new_receive(const ReceiveCall& call);
  int post(const ReceiveCall& call);
  int post_multi(Receive& receive);
  int give_back(Receive& receive, int error);
  bool take_kept(Receive& receive, Matcher& queue);
  bool full() const { return waiting() >= size_; }
  int peek(const ReceiveCall& call);
  int take_claimed(const ReceiveCall& call);
  bool find_source(PeerIndex& source) const;

  std::optional<OptionalLock> own_lock_;
  OptionalLock& lock_;
  const std::size_t size_;
  Matcher tagged_;
  Matcher untagged_;
  Pool<Receive> receives_;
  std::uint64_t orders_ = 0;          // of receives
  std::vector<Endpoint*> endpoints_;  // in the order in which they joined
  int ended_ = 0;                     // what receives answer that nothing can come for any more
};

}  // namespace weft::messaging
