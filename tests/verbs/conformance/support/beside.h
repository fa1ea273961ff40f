// SPDX-License-Identifier: BSD-2-Clause
// How does the target of a test's requests run beside the test: in a thread, or in a process?
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <ostream>
#include <thread>

#include "end.h"

namespace weft::verbs_conformance {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kHasChildren = false;  // gcc 12's do not bring their own locks through a fork
#else
inline constexpr bool kHasChildren = true;
#endif

enum class Where : std::uint8_t { kThread, kProcess };
void PrintTo(Where where, std::ostream* out);

// Memory of both sides. A side waits for a round of the other one.
struct Board {
  std::atomic<std::uint32_t> initiator{0};  // QPN
  std::atomic<std::uint32_t> target{0};     // QPN
  std::atomic<std::uint64_t> address{0};    // of the target's region
  std::atomic<std::uint32_t> key{0};
  std::atomic<bool> connected{false};
  std::atomic<bool> over{false};           // the initiator needs the target no more
  std::atomic<std::uint64_t> posted{0};    // rounds whose requests the initiator has posted
  std::atomic<std::uint64_t> finished{0};  // rounds that the target has ended
};

// Calls until it holds; between calls the processor is yielded now and then. False when patience()
// is over.
template <class Condition>
bool spins_until(const Condition& condition) {
  return holds_in_time([&] {
    for (int i = 0; i < 1000; ++i) {
      if (condition()) return true;
    }
    std::this_thread::yield();
    return false;
  });
}

// An end of the test, connected to one of the target.
class Beside {
 public:
  // Runs there with its end, which lives as long as this. Assertions in it fail the test.
  using Target = std::function<void(End&, Board&)>;

  Beside(Where where, const Target& target);
  ~Beside();
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  End& end() { return end_; }
  Board& board() { return *board_; }
  // Sends SIGSTOP, SIGCONT or SIGKILL to the target's process. Returns when it has stopped, or
  // ended.
  void signal(int number);
  RemotePlace place(std::size_t at) const { return {board_->address + at, board_->key}; }
  // Whether the target has ended that round, within patience().
  bool finishes(std::uint64_t round) const {
    return spins_until([&] { return board_->finished >= round; });
  }

 private:
  void run(const Target& target);

  Board* const board_;
  std::thread thread_;
  pid_t child_ = -1;
  End end_;  // made after the fork
};

}  // namespace weft::verbs_conformance
