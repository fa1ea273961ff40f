// SPDX-License-Identifier: BSD-2-Clause
// How is an endpoint's mailbox found, and how does an endpoint present itself?
#include "link_shm/names.h"

#include "os/at_fork.h"
#include "os/process_memory.h"
#include "os/runtime_dir.h"

namespace weft::shm {
namespace {

// A forked child has the addresses of its parent and of its siblings, but a value of its own: while
// it tries the lock of a slot whose sender has died, its id must not pass for the sender's.
std::uint64_t probe_value = os::random_number();
os::AtFork at_fork(3, [] { probe_value = os::random_number(); });

}  // namespace

std::string mailbox_path(const std::string& directory, const os::SocketAddress& address,
                         link::Service service) {
  const char* const kind = service == link::Service::kQueuePairs ? "/qp-" : "/ep-";
  return directory + kind + address.host() + "-" + std::to_string(address.port());
}

os::SocketAddress any_host(const os::SocketAddress& address) {
  return os::SocketAddress::of_host(address.family(), &in6addr_any, address.port());
}

Probe own_probe() { return {reinterpret_cast<std::uint64_t>(&probe_value), probe_value}; }

bool reaches(pid_t pid, const Probe& probe) {
  std::uint64_t found = ~probe.value;
  const LocalRange local{&found, sizeof found};
  const LocalRange remote{reinterpret_cast<void*>(probe.address), sizeof found};
  errno = os::copy_process_memory(pid, os::CopyDirection::kFromProcess, {&local, 1}, {&remote, 1});
  if (errno == 0 && found != probe.value) errno = ESRCH;
  return errno == 0;
}

}  // namespace weft::shm
