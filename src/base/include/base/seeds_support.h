// SPDX-License-Identifier: BSD-2-Clause
// Which seeds does a test of a simulation run?
#pragma once

#include <cstdint>
#include <cstdlib>

namespace weft {

// Those from `first` on, before `end`.
struct SimulatorSeeds {
  std::uint64_t first = 0;
  std::uint64_t end = 0;

  // The seeds of one of several tests with `usual` each, a third of them under AddressSanitizer,
  // unless WEFT_SIMULATOR_RUNS says otherwise, and from WEFT_SIMULATOR_SEED on, if that is set.
  static SimulatorSeeds of(unsigned part, std::uint64_t usual) {
#ifdef __SANITIZE_ADDRESS__
    usual = (usual + 2) / 3;
#endif
    const std::uint64_t runs = number_from("WEFT_SIMULATOR_RUNS", usual);
    const std::uint64_t first = number_from("WEFT_SIMULATOR_SEED", 1 + part * runs);
    return {first, first + runs};
  }

 private:
  static std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
  }
};

}  // namespace weft
