// SPDX-License-Identifier: BSD-2-Clause
// Where do the shared files of this user and network namespace lie?
#include "os/runtime_dir.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "os/directory.h"
#include "os/shared_file.h"

namespace weft::os {
namespace {

Status private_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return last_error("cannot make " + path);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return last_error(path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return Error{EACCES, path + ": must be a directory of this user with mode 0700"};
  }
  return {};
}

std::string base_directory(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const char* set = ::secure_getenv("WEFT_RUNTIME_DIR");
  if (set != nullptr && *set != '\0') return set;
  return "/dev/shm/weft-" + std::to_string(::geteuid());
}

}  // namespace

Result<std::string> runtime_directory(const std::string& base) {
  const std::string top = base_directory(base);
  if (Status made = private_directory(top); !made) return made.error();
  struct stat space {};
  if (::stat("/proc/self/ns/net", &space) != 0) return last_error("/proc/self/ns/net");
  const std::string directory = top + "/net-" + std::to_string(space.st_ino);
  if (Status made = private_directory(directory); !made) return made.error();
  return directory;
}

void sweep(const std::string& directory) {
  for (const std::string& name : names_in(directory)) {
    const std::string path = directory + "/" + name;
    if (SharedFile::abandoned(path)) SharedFile::remove_abandoned(path);
  }
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

}  // namespace weft::os
