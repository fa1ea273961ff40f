// SPDX-License-Identifier: BSD-2-Clause
// How does a forked child find the objects of the process in order?
#include "process_mutex.h"

#include "os/thread.h"

namespace weft::rdmacm {

// Outlives every static destructor.
std::mutex& process_mutex() {
  static std::mutex* const mutex = [] {
    os::at_fork([] { process_mutex().lock(); }, [] { process_mutex().unlock(); },
                [] { process_mutex().unlock(); });
    return new std::mutex;
  }();
  return *mutex;
}

}  // namespace weft::rdmacm
