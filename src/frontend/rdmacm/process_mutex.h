// SPDX-License-Identifier: BSD-2-Clause
// How does a forked child find the objects of the process in order?
#pragma once

#include <mutex>

namespace weft::rdmacm {

// Guards the objects that a process has once. A fork waits for it, so that a child may take it.
std::mutex& process_mutex();

}  // namespace weft::rdmacm
