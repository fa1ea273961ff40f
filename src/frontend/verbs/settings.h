// SPDX-License-Identifier: BSD-2-Clause
// What did the user set for verbs programs?
#pragma once

#include <string>

#include "base/options.h"

namespace weft::verbs {

// What all verbs devices of a process share.
struct VerbsSettings {
  Options options;           // FI_WEFT_NAME, or else WEFT_NAME
  std::string device_names;  // WEFT_DEVICE_NAME: with %d for the number; empty: Weft's own names
};

// Reads the environment. A value that makes no sense: a line for `warn`, and the default.
VerbsSettings read_settings(const WarningSink& warn);

// Those of this process, read at the first call; warnings go to stderr.
const VerbsSettings& settings();

// The name of the device with that number: `pattern` with the number for its %d.
std::string device_name(const std::string& pattern, unsigned number);

}  // namespace weft::verbs
