// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint ask of the place where messages for it arrive?
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/types.h"
#include "link/flow.h"
#include "os/socket_address.h"

namespace weft::link {

// Bytes that it costs to keep an answer, such as an acknowledgement, until the peer has it, beside
// the bytes that it carries.
inline constexpr std::size_t kAnswerCost = 1280;

// A message that its sender keeps until it is taken, or that waits for an acknowledgement.
struct Offer {
  std::uint32_t source = 0;
  std::uint32_t rendezvous_id = 0;
};

// A message at the moment of its arrival.
struct Arrival {
  MessageOperation operation = MessageOperation::kMessage;
  bool has_data = false;
  bool wants_ack = false;    // acknowledge(offer) when it is in the user's buffer
  std::uint32_t source = 0;  // which peer, as this inbox numbers them
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint64_t length = 0;
  const std::byte* payload = nullptr;  // valid during the call only; nullptr: take it by accept()
  Offer offer;                         // for accept(), or with wants_ack
  bool by_processor = false;           // what accept() takes is written by the processor
};

// In place of an errno: the sender withdrew an accepted message, of which no byte was written. The
// receive may take another one.
inline constexpr int kWithdrawn = ENOMSG;

// Hears what arrives. Called from within poll(), accept() and check_sources() only.
class InboxSink {
 public:
  virtual ~InboxSink() = default;
  // A peer that may send from now on.
  virtual void source_opened(std::uint32_t source, const os::SocketAddress& address) = 0;
  // A peer that will not send any more: it left, or it died. Its offers are void.
  virtual void source_closed(std::uint32_t source, bool died) = 0;
  // How many further messages may be taken in; senders are held back beyond that.
  virtual unsigned room() const { return std::numeric_limits<unsigned>::max(); }
  bool takes_more() const { return room() != 0; }
  // The same for one source, where sources send to different endpoints.
  virtual unsigned room_for(std::uint32_t /*source*/) const { return room(); }
  // The same for a message of a peer that this end waits for: its answer may be queued behind other
  // messages. The limits are higher.
  virtual bool takes_more_urgently(std::uint32_t source) const { return room_for(source) != 0; }
  // A message begins whose bytes come bit by bit (payload: nullptr). True when it was taken, by
  // accept() from within this call: then received() tells of its end. Else it is kept until it can
  // be handed over as a whole, by arrived().
  virtual bool arriving(const Arrival& /*arrival*/) { return false; }
  // Between queue pairs: why their next message, with that tag and those data, stays where it is
  // for now, with all behind it, as the sender learns (shm::answer_word()); 0: it arrives.
  virtual std::uint16_t postpones(std::uint32_t /*source*/, std::uint64_t /*tag*/,
                                  std::uint64_t /*data*/) {
    return 0;
  }
  // A message.
  virtual void arrived(const Arrival& arrival) = 0;
  // Peer `source` accessed those regions, in a way that needs those rights; their owner asked for
  // such reports (memory::RegionTable). The report is not verified.
  virtual void accessed(std::uint32_t /*source*/, Access /*access*/,
                        std::span<const RegionKey> /*regions*/) {}
  // An access of peer `source` was refused: `operation` is a word for it. Also after the source has
  // closed, of a read that is still being answered.
  virtual void refused(std::uint32_t /*source*/, const char* /*operation*/,
                       const RefusedAccess& /*access*/) {}
  // The accepted message of `cookie` is in place (error 0), lost (an errno) or kWithdrawn.
  virtual void received(void* cookie, int error) = 0;
  // The sender has withdrawn an offer. What was kept of it is void.
  virtual void withdrawn(const Offer& /*offer*/) {}
};

// Where messages of all peers for one endpoint arrive, in order per peer. One thread at a time.
class Inbox {
 public:
  virtual ~Inbox() = default;
  Inbox() = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // Hands over what has arrived, at most a few dozen messages per peer; returns how many.
  virtual unsigned poll(InboxSink& sink) = 0;
  // Takes the first `length` bytes of an offered or beginning message into `sges`, which stay
  // untouched by others until received() is called. After that no peer writes into them. length
  // must not be larger than the message. False when the sender has withdrawn the message: nothing
  // is reported then.
  virtual bool accept(InboxSink& sink, const Offer& offer, std::span<const LocalRange> sges,
                      std::uint64_t length, void* cookie) = 0;
  // Tells the sender that its message was delivered, or was thrown away as the user asked.
  virtual void acknowledge(const Offer& offer) = 0;
  // Rejects a source: its messages are discarded, and its sends fail as if the endpoint were
  // closed. The sink is told that the source closed; an accepted message that a living peer is
  // copying is reported after the copy. May be called from within arrived().
  virtual void refuse(InboxSink& sink, std::uint32_t source) = 0;
  // Takes the buffers of accepted messages back: true when no peer writes into them, nor will. The
  // owner may destroy the inbox then; if it goes on instead, and always after false (a peer is in
  // the middle of a copy), these messages are reported with ECANCELED as soon as the copying has
  // ended. Does not wait, reports nothing itself and may be called again.
  virtual bool reclaim_buffers() { return true; }
  // Looks which peers still live and reports those that do not.
  virtual void check_sources(InboxSink& sink) = 0;

  // How much there is to do between polls: nothing while no peer is known; little while none has
  // anything under way, to and from here.
  enum class Activity : std::uint8_t { kNone, kLow, kHigh };
  virtual Activity activity() const { return Activity::kHigh; }

  // Goes to sleep: until wake_up() is called arrivals wake the threads that sleep on the wake set
  // of the port. False when something is here already, so that the caller should poll instead of
  // waiting. May be repeated.
  virtual bool fall_asleep() = 0;
  // Wakes up: arrivals need not signal any more.
  virtual void wake_up() = 0;
};

}  // namespace weft::link
