// SPDX-License-Identifier: BSD-2-Clause
// Where does the command `weft` begin?
#include <cstdio>
#include <exception>

#include "command_line.h"

int main(int count, char** words) {
  try {
    return weft::tools::execute(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weft: %s\n", error.what());
    return 1;
  }
}
