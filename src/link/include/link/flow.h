// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint ask of the way to one peer?
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/atomic_op.h"
#include "base/refused_access.h"
#include "base/types.h"

namespace weft::link {

// SGEs that a local buffer may have (iov_limit).
inline constexpr std::size_t kMaxLinkSges = 8;

// In place of an errno: no flow leads to the peer, whose endpoint has another authorization key.
// Pending requests end with it, too.
inline constexpr int kOtherAuthorization = EKEYREJECTED;

// What a message is for at its receiver.
enum class MessageOperation : std::uint8_t {
  kMessage = 1,          // takes the next receive
  kTagged = 2,           // takes the next tagged receive that matches
  kWriteData = 3,        // announces a remote write that carried immediate data; no payload
  kWriteEvent = 4,       // announces a remote write to a peer that counts them; no payload
  kReadEvent = 5,        // the same for a remote read
  kAtomicWriteData = 6,  // announces an atomic operation that carried immediate data; no payload
  kAtomicReadData = 7,   // the same for one that brought the initial value back
  kControl = 8,          // concerns the connection itself; never matched with a receive
  // Takes the next receive, or is dropped where none waits. Its tag is the number of the multicast
  // group that it was sent to, or 0.
  kDatagram = 9,
  kQueuePair = 10,  // from one queue pair of verbs to another (queue/memory_message.h)
};

// One message. The SGEs stay the caller's and unchanged until the message is done.
struct SendRequest {
  MessageOperation operation = MessageOperation::kMessage;
  bool has_data = false;         // `data` goes with it
  bool until_delivered = false;  // done only when it is in the receiver's buffer
  bool must_copy = false;        // the SGEs may change as soon as send() returns (inject)
  bool may_linger = false;       // a datagram that may leave with the next poll, if others do
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::span<const LocalRange> sges;
  std::size_t length = 0;  // of all SGEs
  void* cookie = nullptr;  // given back to FlowSink
};

// One access to the peer's memory. Both sides have the same total length. The local SGEs stay the
// caller's and unchanged until it is done.
struct AccessRequest {
  bool write = false;
  bool has_data = false;  // a write that announces itself with `data`
  std::uint64_t data = 0;
  std::span<const LocalRange> local;
  std::span<const RemoteRange> remote;
  std::size_t length = 0;
  bool must_copy = false;  // the SGEs may change as soon as access() returns (inject)
  void* cookie = nullptr;  // given back to FlowSink
};

// One atomic operation on the peer's memory. `operand`, `compare` and `result` have the length of
// all ranges together, or are empty where the action has none. Every range is whole elements.
// Operands may change as soon as atomic() returns; the SGEs of `result` stay the caller's until
// it is done.
struct AtomicRequest {
  AtomicAction action;
  bool has_data = false;  // announces itself with `data`
  std::uint64_t data = 0;
  std::span<const LocalRange> operand;
  std::span<const LocalRange> compare;
  std::span<const LocalRange> result;
  std::span<const RemoteRange> remote;
  std::size_t length = 0;  // at most kMaxAtomicBytes
  void* cookie = nullptr;  // given back to FlowSink
};

// What became of a request. It fits a register.
struct Outcome {
  enum class State : std::uint8_t {
    kDone,     // finished
    kPending,  // the outcome is reported to FlowSink
    kAgain,    // no room now: poll, then ask again
    kFailed,   // `error` says why
  };
  State state = State::kDone;
  std::int16_t detail = 0;  // why an access was refused (memory::AccessError), or 0
  int error = 0;            // an errno

  static constexpr Outcome done() { return {}; }
  static constexpr Outcome pending() { return {State::kPending}; }
  static constexpr Outcome again() { return {State::kAgain}; }
  static constexpr Outcome failed(int error, int detail = 0) {
    return {State::kFailed, static_cast<std::int16_t>(detail), error};
  }
};

// What has become of a peer: it is there but takes nothing in from here any more, or has another
// authorization key; it left in good order, or its process ended.
enum class PeerState : std::uint8_t { kAlive, kRefuses, kUnauthorized, kLeft, kDied };

// Hears how pending requests ended.
class FlowSink {
 public:
  virtual ~FlowSink() = default;
  // The request of `cookie` is done (error 0) or failed (an errno and a detail, as in Outcome).
  virtual void ended(void* cookie, int error, int detail) = 0;
};

// The way from one endpoint to one peer, reliable and in order, or to a multicast group (to which
// kDatagram only can be sent, and kAgain says that a member had no room). Used by one thread at a
// time.
class Flow {
 public:
  virtual ~Flow() = default;
  Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // Sends a message. Errors: ECONNRESET when the peer has ended, EFAULT when an SGE is not mapped.
  virtual Outcome send(const SendRequest& request) = 0;
  // Reads or writes the peer's memory after checking every range. A refused access touches no byte.
  // Errors: EACCES (detail: the refusal), EFAULT (a local SGE is not mapped), ECONNRESET;
  // ETIMEDOUT when the peer, or another process, has stopped in the middle of this access or of an
  // earlier one of this flow: its outcome is unknown, and no other access of this flow starts until
  // that is known.
  virtual Outcome access(const AccessRequest& request) = 0;
  // Carries out a meaningful atomic operation after checking every range. A refused one changes no
  // byte. Errors: those of access(), ETIMEDOUT also when another process has stopped in
  // the middle of an operation on the same memory, and nothing was done.
  virtual Outcome atomic(const AtomicRequest& request) = 0;
  // The access to those ranges that access() or atomic() has just refused for that reason
  // (Outcome::detail), as far as known.
  virtual RefusedAccess refused(int reason, std::span<const RemoteRange> remote) const {
    return refused_of(reason, remote);
  }
  // False while the peer has not answered yet.
  virtual bool reached() const { return true; }
  // The process that was at this address has died: if its host reports that the port is closed, the
  // flow ends at once instead of asking on.
  virtual void suspect() {}
  // True while requests are pending.
  virtual bool busy() const = 0;
  // False while messages may lie where a flow that is opened after the end of this one could
  // overtake them: the peer is not known to have taken them in.
  virtual bool settled() const { return true; }
  // True when progress() would find something to do or to report.
  virtual bool ready() const = 0;
  // Goes on with pending requests and reports finished ones.
  virtual void progress(FlowSink& sink) = 0;
  // Looks whether the peer is still there. When it is not, pending requests were reported as failed
  // and the flow is of no more use.
  virtual PeerState check_peer(FlowSink& sink) = 0;
  // Withdraws the pending send of `cookie`: its end is reported at once (ECANCELED), the peer never
  // receives it, and its SGEs are the caller's again. False when it goes on: its bytes have left,
  // the peer is taking them, or no such send is pending here.
  virtual bool cancel(void* /*cookie*/, FlowSink& /*sink*/) { return false; }
  // Ends pending requests: whatever the peer is copying just now is finished first, everything else
  // is taken back. What was not delivered is reported as failed (ECONNRESET).
  virtual void give_up(FlowSink& sink) = 0;
  // The peer's process, or 0.
  virtual int process() const = 0;
  // Tells the peer that this side goes to sleep until its bell rings, or is awake again.
  virtual void set_asleep(bool asleep) = 0;
};

}  // namespace weft::link
