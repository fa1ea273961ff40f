// SPDX-License-Identifier: BSD-2-Clause
// What does `weft info` print?
#include "info.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/options.h"
#include "base/path_mtu.h"
#include "device/offered_devices.h"
#include "layout.h"
#include "os/process_memory.h"
#include "os/runtime_dir.h"
#include "os/udp_port.h"
#include "verbs/gid_table.h"
#include "verbs/limits.h"

namespace weft::tools {
namespace {

constexpr std::array<std::string_view, 2> kPrefixes = {"FI_WEFT_", "WEFT_"};

void print_libraries() {
  const auto libraries = own_libraries();
  if (libraries) {
    fmt::print("libibverbs.so.1  in {0}\nlibrdmacm.so.1   in {0}\nlibweft-fi.so    in {1}\n",
               libraries.value().verbs, libraries.value().fabric);
  } else {
    fmt::print("libraries        {}\n", libraries.error().message);
  }
}

void print_device(const device::OfferedDevice& device) {
  const std::size_t payload = path_mtu(device.interface.mtu);
  fmt::print("\n{}: interface {}, MTU {}, path MTU {}\n", device.name, device.interface.name,
             device.interface.mtu, payload > 0 ? std::to_string(payload) : "none: too short");
  const verbs::GidTable table(device.interface);
  for (std::size_t i = 0; i < table.size(); ++i) {
    fmt::print("  GID {}  {}{}\n", i, table.find(i)->address.host(),
               i < table.distinct() ? "" : "  (GID 0 again)");
  }
}

void print_limits() {
  using verbs::Limits;
  fmt::print(
      "\nlimits of a device: {} queue pairs, {} completion queues, {} regions\n"
      "  a queue: {} work requests, {} segments each, {} bytes inline\n"
      "  a completion queue: {} entries; a queue pair: {} outstanding reads and atomics\n",
      Limits::kQps, Limits::kCqs, Limits::kMrs, Limits::kWorkRequests, Limits::kSges,
      Limits::kInlineBytes, Limits::kCqes, Limits::kReadsAndAtomics);
}

// Why this process could not reach another one's memory, or "".
std::string why_no_memory_access() {
  if (const char* const why = os::why_no_process_memory()) return why;
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (scope > 1) return fmt::format("kernel.yama.ptrace_scope is {}", scope);
  return "";
}

void print_environment_allows(const Options& options) {
  fmt::print("\nthis environment\n");
  const std::string memory = why_no_memory_access();
  fmt::print("  memory of other processes  {}\n", memory.empty() ? "reachable" : memory);
  const auto directory = os::RuntimeDirectory::open(options.runtime_dir);
  const std::string problem =
      directory ? directory.value().problem().message : directory.error().message;
  fmt::print("  directory of shared files  {}\n",
             problem.empty() ? directory.value().path() : problem);
  const auto port = os::UdpPort::bind(
      os::SocketAddress::of_host(AF_INET, std::array<std::uint8_t, 4>{127, 0, 0, 1}.data(), 0));
  fmt::print("  UDP sockets                {}\n", port ? "allowed" : port.error().message);
  const std::string why = !options.links.shm ? "FI_WEFT_LINKS says so"
                          : memory.empty()   ? problem
                                             : memory;
  fmt::print("  peers of this host are reached {}\n",
             why.empty() ? "through shared memory" : "by packets: " + why);
  fmt::print("  no memory is locked: RLIMIT_MEMLOCK does not matter\n");
}

}  // namespace

int print_info() {
  fmt::print("weft {}\n", WEFT_VERSION);
  print_libraries();
  const Options options = Options::from_environment(
      kPrefixes, [](const std::string& line) { fmt::print(stderr, "weft: {}\n", line); });
  const auto devices = device::offered_devices(options.interface);
  if (!devices) {
    fmt::print(stderr, "weft: {}\n", devices.error().message);
    return 1;
  }
  if (devices.value().empty()) fmt::print("\nno usable network interface\n");
  for (const device::OfferedDevice& each : devices.value()) print_device(each);
  print_limits();
  print_environment_allows(options);
  return 0;
}

}  // namespace weft::tools
