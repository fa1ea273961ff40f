// SPDX-License-Identifier: BSD-2-Clause
// What did the user set for verbs programs?
#pragma once

#include <string>

#include "base/options.h"
#include "base/refusal_log.h"

namespace weft::verbs {

// The settings of all verbs devices of a process.
struct VerbsSettings {
  Options options;           // FI_WEFT_NAME, or else WEFT_NAME
  std::string device_names;  // WEFT_DEVICE_NAME: with %d for the number; empty: Weft's own names
  bool logs =
      false;  // WEFT_LOG: sentences go to stderr, about refused accesses and allocated memory
};

// Writes a line on stderr.
void print(const std::string& line);

// Reads the environment. A value that makes no sense: a line for `warn`, and the default.
VerbsSettings read_settings(const WarningSink& warn);

// Those of this process, read at the first call; warnings go to stderr.
const VerbsSettings& settings();

// Where the queue pairs of this process explain refused accesses: to stderr, if the settings say
// so.
RefusalLog& refusal_log();

// The name of the device with that number: `pattern` with the number for its %d.
std::string device_name(const std::string& pattern, unsigned number);

}  // namespace weft::verbs
