// SPDX-License-Identifier: BSD-2-Clause
// How do two processes of a test come to talk, by either type of reliable endpoint?
#include "talk.h"

#include "failure.h"

namespace weft::faults {

Talk::Talk(fi_ep_type type, const Channel& channel, bool asks, bool shares_receives)
    : node_(type, FI_PROGRESS_UNSPEC, shares_receives), switchboard_(node_) {
  if (node_.open(0) != 0) fail(std::string(node_.failed_call()) + " failed");
  if (node_.connects()) require_ok(switchboard_.open(), switchboard_.failed_call());
  const Address& own = node_.connects() ? switchboard_.address() : node_.address();
  channel.send(&own, sizeof own);
  Address other{};
  require(channel.receive(&other, sizeof other), "the other process ended early");
  if (!node_.connects()) {
    peer_ = node_.insert(other);
  } else if (asks) {
    require_ok(switchboard_.open_endpoint(nullptr, connected_), switchboard_.failed_call());
    require_ok(switchboard_.connect(*connected_, other, 0), switchboard_.failed_call());
    await(FI_CONNECTED);
  } else {
    const ConnectionEvent request = await(FI_CONNREQ);
    require_ok(switchboard_.open_endpoint(request.request.get(), connected_),
               switchboard_.failed_call());
    require_ok(switchboard_.accept(*connected_), switchboard_.failed_call());
    await(FI_CONNECTED);
  }
}

void Talk::read_events() {
  while (node_.connects() && switchboard_.read()) {
  }
}

void Talk::close() {
  connected_.reset();
  switchboard_.close();
  node_.close();
}

ConnectionEvent Talk::await(std::uint32_t what) {
  std::optional<ConnectionEvent> event;
  while (!(event = switchboard_.read())) node_.poll();
  require(event->what == what, "no connection came about: " + error_text(event->error));
  return std::move(*event);
}

}  // namespace weft::faults
