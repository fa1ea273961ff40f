// SPDX-License-Identifier: BSD-2-Clause
// Which memory does a region have that experimental verbs have allocated or mapped?
#pragma once

#include "objects.h"

namespace weft::verbs {

// Gives a region the memory that it is registered in, and says which it is on stderr, if the
// settings say so.
void give_memory(VerbsMr& region, shared_memory::RegionMemory memory);

}  // namespace weft::verbs
