// SPDX-License-Identifier: BSD-2-Clause
// How are buffers of the program copied, without ending the program when one is not mapped?
#include "os/user_memory.h"

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "os/process_memory.h"

namespace weft::os {

#if defined(__x86_64__)
namespace {

// The action that the program had.
struct Former {
  struct sigaction action;
  std::atomic<bool> reset{false};  // by SA_RESETHAND

  bool has_handler() const {
    return (action.sa_flags & SA_SIGINFO) != 0 ||
           (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
  }
};
Former segv_before;
Former bus_before;

// An entry of the table (WEFT_MAY_FAULT): distances of two instructions from their own places.
struct FaultEntry {
  std::int32_t instruction;
  std::int32_t continuation;
};

// The table, by the linker.
extern "C" {
extern const FaultEntry __start_weft_faults[] __attribute__((visibility("hidden")));  // NOLINT
extern const FaultEntry __stop_weft_faults[] __attribute__((visibility("hidden")));   // NOLINT
}

std::uintptr_t target_of(const std::int32_t& distance) {
  return reinterpret_cast<std::uintptr_t>(&distance) + static_cast<std::uintptr_t>(distance);
}

// Where execution continues after a fault of the instruction at `code`; 0 where it may not fail.
std::uintptr_t continuation_of(std::uintptr_t code) {
  for (const FaultEntry* entry = __start_weft_faults; entry != __stop_weft_faults; ++entry) {
    if (target_of(entry->instruction) == code) return target_of(entry->continuation);
  }
  return 0;
}

// Does what the kernel would have done without this handler.
void pass_on(int signal, siginfo_t* info, void* context, Former& before) {
  const bool once = (before.action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0;
  if (before.has_handler() && !(once && before.reset.exchange(true))) {
    if ((before.action.sa_flags & SA_SIGINFO) == 0) return before.action.sa_handler(signal);
    return before.action.sa_sigaction(signal, info, context);
  }
  const bool sent = info->si_code <= 0;
  if (sent && !before.has_handler() && before.action.sa_handler == SIG_IGN) return;
  // The instruction fails anew when this returns, and ends the process.
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(signal, &by_default, nullptr);
  if (sent) ::raise(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  auto& place = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  const bool by_access = info->si_code > 0;
  const std::uintptr_t next = by_access ? continuation_of(static_cast<std::uintptr_t>(place)) : 0;
  if (next != 0) {
    place = static_cast<greg_t>(next);
    return;
  }
  pass_on(signal, info, context, signal == SIGSEGV ? segv_before : bus_before);
}

// With the mask and the flags of the former action: a handler runs on the stack that it asked for.
void install(int signal, Former& before) {
  if (::sigaction(signal, nullptr, &before.action) != 0) return;
  struct sigaction action = before.action;
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | (before.action.sa_flags & ~static_cast<int>(SA_RESETHAND));
  if (!before.has_handler()) action.sa_flags |= SA_ONSTACK;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void handle_user_faults() {
  static std::once_flag once;
  std::call_once(once, [] {
    install(SIGSEGV, segv_before);
    install(SIGBUS, bus_before);
  });
}

#else

void handle_user_faults() {}

namespace probe {

bool read(const void* at) { return have_pages(at, 1, CopyDirection::kFromProcess); }
bool write(void* at) { return have_pages(at, 1, CopyDirection::kToProcess); }

}  // namespace probe

#endif

namespace probe {

void unblock_faults() {
  copies_left = kCopiesPerLook;
  sigset_t faults;
  ::sigemptyset(&faults);
  ::sigaddset(&faults, SIGSEGV);
  ::sigaddset(&faults, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

namespace {

template <class Byte, class Touch>
bool each_page(Byte* base, std::size_t length, Touch touch) {
  const auto first = reinterpret_cast<std::uintptr_t>(base);
  const std::uintptr_t last = first + (length - 1);
  if (last < first || !touch(base)) return false;
  for (std::uintptr_t page = (first | (kPage - 1)) + 1; page <= last && page != 0; page += kPage) {
    if (!touch(base + (page - first))) return false;
  }
  return true;
}

}  // namespace

#if WEFT_CHECKED_MOVES
namespace {

constexpr std::size_t kBlock = 64;
// Above that the processor's string instruction is as fast as the loop, whatever the alignment
// (measured: 2 KiB in 15 to 60 ns by it and in 21 ns by the loop, 4 KiB in 28 to 39 and 44 ns).
constexpr std::size_t kMostLooped = 2048;

// NOLINTBEGIN(hicpp-no-assembler): no C++ expression continues after a fault.
bool move_block(void* to, const void* from, std::size_t at) {
  asm goto(
      "1: movups (%1, %2), %%xmm0\n"
      "2: movups 16(%1, %2), %%xmm1\n"
      "3: movups 32(%1, %2), %%xmm2\n"
      "4: movups 48(%1, %2), %%xmm3\n"
      "5: movups %%xmm0, (%0, %2)\n"
      "6: movups %%xmm1, 16(%0, %2)\n"
      "7: movups %%xmm2, 32(%0, %2)\n"
      "8: movups %%xmm3, 48(%0, %2)\n\t" WEFT_MAY_FAULT("1") WEFT_MAY_FAULT("2") WEFT_MAY_FAULT("3")
          WEFT_MAY_FAULT("4") WEFT_MAY_FAULT("5") WEFT_MAY_FAULT("6") WEFT_MAY_FAULT("7")
              WEFT_MAY_FAULT("8")
      :
      : "r"(to), "r"(from), "r"(at)
      : "xmm0", "xmm1", "xmm2", "xmm3", "memory"
      : fault);
  return true;
fault:
  return false;
}

bool move_string(void* to, const void* from, std::size_t length) {
  asm goto(
      "movq %0, %%rdi\n"
      "movq %1, %%rsi\n"
      "movq %2, %%rcx\n"
      "1: rep movsb\n\t" WEFT_MAY_FAULT("1")
      :
      : "r"(to), "r"(from), "r"(length)
      : "rdi", "rsi", "rcx", "memory"
      : fault);
  return true;
fault:
  return false;
}
// NOLINTEND(hicpp-no-assembler)

}  // namespace

// The stores of one string instruction may be seen in any order: the last block is not among them.
bool move_many(void* to, const void* from, std::size_t length) {
  std::size_t at = 0;
  if (length > kMostLooped) {
    at = length - kBlock;
    if (!move_string(to, from, at)) return false;
  }
  for (;; at += kBlock) {
    const std::size_t last = length - kBlock;
    if (!move_block(to, from, std::min(at, last))) return false;
    if (at >= last) return true;
  }
}
#endif

bool gather_sges(void* out, std::span<const LocalRange> sges, std::size_t length,
                 std::size_t offset) {
  auto* to = static_cast<std::byte*>(out);
  for (const LocalRange& sge : sges) {
    if (length == 0) return true;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::size_t take = std::min(sge.length - offset, length);
    if (!copy_from_user(to, static_cast<const std::byte*>(sge.base) + offset, take)) return false;
    to += take;
    length -= take;
    offset = 0;
  }
  return true;
}

std::optional<std::size_t> scatter_sges(std::span<const LocalRange> sges, const void* in,
                                        std::size_t length, std::size_t offset) {
  const auto* from = static_cast<const std::byte*>(in);
  std::size_t done = 0;
  for (const LocalRange& sge : sges) {
    if (done == length) return done;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::size_t take = std::min(sge.length - offset, length - done);
    if (!copy_to_user(static_cast<std::byte*>(sge.base) + offset, from + done, take)) {
      return std::nullopt;
    }
    done += take;
    offset = 0;
  }
  return done;
}

bool pages_readable(const void* base, std::size_t length) {
  return each_page(static_cast<const char*>(base), length, read);
}

bool pages_writable(void* base, std::size_t length) {
  return each_page(static_cast<char*>(base), length, write);
}

bool sges_readable(std::span<const LocalRange> sges) {
  for (const LocalRange& sge : sges) {
    if (!readable(sge.base, sge.length)) return false;
  }
  return true;
}

bool sges_writable(std::span<const LocalRange> sges, std::size_t length) {
  for (const LocalRange& sge : sges) {
    const std::size_t part = std::min(sge.length, length);
    if (!writable(sge.base, part)) return false;
    length -= part;
  }
  return true;
}

}  // namespace probe

}  // namespace weft::os
