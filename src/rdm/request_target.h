// SPDX-License-Identifier: BSD-2-Clause
// What becomes of the requests of one peer?
#pragma once

#include <memory>
#include <span>

#include "access_server.h"
#include "base/budget.h"
#include "message_assembly.h"
#include "os/clock.h"
#include "roce/path.h"
#include "work/target.h"

namespace weft::rdm {

struct RdmOperation;
struct Shared;

// The flow that requests arrive over.
struct RequestSource {
  std::uint32_t number = 0;                // by which the inbox names the peer
  std::uint64_t endpoint_id = 0;           // of the peer
  std::uint64_t identity = 0;              // of the flow (message.h)
  std::shared_ptr<const roce::Path> path;  // back to the peer
  std::uint32_t pair = 0;                  // context of the pair that the flow belongs to, or 0
};

// Gives the messages of a flow to the inbox's sink, to operations of this endpoint that they
// answer, and to the AccessServer; writes of a rendezvous to their receive. One thread at a time.
class RequestTarget final : public work::Target {
 public:
  RequestTarget(Shared& shared, RequestSource source);

  const RequestSource& source() const { return source_; }
  // A packet of requests arrives, whose payload lies at `payload` until end_packet(). Full packets
  // have `path_mtu` bytes.
  void begin_packet(const std::byte* payload, std::size_t path_mtu, os::Time now);
  void end_packet();
  // The first `length` bytes of the message that is just beginning are copied to SGEs as they
  // arrive. Only from within the sink's arriving().
  void place(std::span<const LocalRange> sges, std::uint64_t length, void* cookie) {
    assembly_.place(sges, length, cookie);
  }
  // Buffers of the program are written to no more.
  void forget_places();
  // Tells the peer that its message of that rendezvous id was received.
  void acknowledge(std::uint32_t rendezvous_id);
  // Requests are dropped from now on.
  void shut();
  bool is_shut() const { return shut_; }
  // Messages are acknowledged and dropped from now on: the peer, which may end, too, does not wait.
  void discard();
  bool discards() const { return discards_; }
  // Gives memory back, also that of a message of which no packet has come for some seconds: it
  // begins again when its peer goes on. False while that time is not over.
  bool trim(os::Time now);

  work::RequestVerdict message_begins() override;
  work::RequestVerdict message_goes_on(std::span<const std::byte> bytes) override;
  void message_ends(const work::MessageEnd& end) override;
  void message_breaks() override;
  work::RequestVerdict may_access(Access need, const work::RemoteMemory& memory) override;
  work::RequestVerdict write(const work::RemoteMemory& memory, std::uint64_t offset,
                             std::span<const std::byte> bytes) override;
  work::RequestVerdict may_report_immediate() override { return {}; }
  void written(const work::RemoteMemory& memory, const work::MessageEnd& end) override;
  work::RequestVerdict read(const work::RemoteMemory& memory, std::uint64_t offset,
                            std::span<std::byte> out) override;
  work::RequestVerdict atomic(bool compares, const work::AtomicOperands& what,
                              std::uint64_t& original) override;

 private:
  bool taken_as_it_comes(std::span<const std::byte> first);
  void end_placed();
  bool arrived(const MessageHeader& header, std::span<const std::byte> bytes);
  bool message_arrived(const MessageHeader& header, std::span<const std::byte> bytes);
  bool split(std::span<const std::byte> coalesced);
  bool answered(const MessageHeader& header, std::span<const std::byte> bytes);
  bool wanted(const MessageHeader& header);
  void withdrawn(const link::Offer& offer);
  bool atomic_arrived(const MessageHeader& header, std::span<const std::byte> bytes);
  void answer(std::uint32_t rendezvous_id, MessageHeader header,
              std::span<const std::byte> bytes = {});
  RdmOperation* receive_of(const work::RemoteMemory& memory) const;

  Shared& shared_;
  const RequestSource source_;
  Budget::Share messages_;  // of Shared::message_memory
  MessageAssembly assembly_;
  AccessServer accesses_;
  os::Time now_{};  // of the current packet
  bool shut_ = false;
  bool discards_ = false;
  bool given_up_ = false;  // the message that has begun: nothing of it is kept
};

}  // namespace weft::rdm
