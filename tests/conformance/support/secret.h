// SPDX-License-Identifier: BSD-2-Clause
// Where could a secret of a program be read? In its captures, its log and its shared files.
#pragma once

#include <string>

namespace weft::conformance {

// Some tests of this program, run by a process of its own that writes captures and a debug log, and
// whose shared files lie in a directory of its own. All of it goes with this object.
class WatchedRun {
 public:
  // Runs to its end.
  explicit WatchedRun(const std::string& filter);
  ~WatchedRun();
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;

  // As waitpid(2) says.
  int status() const { return status_; }
  bool captured(const std::string& text) const;
  bool logged(const std::string& text) const;

 private:
  std::string directory_ = "/tmp/weft-watched-XXXXXX";
  int status_ = -1;
};

// The directory of the shared files of this process, if it is one of a WatchedRun; else empty.
std::string watched_files();

// Whether a file below the directory has these bytes. Holes of files are not read.
bool any_file_has(const std::string& directory, const std::string& text);

}  // namespace weft::conformance
