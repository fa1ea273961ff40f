// SPDX-License-Identifier: BSD-2-Clause
// How does a module tell the user of something to be changed outside of the program?
#pragma once

#include <string>

namespace weft {

// Where warnings go: a front end sets it; null drops them. Several front ends in a process: the
// last one that sets it. Any thread; `sink` may be called by any thread, by several at a time, and
// by one that warns at this moment once more after it has been replaced.
void set_warning_sink(void (*sink)(const std::string& line));
// One line of text, without a line break. Seldom: the caller sees to that.
void warn(const std::string& line);

}  // namespace weft
