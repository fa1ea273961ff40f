// SPDX-License-Identifier: BSD-2-Clause
// How does the target of a test's requests run beside the test: in a thread, or in a process?
#include "beside.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

namespace weft::verbs_conformance {
namespace {

constexpr unsigned kLifetime = 60;  // seconds, of a child whose parent is gone

Board* share_board() {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  return new (memory) Board;
}

}  // namespace

void PrintTo(Where where, std::ostream* out) {
  *out << (where == Where::kThread ? "thread" : "process");
}

Beside::Beside(Where where, const Target& target)
    : board_(share_board()), child_(where == Where::kProcess ? ::fork() : -1) {
  if (child_ == 0) {
    ::alarm(kLifetime);
    run(target);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  EXPECT_TRUE(where == Where::kThread || child_ > 0);
  if (where == Where::kThread) thread_ = std::thread([this, target] { run(target); });
  board_->initiator = end_.qp()->qp_num;
  EXPECT_TRUE(spins_until([&] { return board_->target != 0; }));
  end_.connect(board_->target);
  EXPECT_TRUE(spins_until([&] { return board_->connected.load(); }));
}

void Beside::run(const Target& target) {
  End own;
  board_->address = own.place(0).address;
  board_->key = own.place(0).key;
  board_->target = own.qp()->qp_num;
  ASSERT_TRUE(spins_until([&] { return board_->initiator != 0; }));
  own.connect(board_->initiator);
  board_->connected = true;
  target(own, *board_);
  spins_until([&] { return board_->over.load(); });
}

void Beside::signal(int number) {
  ASSERT_GT(child_, 0);
  EXPECT_EQ(::kill(child_, number), 0);
  if (number == SIGCONT) return;
  int status = 0;
  EXPECT_EQ(::waitpid(child_, &status, WUNTRACED), child_);
  EXPECT_TRUE(WIFSTOPPED(status) || WIFSIGNALED(status)) << status;
  if (number == SIGKILL) child_ = -1;
}

Beside::~Beside() {
  board_->over = true;
  if (thread_.joinable()) thread_.join();
  if (child_ > 0) {
    int status = -1;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0) << "of the target's process";
  }
  ::munmap(board_, sizeof(Board));
}

}  // namespace weft::verbs_conformance
