// SPDX-License-Identifier: BSD-2-Clause
// How does a test get a peer in another process, and learn what went wrong there?
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "channel.h"

namespace weft::conformance {

// What a peer process does. It may use every gtest expectation: failures appear in the test that
// started it. It runs in a fresh process in which libfabric was never called.
using PeerScript = void (*)(Channel& to_test);

// Forks the process from which all peers descend. main() calls it once, before the first libfabric
// call and before the first thread, so that no peer inherits a provider's state.
void start_peer_fork_server();

// Runs `body` in a child of the peer, so that its death is not taken for a crash of the peer; ends
// when that child does. The child is to be killed by a signal, which is expected.
void run_to_death(const std::function<void()>& body);

// A running peer. The destructor waits for the peer to end, reports its failures into the running
// test, and ends a peer that outlives patience() by its process id, which fails the test.
class PeerProcess {
 public:
  explicit PeerProcess(PeerScript script);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  Channel& channel() { return *channel_; }
  pid_t pid() const { return pid_; }
  // Waits for the end of the script; the destructor calls it if the test did not. `idle` runs
  // meanwhile, for peers that need this side's progress to come to an end.
  void finish(const Idle& idle = {});

 private:
  void report_failures(const Idle& idle);

  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Channel> report_;
  pid_t pid_ = -1;
};

}  // namespace weft::conformance
