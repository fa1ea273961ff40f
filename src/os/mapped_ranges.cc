// SPDX-License-Identifier: BSD-2-Clause
// Which memory of this process may be read, or written to?
#include "os/mapped_ranges.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "os/cancellation.h"

namespace weft::os {

std::vector<AddressRange> mapped_ranges(const AddressRange& within, bool readable, bool writable) {
  const CancellationOff off;
  std::vector<AddressRange> found;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             std::fclose);
  if (maps == nullptr) return found;
  char* text = nullptr;
  std::size_t room = 0;
  while (::getline(&text, &room, maps.get()) > 0) {
    AddressRange line;
    char rights[5] = "";
    if (std::sscanf(text,  // NOLINT(cert-err34-c): the kernel wrote it
                    "%" SCNx64 "-%" SCNx64 " %4s", &line.begin, &line.end, rights) != 3) {
      continue;
    }
    line = {std::max(line.begin, within.begin), std::min(line.end, within.end)};
    const bool allowed = (!readable || rights[0] == 'r') && (!writable || rights[1] == 'w');
    if (!allowed || line.begin >= line.end) continue;
    if (!found.empty() && found.back().end == line.begin) {
      found.back().end = line.end;
    } else {
      found.push_back(line);
    }
  }
  std::free(text);
  return found;
}

}  // namespace weft::os
