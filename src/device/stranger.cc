// SPDX-License-Identifier: BSD-2-Clause
// How is an engine driven by whoever is not let in by its domain's threading model?
#include "device/stranger.h"

#include "os/barrier.h"

namespace weft::device {
namespace {

class Visit {
 public:
  explicit Visit(Gate& gate) : gate_(gate) {
    gate_.close();
    os::process_barrier();
    gate_.await_empty();
  }
  ~Visit() { gate_.open(); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Gate& gate_;
};

}  // namespace

void Stranger::progress() {
  const Visit visit(gate_);
  engine_.progress();
}

bool Stranger::fall_asleep() {
  const Visit visit(gate_);
  return engine_.fall_asleep();
}

void Stranger::wake_up() {
  const Visit visit(gate_);
  engine_.wake_up();
}

}  // namespace weft::device
