// SPDX-License-Identifier: BSD-2-Clause
// Which things of the system can be made short, by how much, and given back?
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace weft::faults {

// Something that the process under test may get only so much more of.
class Shortage {
 public:
  virtual ~Shortage() = default;
  // Amounts to try, from nothing to plenty.
  virtual std::span<const std::size_t> amounts() const = 0;
  // Whether others lack it, too: then they may give up first.
  virtual bool shared() const { return false; }
  // Whether it is of files alone: then the network serves in their place, if it may.
  virtual bool of_files() const { return false; }
  // From now on this process may take `amount` more than it has now.
  virtual void apply(std::size_t amount) = 0;
  // No limit any more.
  virtual void lift() = 0;
};

std::unique_ptr<Shortage> descriptor_shortage();     // RLIMIT_NOFILE, in descriptors
std::unique_ptr<Shortage> address_space_shortage();  // RLIMIT_AS, in bytes
std::unique_ptr<Shortage> file_size_shortage();      // RLIMIT_FSIZE, in bytes
// Mounts a file system of its own on `directory`, in a mount namespace of this process (and a user
// namespace, where it is not root). Null where this machine does not allow it; `reason` then says
// why.
std::unique_ptr<Shortage> file_system_shortage(const std::string& directory, std::string& reason);

}  // namespace weft::faults
