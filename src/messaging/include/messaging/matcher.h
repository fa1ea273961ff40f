// SPDX-License-Identifier: BSD-2-Clause
// Which receive takes which message?
//
// fi_tagged(3): a message matches the first posted receive whose tag agrees with its own in all
// bits that the receive does not ignore, and whose source is the message's or any. fi_msg(3): the
// same without tags. Messages of one source are matched in the order in which they were sent.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>
#include <span>

#include "device/counter.h"
#include "link/inbox.h"
#include "messaging/address_vector.h"
#include "messaging/pool.h"
#include "messaging/staging.h"

namespace weft::messaging {

using Hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// What a receive was given, or what it waited for in vain.
struct MatchInfo {
  std::uint64_t flags = 0;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;
  std::uint64_t length = 0;  // of the message
  PeerIndex sender = kNoPeer;
};

class MessageReceiver;

// A receive that was posted, until its message is in place.
struct Receive : Hook {
  std::uint64_t order = 0;  // of posting
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  PeerIndex source = kNoPeer;  // canonical, or kNoPeer for any
  void* context = nullptr;
  bool report = true;              // completes in the queue even when it succeeds
  UseOf<device::Counter> counter;  // Report::counter
  std::size_t capacity = 0;
  std::uint32_t count = 0;
  LocalRange sges[link::kMaxLinkSges];
  MatchInfo taken;                      // filled when a message has been matched that takes a while
  int fault = 0;                        // the same: an errno, when its bytes cannot be placed
  MessageReceiver* receiver = nullptr;  // the same: which takes the message
  bool claims = false;                  // takes the message that a peek claimed, and no other
  // A multi-receive takes messages until less than `least` bytes are left. Each gets a part, which
  // is a receive by itself; what is left stays here.
  bool multi = false;
  bool used_up = false;     // no message gets a part of it any more
  std::uint32_t parts = 0;  // whose messages are not in place yet
  std::size_t least = 0;
  Receive* whole = nullptr;  // of which this is a part
  StagingPtr staging;        // in which the SGEs are, or null
};

using Receives = boost::intrusive::list<Receive, boost::intrusive::constant_time_size<false>>;

// A sender as an endpoint knows it. Outlives the link's source while messages of it are kept.
struct RemoteSender {
  os::SocketAddress address;
  MessageReceiver* receiver = nullptr;       // of the endpoint that it sends to, if that is known
  const AddressVector* addresses = nullptr;  // that number the senders for that one
  bool accepted = true;                      // its messages are let in
  PeerIndex index = kNoPeer;                 // its lowest number in the address vector ...
  std::uint64_t index_version = 0;           // ... when that had this version
};

// A message that came before its receive.
struct Unexpected {
  link::Arrival arrival;  // its payload points to `bytes`
  std::shared_ptr<RemoteSender> from;
  std::unique_ptr<std::byte[]> bytes;  // none for an offered or empty message
};

// A kept message in its queue.
struct QueuedUnexpected : Hook, Unexpected {
  std::size_t cost = 0;
  bool claimed = false;
  void* claimed_by = nullptr;  // context of the peek that claimed it (FI_CLAIM)
  bool withdrawn = false;      // by its sender, after it was claimed
};

// What a receive, peek or claim looks for.
struct Wanted {
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  PeerIndex source = kNoPeer;

  bool takes(std::uint64_t message_tag, PeerIndex sender) const {
    return ((message_tag ^ tag) & ~ignore) == 0 && (source == kNoPeer || source == sender);
  }
};

// The number of a sender, or kNoPeer when the address vector does not have it.
inline PeerIndex number_of(RemoteSender& sender) {
  const std::uint64_t version = sender.addresses->version();
  if (sender.index_version != version) [[unlikely]] {
    sender.index = sender.addresses->lookup(sender.address);
    sender.index_version = version;
  }
  return sender.index;
}

// One queue of posted receives with the messages that no receive was waiting for. One thread.
class Matcher {
 public:
  // Adds a receive behind those that wait already.
  void post(Receive& receive) {
    posted_.push_back(receive);
    ++waiting_;
  }
  // Puts one that was taken out where it was.
  void put_back(Receive& receive);
  // Receives that wait.
  std::size_t waiting() const { return waiting_; }
  // Takes out the first receive for a message, or nullptr. A multi-receive stays in.
  Receive* match(std::uint64_t tag, PeerIndex sender) {
    if (posted_.empty()) return nullptr;
    Receive& first = posted_.front();
    if (!Wanted{first.tag, first.ignore, first.source}.takes(tag, sender)) {
      return match_behind(tag, sender);
    }
    if (!first.multi) [[likely]]
      withdraw(first);
    return &first;
  }
  // Takes out a receive that is posted.
  void withdraw(Receive& receive) {
    posted_.erase(posted_.iterator_to(receive));
    --waiting_;
  }
  // Takes out the receive with that context, or nullptr (fi_cancel(3)).
  Receive* cancel(void* context);
  // Takes out any receive that wants messages of `source` only, or nullptr.
  Receive* take_directed(PeerIndex source);

  // Keeps a message, with a copy of its payload.
  void keep(const link::Arrival& arrival, std::shared_ptr<RemoteSender> from);
  // The first kept message for `wanted` that is not claimed, or nullptr; it stays.
  QueuedUnexpected* find(const Wanted& wanted);
  // The message claimed with that context, or nullptr; it stays.
  QueuedUnexpected* find_claimed(void* context);
  // Takes a kept message out.
  Unexpected take(QueuedUnexpected& message);
  // Forgets what needs a sender that is gone: its offers, and acknowledgements to it.
  void forget(const RemoteSender& gone);
  // Forgets an offer that its sender has withdrawn. One that was claimed stays for its claimer.
  void forget(const RemoteSender& sender, std::uint32_t rendezvous_id);
  // Drops every message to an endpoint that ends.
  void drop_all_to(const MessageReceiver& receiver);
  // True when no message is kept.
  bool nothing_kept() const { return kept_.empty(); }
  // Bytes that the kept messages take, bookkeeping included (cost_of()).
  std::size_t bytes_kept() const { return bytes_kept_; }
  // What it costs to keep that message: its place in the queue, a block of the heap for its
  // payload, the record of its sender, which it may outlive, and the acknowledgement that it will
  // need.
  static std::size_t cost_of(const link::Arrival& arrival);

 private:
  Receive* match_behind(std::uint64_t tag, PeerIndex sender);

  Receives posted_;          // by their order
  std::size_t waiting_ = 0;  // in it
  boost::intrusive::list<QueuedUnexpected> kept_;
  Pool<QueuedUnexpected> unexpected_;
  std::size_t bytes_kept_ = 0;
};

}  // namespace weft::messaging
