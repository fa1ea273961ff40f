// SPDX-License-Identifier: BSD-2-Clause
// Where could a secret of a program be read? In its captures, its log and its shared files.
#include "secret.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weft::conformance {
namespace {

constexpr const char* kFilesVariable = "FI_WEFT_RUNTIME_DIR";
constexpr const char* kWatchedVariable = "WEFT_TEST_WATCHED";

[[noreturn]] void run_tests(const std::string& directory, const std::string& filter) {
  ::setenv("WEFT_CAPTURE", (directory + "/captures/%p.pcapng").c_str(), 1);
  ::setenv("FI_LOG_LEVEL", "debug", 1);
  ::setenv(kFilesVariable, (directory + "/files").c_str(), 1);
  ::setenv(kWatchedVariable, "1", 1);
  const int log = ::open((directory + "/log/all").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  const std::string argument = "--gtest_filter=" + filter;
  ::execl("/proc/self/exe", "weft_conformance", argument.c_str(), nullptr);
  ::_exit(127);
}

// The bytes of the file from `begin` to `end`.
std::string part_of(int file, off_t begin, off_t end) {
  std::string bytes(static_cast<std::size_t>(end - begin), '\0');
  const ssize_t got = ::pread(file, bytes.data(), bytes.size(), begin);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

bool file_has(const std::filesystem::path& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  bool found = false;
  off_t end = 0;
  for (off_t begin = 0; !found && (begin = ::lseek(file, end, SEEK_DATA)) >= 0;) {
    end = ::lseek(file, begin, SEEK_HOLE);
    found = part_of(file, begin, end).find(text) != std::string::npos;
  }
  ::close(file);
  return found;
}

}  // namespace

WatchedRun::WatchedRun(const std::string& filter) {
  EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
  for (const char* name : {"captures", "log", "files"})
    EXPECT_EQ(::mkdir((directory_ + "/" + name).c_str(), 0700), 0);
  const pid_t child = ::fork();
  if (child == 0) run_tests(directory_, filter);
  EXPECT_EQ(::waitpid(child, &status_, 0), child);
  if (status_ == 0) return;
  std::ifstream log(directory_ + "/log/all");
  for (std::string line; std::getline(log, line);) {
    if (!line.starts_with("libfabric:")) ADD_FAILURE() << line;
  }
}

WatchedRun::~WatchedRun() { std::filesystem::remove_all(directory_); }

bool WatchedRun::captured(const std::string& text) const {
  return any_file_has(directory_ + "/captures", text);
}

bool WatchedRun::logged(const std::string& text) const {
  return any_file_has(directory_ + "/log", text);
}

std::string watched_files() {
  const char* const files = std::getenv(kFilesVariable);
  return std::getenv(kWatchedVariable) != nullptr && files != nullptr ? files : "";
}

bool any_file_has(const std::string& directory, const std::string& text) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() && file_has(entry.path(), text)) return true;
  }
  return false;
}

}  // namespace weft::conformance
