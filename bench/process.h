// SPDX-License-Identifier: BSD-2-Clause
// Where the two processes run and how they end: cores, fork, time limit.
#pragma once

#include <sys/types.h>

#include <optional>
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

// Ends this process and the child of watch_child() after SECONDS: by SIGTERM, and if that did not
// help within two seconds, at once.
void set_time_limit(unsigned seconds);

// From now on watched_child_failed() tells whether CHILD has ended with an error: a loop that
// waits for it would wait for ever.
void watch_child(pid_t child);
bool watched_child_failed();

// In a child: be ended with PARENT.
void end_with_parent(pid_t parent);

// Waits for CHILD; true if it ended with status 0.
bool wait_for(pid_t child);

}  // namespace weft::bench
