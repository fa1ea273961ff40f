// SPDX-License-Identifier: BSD-2-Clause
// How does a side that lives in another process do what a test tells it?
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "party.h"
#include "peer_process.h"

namespace weft::conformance {

// Keeps peer processes between tests, because libfabric takes long to start in a new one. main()
// makes the one object; it ends the processes after the last test.
class ResidentPeers : public testing::Environment {
 public:
  ResidentPeers();
  ~ResidentPeers() override;
  void TearDown() override {
    idle_.clear();
    idle_far_.clear();
  }

  // A process that waits for a conversation; a new one if none is free. A far one shares no files
  // with this process.
  static std::unique_ptr<PeerProcess> borrow(bool far);
  // Only processes that answered to the end come back.
  static void give_back(std::unique_ptr<PeerProcess> peer, bool far);

 private:
  using Peers = std::vector<std::unique_ptr<PeerProcess>>;
  static ResidentPeers* the_one;
  Peers idle_;
  Peers idle_far_;
};

// A party in a peer process. Failures of expectations there appear in the test that runs here.
class RemoteParty : public Party {
 public:
  RemoteParty(const Options& options, Pump* pump);
  ~RemoteParty() override;
  bool ok() const { return ok_; }
  pid_t pid() const { return process_->pid(); }
  Reply call(const Request& request) override;
  // call() in two halves, so that this side can do something meanwhile.
  void start(const Request& request);
  Reply finish();

 private:
  bool say_goodbye();

  Pump* pump_;
  const bool far_;
  std::unique_ptr<PeerProcess> process_;
  bool alive_ = true;
  bool ok_ = false;
};

}  // namespace weft::conformance
