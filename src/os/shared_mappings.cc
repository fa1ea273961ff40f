// SPDX-License-Identifier: BSD-2-Clause
// Which memory of a process do other processes have, too?
#include "os/shared_mappings.h"

#include <sys/sysmacros.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "os/cancellation.h"

namespace weft::os {
namespace {

struct Line {
  SharedMapping mapping;
  bool shared = false;
};

// A line of /proc/PID/maps (proc(5)).
std::optional<Line> parse(const char* text) {
  Line line;
  SharedMapping& found = line.mapping;
  char rights[5] = "";
  unsigned int major = 0;
  unsigned int minor = 0;
  if (std::sscanf(text,  // NOLINT(cert-err34-c): the kernel wrote it
                  "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &found.begin,
                  &found.end, rights, &found.offset, &major, &minor, &found.object.inode) != 7) {
    return std::nullopt;
  }
  found.object.device = makedev(major, minor);
  line.shared = rights[3] == 's';
  return line;
}

}  // namespace

std::vector<SharedMapping> shared_mappings(pid_t process, std::uint64_t address,
                                           std::uint64_t length) {
  const CancellationOff off;
  std::vector<SharedMapping> found;
  const std::string path = "/proc/" + std::to_string(process) + "/maps";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  if (maps == nullptr) return found;
  char* text = nullptr;
  std::size_t room = 0;
  const std::uint64_t last = address + (length - 1);
  while (::getline(&text, &room, maps.get()) > 0) {
    const auto line = parse(text);
    if (!line || line->mapping.end <= address) continue;
    if (line->mapping.begin > last) break;
    if (line->shared) found.push_back(line->mapping);
  }
  std::free(text);
  return found;
}

}  // namespace weft::os
