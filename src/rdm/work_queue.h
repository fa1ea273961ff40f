// SPDX-License-Identifier: BSD-2-Clause
// In which order do the operations of a flow become work requests?
#pragma once

#include <optional>
#include <vector>

#include "flow_initiator.h"
#include "operations.h"
#include "rdm/message.h"
#include "transport/requester.h"

namespace weft::rdm {

// Posts the work of operations to the requester of a flow, or keeps it until the flow is open.
// Small messages that need not leave at once share a packet, which is posted before anything else
// is. One thread at a time.
class WorkQueue final : work::WorkSink {
 public:
  // `flow` outlives it.
  WorkQueue(Shared& shared, FlowInitiator& flow)
      : shared_(shared), flow_(flow), operations_(shared) {}

  FlowInitiator& flow() const { return flow_; }
  Operations& operations() { return operations_; }
  const Operations& operations() const { return operations_; }
  // From open() on.
  transport::Requester* requester() { return requester_ ? &*requester_ : nullptr; }
  const transport::Requester* requester() const { return requester_ ? &*requester_ : nullptr; }

  // The flow has been agreed upon.
  transport::Requester& open(const transport::Settings& settings);
  // Posts the work that has waited for that.
  void post_early();
  // All that has not ended fails with `error`.
  void fail(int error);

  // Whether the program may begin an operation: kDone, kAgain, or ECONNRESET.
  link::Outcome may_begin() const;
  RdmOperation& begin(void* cookie, bool reported) {
    return operations_.begin(*this, cookie, reported);
  }
  // The peer may name the operation by its rendezvous id from now on.
  void name(RdmOperation& operation);
  // It is dropped, as a buffer of the program is not mapped. Returns EFAULT.
  link::Outcome fault(RdmOperation& operation);
  // Posts a message of that header, of `copied` bytes that follow it in the operation's copy, and
  // of `length` bytes in `rest`.
  void post_header(RdmOperation& operation, const MessageHeader& header, std::size_t copied,
                   std::span<const LocalRange> rest = {}, std::uint64_t length = 0);
  // Posts an access of work.length bytes, which lie in `local` from `offset` on.
  void post_access(RdmOperation& operation, const work::Work& work,
                   std::span<const LocalRange> local, std::uint64_t offset);
  // All work of an operation is posted. It leaves at once where hardly anything is in flight.
  void started(RdmOperation& operation);
  // Posts a message that is an operation of its own: without started(), for the next one to follow.
  void post_control(const MessageHeader& header);
  // Sends a message of that header and those bytes.
  void send_control(const MessageHeader& header, std::span<const std::byte> bytes = {});
  // The same, as an answer that the peer asked for or waits for.
  void answer(const MessageHeader& header, std::span<const std::byte> bytes = {});

  // A small message may share a packet with others.
  bool may_join(const link::SendRequest& request) const;
  // Adds it to that packet. EFAULT when it is not mapped.
  link::Outcome join(const link::SendRequest& request);
  bool has_coalesced() const { return coalesced_ != nullptr; }
  // Posts that packet, if there is one.
  void post_coalesced();

  // Ends a message no packet of which has been sent (ECANCELED); false for others.
  bool take_back(RdmOperation& operation);
  // The peer answered an operation.
  void answered(RdmOperation& operation, const MessageHeader& header,
                std::span<const std::byte> bytes, os::Time now);
  // It has its answer: its end waits for its work only.
  void has_answer(RdmOperation& operation, os::Time now);
  // The peer writes nothing more to that receive, which is not reported.
  void detach(RdmOperation& receive);
  // The same, with a report: ECONNRESET.
  void abandon(RdmOperation& receive);

  // Something has not arrived yet.
  bool owes() const;
  // Gives memory back.
  void trim();

 private:
  // Work that was posted before the flow was open.
  struct Early {
    work::Work work;
    std::vector<work::Segment> sges;
  };

  void post(RdmOperation& operation, work::Work work);
  void send_message(RdmOperation& operation, const MessageHeader& header,
                    std::span<const std::byte> bytes);
  bool waits(os::Time now) const;
  void ended(const work::Ended& work) override;

  Shared& shared_;
  FlowInitiator& flow_;
  Operations operations_;
  std::optional<transport::Requester> requester_;
  std::vector<Early> early_;
  RdmOperation* coalesced_ = nullptr;  // the small messages that share a packet
  os::Time sent_at_{};                 // when something left without waiting for the next poll
};

}  // namespace weft::rdm
