// SPDX-License-Identifier: BSD-2-Clause
// What happens when a call fails: a measurement that cannot be made ends the process.
#pragma once

#include <string_view>

namespace weft::bench {

// Prints "weft_bench: WHAT: WHY" on standard error and ends the process with status 1. No
// caller could use the error: without this call there is no figure.
[[noreturn]] void die(std::string_view what, std::string_view why);

// RESULT is what a libfabric call returned; a negative one (-FI_E...) is fatal.
// In fabric_failure.cc, which a program without libfabric leaves out.
void check_fabric(long result, std::string_view what);

// RESULT is what a system call returned; -1 is fatal and explained by errno.
long check_system(long result, std::string_view what);

}  // namespace weft::bench
