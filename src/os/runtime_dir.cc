// SPDX-License-Identifier: BSD-2-Clause
// Where do the shared files of this user and its namespaces lie?
#include "os/runtime_dir.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "os/cancellation.h"
#include "os/directory.h"
#include "os/shared_file.h"

namespace weft::os {
namespace {

constexpr std::string_view kNamespacePrefix = "net-";

std::string chosen_base(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const char* set = ::secure_getenv("WEFT_RUNTIME_DIR");
  return set != nullptr ? set : "";
}

Status check_private(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return last_error(path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return Error{EACCES, path + ": must be a directory of this user with mode 0700"};
  }
  return {};
}

// Between the two calls another process may remove the directory, as its last user.
Status private_directory(const std::string& path) {
  constexpr int kTries = 100;
  Status found;
  for (int i = 0; i < kTries; ++i) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
      return last_error("cannot make " + path);
    found = check_private(path);
    if (found || found.error().code != ENOENT) break;
  }
  return found;
}

// Any user may take a name in /dev/shm first. /run/user/UID is made by the system, and not by every
// one.
Result<std::string> default_base() {
  const std::string user = std::to_string(::geteuid());
  std::vector<std::string> bases = {"/dev/shm/weft-" + user};
  const std::string session = "/run/user/" + user;
  if (check_private(session)) bases.push_back(session + "/weft");
  for (const std::string& base : bases) {
    if (check_private(base)) return base;
  }
  for (const std::string& base : bases) {
    if (private_directory(base)) return base;
  }
  return private_directory(bases[0]).error();
}

// Names this process's namespaces of one kind.
Result<std::string> namespace_number(const std::string& kind) {
  const std::string path = "/proc/self/ns/" + kind;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return last_error(path);
  return std::to_string(info.st_ino);
}

// A process that has no number in this process's namespace cannot be reached, and one of another
// user namespace only in one direction.
Result<std::string> namespaces() {
  std::string name = std::string(kNamespacePrefix);
  for (const char* kind : {"net", "pid", "user"}) {
    const auto number = namespace_number(kind);
    if (!number) return number;
    name += (name.size() > kNamespacePrefix.size() ? "-" : "") + number.value();
  }
  return name;
}

// What processes of other namespaces left behind, which may have gone with them. The files of
// living ones are spared, and a directory that has files is not removed.
void sweep_others(const std::string& own) {
  const std::string top = own.substr(0, own.rfind('/'));
  const auto names = names_in(top, kNamespacePrefix);
  if (!names) return;
  for (const std::string& name : names.value()) {
    const std::string path = top + "/" + name;
    if (path == own) continue;
    sweep(path);
    ::rmdir(path.c_str());
  }
}

}  // namespace

Result<std::string> runtime_directory(const std::string& base) {
  std::string top = chosen_base(base);
  if (!top.empty()) {
    if (Status made = private_directory(top); !made) return made.error();
  } else {
    auto found = default_base();
    if (!found) return found;
    top = std::move(found).value();
  }
  const auto name = namespaces();
  if (!name) return name;
  std::string directory = top + "/" + name.value();
  if (Status made = private_directory(directory); !made) return made.error();
  return directory;
}

Result<RuntimeDirectory> RuntimeDirectory::open(const std::string& base) {
  auto directory = runtime_directory(base);
  if (!directory && (chosen_base(base).empty() || lacks_room(directory.error().code)))
    return none(directory.error());
  if (!directory) return directory.error();
  sweep(directory.value());
  sweep_others(directory.value());
  SharedFile::remove_directory_at_exit(directory.value());
  return RuntimeDirectory(std::move(directory).value(), {});
}

RuntimeDirectory::RuntimeDirectory(RuntimeDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), problem_(std::move(other.problem_)) {}

RuntimeDirectory::~RuntimeDirectory() {
  if (path_.empty()) return;
  sweep(path_);
  ::rmdir(path_.c_str());
}

void sweep(const std::string& directory) {
  const auto names = names_in(directory);
  if (!names) return;
  for (const std::string& name : names.value()) {
    const std::string path = directory + "/" + name;
    if (SharedFile::abandoned(path)) SharedFile::remove_abandoned(path);
  }
}

std::uint64_t random_number() {
  const CancellationOff off;
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

}  // namespace weft::os
