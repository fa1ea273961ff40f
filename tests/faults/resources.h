// SPDX-License-Identifier: BSD-2-Clause
// What does this process hold of the system, and what lies in the runtime directory?
#pragma once

#include <cstddef>
#include <string>

namespace weft::faults {

struct Resources {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t mappings = 0;  // of files of the runtime directory, deleted ones too
};

// A directory of its own below /dev/shm, named in $WEFT_RUNTIME_DIR; made empty. `name` tells tests
// apart.
std::string make_runtime_directory(const std::string& name);

Resources held_by_this_process(const std::string& runtime_directory);
// Each descriptor and what it refers to, one per line.
std::string descriptors_of_this_process();
std::string describe(const Resources& resources);

// Files below the directory, at any depth; their names, one per line, in `names` if given.
std::size_t files_below(const std::string& directory, std::string* names = nullptr);

}  // namespace weft::faults
