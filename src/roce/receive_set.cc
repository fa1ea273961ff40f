// SPDX-License-Identifier: BSD-2-Clause
// What has arrived at the sockets of an endpoint, one datagram after the other?
#include "roce/receive_set.h"

#include <algorithm>

namespace weft::roce {
namespace {

// Tens of microseconds of a program that polls.
constexpr unsigned kQuiet = 64;
// A quiet socket is read by one take() of so many.
constexpr unsigned kTakesOfQuiet = 16;

}  // namespace

void ReceiveSet::remove(const os::UdpSocket& socket) {
  if (current_.socket == &socket) arrival_ = batch_.arrivals().size();
  std::erase_if(sockets_, [&](const ReceiveSocket& each) { return each.socket == &socket; });
}

// Reads the socket whose turn it is; true when it has no more for now.
bool ReceiveSet::read() {
  turn_ = turn_ < sockets_.size() ? turn_ : 0;
  ReceiveSocket& next = sockets_[turn_++];
  const bool quiet = next.empty_reads >= kQuiet && takes_ % kTakesOfQuiet != 0;
  if (skips_ && quiet && !attends_) return true;
  current_ = next;
  arrival_ = index_ = 0;
  const bool failed = current_.socket->receive(batch_) != 0;
  errors_seen_ = errors_seen_ || batch_.errors_waiting();
  emptied_ = batch_.arrivals().empty() && !batch_.errors_waiting();
  next.empty_reads = emptied_ ? next.empty_reads + 1 : 0;
  attends_ = attends_ && emptied_;
  return failed || batch_.arrivals().size() < arrivals_;
}

std::uint64_t ReceiveSet::take_dropped() {
  std::uint64_t fresh = 0;
  for (ReceiveSocket& each : sockets_) {
    const std::uint64_t counted = std::exchange(each.dropped, each.socket->dropped());
    if (each.dropped > counted) fresh += each.dropped - counted;
  }
  return fresh;
}

void ReceiveSet::skip() {
  if (++index_ < batch_.arrivals()[arrival_].datagrams()) return;
  ++arrival_;
  index_ = 0;
}

}  // namespace weft::roce
