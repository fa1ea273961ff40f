// SPDX-License-Identifier: BSD-2-Clause
// What becomes of handlers of SIGSEGV that the program installs? (sigaction(2))
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <cerrno>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kHandles = false;  // the sanitizer's own handler is in between
#else
constexpr bool kHandles = true;
#endif

struct sigaction former;
volatile sig_atomic_t seen = 0;
sigjmp_buf place;

// As libraries of users do: it looks whether the fault is its own, and passes on others.
void on_fault(int signal, siginfo_t* info, void* context) {
  if (info->si_addr == nullptr) {
    seen = seen + 1;
    siglongjmp(place, 1);
  }
  former.sa_sigaction(signal, info, context);
}

class Handler : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHandles) GTEST_SKIP() << "not under a sanitizer";
    two.emplace();
    struct sigaction own {};
    own.sa_sigaction = on_fault;
    own.sa_flags = SA_SIGINFO | SA_NODEFER;
    ASSERT_EQ(::sigaction(SIGSEGV, &own, &former), 0);
    seen = 0;
  }
  void TearDown() override {
    if (kHandles) ::sigaction(SIGSEGV, &former, nullptr);
  }
  std::optional<Pair> two;
};

TEST_F(Handler, OfTheProgramGetsItsOwnFaults) {
  if (sigsetjmp(place, 1) == 0) {
    *static_cast<volatile int*>(nullptr) = 1;
  }
  EXPECT_EQ(seen, 1);
}

// It was installed after the device was opened, and passes on what it does not know.
TEST_F(Handler, OfTheProgramPassesOnThoseOfWeft) {
  const std::size_t length = 8192;
  // Far from where the kernel would map something else in its place.
  void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
  void* const memory =
      ::mmap(far, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Owned<ibv_mr> region(ibv_reg_mr(two->b.pd(), memory, length, static_cast<int>(kAllRights)));
  ASSERT_NE(region, nullptr);
  ASSERT_EQ(::munmap(memory, length), 0);
  ASSERT_EQ(two->a.write({reinterpret_cast<std::uint64_t>(memory), region->rkey}, 64), 0);
  EXPECT_EQ(two->a.sent().status, IBV_WC_REM_OP_ERR);
  EXPECT_EQ(seen, 0);
}

TEST_F(Handler, OfTheProgramDoesNotDisturbTransfers) {
  ASSERT_EQ(two->b.receive(4096), 0);
  ASSERT_EQ(two->a.send(4096), 0);
  EXPECT_EQ(two->a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two->b.received().status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace weft::verbs_conformance
