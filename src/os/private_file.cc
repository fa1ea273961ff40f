// SPDX-License-Identifier: BSD-2-Clause
// How does a process write a file that is its own, whatever others and the disk do?
#include "os/private_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "direct_calls.h"
#include "os/cancellation.h"
#include "size_limit.h"

namespace weft::os {
namespace {

Status check(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return last_error(path);
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || info.st_nlink > 1) {
    return Error{EACCES, path + ": not a regular file of this user, with no other name"};
  }
  return {};
}

}  // namespace

// Not blocking: a FIFO may have no process at its other end. Emptied only once it is known to
// be this process's.
Result<PrivateFile> PrivateFile::create(const std::string& path) {
  const CancellationOff off;
  PrivateFile file;
  file.path_ = path;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  file.fd_.reset(::open(path.c_str(), kFlags, 0600));
  if (!file.fd_.valid()) return last_error(path);
  const int fd = file.fd_.get();
  if (Status ok = check(fd, path); !ok) return ok.error();
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Error{EBUSY, path + ": another process writes it"};
    return last_error(path);
  }
  if (::fchmod(fd, 0600) != 0 || ::ftruncate(fd, 0) != 0) return last_error(path);
  return file;
}

Status PrivateFile::append(std::span<const std::byte> bytes) {
  if (!within_size_limit(size_ + bytes.size())) {
    return Error{EFBIG, path_ + ": RLIMIT_FSIZE allows no more bytes"};
  }
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = direct::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done,
                                           static_cast<off_t>(size_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const Error error = last_error(path_);
      [[maybe_unused]] const int cut = ::ftruncate(fd_.get(), static_cast<off_t>(size_));
      return error;
    }
    done += static_cast<std::size_t>(written);
  }
  size_ += done;
  return {};
}

}  // namespace weft::os
