// SPDX-License-Identifier: BSD-2-Clause
// Can a buffer of the program be read or written, without ending the program if it cannot?
#include "os/probe.h"

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "os/process_memory.h"

namespace weft::os {

#if defined(__x86_64__)
namespace {

// The actions that the program had.
struct sigaction segv_before;
struct sigaction bus_before;

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

// What the kernel would have done without this handler.
void pass_on(int signal, siginfo_t* info, void* context, struct sigaction& before) {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    return before.sa_handler(signal);
  }
  const bool sent = info->si_code <= 0;
  if (sent && before.sa_handler == SIG_IGN) return;
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

void install(int signal, struct sigaction& before) {
  if (::sigaction(signal, nullptr, &before) != 0) return;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_mask = before.sa_mask;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | (before.sa_flags & (SA_NODEFER | SA_RESTART));
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void handle_failed_probes() {
  static std::once_flag once;
  std::call_once(once, [] {
    install(SIGSEGV, segv_before);
    install(SIGBUS, bus_before);
  });
}

#else

void handle_failed_probes() {}

namespace probe {

bool read(const void* at) { return have_pages(at, 1, CopyDirection::kFromProcess); }
bool write(void* at) { return have_pages(at, 1, CopyDirection::kToProcess); }

}  // namespace probe

#endif

namespace probe {
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

bool pages_readable(const void* base, std::size_t length) {
  return each_page(static_cast<const char*>(base), length, read);
}

bool pages_writable(void* base, std::size_t length) {
  return each_page(static_cast<char*>(base), length, write);
}

bool pieces_readable(std::span<const LocalRange> pieces) {
  for (const LocalRange& piece : pieces) {
    if (!readable(piece.base, piece.length)) return false;
  }
  return true;
}

bool pieces_writable(std::span<const LocalRange> pieces, std::size_t length) {
  for (const LocalRange& piece : pieces) {
    const std::size_t part = std::min(piece.length, length);
    if (!writable(piece.base, part)) return false;
    length -= part;
  }
  return true;
}

}  // namespace probe

}  // namespace weft::os
