// SPDX-License-Identifier: BSD-2-Clause
// Which file does a descriptor of the program stand for?
#include "os/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "os/fd.h"

namespace weft::os {

Result<FileIdentity> identify_file(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return last_error("fstat");
  return FileIdentity{file.st_dev, file.st_ino};
}

bool asks_to_create(int open_flags) { return (open_flags & O_CREAT) != 0; }

bool asks_for_new(int open_flags) { return (open_flags & O_EXCL) != 0; }

}  // namespace weft::os
