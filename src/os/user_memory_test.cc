// SPDX-License-Identifier: BSD-2-Clause
// Are buffers of the program copied byte by byte, and is one that is not mapped an error?
#include "os/user_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "os/thread.h"

namespace weft::os {
namespace {

constexpr std::size_t kPages = 4;
constexpr std::size_t kLength = kPages * probe::kPage;

struct UserMemoryTest : ::testing::Test {
  UserMemoryTest() { handle_user_faults(); }
  ~UserMemoryTest() override { ::munmap(base, kLength); }
  void protect(std::size_t page, int protection) const {
    ASSERT_EQ(::mprotect(base + page * probe::kPage, probe::kPage, protection), 0);
  }

  char* base = static_cast<char*>(
      ::mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

TEST_F(UserMemoryTest, MemoryThatIsThereCanBeTouchedAndStaysAsItIs) {
  base[0] = 'a';
  base[kLength - 1] = 'z';
  EXPECT_TRUE(readable(base, kLength));
  EXPECT_TRUE(writable(base, kLength));
  EXPECT_EQ(base[0], 'a');
  EXPECT_EQ(base[kLength - 1], 'z');
}

TEST_F(UserMemoryTest, EveryPageCountsAndNoOther) {
  for (std::size_t page = 0; page < kPages; ++page) {
    protect(page, PROT_NONE);
    char* const first = base + page * probe::kPage;
    EXPECT_FALSE(readable(base, kLength)) << page;
    EXPECT_FALSE(writable(base, kLength)) << page;
    EXPECT_FALSE(readable(first, 1));
    EXPECT_FALSE(writable(first + probe::kPage - 1, 1));
    if (page > 0) {
      EXPECT_TRUE(readable(first - 1, 1));
      EXPECT_FALSE(readable(first - 1, 2));
    }
    if (page + 1 < kPages) {
      EXPECT_TRUE(writable(first + probe::kPage, 1));
    }
    protect(page, PROT_READ | PROT_WRITE);
  }
}

TEST_F(UserMemoryTest, AReadOnlyPageCanBeReadOnly) {
  protect(1, PROT_READ);
  EXPECT_TRUE(readable(base, kLength));
  EXPECT_FALSE(writable(base, kLength));
}

TEST_F(UserMemoryTest, NothingOfAnEmptyRangeIsTouched) {
  EXPECT_TRUE(readable(nullptr, 0));
  EXPECT_TRUE(writable(nullptr, 0));
  EXPECT_FALSE(readable(nullptr, 1));
}

TEST_F(UserMemoryTest, ARangeThatWrapsAroundIsNotThere) { EXPECT_FALSE(readable(base, SIZE_MAX)); }

TEST_F(UserMemoryTest, OfAListItsFirstBytesCount) {
  protect(3, PROT_NONE);
  const std::array<LocalRange, 2> sges{LocalRange{base, 100},
                                       LocalRange{base + 3 * probe::kPage - 10, 20}};
  EXPECT_FALSE(readable(sges));
  EXPECT_FALSE(writable(sges, 111));
  EXPECT_TRUE(writable(sges, 110));
  EXPECT_TRUE(writable(sges, 100));
}

TEST_F(UserMemoryTest, AThreadOfOursMayProbe) {
  protect(0, PROT_NONE);
  bool there = true;
  {
    auto thread = Thread::start([&] { there = readable(base, 1); }).value();
  }
  EXPECT_FALSE(there);
}

// The copies of every length that has instructions of its own, and of some that have none.
constexpr std::size_t kLongestCopy = 150;

TEST_F(UserMemoryTest, ACopyCopiesEveryByteAndNoOther) {
  for (std::size_t length = 0; length <= kLongestCopy; ++length) {
    std::array<unsigned char, kLongestCopy + 2> from{};
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i + 1);
    const bool out = length % 2 == 0;
    std::array<unsigned char, kLongestCopy + 2> to{};
    const auto copy = out ? copy_from_user : copy_to_user;
    ASSERT_TRUE(copy(to.data() + 1, from.data() + 1, length));
    EXPECT_EQ(std::memcmp(to.data() + 1, from.data() + 1, length), 0) << length;
    EXPECT_EQ(to[0], 0) << length;
    EXPECT_EQ(to[length + 1], 0) << length;
  }
}

// The page boundary stands in front of each of the bytes.
TEST_F(UserMemoryTest, ACopyFailsWhereAnyByteIsNotThere) {
  char near[kLongestCopy] = {};
  char* const wall = base + probe::kPage;
  protect(1, PROT_NONE);
  for (std::size_t length = 1; length <= kLongestCopy; ++length) {
    for (std::size_t good = 0; good < length; ++good) {
      ASSERT_FALSE(copy_from_user(near, wall - good, length)) << good << " of " << length;
      ASSERT_FALSE(copy_to_user(wall - good, near, length)) << good << " of " << length;
    }
    ASSERT_TRUE(copy_from_user(near, wall - length, length)) << length;
    ASSERT_TRUE(copy_to_user(wall - length, near, length)) << length;
  }
  // The last page is not there, the one behind it is.
  for (std::size_t good = 1; good <= kLongestCopy; ++good) {
    ASSERT_FALSE(copy_from_user(near, wall + probe::kPage - good, kLongestCopy)) << good;
  }
}

TEST_F(UserMemoryTest, ACopyIntoAReadOnlyPageFails) {
  char near[kLongestCopy] = {};
  protect(0, PROT_READ);
  for (const std::size_t length : {1, 4, 8, 16, 100, 128, 150}) {
    EXPECT_TRUE(copy_from_user(near, base, length)) << length;
    EXPECT_FALSE(copy_to_user(base, near, length)) << length;
  }
}

// One block more or less than the loop and the string instruction take.
constexpr std::size_t kLongLengths[] = {191,  192,  193,  1000, 2047, 2048, 2049,
                                        2111, 2112, 2113, 4096, 8191, 9000};

TEST_F(UserMemoryTest, ALongCopyCopiesEveryByteAndNoOther) {
  std::vector<unsigned char> from(9100);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i * 7 + i / 256);
  for (const std::size_t length : kLongLengths) {
    for (const std::size_t shift : {1U, 24U}) {
      std::vector<unsigned char> to(from.size());
      ASSERT_TRUE(copy_to_user(to.data() + shift, from.data() + 3, length));
      EXPECT_EQ(std::memcmp(to.data() + shift, from.data() + 3, length), 0) << length;
      EXPECT_EQ(std::count(to.begin(), to.begin() + static_cast<int>(shift), 0),
                static_cast<int>(shift));
      EXPECT_EQ(to[shift + length], 0) << length;
    }
  }
}

TEST_F(UserMemoryTest, ALongCopyFailsWhereAnyPageIsNotThere) {
  std::vector<char> near(9100);
  protect(3, PROT_NONE);
  char* const wall = base + 3 * probe::kPage;
  for (const std::size_t length : kLongLengths) {
    EXPECT_TRUE(copy_from_user(near.data(), wall - length, length)) << length;
    EXPECT_TRUE(copy_to_user(wall - length, near.data(), length)) << length;
    for (const std::size_t good : {length - 1, length - 64, length - 65, length / 2}) {
      EXPECT_FALSE(copy_from_user(near.data(), wall - good, length)) << good << " of " << length;
      EXPECT_FALSE(copy_to_user(wall - good, near.data(), length)) << good << " of " << length;
    }
  }
  protect(3, PROT_READ | PROT_WRITE);
  protect(0, PROT_NONE);
  EXPECT_FALSE(copy_from_user(near.data(), base + probe::kPage - 1, 9000));
  EXPECT_FALSE(copy_to_user(base + probe::kPage - 1, near.data(), 9000));
}

// "abc", "", "defgh", "i" as four SGEs of one text.
struct Scattered {
  std::string text = "abcdefghi";
  std::array<LocalRange, 4> sges{
      {{text.data(), 3}, {text.data() + 3, 0}, {text.data() + 3, 5}, {text.data() + 8, 1}}};
};

TEST(Gather, JoinsTheSgesUpToTheLength) {
  const Scattered from;
  for (std::size_t length = 0; length <= from.text.size(); ++length) {
    std::string out(from.text.size(), '.');
    ASSERT_TRUE(gather(out.data(), from.sges, length));
    EXPECT_EQ(out, from.text.substr(0, length) + std::string(out.size() - length, '.'));
  }
}

TEST(Gather, JoinsThemFromAnyOffset) {
  const Scattered from;
  for (std::size_t offset = 0; offset <= from.text.size(); ++offset) {
    for (std::size_t length = 0; offset + length <= from.text.size(); ++length) {
      std::string out(from.text.size(), '.');
      ASSERT_TRUE(gather(out.data(), from.sges, length, offset));
      EXPECT_EQ(out, from.text.substr(offset, length) + std::string(out.size() - length, '.'));
    }
  }
}

TEST(Scatter, FillsThemFromAnyOffset) {
  for (std::size_t offset = 0; offset <= 9; ++offset) {
    for (std::size_t length = 0; length <= 9; ++length) {
      Scattered to;
      const std::size_t fits = std::min(length, 9 - offset);
      EXPECT_EQ(scatter(to.sges, "123456789", length, offset), fits);
      const std::string before = "abcdefghi";
      EXPECT_EQ(to.text, before.substr(0, offset) + std::string("123456789").substr(0, fits) +
                             before.substr(offset + fits));
    }
  }
}

TEST(Scatter, FillsTheSgesInOrderAndNoByteMore) {
  for (std::size_t length = 0; length <= 9; ++length) {
    Scattered to;
    EXPECT_EQ(scatter(to.sges, "123456789", length), length);
    EXPECT_EQ(to.text,
              std::string("123456789").substr(0, length) + std::string("abcdefghi").substr(length));
  }
}

TEST(Scatter, SaysHowMuchFitted) {
  Scattered to;
  EXPECT_EQ(scatter(to.sges, "123456789++", 11), 9U);
  EXPECT_EQ(to.text, "123456789");
}

TEST_F(UserMemoryTest, AnSgeThatIsNotThereFailsTheListUnlessNoByteOfItIsUsed) {
  protect(1, PROT_NONE);
  char near[100] = {};
  const std::array<LocalRange, 2> sges{LocalRange{base, 50}, LocalRange{base + probe::kPage, 50}};
  EXPECT_TRUE(gather(near, sges, 50));
  EXPECT_FALSE(gather(near, sges, 51));
  EXPECT_FALSE(gather(near, sges, 1, 50));
  EXPECT_EQ(scatter(sges, near, 50), 50U);
  EXPECT_EQ(scatter(sges, near, 51), std::nullopt);
  EXPECT_EQ(scatter({&sges[1], 1}, near, 1), std::nullopt);
}

// In a child process: true when `body` ended it by that signal.
template <class Body>
bool ends_by(int signal, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(UserMemoryTest, AnotherFaultEndsTheProgramAsBefore) {
  protect(0, PROT_NONE);
  EXPECT_TRUE(ends_by(SIGSEGV, [&] { *static_cast<volatile char*>(base) = 1; }));
  EXPECT_TRUE(ends_by(SIGSEGV, [] { ::raise(SIGSEGV); }));
  EXPECT_TRUE(ends_by(SIGSEGV, [] { reinterpret_cast<void (*)()>(std::uintptr_t{16})(); }));
}
#endif

// A handler that a program installs later may pass on what it does not know.
struct sigaction ours;
void pass_on_later(int signal, siginfo_t* info, void* context) {
  ours.sa_sigaction(signal, info, context);
}

TEST_F(UserMemoryTest, AHandlerInFrontThatPassesOnChangesNothing) {
  protect(0, PROT_NONE);
  struct sigaction later {};
  later.sa_sigaction = pass_on_later;
  later.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGSEGV, &later, &ours), 0);
  EXPECT_FALSE(readable(base, 1));
  ASSERT_EQ(::sigaction(SIGSEGV, &ours, nullptr), 0);
}

// A thread of a program that blocks every signal.
void block_all_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &all, nullptr), 0);
}

