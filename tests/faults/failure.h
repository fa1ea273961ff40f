// SPDX-License-Identifier: BSD-2-Clause
// How does any process of these tests say that a rule was broken, and end?
#pragma once

#include <string>

namespace weft::faults {

// Exit statuses of every process and command here.
inline constexpr int kPassed = 0;
inline constexpr int kFailed = 1;
inline constexpr int kSkipped = 77;  // CTest's SKIP_RETURN_CODE

// Puts `name` in front of what this process prints; call once, at its start.
void name_this_process(const std::string& name);

// Prints "FAILED" with the process's name and `what`, and ends the process at once with kFailed: no
// destructor runs, because after a broken rule a library's close may hang.
[[noreturn]] void fail(const std::string& what);

inline void require(bool holds, const std::string& what) {
  if (!holds) fail(what);
}

// Prints why this machine does not allow a test; kSkipped.
int skipped(const std::string& why);

// Requires status 0 of a libfabric call; `call` names it in the report.
void require_ok(long status, const std::string& call);

// "FI_ECONNRESET (104, Connection reset by peer)"-like text of a positive or negative libfabric
// error.
std::string error_text(long status);

// Ends the process with kFailed and `what` unless disarm() is called within `seconds`. One at a
// time. It is the answer to "nothing hangs": it also fires while the process is inside a libfabric
// call.
class Watchdog {
 public:
  Watchdog(const std::string& what, unsigned seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
};

}  // namespace weft::faults
