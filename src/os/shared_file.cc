// SPDX-License-Identifier: BSD-2-Clause
// How do processes share a file whose owners the kernel vouches for?
#include "os/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "base/types.h"
#include "direct_calls.h"
#include "file_name.h"
#include "os/at_fork.h"
#include "os/cancellation.h"
#include "size_limit.h"

namespace weft::os {
namespace {

constexpr unsigned kRank = 1;

using Identity = std::pair<dev_t, ino_t>;

// Every shared file that this process has open: the kernel's locks are per process and file, so
// this has to be, too.
struct OpenFiles {
  std::mutex mutex;
  std::map<Identity, std::weak_ptr<SharedFile>> files;
  std::set<std::string> directories;  // to be removed at exit
  pid_t process = ::getpid();

  // A forked child has the parent's files, but none of its locks: it begins anew. Under the mutex.
  void forget_parent() {
    if (process == ::getpid()) return;
    process = ::getpid();
    files.clear();
    directories.clear();
  }
};

// Outlives every static destructor that closes a file.
OpenFiles& open_files() {
  static auto* const files = new OpenFiles;
  return *files;
}
AtFork at_fork(kRank, open_files().mutex);

// Programs may end without closing anything: what they shared must not stay behind.
struct Janitor {
  ~Janitor() {
    const std::lock_guard guard(open_files().mutex);
    open_files().forget_parent();
    for (auto& [identity, entry] : open_files().files) {
      if (SharedFilePtr file = entry.lock()) {
        file->unlink();
        // The last reference must not go while the mutex is held; at exit it is not needed.
        static auto* kept = new std::vector<SharedFilePtr>;
        kept->push_back(std::move(file));
      }
    }
    for (const std::string& directory : open_files().directories) ::rmdir(directory.c_str());
  }
};
const Janitor janitor;

struct flock byte_lock(short type, std::uint64_t offset) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = 1;
  return lock;
}

std::optional<pid_t> lock_holder(int fd, std::uint64_t offset) {
  struct flock lock = byte_lock(F_WRLCK, offset);
  if (::fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_pid > 0 ? lock.l_pid : 0;
}

Status check_size_limit(std::uint64_t size) {
  if (within_size_limit(size)) return {};
  return Error{EFBIG, "a shared file of " + std::to_string(size) + " bytes exceeds RLIMIT_FSIZE"};
}

Result<Fd> open_own_name(const std::string& path, struct stat& info) {
  const CancellationOff off;
  auto name = open_name(path, info);
  if (!name) return name;
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) {
    return Error{EACCES, path + ": not a regular file of this user"};
  }
  return name;
}

}  // namespace

SharedFile::SharedFile(Fd fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)), process_(::getpid()) {}

bool SharedFile::inherited() const { return process_ != ::getpid(); }

Result<SharedFilePtr> SharedFile::adopt(Fd fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return last_error(path);
  SharedFilePtr file(new SharedFile(std::move(fd), path));
  file->device_ = info.st_dev;
  file->inode_ = info.st_ino;
  open_files().files[{info.st_dev, info.st_ino}] = file;
  return file;
}

Result<SharedFilePtr> SharedFile::create(const std::string& path, std::uint64_t size) {
  const CancellationOff off;
  const std::string directory = path.substr(0, path.rfind('/'));
  Fd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) return last_error("cannot make a shared file in " + directory);
  return create_from(std::move(fd), path, size);
}

SharedFilePtr SharedFile::create_nameless() {
  SharedFilePtr file(new SharedFile(Fd(), {}));
  file->claim(0);
  return file;
}

void SharedFile::remove_directory_at_exit(const std::string& directory) {
  const std::lock_guard guard(open_files().mutex);
  open_files().forget_parent();
  open_files().directories.insert(directory);
}

Result<SharedFilePtr> SharedFile::create_from(Fd fd, const std::string& path, std::uint64_t size) {
  if (Status fits = check_size_limit(size); !fits) return fits.error();
  std::unique_lock guard(open_files().mutex);
  open_files().forget_parent();
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return last_error(path);
  Result<SharedFilePtr> file = adopt(std::move(fd), path);
  guard.unlock();
  if (file && !file.value()->claim(0)) return last_error("cannot lock " + path);
  return file;
}

bool SharedFile::lock_owner(short type) {
  struct flock lock = byte_lock(type, 0);
  return ::fcntl(fd_.get(), F_SETLK, &lock) == 0;
}

// The owners of a joint file share the lock on byte 0, which keeps it from being abandoned. False
// while another process removes the file, and when it has been removed.
bool SharedFile::join_owners() {
  const std::lock_guard guard(mutex_);
  if (joint_) return true;
  if (!lock_owner(F_RDLCK)) return false;
  claims_.insert(0);
  joint_ = linked_ = has_its_name();
  return joint_;
}

Result<SharedFilePtr> SharedFile::join(const std::string& path, std::uint64_t size) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    Result<SharedFilePtr> file = open(path);
    if (!file && file.error().code == ENOENT) {
      file = create(path, size);
      const Status linked = file ? file.value()->link_into_place() : Status{};
      if (!linked && linked.error().code == EEXIST) continue;  // another process was faster
      if (!linked) return linked.error();
    }
    if (!file) return file;
    if (file.value()->join_owners()) return file;
    nap(std::chrono::milliseconds(1));
  }
  return Error{EBUSY, path + ": another process holds it"};
}

