// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint take its part in looking at port 4791?
#include "datagram_hub.h"

namespace weft::udp {
namespace {

// After something has come there, so many looks find more of it without delay.
constexpr unsigned kHotPolls = 256;
// Otherwise it is looked at once in a tick of the coarse clock, and while there is something else
// to do only every now and then: a look costs a system call.
constexpr unsigned kBusyPolls = 16;

}  // namespace

bool DatagramHub::time_to_look(bool idle) {
  if (hot_polls_ != 0) return true;
  if (!idle && ++busy_ % kBusyPolls != 0) return false;
  return os::coarse_now() != looked_at_;
}

unsigned DatagramHub::poll_relay(link::InboxSink& sink) {
  looked_at_ = os::coarse_now();
  const roce::Port4791Relay::Look look = options_.relay->look(
      queue_pair_, [&](const os::Datagram& datagram) { take_foreign(datagram, 0, sink); });
  more_at_relay_ = look.more;
  if (look.packets != 0) {
    hot_polls_ = kHotPolls;
  } else if (hot_polls_ != 0) {
    --hot_polls_;
  }
  return look.packets;
}

// Every wake-up polls the relay: its descriptors may be the cause.
void DatagramHub::watch_relay() {
  options_.relay->attend();
  relay_descriptors_ = options_.relay->watch(wake_, relay_descriptors_);
  looked_at_ = {};
}

std::string DatagramHub::dropped_packets() const {
  std::string text = text_of(drops_, {});
  const std::string at_relay = options_.relay != nullptr ? text_of(options_.relay->counts()) : "";
  if (at_relay.empty()) return text;
  if (!text.empty()) text += "; ";
  return text + "at port 4791: " + at_relay;
}

}  // namespace weft::udp
