// SPDX-License-Identifier: BSD-2-Clause
// Which file runs for the name of a program, and does the dynamic loader heed the environment for
// it?
#include "os/program.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "os/fd.h"

namespace weft::os {
namespace {

constexpr int kInterpretersAtMost = 4;  // a script may name a script, as in execve(2)

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// The error of a file that cannot be run: ENOENT where there is none.
Error not_runnable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return last_error(path);
  if (S_ISDIR(info.st_mode)) return {EACCES, path + ": is a directory"};
  return {EACCES, path + ": no file that this user may execute"};
}

Status check_rights(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return last_error(path);
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != ::getuid()) {
    return Error{EPERM, path + ": is a set-user-ID program"};
  }
  if ((info.st_mode & S_ISGID) != 0 && info.st_gid != ::getgid()) {
    return Error{EPERM, path + ": is a set-group-ID program"};
  }
  if (::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return Error{EPERM, path + ": gains capabilities when it starts"};
  }
  return {};
}

// Reads a structure at that offset; false at the end of the file.
template <class T>
bool read_at(std::ifstream& file, std::uint64_t offset, T& to) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(&to), sizeof to));
}

// Not-ELF files are for execve(2) to judge.
Status check_binary(std::ifstream& file, const std::string& path) {
  Elf64_Ehdr header{};
  if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  Elf64_Ehdr own{};
  std::ifstream self("/proc/self/exe", std::ios::binary);
  const bool known = read_at(self, 0, own);
  if (known &&
      (header.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || header.e_machine != own.e_machine)) {
    return Error{ENOEXEC, path + ": is a program for another processor than Weft's libraries"};
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read_at(file, header.e_phoff + i * sizeof segment, segment)) break;
    if (segment.p_type == PT_INTERP) return {};
  }
  return Error{ENOEXEC, path + ": is linked statically"};
}

// The interpreter that the first line of a script names, or "".
std::string interpreter_of(std::ifstream& file) {
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("#!")) return "";
  std::istringstream words(line.substr(2));
  std::string first;
  words >> first;
  return first;
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  if (name.empty()) return Error{ENOENT, "no program is named"};
  if (name.find('/') != std::string::npos) {
    if (is_executable_file(name)) return name;
    return not_runnable(name);
  }
  const char* const set = std::getenv("PATH");
  std::istringstream directories(set != nullptr ? set : "/bin:/usr/bin");
  Error error{ENOENT, name + ": not found in $PATH"};
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string path = (directory.empty() ? "." : directory) + "/" + name;
    if (is_executable_file(path)) return path;
    if (Error reason = not_runnable(path); reason.code == EACCES) error = std::move(reason);
  }
  return error;
}

Status check_loader_heeds(const std::string& path) {
  std::string each = path;
  for (int i = 0; i < kInterpretersAtMost; ++i) {
    std::ifstream file(each, std::ios::binary);
    std::string next = interpreter_of(file);
    if (next.empty()) {
      const Status rights = check_rights(each);
      return rights ? check_binary(file, each) : rights;
    }
    each = std::move(next);  // set-user-ID bits of scripts have no effect
  }
  return {};
}

void set_environment(const std::string& name, const std::string& value) {
  ::setenv(name.c_str(), value.c_str(), 1);
}

Error run_program(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (const std::string& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
  words.push_back(nullptr);
  ::execvp(path.c_str(), words.data());
  return last_error(path);
}

Result<std::string> own_program() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length < 0) return last_error("/proc/self/exe");
  return std::string(path, static_cast<std::size_t>(length));
}

}  // namespace weft::os
