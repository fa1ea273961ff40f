// SPDX-License-Identifier: BSD-2-Clause
// How does a process learn whether something exists in another process of its network namespace?
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"

namespace weft::os {

// A name that every process of this network namespace can look up, whatever user it runs as, until
// its owner closes it or ends: an abstract address of unix(7). Nothing can be sent there. It proves
// that some process of this host has claimed it, and not which user that process belongs to.
class LocalName {
 public:
  static constexpr std::size_t kLongest = 100;  // bytes

  LocalName() = default;
  // Errors: EADDRINUSE when the name is claimed already, EINVAL when it is empty or too long,
  // EMFILE and others of socket(2) and bind(2).
  static Result<LocalName> claim(std::string_view name);

 private:
  Fd socket_;
};

// Looks names up, by one system call each. One thread at a time.
class LocalNames {
 public:
  // False, too, when there is no descriptor to look it up with (EMFILE): the next call tries again.
  bool has(std::string_view name);
  // Whether the last call had a descriptor: otherwise it has found out nothing.
  bool could_look() const { return socket_.valid(); }

 private:
  Fd socket_;
};

}  // namespace weft::os
