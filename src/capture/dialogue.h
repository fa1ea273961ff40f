// SPDX-License-Identifier: BSD-2-Clause
// Which packets would requests of one endpoint to another have been, and the answers?
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/atomic_op.h"
#include "ends.h"
#include "rdm/conn_message.h"
#include "rdm/message.h"
#include "transport/requester.h"
#include "transport/responder.h"

namespace weft::capture {

// How an operation ended that is written down.
using work::RequestVerdict;

// A flow: one end asks, the other one answers, over a network that loses nothing. Each function
// writes down what an operation would have been that has ended just now; nothing of the arguments
// is kept or changed. One thread at a time.
class Dialogue final : work::WorkSink, work::Target {
 public:
  // Writes the greetings down. `asks`: this process asks. `ends` outlives this.
  Dialogue(Ends& ends, bool asks);
  Dialogue(const Dialogue&) = delete;
  Dialogue& operator=(const Dialogue&) = delete;

  // A message with those bytes.
  void message(const rdm::MessageHeader& header, std::span<const LocalRange> pieces = {});
  // An access to those ranges; the pieces hold what was written or read. A refused one has no
  // effect on any range. A write may announce itself with `data`.
  void write(std::span<const RemoteRange> remote, std::span<const LocalRange> pieces,
             const std::optional<std::uint64_t>& data, const RequestVerdict& verdict);
  void read(std::span<const RemoteRange> remote, std::span<const LocalRange> pieces,
            const RequestVerdict& verdict);
  // An offered message is wanted, as the other end says; and is written to its receive.
  void want(std::uint32_t exchange, std::uint64_t length);
  void deliver(std::uint32_t exchange, std::span<const LocalRange> pieces, std::uint64_t length);
  // An atomic operation that there is an opcode for: see has_opcode().
  void atomic(const RemoteRange& range, bool compares, std::uint64_t swap_or_add,
              std::uint64_t compare, std::uint64_t original, const RequestVerdict& verdict);

  // Writes down that it ends.
  void part();

 private:
  void introduce();
  void greet(const rdm::ConnMessage& message, bool by_asker);
  std::uint32_t wire_key(RegionKey key);
  void announce(bool write, std::span<const RemoteRange> remote);
  void announced(bool write, std::span<const RemoteRange> remote);
  void post(const work::Work& work);
  void write_parts(const work::Work& work, std::span<const LocalRange> pieces,
                   std::uint64_t offset);
  void read_parts(std::uint64_t address, std::uint32_t key, std::span<const LocalRange> pieces,
                  std::uint64_t offset, std::uint64_t length);
  void speak();
  void said(bool by_asker, std::size_t length, wire::Packet& packet);

  void ended(const work::Ended&) override {}
  RequestVerdict message_begins() override { return {}; }
  RequestVerdict message_goes_on(std::span<const std::byte>) override { return {}; }
  void message_ends(const work::MessageEnd&) override {}
  void message_breaks() override {}
  RequestVerdict may_access(Access, const work::RemoteMemory&) override { return verdict_; }
  RequestVerdict write(const work::RemoteMemory&, std::uint64_t,
                       std::span<const std::byte>) override {
    return {};
  }
  RequestVerdict may_tell() override { return {}; }
  void written(const work::RemoteMemory&, const work::MessageEnd&) override {}
  RequestVerdict read(const work::RemoteMemory& memory, std::uint64_t offset,
                      std::span<std::byte> out) override;
  RequestVerdict atomic(bool compares, const work::AtomicOperands& what,
                        std::uint64_t& original) override;

  Ends& ends_;
  const bool asks_;
  const End& asker_;
  const End& answerer_;
  std::uint32_t connection_ids_[2];  // of the asker, of the answerer
  std::uint32_t contexts_[2];        // the same
  std::optional<transport::Responder> responder_;
  std::optional<transport::Requester> requester_;
  rdm::Aliases aliases_;
  std::array<std::byte, wire::kMaxHeaderBytes + wire::kMaxReliableDatagramMtu + wire::kIcrcBytes>
      packet_{};
  std::vector<std::byte> scratch_;  // where what is read goes

  // Of the operation at hand.
  RequestVerdict verdict_;
  std::span<const LocalRange> pieces_;  // what is read, from address_ on
  std::uint64_t address_ = 0;
  std::uint64_t offset_ = 0;  // in the pieces
  std::uint64_t original_ = 0;
};

// Is there an opcode for that atomic operation? For one element of 64 bits: fetch and add, compare
// and swap. Others are messages (rdm/message.h).
bool has_opcode(const AtomicAction& action, std::span<const RemoteRange> remote);

}  // namespace weft::capture
