// SPDX-License-Identifier: BSD-2-Clause
// Can a buffer of the program be read or written, without ending the program if it cannot?
#include "os/probe.h"

#include <signal.h>
#include <ucontext.h>

#include <cstring>
#include <mutex>

#include "os/process_memory.h"

namespace weft::os {

#if defined(__x86_64__)
namespace {

// The actions that the program had.
struct sigaction segv_before;
struct sigaction bus_before;

// cmpb $0, (%rdi)
constexpr unsigned char kCompare[] = {0x80, 0x3F, 0x00};
// movb (%rdi), %cl; movb %cl, (%rdi)
constexpr unsigned char kLoad[] = {0x8A, 0x0F, 0x88, 0x0F};
constexpr unsigned char kStore[] = {0x88, 0x0F};
// nopl 0x57454654(%rax)
constexpr unsigned char kMark[] = {0x0F, 0x1F, 0x80, 0x54, 0x46, 0x45, 0x57};

template <std::size_t kLength>
bool stands_at(const unsigned char* code, const unsigned char (&instructions)[kLength]) {
  return std::memcmp(code, instructions, kLength) == 0 &&
         std::memcmp(code + kLength, kMark, sizeof kMark) == 0;
}

// The bytes from the instruction that failed to the mark; 0 where it is no probe.
std::size_t failed_probe(const unsigned char* code) {
  if (stands_at(code, kCompare)) return sizeof kCompare;
  if (stands_at(code, kStore)) return sizeof kStore;
  return stands_at(code, kLoad) ? sizeof kLoad : 0;
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
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* code = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  // A jump to nowhere fails at the address that it went to: there is no code to read.
  const bool by_data = info->si_code > 0 && info->si_addr != code;
  if (const std::size_t length = by_data ? failed_probe(code) : 0; length != 0) {
    registers[REG_RAX] = 0;
    registers[REG_RIP] += static_cast<greg_t>(length);
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

}  // namespace weft::os
