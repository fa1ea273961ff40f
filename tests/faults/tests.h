// SPDX-License-Identifier: BSD-2-Clause
// Which tests of faults are there?
#pragma once

namespace weft::faults {

// Each runs one test to its end and returns an exit status: kPassed, kFailed or kSkipped.
int run_kill_test();
int run_connected_kill_test();
int run_stopped_peer_test();
int run_stopped_connection_test();
int run_stopped_requester_test();
int run_datagram_test();
int run_shutdown_during_copy_test();
int run_close_during_copy_test();
int run_shared_close_during_copy_test();
int run_sender_close_during_copy_test();
int run_sender_shutdown_during_copy_test();
int run_reused_sender_test();
int run_reused_sender_during_copy_test();
int run_reused_receiver_test();
int run_descriptor_test();
int run_address_space_test();
int run_file_size_test();
int run_file_system_test();
int run_locked_memory_test();

}  // namespace weft::faults
