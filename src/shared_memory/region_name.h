// SPDX-License-Identifier: BSD-2-Clause
// Which file does a region's id name?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/published_file.h"

namespace weft::shared_memory {

// Gives the file of a new region a name, which contains an id that no other region has, and returns
// the id. Errors: EADDRINUSE when files of others have each id that was tried; those of linkat(2).
Result<std::uint32_t> publish_region(os::PublishedFile& file, unsigned grants);

// The paths of all files with that id. Errors: those of opendir(3).
Result<std::vector<std::string>> files_of_region(std::uint32_t id);

// Removes the names of regions of this user whose creators have ended.
void sweep_regions();

// The directory of the files.
std::string region_directory();

}  // namespace weft::shared_memory
