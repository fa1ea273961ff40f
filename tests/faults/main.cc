// SPDX-License-Identifier: BSD-2-Clause
// Which test of faults is run?
//
// weft_faults TEST, with FI_PROVIDER_PATH set. Status 0: every rule held; 77: this machine does not
// allow the test (the text says why); else one line on standard error says which rule was broken,
// by which process.
#include <cstdio>
#include <cstring>

#include "failure.h"
#include "tests.h"

namespace {

struct Test {
  const char* name;
  int (*run)();
};

constexpr Test kTests[] = {
    {"kill", weft::faults::run_kill_test},
    {"kill-connections", weft::faults::run_connected_kill_test},
    {"stop", weft::faults::run_stopped_peer_test},
    {"stop-connections", weft::faults::run_stopped_connection_test},
    {"stop-requester", weft::faults::run_stopped_requester_test},
    {"datagrams", weft::faults::run_datagram_test},
    {"shutdown-during-copy", weft::faults::run_shutdown_during_copy_test},
    {"close-during-copy", weft::faults::run_close_during_copy_test},
    {"shared-close-during-copy", weft::faults::run_shared_close_during_copy_test},
    {"sender-close-during-copy", weft::faults::run_sender_close_during_copy_test},
    {"sender-shutdown-during-copy", weft::faults::run_sender_shutdown_during_copy_test},
    {"reused-id-of-sender", weft::faults::run_reused_sender_test},
    {"reused-id-of-sender-during-copy", weft::faults::run_reused_sender_during_copy_test},
    {"reused-id-of-receiver", weft::faults::run_reused_receiver_test},
    {"few-descriptors", weft::faults::run_descriptor_test},
    {"little-address-space", weft::faults::run_address_space_test},
    {"small-files", weft::faults::run_file_size_test},
    {"small-file-system", weft::faults::run_file_system_test},
    {"locked-memory", weft::faults::run_locked_memory_test},
};

}  // namespace

int main(int argc, char** argv) {
  weft::faults::name_this_process("first process");
  for (const Test& test : kTests) {
    if (argc == 2 && std::strcmp(argv[1], test.name) == 0) return test.run();
  }
  std::fprintf(stderr, "usage: weft_faults TEST, one of:");
  for (const Test& test : kTests) std::fprintf(stderr, " %s", test.name);
  std::fprintf(stderr, "\n");
  return 2;
}
