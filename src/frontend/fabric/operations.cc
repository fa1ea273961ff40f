// SPDX-License-Identifier: BSD-2-Clause
// By which tables does libfabric call the objects of this process, and those of its parent?
#include "operations.h"

#include <utility>

namespace weft::fabric {

constinit TableOfProcess* TableOfProcess::first = nullptr;

os::AtFork TableOfProcess::at_fork(7, [] {
  for (TableOfProcess* table = first; table != nullptr; table = table->next_) table->begin_anew();
});

TableOfProcess::TableOfProcess() : next_(std::exchange(first, this)) {}

}  // namespace weft::fabric
