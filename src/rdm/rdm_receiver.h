// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint receive from one peer over the network?
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/budget.h"
#include "fragments.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "os/clock.h"
#include "rdm/conn_message.h"
#include "rdm/message.h"
#include "roce/path.h"
#include "transport/responder.h"

namespace weft::rdm {

struct RdmOperation;
struct Shared;

// The receiving half of the way from a peer: carries out its requests, and hands its messages on.
// One thread at a time.
class RdmReceiver final : work::Target {
 public:
  // For the peer that said `hello`; `welcome` is what it is told, and `number` what the inbox calls
  // it.
  RdmReceiver(Shared& shared, const ConnReq& req, const ConnRep& rep,
              std::shared_ptr<const roce::Path> path, std::uint32_t number, std::size_t longest);

  std::uint32_t number() const { return number_; }
  const ConnReq& req() const { return req_; }
  const ConnRep& rep() const { return rep_; }
  const roce::Path& path() const { return *path_; }
  std::uint64_t station() const { return req_.me.station; }
  std::uint64_t identity() const {
    return flow_identity(req_.me.connection_id, rep_.me.connection_id);
  }

  // The peer said that together with its message.
  void take_early_data(std::span<const std::byte> early_data);
  // The message that is just beginning goes there as it comes: of its bytes the first `length`.
  // Only from within the sink's arriving().
  void place(std::span<const LocalRange> pieces, std::uint64_t length, void* cookie);
  // Buffers of the program are written to no more.
  void forget_places();
  // Tells the peer that its message of that exchange was received.
  void acknowledge(std::uint32_t exchange);
  // Takes in a request. The caller activates the channel afterwards.
  void take(const wire::Packet& request, os::Time now);
  // Sends the answers that a peer waits for, and the others when their time has come; or all.
  void emit(bool all, os::Time now);
  // When emit() has something to do: os::Time::max() when only the peer can change anything.
  os::Time due() const;

  // The way to the peer carries no more than that: larger answers go in pieces, and it is to send
  // smaller packets, and to ask for smaller ones. True when it does not know yet.
  bool suggest(std::size_t path_mtu);
  // The peer has said that again, as it has nothing in flight and will send packets of another
  // size, or as it is asked whether this end is there.
  void agree(const ConnReq& again);
  // For pieces that are requests.
  Fragments& fragments() { return fragments_; }

  // Nothing has been going on: memory for it is given back.
  void trim();

  // Listens no more: whatever comes is answered with a refusal.
  void shut();
  bool is_shut() const { return shut_; }
  // An ICMP port unreachable from the peer's host. True when the peer counts as dead: the error
  // quotes a request of the flow (proven), or is one of kMostUnreachable in a row.
  bool count_unreachable(bool proven);
  Psn expected() const { return responder_.expected(); }
  const transport::Responder::Counts& counts() const { return responder_.counts(); }
  // Messages that were left alone.
  std::uint64_t senseless() const { return senseless_; }
  // When the peer was last heard of, and that it was just now.
  os::Time heard() const { return heard_; }
  void hear(os::Time now) {
    heard_ = now;
    unreachable_ = 0;
  }

 private:
  work::RequestVerdict message_begins() override;
  work::RequestVerdict message_goes_on(std::span<const std::byte> bytes) override;
  void message_ends(const work::MessageEnd& end) override;
  void message_breaks() override;
  work::RequestVerdict may_access(Access need, const work::RemoteMemory& memory) override;
  work::RequestVerdict write(const work::RemoteMemory& memory, std::uint64_t offset,
                             std::span<const std::byte> bytes) override;
  work::RequestVerdict may_tell() override { return {}; }
  void written(const work::RemoteMemory& memory, const work::MessageEnd& end) override;
  work::RequestVerdict read(const work::RemoteMemory& memory, std::uint64_t offset,
                            std::span<std::byte> out) override;
  work::RequestVerdict atomic(bool compares, const work::AtomicOperands& what,
                              std::uint64_t& original) override;

  work::RequestVerdict judge(Access need, const work::RemoteMemory& memory);
  std::optional<RegionKey> region_of(std::uint32_t key) const;
  RdmOperation* receive_of(const work::RemoteMemory& memory) const;
  MessageHeader answer_to(std::uint32_t exchange, MessageKind kind) const;
  bool arrived(const MessageHeader& header, std::span<const std::byte> bytes);
  void keep_packet();
  work::RequestVerdict begins_with(std::span<const std::byte> first);
  bool know_alias(const MessageHeader& header);
  bool taken_as_it_comes(std::span<const std::byte> first);
  void put(std::span<const std::byte> bytes);
  void all_there();
  bool untie(std::span<const std::byte> bundle);
  bool check(const MessageHeader& header, std::span<const std::byte> bytes);
  bool carry_out(const MessageHeader& header, std::span<const std::byte> bytes);
  bool answered(const MessageHeader& header, std::span<const std::byte> bytes);
  bool wanted(const MessageHeader& header);
  void withdrawn(const link::Offer& offer);
  void checked();
  void announce(link::Operation event, const MessageHeader& from);
  void announce_access(Access need);
  void told(Access need);
  void tell_of_keys(Access need);

  Shared& shared_;
  const ConnReq req_;
  ConnRep rep_;
  const std::shared_ptr<const roce::Path> path_;
  const std::uint32_t number_;
  const std::size_t longest_;  // message that may come whole
  Budget::Share packets_;      // of Shared::packet_memory
  Budget::Share messages_;     // of Shared::message_memory
  Fragments fragments_;
  // A message that goes to where it was wanted as it comes.
  struct Incoming {
    void* cookie = nullptr;
    std::array<LocalRange, link::kMaxPieces> pieces{};
    std::size_t count = 0;
    std::uint64_t wanted = 0;    // bytes of it
    std::uint64_t length = 0;    // of the whole message
    std::uint64_t there = 0;     // that have come
    std::uint32_t exchange = 0;  // named in the acknowledgement; 0: none is wanted
    int error = 0;               // a buffer is not mapped
  };
  std::unique_ptr<Incoming> incoming_;
  std::vector<std::byte> message_;  // or else is kept here as far as it has come,
  std::size_t promised_ = 0;        // bytes that it may have, header included
  std::size_t reserved_ = 0;        // bytes of messages_ for those
  const std::byte* arrived_at_ = nullptr;
  std::span<const std::byte> packet_;  // and with this one, which lies where it arrived
  std::vector<RegionKey> aliases_;     // by number
  // An access to several ranges, or in parts: reported as one access.
  struct Announced {
    Access need = Access::kNone;
    bool has_data = false;
  };
  std::optional<Announced> announced_;
  std::vector<RegionKey> told_keys_;  // whose owner hears of the access that is in flight
  MessageHeader notice_;              // of the write to come
  bool refused_ = false;              // a part of it
  work::RequestVerdict ranges_;       // of the access to several that is in flight
  unsigned unreachable_ = 0;          // since the peer was last heard of
  os::Time heard_{};
  bool shut_ = false;
  std::uint64_t senseless_ = 0;
  transport::Responder responder_;  // goes first: it may break off what the others hold
};

}  // namespace weft::rdm
