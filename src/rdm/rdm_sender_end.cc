// SPDX-License-Identifier: BSD-2-Clause
// How does a flow to a peer end?
#include <cerrno>

#include "flow_table.h"
#include "rdm_sender.h"
#include "shared.h"

namespace weft::rdm {

// All that has not ended fails.
void RdmSender::lose(link::PeerState state) {
  if (state_ == Phase::kLost) return;
  const int error = state_ == Phase::kAsking && !persisting_ ? EHOSTUNREACH : ECONNRESET;
  state_ = Phase::kLost;
  peer_state_ = state;
  if (state == link::PeerState::kDied) shared_.dead_stations.push_back({peer(), station_});
  bundle_ = nullptr;
  if (requester_) requester_->fail(transport::Status::kFlushed);
  early_.clear();
  while (operations_.count() != 0) {
    RdmOperation& operation = operations_.live().front();
    if (operation.failure.error == 0) operation.failure.error = error;
    end(operation);
  }
  shared_.flows->emission().activate(*this);
}

// What is in flight out of the program's buffers, or into them, cannot go on; a message that is
// only offered is not to be had any more.
bool RdmSender::borrows() {
  bool any = false;
  for (RdmOperation& operation : operations_.live()) {
    any = any || (operation.borrows && !operation.offered && !operation.takes);
  }
  return any;
}

// Without a DREQ the peer would take this end for dead.
void RdmSender::send_disconnect() {
  const bool has_asked = state_ == Phase::kAsking && next_req_ != os::Time{};
  if (state_ != Phase::kOpen && !(has_asked && !early_data_.empty())) return;
  shared_.flows->emission().send_cm(*path_, Disconnect{false, connection_id_, peer_connection_id_});
}

void RdmSender::close() {
  send_disconnect();
  lose(link::PeerState::kLeft);
}

// What was copied has been reported as sent, or has to come before something that was.
void RdmSender::give_up() {
  if (bundle_ != nullptr) tie_up();
  if (state_ != Phase::kOpen || borrows()) return close();
  auto& live = operations_.live();
  for (auto each = live.begin(); each != live.end();) {
    RdmOperation& operation = *each++;
    if (operation.takes) continue;
    report_end(operation, ECONNRESET);
    if (operation.works == 0) end(operation);
  }
  shared_.flows->emission().activate(*this);
}

void RdmSender::release() {
  if (--holders_ != 0) return;
  if (state_ != Phase::kAsking || borrows()) give_up();
  finished_.clear();
  shared_.flows->emission().activate(*this);
}

bool RdmSender::finished() const {
  return holders_ == 0 && (state_ == Phase::kLost || operations_.count() == 0);
}

}  // namespace weft::rdm
