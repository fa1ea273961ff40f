// SPDX-License-Identifier: BSD-2-Clause
// How is the sender of a message told that no process of this host is concerned, and how often?
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/answer_limiter.h"
#include "os/clock.h"
#include "os/udp_batch.h"
#include "roce/address_hash.h"
#include "roce/datagram_writer.h"
#include "wire/cm_message.h"
#include "wire/packet.h"

namespace weft::roce {

// Writes answers of connection management that no state stands behind, within limits. One thread at
// a time.
class Refusals {
 public:
  // BTH, DETH, a MAD and the ICRC.
  static constexpr std::size_t kBytes = wire::kBthBytes + 8 + wire::kMadBytes + wire::kIcrcBytes;

  // True when an answer may go to that address, and then it counts.
  bool may_send(const os::SocketAddress& to, os::Time now) { return limiter_.take(hash_(to), now); }
  // The packet from the relay at `from` to queue pair `qpn` at `to`.
  std::span<const std::byte> write(const wire::CmMad& answer, const os::SocketAddress& from,
                                   const os::SocketAddress& to, std::uint32_t qpn);

 private:
  AddressHash hash_;
  AnswerLimiter limiter_;
  DatagramWriter writer_;
  std::array<std::byte, kBytes> packet_;
};

}  // namespace weft::roce
