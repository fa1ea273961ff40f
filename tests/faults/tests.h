// SPDX-License-Identifier: BSD-2-Clause
// Which tests of faults are there?
#pragma once

namespace weft::faults {

// Each runs one test to its end and returns an exit status: kPassed, kFailed or kSkipped.
int run_kill_test();
int run_connected_kill_test();
int run_stopped_peer_test();
int run_stopped_connection_test();
int run_datagram_test();
int run_descriptor_test();
int run_address_space_test();
int run_file_size_test();
int run_file_system_test();

}  // namespace weft::faults
