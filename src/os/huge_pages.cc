// SPDX-License-Identifier: BSD-2-Clause
// Which memory has pages of 2 MiB, and has it really?
#include "os/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace weft::os {
namespace {

constexpr int kPopulate = 23;  // MADV_POPULATE_WRITE, _COLLAPSE: headers may be older
constexpr int kCollapse = 25;

Status none() { return Error{ENOMEM, "pages of 2 MiB are not to be had"}; }

bool advise(std::byte* base, std::size_t length, int advice) {
  return ::madvise(base, length, advice) == 0;
}

// More than that would take all other memory of the machine before it fails.
std::size_t memory_of_machine() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page_size();
}

// Pages that are being moved, or are not in a list of the kernel yet, may be collapsed later.
bool collapse(const Mapping& memory) {
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    if (advise(memory.base(), memory.length(), kCollapse)) return true;
    if (errno != EAGAIN && errno != EBUSY) return false;
  }
  return false;
}

}  // namespace

// The kernel makes a huge page out of a range that has at least one page, and fills the rest with
// zeros (Linux 6.1): so all of the range has to be there at no time in small pages.
Status back_by_huge_pages(const Mapping& memory) {
  constexpr std::size_t kSmallPage = 4096;
  if (page_size() != kSmallPage || memory.length() > memory_of_machine()) return none();
  advise(memory.base(), memory.length(), MADV_HUGEPAGE);
  for (std::size_t at = 0; at < memory.length(); at += kHugePage) {
    if (!advise(memory.base() + at, kSmallPage, kPopulate)) return none();
  }
  if (!collapse(memory)) return none();
  return {};
}

Status back_by_hugetlb_pages(const Mapping& memory) {
  if (!advise(memory.base(), memory.length(), kPopulate)) return none();
  return {};
}

}  // namespace weft::os
