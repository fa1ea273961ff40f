// SPDX-License-Identifier: BSD-2-Clause
// Does a peer learn what arrived before a process exited?
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "test_support.h"

namespace weft::queue::testing {
namespace {

constexpr int kTurns = 40;

std::uint32_t exchange(int in, int out, std::uint32_t own) {
  std::uint32_t other = 0;
  EXPECT_EQ(::write(out, &own, sizeof own), static_cast<ssize_t>(sizeof own));
  EXPECT_EQ(::read(in, &other, sizeof other), static_cast<ssize_t>(sizeof other));
  return other;
}

// Answers each message but the last, whose acknowledgement waits for an answer. Destroys nothing.
// The thread sanitizer sees no order between processes: what is sent lies beside what is received.
[[noreturn]] void answer_and_exit(int in, int out) {
  End& end = *new End(QpType::kRc);
  const work::Segment buffer[] = {end.part(0, 8)};
  const work::Segment answer[] = {end.part(64, 8)};
  end.connect(exchange(in, out, end.pair->qpn()));
  if (end.receive(buffer) != 0) ::_exit(1);
  exchange(in, out, 0);
  for (int i = 0; i < kTurns; ++i) {
    end.next_received();
    if (i + 1 == kTurns) std::exit(0);
    if (end.receive(buffer) != 0 || end.send(answer) != 0) ::_exit(2);
    end.next_sent();
  }
  ::_exit(3);
}

TEST(Exit, AMessageThatArrivedBeforeIsAcknowledged) {
  int to_child[2];
  int to_parent[2];
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(to_parent), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) answer_and_exit(to_child[0], to_parent[1]);
  End end(QpType::kRc);
  const work::Segment buffer[] = {end.part(0, 8)};
  const work::Segment message[] = {end.part(64, 8)};
  end.connect(exchange(to_parent[0], to_child[1], end.pair->qpn()));
  exchange(to_parent[0], to_child[1], 0);
  for (int i = 0; i < kTurns; ++i) {
    ASSERT_EQ(end.receive(buffer), 0);
    ASSERT_EQ(end.send(message), 0);
    EXPECT_EQ(end.next_sent().status, work::CompletionStatus::kSuccess) << i;
    if (i + 1 < kTurns) end.next_received();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(fd);
}

}  // namespace
}  // namespace weft::queue::testing
