// SPDX-License-Identifier: BSD-2-Clause
// How do the programs of these tests hear what the script wants?
#pragma once

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>

namespace weft::hosts {

// Lines of the standard input, without waiting for them.
class Commands {
 public:
  // Hands each to peer.command(). False at the end of the input.
  template <class Peer>
  bool read(Peer& peer) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (::poll(&input, 1, 0) > 0) {
      std::array<char, 256> bytes;
      const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      if (count <= 0) return false;
      text_.append(bytes.data(), static_cast<std::size_t>(count));
    }
    for (std::size_t end = 0; (end = text_.find('\n')) != std::string::npos;) {
      peer.command(text_.substr(0, end));
      text_.erase(0, end + 1);
    }
    return true;
  }

 private:
  std::string text_;
};

}  // namespace weft::hosts
