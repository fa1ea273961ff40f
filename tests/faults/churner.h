// SPDX-License-Identifier: BSD-2-Clause
// Does closing a region return, and is its memory untouched from then on, whatever the peers were
// doing?
#pragma once

#include <chrono>
#include <memory>
#include <random>

#include "node.h"

namespace weft::faults {

// Registers and closes one region again and again while a peer writes to it. After each fi_close it
// fills the memory with a mark, and before the next registration requires the mark to be whole.
class Churner {
 public:
  Churner(Node& node, std::uint64_t key, std::uint64_t seed);

  // Registers or closes if it is time to.
  void step();
  // Closes for good and checks the memory a last time.
  void finish();

 private:
  void open();
  void close();
  void require_untouched() const;

  Node& node_;
  std::uint64_t key_;
  std::mt19937_64 random_;
  std::unique_ptr<std::uint8_t[]> memory_;
  Owned<fid_mr> region_;
  bool marked_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace weft::faults
