// SPDX-License-Identifier: BSD-2-Clause
// How does the conformance program start?
#include <gtest/gtest.h>

#include "support/remote_party.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  weft::conformance::start_peer_fork_server();
  testing::AddGlobalTestEnvironment(new weft::conformance::ResidentPeers);  // gtest deletes it
  return RUN_ALL_TESTS();
}
