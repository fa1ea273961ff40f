// SPDX-License-Identifier: BSD-2-Clause
// Does a process whose memory is locked use no more memory than it needs, in it and in shared
// files?
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "connected_peer.h"
#include "failure.h"
#include "fork_server.h"
#include "mode.h"
#include "partner.h"
#include "process.h"
#include "resources.h"
#include "shortage.h"
#include "tests.h"

namespace weft::faults {

namespace {

constexpr std::size_t kFileSystem = std::size_t{64}
                                    << 20;  // what a container has unless told otherwise
// A process and its partner have 40 to 720 KiB of shared files, and the process has some 2 MiB of
// memory, a quarter of them for the stack of each background thread.
constexpr std::size_t kMostShared = std::size_t{2} << 20;
constexpr std::size_t kMostResident = std::size_t{4} << 20;

enum class Lock { kNever, kFirst, kLast };

bool lock_memory() { return mlockall(MCL_CURRENT | MCL_FUTURE) == 0; }

std::size_t resident() {
  std::size_t pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  require(file != nullptr && std::fscanf(file, "%*u %zu", &pages) == 1, "/proc/self/statm");
  std::fclose(file);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t used_of(const std::string& directory) {
  struct statvfs now {};
  require(statvfs(directory.c_str(), &now) == 0, "statvfs");
  return (now.f_blocks - now.f_bfree) * now.f_frsize;
}

// The bytes of a process that is like the one under test, but opens nothing.
std::size_t resident_with_nothing_open(Lock lock) {
  Channel here;
  Channel there;
  Channel::make_pair(here, there);
  const Process bystander("a process that opens nothing", [&] {
    require(lock == Lock::kNever || lock_memory(), "mlockall");
    const std::size_t bytes = resident();
    there.send(&bytes, sizeof bytes);
    return kPassed;
  });
  std::size_t bytes = 0;
  require(here.receive(&bytes, sizeof bytes), "the bystander said nothing");
  bystander.require_passed();
  return bytes;
}

int live(const std::string& directory, const Mode& mode, const Channel& channel,
         const Address& partner, Lock lock) {
  name_this_process("process with locked memory");
  const Watchdog watchdog("working with locked memory", 60);
  const std::size_t before = resident_with_nothing_open(lock);
  const std::size_t shared_before = used_of(directory);
  if (lock == Lock::kFirst) require(lock_memory(), "mlockall");
  ConnectedPeer peer(mode, channel, partner);
  require_ok(peer.look_up(), "fi_getinfo");
  const int status = peer.open();
  require_ok(status, status == 0 ? "" : peer.failed_call());
  require_ok(peer.register_some(), "fi_mr_reg");
  const int error = peer.exchange(std::chrono::seconds(20));
  require(error == 0, "the exchange: " + error_text(error));
  if (lock == Lock::kLast) require(lock_memory(), "mlockall");
  const std::size_t after = resident();
  const std::size_t more = after > before ? after - before : 0;
  const std::size_t shared = used_of(directory) - shared_before;
  std::printf("%s, %s: %zu KiB more resident, %zu KiB of shared files\n", mode.name,
              lock == Lock::kNever   ? "never locked"
              : lock == Lock::kFirst ? "locked before"
                                     : "locked afterwards",
              more / 1024, shared / 1024);
  require(more <= kMostResident, std::to_string(more) + " bytes more are resident");
  require(shared <= kMostShared, std::to_string(shared) + " bytes of shared files are used");
  return kPassed;
}

void run(const std::string& directory, const Mode& mode, Lock lock) {
  Channel here;
  Channel there;
  Channel::make_pair(here, there);
  const Process partner("the partner", [&] {
    here.close();
    return live_as_partner(there, mode);
  });
  there.close();
  Address address{};
  require(here.receive(&address, sizeof address), "the partner did not start");
  const Process process("the process with locked memory",
                        [&] { return live(directory, mode, here, address, lock); });
  process.require_passed();
  const Notice over{{}, 0, true};
  here.send(&over, sizeof over);
  partner.require_passed();
}

int run(const std::string& directory) {
  load_library();
  for (const Mode& mode : kModes) {
    for (const Lock lock : {Lock::kNever, Lock::kFirst, Lock::kLast}) run(directory, mode, lock);
  }
  return kPassed;
}

}  // namespace

int run_locked_memory_test() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return skipped("a sanitizer does not lock memory");
#endif
  if (!lock_memory()) return skipped(std::string("mlockall: ") + std::strerror(errno));
  munlockall();
  const std::string directory = make_runtime_directory("locked-memory");
  std::string reason;
  auto file_system = file_system_shortage(directory, reason);
  int status = kSkipped;
  if (file_system) {
    file_system->apply(kFileSystem);
    status = run(directory);
    file_system.reset();  // unmounts
  } else {
    status = skipped(reason);
  }
  std::filesystem::remove_all(directory);
  return status;
}

}  // namespace weft::faults