Result<SharedFilePtr> SharedFile::open(const std::string& path) {
  const CancellationOff off;
  struct stat info {};
  std::unique_lock guard(open_files().mutex);
  open_files().forget_parent();
  Result<Fd> name = open_own_name(path, info);
  if (!name) return name.error();
  for (;;) {
    const auto known = open_files().files.find({info.st_dev, info.st_ino});
    if (known == open_files().files.end()) break;
    if (SharedFilePtr file = known->second.lock()) return file;
    // Another thread is closing it; its close would drop the locks of a second descriptor.
    guard.unlock();
    std::this_thread::yield();
    guard.lock();
  }
  Fd fd(::open(descriptor_path(name.value().get()).c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return last_error(path);
  return adopt(std::move(fd), path);
}

SharedFile::~SharedFile() {
  if (inherited()) {
    // Closing it would drop the locks that this child itself may have on the same file.
    fd_.forget();
    return;
  }
  unlink();
  if (!fd_.valid()) return;
  const std::lock_guard guard(open_files().mutex);
  fd_.reset();
  open_files().files.erase({device_, inode_});
}

Status SharedFile::link_into_place() {
  if (::linkat(AT_FDCWD, descriptor_path(fd_.get()).c_str(), AT_FDCWD, path_.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
    return last_error("cannot name the shared file " + path_);
  }
  linked_ = true;
  return {};
}

Status SharedFile::publish() {
  // Another process may be removing the same abandoned file, and owns it for that moment.
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    Status linked = link_into_place();
    if (linked || linked.error().code != EEXIST) return linked;
    if (!remove_abandoned(path_)) nap(std::chrono::milliseconds(5));
  }
  return Error{EADDRINUSE, path_ + ": a living process has this name"};
}

void SharedFile::unlink() {
  if (!linked_ || inherited()) return;
  linked_ = false;
  if (!joint_) {
    ::unlink(path_.c_str());
  } else if (lock_owner(F_WRLCK)) {  // no other process owns it
    remove_if_same();
  }
}

Status SharedFile::reserve(std::uint64_t offset, std::uint64_t length) {
  if (!fd_.valid()) return {};
  const CancellationOff off;
  if (Status fits = check_size_limit(offset + length); !fits) return fits;
  int result = 0;
  do {
    result = ::fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(length));
  } while (result != 0 && errno == EINTR);
  if (result != 0) return last_error("no shared memory left for " + path_);
  return {};
}

void SharedFile::release(std::uint64_t offset, std::uint64_t length) {
  const CancellationOff off;
  ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(length));
}

bool SharedFile::copy_out(std::uint64_t offset, void* to, std::size_t length) const {
  const ssize_t done = direct::pread(fd_.get(), to, length, static_cast<off_t>(offset));
  return done >= 0 && static_cast<std::size_t>(done) == length;
}

bool SharedFile::copy_in(std::uint64_t offset, const void* from, std::size_t length) const {
  if (!check_size_limit(offset + length)) return false;
  const ssize_t done = direct::pwrite(fd_.get(), from, length, static_cast<off_t>(offset));
  return done >= 0 && static_cast<std::size_t>(done) == length;
}

Status SharedFile::check_end(std::uint64_t end) const {
  if (!fd_.valid()) return {};
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) return last_error(path_);
  if (end <= static_cast<std::uint64_t>(info.st_size)) return {};
  return Error{EINVAL, path_ + ": ends before byte " + std::to_string(end)};
}

Result<Mapping> SharedFile::map(std::uint64_t offset, std::size_t length) const {
  if (Status ok = check_end(offset + length); !ok) return ok.error();
  return Mapping::map(fd_.get(), offset, length);
}

Status SharedFile::map_into(const Mapping& reserved, std::size_t at, std::uint64_t offset,
                            std::size_t length) const {
  if (Status ok = check_end(offset + length); !ok) return ok;
  const std::size_t page = page_size();
  const std::size_t before = offset % page;
  return reserved.fill(at - before, fd_.get(), offset - before, align_up(before + length, page));
}

bool SharedFile::claim(std::uint64_t offset) {
  if (inherited()) return false;
  const std::lock_guard guard(mutex_);
  if (claims_.contains(offset)) return false;
  struct flock lock = byte_lock(F_WRLCK, offset);
  if (fd_.valid() && ::fcntl(fd_.get(), F_SETLK, &lock) != 0) return false;
  claims_.insert(offset);
  return true;
}

void SharedFile::disclaim(std::uint64_t offset) {
  if (inherited()) return;
  const std::lock_guard guard(mutex_);
  if (claims_.erase(offset) == 0) return;
  struct flock lock = byte_lock(F_UNLCK, offset);
  ::fcntl(fd_.get(), F_SETLK, &lock);
}

std::optional<pid_t> SharedFile::holder(std::uint64_t offset) const {
  const std::lock_guard guard(mutex_);
  if (claims_.contains(offset) && !inherited()) return process_;
  return lock_holder(fd_.get(), offset);
}

bool SharedFile::has_its_name() const {
  struct stat now {};
  return ::stat(path_.c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
}

bool SharedFile::abandoned(const std::string& path) {
  Result<SharedFilePtr> file = open(path);
  return file && !file.value()->holder(0);
}

// Owning the corpse first makes sure that only one process removes it, and that the name still
// means this file and not a fresh one.
bool SharedFile::remove_if_same() {
  struct stat now {};
  if (::stat(path_.c_str(), &now) != 0) return errno == ENOENT;
  return has_its_name() && ::unlink(path_.c_str()) == 0;
}

bool SharedFile::remove_abandoned(const std::string& path) {
  Result<SharedFilePtr> file = open(path);
  if (!file) return file.error().code == ENOENT;
  if (file.value()->holder(0) || !file.value()->claim(0)) return false;
  const bool removed = file.value()->remove_if_same();
  file.value()->disclaim(0);
  return removed;
}

}  // namespace weft::os
