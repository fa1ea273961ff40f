// SPDX-License-Identifier: BSD-2-Clause
// Which parts of a slot have memory, and when do they get it?
//
// A slot's place in the file and in address space is large, but most senders use little of it:
// rings and the first rendezvous are backed and mapped when a sender takes the slot, the rest when
// it is first needed. Both sides do that for what they are going to touch; doing it twice costs two
// system calls and nothing else.
#pragma once

#include "base/result.h"
#include "link_shm/layout.h"
#include "os/mapping.h"
#include "os/shared_file.h"

namespace weft::shm {

// A slot, and the address space of at least the bytes of its geometry that it is mapped into
// (os::Mapping::reserve()).
struct SlotPlace {
  const std::uint32_t number;
  const os::Mapping& memory;
};

// Each of these backs a part of a slot and maps it. Errors: ENOSPC, EFBIG, those of mmap(2).
//
// The header.
Status back_header(os::SharedFile& file, const SlotPlace& slot);
// The cells and the first block of rendezvous.
Status back_basics(os::SharedFile& file, const SlotPlace& slot, const Geometry& geometry);
// The block of rendezvous that `rendezvous_id` lies in.
Status back_rendezvous_block(os::SharedFile& file, const SlotPlace& slot, const Geometry& geometry,
                             std::uint32_t rendezvous_id);
// The bulk ring.
Status back_bulk(os::SharedFile& file, const SlotPlace& slot, const Geometry& geometry);
// Gives everything but the header back; it reads as zero afterwards.
void release_slot(os::SharedFile& file, std::uint32_t slot);

}  // namespace weft::shm
