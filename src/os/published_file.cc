// SPDX-License-Identifier: BSD-2-Clause
// How does a process publish memory under a name while it lives, and how do others map it?
#include "os/published_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/types.h"
#include "file_name.h"
#include "os/at_fork.h"
#include "os/cancellation.h"
#include "os/directory.h"
#include "os/huge_pages.h"
#include "os/runtime_dir.h"
#include "size_limit.h"

namespace weft::os {
namespace {

constexpr unsigned kPublishedRank = 1;
constexpr std::size_t kMostSwept = 256;

struct OwnFile {
  PublishedFile* file = nullptr;
  std::string path;  // empty: it has no name

  void unlink() {
    if (!path.empty() && !file->inherited()) ::unlink(path.c_str());
    path.clear();
  }
};

// The files that this process has created, and in a child those of its parent: no other file gets
// the identity of one while its descriptor is open.
struct OwnFiles {
  std::mutex mutex;
  std::map<FileIdentity, OwnFile> files;

  // Under the mutex; nullptr for a file of another process.
  PublishedFile* find(const FileIdentity& identity) {
    const auto found = files.find(identity);
    if (found == files.end() || found->second.file->inherited()) return nullptr;
    return found->second.file;
  }
};

// Outlives every static destructor that ends a file.
OwnFiles& own_files() {
  static auto* const files = new OwnFiles;
  return *files;
}
AtFork published_at_fork(kPublishedRank, own_files().mutex);

// Programs may end without closing anything: their names must not stay.
struct NameJanitor {
  ~NameJanitor() {
    const std::lock_guard guard(own_files().mutex);
    for (auto& [identity, own] : own_files().files) own.unlink();
  }
};
const NameJanitor name_janitor;

FileIdentity identity_of(const struct stat& info) { return {info.st_dev, info.st_ino}; }

struct flock lock_of(short type, std::uint64_t length) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = static_cast<off_t>(length);
  return lock;
}

// Bytes that the living creator of the file has locked from the first one on (0: all); nothing
// without one. A lock for reading is not seen: a process without a write grant may have one.
std::optional<std::uint64_t> locked_bytes(int fd) {
  struct flock lock = lock_of(F_RDLCK, 1);
  if (::fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return static_cast<std::uint64_t>(lock.l_len);
}

Result<Fd> open_regular(const std::string& path, struct stat& info) {
  auto name = open_name(path, info);
  if (!name) return name;
  if (!S_ISREG(info.st_mode)) return Error{EINVAL, path + ": not a regular file"};
  return name;
}

// The file behind a name. It may be leased (fcntl(2), F_SETLEASE): that is not waited for.
Fd open_named(int name, int access) {
  const int flags = access | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  return Fd(::open(descriptor_path(name).c_str(), flags));
}

// Where the owner of the file has no right, this process, which is the owner's, takes one for a
// moment: it may do that at any time. Another process may be doing the same.
Fd open_as_owner(int name, mode_t mode) {
  for (const int access : {O_RDONLY, O_WRONLY}) {
    if (Fd file = open_named(name, access); file.valid()) return file;
  }
  const std::string path = descriptor_path(name);
  const mode_t grants = mode & (S_IRWXG | S_IRWXO);
  if (errno != EACCES || ::chmod(path.c_str(), grants | S_IRUSR) != 0) return {};
  Fd file = open_named(name, O_RDONLY);
  ::chmod(path.c_str(), grants);
  return file;
}

// The file of a region of huge pages is a multiple of kHugePage long, and no other one is: there a
// page without memory follows.
std::uint64_t file_size(std::uint64_t length, bool huge_pages) {
  if (huge_pages) return align_up(length, kHugePage);
  return length % kHugePage == 0 ? length + page_size() : length;
}

Result<PublishedMemory> map_file(int fd, std::uint64_t length, bool writable, void* hint) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return last_error("fstat");
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (length == 0 || length % page_size() != 0 || length > size)
    return Error{EINVAL, "a file of " + std::to_string(size) + " bytes, and not of as many whole " +
                             "pages as its creator has locked: " + std::to_string(length)};
  const bool huge_pages = size % kHugePage == 0;
  const std::size_t block = huge_pages ? kHugePage : page_size();
  const Placement how{.fd = fd, .writable = writable, .at = hint, .alignment = block};
  auto memory = Mapping::place(align_up(length, block), how);
  if (!memory) return memory.error();
  return PublishedMemory{std::move(memory).value(), length, huge_pages};
}

// Huge pages are collapsed one by one: a file that cannot fit would fill the file system first.
Status check_room(int fd, std::uint64_t length) {
  struct statvfs now {};
  if (::fstatvfs(fd, &now) != 0 || now.f_blocks == 0) return {};  // without a limit
  if (length <= std::uint64_t{now.f_bavail} * now.f_frsize) return {};
  return Error{ENOSPC, "no shared memory left for " + std::to_string(length) + " bytes"};
}

Status reserve(int fd, std::uint64_t length) {
  std::uint64_t step = length;
  for (std::uint64_t done = 0; done < length;) {
    step = std::min(step, length - done);
    if (::fallocate(fd, 0, static_cast<off_t>(done), static_cast<off_t>(step)) == 0) {
      done += step;
    } else if (errno != EINTR) {
      return last_error("no shared memory left for " + std::to_string(length) + " bytes");
    } else {
      // The kernel gives back what it has when a signal comes, which a timer may send again.
      step = std::max<std::uint64_t>(step / 2, page_size());
    }
  }
  return {};
}

void remove_if_dead(const std::string& path) {
  const CancellationOff off;
  struct stat info {};
  const auto name = open_regular(path, info);
  if (!name || info.st_uid != ::geteuid()) return;
  {
    const std::lock_guard guard(own_files().mutex);
    if (own_files().find(identity_of(info)) != nullptr) return;
  }
  const Fd file = open_as_owner(name.value().get(), info.st_mode);
  if (!file.valid() || locked_bytes(file.get())) return;
  struct stat now {};
  if (::lstat(path.c_str(), &now) != 0 || identity_of(now) != identity_of(info)) return;
  ::unlink(path.c_str());
}

}  // namespace

