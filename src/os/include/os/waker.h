// SPDX-License-Identifier: BSD-2-Clause
// How does a process wake another that sleeps in poll(2)?
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/result.h"
#include "os/fd.h"

namespace weft::os {

// Bytes that name a bell: a kernel-chosen abstract unix address of up to 8 bytes, padded with
// zeros, and a random token of 8 bytes, without which a ring is not heard.
using WakerName = std::array<char, 16>;

// A descriptor that becomes readable when a process of the same network namespace rings it that has
// read its name. It has no name in any file system, so nothing is left of it when its process dies.
class Waker {
 public:
  // Errors: EMFILE, ENFILE, ENOMEM of socket(2) and bind(2).
  static Result<Waker> create();

  // Readable after a ring until silence() is called.
  int fd() const { return socket_.get(); }
  // How others call it.
  const WakerName& name() const { return name_; }
  // Takes all rings, at most 64; the descriptor is not readable any more, unless rings come faster.
  void silence();
  // Wakes the owner of the bell `name`, which a peer wrote: anything is safe. Never blocks.
  void ring(std::span<const char> name) const;

 private:
  Fd socket_;
  WakerName name_{};
};

}  // namespace weft::os
