// SPDX-License-Identifier: BSD-2-Clause
// Where do the two sides of a test live, and how do they get to know each other?
#pragma once

#include <memory>
#include <ostream>

#include "local_party.h"
#include "remote_party.h"

namespace weft::conformance {

enum class Placement {
  kTwoProcesses,
  kOneProcess,          // Two endpoints of one domain.
  kTwoDomains,          // Two endpoints of two domains of one process.
  kSelf,                // One endpoint that talks to itself.
  kConnectedProcesses,  // FI_EP_MSG in two processes.
  kConnected,           // FI_EP_MSG in one domain.
};
const char* to_string(Placement placement);
inline std::ostream& operator<<(std::ostream& out, Placement placement) {
  return out << to_string(placement);
}

// Two parties that have each other's addresses, or are connected. The initiator always lives in the
// test's process.
class World {
 public:
  World(Placement placement, const Options& options);
  // Both parties exist; otherwise the test has failed already.
  bool ok() const { return ok_; }

  LocalParty& initiator() { return *initiator_; }
  Party& target() { return *target_; }
  RemoteParty& remote() { return static_cast<RemoteParty&>(*target_); }  // Of two processes only.
  Endpoint& endpoint() { return initiator_->endpoint(); }
  fid_ep* ep() { return endpoint().ep(); }
  Pump& pump() { return pump_; }
  fi_addr_t to_target() const { return to_target_; }        // In the initiator's address vector.
  fi_addr_t to_initiator() const { return to_initiator_; }  // In the target's.

  // Sends `length` bytes from the initiator and waits for both completions; verifies the data.
  // Whatever the initiator did before to the target is then visible there.
  void exchange(std::uint64_t length = 16, std::uint64_t seed = 77);

 private:
  bool open_parties(Placement placement, const Options& options);
  bool connect_parties();

  Pump pump_;
  std::unique_ptr<LocalParty> initiator_;
  std::unique_ptr<Party> other_;
  Party* target_ = nullptr;
  fi_addr_t to_target_ = FI_ADDR_NOTAVAIL;
  fi_addr_t to_initiator_ = FI_ADDR_NOTAVAIL;
  bool ok_ = false;
};

}  // namespace weft::conformance
