// SPDX-License-Identifier: BSD-2-Clause
// Which operations may peers name by a number?
#pragma once

#include <cstdint>
#include <unordered_map>

#include "link/inbox.h"
#include "operation.h"

namespace weft::rdm {

struct RequestSource;

// The operations of an endpoint that a peer answers, by the number that it answers with.
class NamedOperations {
 public:
  // A number by which the peer may name the operation, until forget().
  std::uint32_t name(RdmOperation& operation);
  void forget(std::uint32_t number) { operations_.erase(number); }
  // The operation of that number, if it was asked for over the flow of that identity (message.h).
  RdmOperation* find(std::uint32_t number, std::uint64_t flow) const;
  // The receive of that number, if it is for a message that this source offered.
  RdmOperation* find_receive(std::uint32_t number, std::uint32_t source) const;
  // The receive that has asked for that offer of that source.
  RdmOperation* find_taker(const link::Offer& offer) const;
  // Something has been agreed upon with the endpoint of that source, or asked of it, and not ended;
  // over the same pair, if it belongs to one.
  bool waits_for(const RequestSource& source) const;
  // Receives write nothing to their buffers any more.
  void forget_buffers();
  // No peer writes to the receives of messages of that source any more.
  void abandon_receives_from(std::uint32_t source);

 private:
  std::unordered_map<std::uint32_t, RdmOperation*> operations_;
  std::uint32_t next_ = 1;
};

}  // namespace weft::rdm
