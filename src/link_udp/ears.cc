// SPDX-License-Identifier: BSD-2-Clause
// What has arrived at the sockets of an endpoint, one datagram after the other?
#include "ears.h"

#include <algorithm>

namespace weft::udp {

void Ears::remove(const os::UdpSocket& socket) {
  if (ear_.socket == &socket) arrival_ = batch_.arrivals().size();
  std::erase_if(ears_, [&](const Ear& ear) { return ear.socket == &socket; });
}

// Reads the socket whose turn it is; true when it has no more for now.
bool Ears::read() {
  turn_ = turn_ < ears_.size() ? turn_ : 0;
  ear_ = ears_[turn_++];
  arrival_ = index_ = 0;
  const bool failed = ear_.socket->receive(batch_) != 0;
  met_errors_ = met_errors_ || batch_.errors_waiting();
  return failed || batch_.arrivals().size() < kArrivals;
}

std::uint64_t Ears::dropped() const {
  std::uint64_t sum = 0;
  for (const Ear& ear : ears_) sum += ear.socket->dropped();
  return sum;
}

void Ears::skip() {
  if (++index_ < batch_.arrivals()[arrival_].datagrams()) return;
  ++arrival_;
  index_ = 0;
}

}  // namespace weft::udp
