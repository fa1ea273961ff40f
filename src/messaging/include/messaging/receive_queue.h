// SPDX-License-Identifier: BSD-2-Clause
// Where do receives wait, those of one endpoint or those that several endpoints share?
#pragma once

#include <vector>

#include "messaging/calls.h"
#include "messaging/matcher.h"
#include "messaging/pool.h"
#include "os/optional_lock.h"

namespace weft::messaging {

// The receives of one endpoint, or a shared receive context (fi_endpoint(3)): a receive takes the
// next message that it matches, whichever of the endpoints it came to, and is reported there.
// Endpoints join when they open and leave when they close; what concerns none of them in particular
// is reported by the one that joined first. Threads as `locking` says.
class ReceiveQueue {
 public:
  // For `size` receives that wait at a time.
  ReceiveQueue(const Locking& locking, std::size_t size) : lock_(locking), size_(size) {}

  // As Endpoint::receive(). A receive of one source's messages, a peek and a claim need an
  // endpoint: EINVAL without one. EAGAIN when as many receives wait as there is room for; one that
  // takes a message at once needs none.
  int receive(const ReceiveCall& call);
  // How many more receives may wait.
  std::size_t room();
  // As Endpoint::cancel().
  int cancel(void* context);
  // As Endpoint::abandon(); reported by the endpoint that joined first.
  void abandon(const ReceiveCall& call, int error);

 private:
  friend class Endpoint;

  Matcher& matcher(bool tagged) { return tagged ? tagged_ : untagged_; }
  Matcher& matcher_of(const QueuedUnexpected& message) {
    return matcher(message.arrival.operation == link::Operation::kTagged);
  }
  std::size_t bytes_kept() const { return tagged_.bytes_kept() + untagged_.bytes_kept(); }
  void forget(const RemoteSender& gone);
  void forget(const RemoteSender& sender, std::uint32_t exchange);

  Receive& new_receive(const ReceiveCall& call);
  void give(Receive& receive) {
    if (receive.counter) [[unlikely]]
      receive.counter = {};
    receives_.give(receive);
  }
  int post(const ReceiveCall& call);
  int post_multi(Receive& receive);
  int give_back(Receive& receive, int error);
  bool take_kept(Receive& receive, Matcher& queue);
  void post_again(Receive& receive, bool tagged);
  std::size_t waiting() const { return tagged_.waiting() + untagged_.waiting(); }
  bool full() const { return waiting() >= size_; }
  int peek(const ReceiveCall& call);
  int take_claimed(const ReceiveCall& call);
  bool find_source(PeerIndex& source) const;
  Receive& part_of(Receive& whole, std::uint64_t length);
  bool leave_whole(Receive& part);

  OptionalLock lock_;
  const std::size_t size_;
  Matcher tagged_;
  Matcher untagged_;
  Pool<Receive> receives_;
  std::uint64_t orders_ = 0;          // of receives
  std::vector<Endpoint*> endpoints_;  // in the order in which they joined
  int ended_ = 0;                     // what receives answer that nothing can come for any more
};

}  // namespace weft::messaging
