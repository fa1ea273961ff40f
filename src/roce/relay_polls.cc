// SPDX-License-Identifier: BSD-2-Clause
// When does a port look for packets at port 4791?
#include "relay_polls.h"

#include <cerrno>
#include <string>

#include "roce/relay_header.h"

namespace weft::roce {
namespace {

// After something has come there, so many looks find more of it without delay.
constexpr unsigned kHotPolls = 256;
// Otherwise it is looked at once in a tick of the coarse clock, and while there is something else
// to do only every now and then: a look costs a system call.
constexpr unsigned kBusyPolls = 16;

// If another process has the name, it is found all the same.
Status claim(const std::string& wanted, os::LocalName& claimed) {
  auto name = os::LocalName::claim(wanted);
  if (!name && name.error().code != EADDRINUSE) return name.error();
  if (name) claimed = std::move(name).value();
  return {};
}

}  // namespace

Status RelayPolls::open(const os::SocketAddress& address) {
  if (Status ok = claim(name_of_endpoint(address), name_); !ok) return ok;
  attend();
  return {};
}

Status RelayPolls::open_manager(const os::SocketAddress& address) {
  return claim(name_of_manager(address), manager_name_);
}

bool RelayPolls::time_to_look(bool idle) {
  if (hot_polls_ != 0) return true;
  if (!idle && ++busy_ % kBusyPolls != 0) return false;
  return os::coarse_now() != looked_at_;
}

unsigned RelayPolls::poll(bool idle, std::uint32_t queue_pair, const Port4791Relay::Visit& visit) {
  if (!time_to_look(idle)) return 0;
  looked_at_ = os::coarse_now();
  const Port4791Relay::Look look = relay_->look(queue_pair, visit);
  more_ = look.more;
  if (look.packets != 0) {
    hot_polls_ = kHotPolls;
  } else if (hot_polls_ != 0) {
    --hot_polls_;
  }
  return look.packets;
}

// Every wake-up polls the relay: its descriptors may be the cause.
void RelayPolls::watch(os::WakeSet& set) {
  relay_->attend();
  descriptors_ = relay_->watch(set, descriptors_);
  looked_at_ = {};
}

}  // namespace weft::roce
