// SPDX-License-Identifier: BSD-2-Clause
// Which mappings does a process have, by the text of the kernel?
#include "memory_map.h"

#include <sys/sysmacros.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "os/cancellation.h"
#include "os/fd.h"

namespace weft::os {
namespace {

std::optional<MappingLine> parse(const char* text) {
  MappingLine line;
  char rights[5] = "";
  unsigned int major = 0;
  unsigned int minor = 0;
  if (std::sscanf(text,  // NOLINT(cert-err34-c): the kernel wrote it
                  "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &line.begin, &line.end,
                  rights, &line.offset, &major, &minor, &line.object.inode) != 7) {
    return std::nullopt;
  }
  line.object.device = makedev(major, minor);
  line.readable = rights[0] == 'r';
  line.writable = rights[1] == 'w';
  line.shared = rights[3] == 's';
  return line;
}

}  // namespace

Status visit_mappings(pid_t process, std::uint64_t first, std::uint64_t last,
                      const std::function<void(const MappingLine&)>& visit) {
  const CancellationOff off;
  const std::string path = "/proc/" + std::to_string(process) + "/maps";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  if (maps == nullptr) return last_error(path);
  char* text = nullptr;
  std::size_t room = 0;
  while (::getline(&text, &room, maps.get()) > 0) {
    const auto line = parse(text);
    if (!line || line->end <= first) continue;
    if (line->begin > last) break;
    visit(*line);
  }
  std::free(text);
  return {};
}

}  // namespace weft::os
