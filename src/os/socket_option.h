// SPDX-License-Identifier: BSD-2-Clause
// How is an option of a socket set that is a number? (setsockopt(2))
#pragma once

#include <sys/socket.h>

namespace weft::os {

// False, and errno set, if this kernel or this socket refuses it.
inline bool set_option(int fd, int level, int name, int value) {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
}

}  // namespace weft::os
