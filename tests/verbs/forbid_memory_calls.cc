// SPDX-License-Identifier: BSD-2-Clause
// How does a program run where a seccomp filter forbids access to the memory of other processes?
//
// usage: weft_forbid_memory_calls EPERM|ENOSYS PROGRAM [ARGUMENT...]
//
// process_vm_readv(2) and process_vm_writev(2) fail with that error in the program and in its
// children, as in a container whose seccomp profile lacks them.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace {

constexpr int kCannotRun = 126;

int fail(const char* what) {
  std::fprintf(stderr, "weft_forbid_memory_calls: %s: %s\n", what, std::strerror(errno));
  return kCannotRun;
}

bool forbid(unsigned error) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(rules)), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: weft_forbid_memory_calls EPERM|ENOSYS PROGRAM [ARGUMENT...]\n");
    return kCannotRun;
  }
  const int error = std::strcmp(argv[1], "ENOSYS") == 0 ? ENOSYS : EPERM;
  if (!forbid(static_cast<unsigned>(error))) return fail("seccomp");
  char byte = 0;
  const iovec here{&byte, 1};
  if (::process_vm_readv(::getpid(), &here, 1, &here, 1, 0) >= 0 || errno != error) {
    return fail("process_vm_readv");
  }
  ::execvp(argv[2], argv + 2);
  return fail(argv[2]);
}
