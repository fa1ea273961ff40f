// SPDX-License-Identifier: BSD-2-Clause
// By which number do all processes know a page of memory?
#include "memory/page_numbers.h"

#include <algorithm>

#include "os/shared_mappings.h"

namespace weft::memory {
namespace {

std::uint64_t object_number(const os::FileIdentity& object) {
  const std::uint64_t mixed = (object.inode ^ object.device << 40) * 0x9e3779b97f4a7c15;
  return mixed ^ mixed >> 32;
}

std::uint32_t known_shift(std::uint64_t shift) {
  return static_cast<std::uint32_t>(shift & (kShiftOfEachPage - 1)) | kShiftKnown;
}

}  // namespace

std::uint32_t page_shift(pid_t process, std::uint64_t address, std::uint64_t length,
                         std::uint32_t private_shift) {
  std::uint64_t is_private = length;
  std::uint32_t shift = 0;
  for (const os::SharedMapping& mapping : os::shared_mappings(process, address, length)) {
    const std::uint32_t here = known_shift(object_number(mapping.object) +
                                           (mapping.offset - mapping.begin) / kNumberedPage);
    if (shift != 0 && shift != here) return kShiftKnown | kShiftOfEachPage;
    shift = here;
    is_private -= std::min(mapping.end, address + length) - std::max(mapping.begin, address);
  }
  if (shift == 0) return known_shift(private_shift);
  return is_private == 0 ? shift : kShiftKnown | kShiftOfEachPage;
}

}  // namespace weft::memory