TEST_F(UserMemoryTest, AThreadThatBlocksAllSignalsMayProbeAndCopy) {
  protect(0, PROT_NONE);
  for (const bool probes : {true, false}) {
    std::thread([&] {
      block_all_signals();
      char near[8] = {};
      EXPECT_FALSE(probes ? readable(base, 1) : copy_from_user(near, base, sizeof near));
      EXPECT_FALSE(writable(base, 1));
      EXPECT_FALSE(copy_to_user(base, near, sizeof near));
    }).join();
  }
}

TEST_F(UserMemoryTest, SignalsThatAreBlockedLaterAreUnblockedAfterSomeCopiesOrPolls) {
  protect(0, PROT_NONE);
  for (const bool polls : {true, false}) {
    std::thread([&] {
      char near[8] = {};
      EXPECT_TRUE(readable(near, sizeof near));
      block_all_signals();
      for (int i = 0; i < probe::kCopiesPerLook; ++i) {
        if (polls) {
          keep_faults_unblocked();
        } else {
          EXPECT_TRUE(copy_from_user(near, base + probe::kPage, sizeof near));
        }
      }
      EXPECT_FALSE(readable(base, 1));
    }).join();
  }
}

TEST_F(UserMemoryTest, NoOtherSignalIsUnblocked) {
  std::thread([&] {
    block_all_signals();
    EXPECT_TRUE(readable(base, 1));
    sigset_t mask;
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
    for (const int open : {SIGSEGV, SIGBUS}) EXPECT_FALSE(::sigismember(&mask, open));
    for (const int shut : {SIGINT, SIGTERM, SIGUSR1, SIGFPE, SIGILL, SIGPIPE}) {
      EXPECT_TRUE(::sigismember(&mask, shut)) << shut;
    }
  }).join();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
char alternate_stack[1 << 16];
volatile char* forbidden;

// Exits with 7 on the thread's stack and with 8 on the alternate one.
void exit_by_stack(int /*signal*/) {
  const char here = 0;
  const bool alternate =
      &here >= alternate_stack && &here < alternate_stack + sizeof alternate_stack;
  ::_exit(alternate ? 8 : 7);
}

// Lets the first fault pass.
void permit(int /*signal*/) {
  static int calls = 0;
  if (++calls > 1) ::_exit(9);
  char* const page = const_cast<char*>(forbidden);
  ::mprotect(page, probe::kPage, PROT_READ | PROT_WRITE);
}

// Two faults in a program that had this action before Weft's handler.
void fault_twice(void (*handler)(int), int flags) {
  stack_t stack{};
  stack.ss_sp = alternate_stack;
  stack.ss_size = sizeof alternate_stack;
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(SIGSEGV, &action, nullptr);
  handle_user_faults();
  for (int i = 0; i < 2; ++i) {
    forbidden = static_cast<volatile char*>(
        ::mmap(nullptr, probe::kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (readable(const_cast<char*>(forbidden), 1)) ::_exit(10);
    *forbidden = 1;
  }
  ::_exit(0);
}

// The statements run in processes of their own, in which the handler has not been installed before.
struct FormerAction : testing::Test {
  FormerAction() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(FormerAction, RunsOnTheStackThatItAskedFor) {
  EXPECT_EXIT(fault_twice(exit_by_stack, 0), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(fault_twice(exit_by_stack, SA_ONSTACK), testing::ExitedWithCode(8), "");
}

TEST_F(FormerAction, RunsOnceIfItAskedForThat) {
  const int once = static_cast<int>(SA_RESETHAND);
  EXPECT_EXIT(fault_twice(permit, once), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(fault_twice(permit, 0), testing::ExitedWithCode(9), "");
}
#endif

}  // namespace
}  // namespace weft::os
