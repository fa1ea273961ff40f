// SPDX-License-Identifier: BSD-2-Clause
// How does a process get memory for a region, and how do other processes get the same memory?
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "os/mapping.h"
#include "os/published_file.h"

namespace weft::shared_memory {

// Which allocators may serve a wish (MLX_MR_ALLOC_TYPE): all, with base pages where there is
// nothing better; private anonymous memory only; contiguous blocks only.
enum class AllocationType { kAll, kAnonymous, kContiguous };

// Blocks are 2^order bytes large, with orders from 12 to 23.
struct AllocatorSettings {
  AllocationType type = AllocationType::kAll;
  unsigned max_order = 23;
  unsigned min_order = 12;  // not above max_order
};

// Pages behind memory: of the base size; of 2 MiB, which the kernel may divide again when memory
// runs short; of 2 MiB from the hugetlb pool, which a forked child has in common with its parent.
enum class Backing { kBasePages, kTransparentHugePages, kHugetlbPages };

// The pages of a region, and the order of the blocks that are contiguous in physical memory.
struct Obtained {
  Backing backing = Backing::kBasePages;
  unsigned block_order = 12;
};

// Memory of one region in this process, as a mapping of whole blocks. At its end it is unmapped,
// and its creator withdraws its id: no process attaches it any more, those that have keep the
// pages. In a forked child the end of a copy does nothing but unmap. A creator that shares it holds
// a descriptor meanwhile. One thread at a time.
class RegionMemory {
 public:
  struct Parts {
    os::Mapping memory{};
    std::unique_ptr<os::PublishedFile> file{};  // nullptr: nothing to withdraw
    std::size_t length = 0;
    Obtained obtained{};
    bool writable = true;
    std::uint32_t id = 0;
  };
  // For allocate() and attach().
  explicit RegionMemory(Parts parts) : parts_(std::move(parts)) {}
  RegionMemory(RegionMemory&&) = default;
  RegionMemory& operator=(RegionMemory&&) = default;

  std::byte* base() const { return parts_.memory.base(); }
  // Bytes, as its creator asked for; the mapping may be longer.
  std::size_t length() const { return parts_.length; }
  std::size_t mapped() const { return parts_.memory.length(); }
  Obtained obtained() const { return parts_.obtained; }
  // False: the processor refuses writes of this process.
  bool writable() const { return parts_.writable; }
  // Names it to other processes; 0 in one that has attached it, and where it is not shared.
  std::uint32_t id() const { return parts_.id; }

 private:
  Parts parts_;
};

struct Wish {
  std::size_t length = 0;
  AllocatorSettings settings{};
  void* at = nullptr;   // exactly there
  unsigned grants = 0;  // mode bits of 0666: which processes may attach it; 0: it is not shared
};

// Allocates zeros. A block has order 21 where that is not above max_order and the length is as
// large, or where min_order asks for more than a base page, and the machine gives them; else 12.
// Any thread. Errors: EINVAL for length 0; with grants for a length that is not whole pages, and
// for kAnonymous; when `at` is not free or no multiple of the page size. ENOMEM when contiguous
// blocks that are wanted are not to be had. ENOSPC when /dev/shm has no room, EFBIG under
// RLIMIT_FSIZE, others of open(2), fallocate(2) and mmap(2). Nothing is left behind then.
Result<RegionMemory> allocate(const Wish& wish);

struct AttachWish {
  std::uint32_t id = 0;
  bool writable = false;
  void* hint = nullptr;  // there, if it is a free page
};

// Maps the whole memory that a living process, or this one, shares by that id. Any thread. Errors:
// ENOENT when no living process does; EACCES when this process is not granted to read, or to read
// and write; EINVAL when several files have that id, or its file is not one that allocate() makes;
// others of open(2) and mmap(2).
Result<RegionMemory> attach(const AttachWish& wish);

}  // namespace weft::shared_memory
