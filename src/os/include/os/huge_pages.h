// SPDX-License-Identifier: BSD-2-Clause
// Which memory has pages of 2 MiB, and has it really?
#pragma once

#include <cstddef>

#include "base/result.h"
#include "os/mapping.h"

namespace weft::os {

// Bytes of a huge page: 2 MiB, where the others have 4 KiB.
inline constexpr std::size_t kHugePage = std::size_t{1} << 21;

// Backs a mapping of zeros, or of a file of tmpfs, by huge pages only: success says that each one
// is there, and that touching them cannot fail. The mapping begins at a multiple of kHugePage and
// is a multiple of it long. Errors: ENOMEM where the machine has too few, or this process may have
// none (PR_SET_THP_DISABLE, prctl(2)); some pages of either size may have been made then.
Status back_by_huge_pages(const Mapping& memory);

// Backs a mapping of zeros in pages of the hugetlb pool. Errors: ENOMEM where there are too few,
// and before Linux 5.14.
Status back_by_hugetlb_pages(const Mapping& memory);

}  // namespace weft::os
