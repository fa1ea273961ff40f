// SPDX-License-Identifier: BSD-2-Clause
// Which parts of a slot have memory, and when do they get it?
//
// A slot's place in the file is large, but most senders use little of it: rings and the first
// rendezvous are backed when a sender takes the slot, the rest when it is first needed. Both sides
// back what they are going to touch; doing it twice costs a system call and nothing else.
#pragma once

#include "base/result.h"
#include "link_shm/layout.h"
#include "os/mapping.h"
#include "os/shared_file.h"

namespace weft::shm {

// Backs the header. Errors: ENOSPC, EFBIG.
Status back_header(os::SharedFile& file, std::uint32_t slot);
// Maps a slot for its sender; the file becomes long enough. Errors: ENOSPC, EFBIG, those of
// mmap(2).
Result<os::Mapping> map_slot(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry);
// Backs the cells and the first block of rendezvous. Errors: ENOSPC.
Status back_basics(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry);
// Backs the block of rendezvous that `rendezvous_id` lies in. Errors: ENOSPC.
Status back_rendezvous_block(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry,
                             std::uint32_t rendezvous_id);
// Backs the bulk ring. Errors: ENOSPC.
Status back_bulk(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry);
// Gives everything but the header back; it reads as zero afterwards.
void release_slot(os::SharedFile& file, std::uint32_t slot);

}  // namespace weft::shm
