// SPDX-License-Identifier: BSD-2-Clause
// Where the processes run and how they end: cores, networks, children, time limit.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

namespace weft::bench {

struct Cores {
  int server;
  int client;
};

// WANTED, or else the first and the last core that this process may use.
Cores choose_cores(const std::optional<std::pair<int, int>>& wanted);

// Binds the calling thread, and every thread that it starts later, to CORE.
void pin_to(int core);

// Lets this process, and those that it forks, open as many descriptors as the hard limit allows.
void raise_descriptor_limit();

// Moves the calling thread, and whatever it starts later, into the network namespace of that file.
void enter_network(const std::string& file);

// Ends this process after SECONDS: by SIGTERM, and if that did not help within two seconds, at
// once. Children have a limit of their own, and end_with_parent().
void set_time_limit(unsigned seconds);

// From now on a_child_failed() tells whether a child has ended with an error: a loop that waits for
// it would wait for ever.
void watch_children();
bool a_child_failed();

// In a child: be ended with PARENT, in the same way. Before or after set_time_limit().
void end_with_parent(pid_t parent);

// Waits for all children; true if each of them, since watch_children(), ended with status 0.
bool wait_for_children();

}  // namespace weft::bench
