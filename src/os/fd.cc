// SPDX-License-Identifier: BSD-2-Clause
// Which object closes a file descriptor? The Fd that owns it.
#include "os/fd.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/cancellation.h"

namespace weft::os {

void Fd::reset(int fd) {
  if (fd_ >= 0) {
    const CancellationOff off;
    ::close(fd_);
  }
  fd_ = fd;
}

bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

bool lacks_room(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

Error last_error(std::string_view what) {
  const int code = errno;
  char text[128];
  return {code, std::string(what) + ": " + strerror_r(code, text, sizeof text)};
}

}  // namespace weft::os
