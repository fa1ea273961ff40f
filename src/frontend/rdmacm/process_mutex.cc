// SPDX-License-Identifier: BSD-2-Clause
// How does a forked child find the objects of the process in order?
#include "process_mutex.h"

#include "os/at_fork.h"

namespace weft::rdmacm {
namespace {

// Outlives every static destructor.
constinit std::mutex mutex;

os::AtFork at_fork(9, mutex);

}  // namespace

std::mutex& process_mutex() { return mutex; }

}  // namespace weft::rdmacm