PublishedFile::PublishedFile(Fd fd, std::uint64_t length, bool huge_pages)
    : fd_(std::move(fd)), length_(length), huge_pages_(huge_pages) {}

PublishedFile::~PublishedFile() {
  const std::lock_guard guard(own_files().mutex);
  const auto own = own_files().files.find(identity_);
  if (own != own_files().files.end()) {
    own->second.unlink();
    own_files().files.erase(own);
  }
  fd_.reset();
}

Result<std::unique_ptr<PublishedFile>> PublishedFile::create(const std::string& directory,
                                                             std::uint64_t length,
                                                             bool huge_pages) {
  const CancellationOff off;
  Fd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) return last_error("cannot make a file in " + directory);
  std::unique_ptr<PublishedFile> file(new PublishedFile(std::move(fd), length, huge_pages));
  if (Status ok = file->prepare(); !ok) return ok.error();
  return file;
}

Status PublishedFile::prepare() {
  const std::uint64_t size = file_size(length_, huge_pages_);
  if (!within_size_limit(size))
    return Error{EFBIG, std::to_string(size) + " bytes exceed RLIMIT_FSIZE"};
  if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return last_error("ftruncate");
  auto identity = identify_file(fd_.get());
  if (!identity) return identity.error();
  {
    const std::lock_guard guard(own_files().mutex);
    identity_ = identity.value();
    own_files().files[identity_] = {this, {}};
  }
  struct flock lock = lock_of(F_WRLCK, length_);
  if (::fcntl(fd_.get(), F_SETLK, &lock) != 0) return last_error("cannot lock a shared file");
  return {};
}

Result<Mapping> PublishedFile::map(void* at) {
  const CancellationOff off;
  const std::size_t block = huge_pages_ ? kHugePage : page_size();
  const Status room =
      huge_pages_ ? check_room(fd_.get(), align_up(length_, block)) : reserve(fd_.get(), length_);
  if (!room) return room.error();
  auto memory =
      Mapping::place(align_up(length_, block),
                     {.fd = fd_.get(), .at = at, .only_there = at != nullptr, .alignment = block});
  if (!memory || !huge_pages_) return memory;
  if (Status ok = back_by_huge_pages(memory.value()); !ok) return ok.error();
  return memory;
}

// The group of a file in a directory with the set-group-ID bit is the directory's.
Status PublishedFile::publish(const std::string& path, unsigned grants) {
  const CancellationOff off;
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) return last_error(path);
  const gid_t group = ::getegid();
  if (info.st_gid != group && ::fchown(fd_.get(), static_cast<uid_t>(-1), group) != 0)
    return last_error(path + ": cannot have this group");
  if (::fchmod(fd_.get(), grants) != 0) return last_error(path);
  const std::lock_guard guard(own_files().mutex);
  std::string& name = own_files().files[identity_].path;
  const std::string self = descriptor_path(fd_.get());
  const bool named =
      name.empty()
          ? ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0
          : ::renameat2(AT_FDCWD, name.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0;
  if (!named) return last_error("cannot name the shared file " + path);
  name = path;
  return {};
}

Result<PublishedMemory> PublishedFile::map_again(bool writable, void* hint) const {
  const std::string self = descriptor_path(fd_.get());
  if (::faccessat(AT_FDCWD, self.c_str(), R_OK | (writable ? W_OK : 0), AT_EACCESS) != 0)
    return last_error("shared memory of this process");
  return map_file(fd_.get(), length_, writable, hint);
}

Result<PublishedMemory> map_published(const std::string& path, bool writable, void* hint) {
  const CancellationOff off;
  struct stat info {};
  const auto name = open_regular(path, info);
  if (!name) return name.error();
  {
    const std::lock_guard guard(own_files().mutex);
    const PublishedFile* own = own_files().find(identity_of(info));
    if (own != nullptr) return own->map_again(writable, hint);
  }
  const Fd file = open_named(name.value().get(), writable ? O_RDWR : O_RDONLY);
  if (!file.valid()) return last_error(path);
  const auto length = locked_bytes(file.get());
  if (!length) return Error{ENOENT, path + ": its creator has ended"};
  return map_file(file.get(), *length, writable, hint);
}

void sweep_published(const std::string& directory, std::string_view prefix) {
  const auto found = names_in(directory, prefix);
  if (!found || found.value().empty()) return;
  const std::vector<std::string>& names = found.value();
  const std::size_t first = random_number() % names.size();
  for (std::size_t i = 0; i < std::min(names.size(), kMostSwept); ++i)
    remove_if_dead(directory + "/" + names[(first + i) % names.size()]);
}

}  // namespace weft::os
