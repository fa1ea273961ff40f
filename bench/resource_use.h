// SPDX-License-Identifier: BSD-2-Clause
// How much is in use of what peers may cost: memory, descriptors, threads.
#pragma once

namespace weft::bench {

struct ResourceUse {
  double private_bytes;   // anonymous pages of this process that are resident
  double shared_bytes;    // pages of files in /dev/shm, of all processes
  double resident_bytes;  // pages of such files, and of other shared memory, resident in this one
  double descriptors;     // that this process has open
  double sockets;         // among them
  double threads;         // of this process
};

// What is in use now. Memory of the kernel, such as socket buffers, is in none of the numbers.
ResourceUse resources_in_use();

// By how much each of `count` things added to what is in use.
ResourceUse growth(const ResourceUse& before, const ResourceUse& after, double count);

}  // namespace weft::bench
