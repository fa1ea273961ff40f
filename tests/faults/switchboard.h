// SPDX-License-Identifier: BSD-2-Clause
// How does a process of these tests make connections, and hear of them?
#pragma once

#include <memory>
#include <optional>

#include "node.h"

namespace weft::faults {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};

// What an event queue said.
struct ConnectionEvent {
  std::uint32_t what = 0;         // FI_CONNREQ, FI_CONNECTED, FI_SHUTDOWN; 0: it failed
  const fid* endpoint = nullptr;  // whose connection it is; of a request the listener's
  int error = 0;                  // of a failure
  std::uint64_t id = 0;           // of a request: what the other side gave connect()
  std::unique_ptr<fi_info, FreeInfo> request;
};

// The event queue of a node of type FI_EP_MSG, and a passive endpoint that listens. Functions
// return 0 or libfabric's negative error, and then failed_call() names the call. One thread at a
// time; goes before the node does, and after the endpoints that it opened.
class Switchboard {
 public:
  explicit Switchboard(Node& node) : node_(node) {}

  // Listens at any port of 127.0.0.1.
  int open();
  void close();
  const Address& address() const { return address_; }
  const char* failed_call() const { return failed_call_; }

  // An endpoint by which to connect, or to accept `request`; enabled, so that receives can be
  // posted.
  int open_endpoint(fi_info* request, Owned<fid_ep>& endpoint);
  // What comes of these two is an event.
  int connect(fid_ep& endpoint, const Address& listener, std::uint64_t id);
  int accept(fid_ep& endpoint);
  int reject(const ConnectionEvent& request);

  // The next event if there is one; drives progress. A broken queue ends the test.
  std::optional<ConnectionEvent> read();

 private:
  int note(int status, const char* call);
  ConnectionEvent read_error();

  Node& node_;
  Owned<fid_eq> events_;
  Owned<fid_pep> listener_;
  Address address_{};
  const char* failed_call_ = "";
};

}  // namespace weft::faults
