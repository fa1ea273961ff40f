// SPDX-License-Identifier: BSD-2-Clause
// How does a datagram become a packet, and when does that leave?
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "link/flow.h"
#include "os/clock.h"
#include "roce/datagram_writer.h"
#include "roce/packet_port.h"

namespace weft::udp {

// Where datagrams go.
struct DatagramTarget {
  roce::Path path;
  std::uint32_t queue_pair = 0;
  // Until then the peer counts as absent, after an ICMP port unreachable. A forged one costs no
  // more than datagrams may lose in any case.
  os::Time absent_until{};
  bool is_absent() const { return absent_until != os::Time{}; }
};

// Sends datagrams from one queue pair. The first ones after a poll or a pause leave at once, each
// by itself; those that follow them share trains, if they may. One thread at a time.
class DatagramSender {
 public:
  // Packets leave through that port, which outlives this.
  DatagramSender(roce::PacketPort& port, std::uint32_t queue_pair,
                 std::uint32_t queue_key = roce::kDatagramQueueKey)
      : port_(port), trains_(port.trains()), queue_pair_(queue_pair), queue_key_(queue_key) {}

  // Sends a message, or keeps it until flush(), for as long as the target has to live. kAgain when
  // the socket has no room. ICMP errors that the socket reports are read: a program that only sends
  // never polls. Errors: ECONNREFUSED for an absent target, EOPNOTSUPP for what is no datagram,
  // EMSGSIZE.
  link::Outcome send(DatagramTarget& target, const link::SendRequest& request);
  // The same at that time, and nothing is read.
  link::Outcome send_at(DatagramTarget& target, const link::SendRequest& request, os::Time now);
  // Sends what was kept.
  void flush() { trains_.flush(); }
  // The same, and what does not leave then is lost.
  void finish();
  // Sends what was kept; what comes next comes after a pause.
  void poll();
  // Until the next poll() nothing is kept.
  void keep_nothing() { keeps_ = false; }
  bool has_kept() const { return !trains_.empty(); }

 private:
  // A burst has begun when so many have left by themselves.
  static constexpr unsigned kAtOnce = 2;
  // Far longer than the time between two sends of a burst; slower programs gain nothing by it.
  static constexpr std::chrono::microseconds kPause{20};

  bool leaves(bool may_linger, os::Time now);

  roce::PacketPort& port_;
  roce::Trains& trains_;
  const std::uint32_t queue_pair_;
  const std::uint32_t queue_key_;
  roce::DatagramWriter writer_;
  unsigned in_burst_ = 0;  // have left, or are kept, since a poll or a pause
  os::Time last_{};
  bool keeps_ = true;
};

}  // namespace weft::udp
