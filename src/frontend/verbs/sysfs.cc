// SPDX-License-Identifier: BSD-2-Clause
// What do the calls for files of sysfs answer? No file there is of a device of Weft.
#include <cstdio>
#include <memory>
#include <string>

#include "abi.h"
#include "boundary.h"
#include "os/environment.h"

extern "C" const char* ibv_get_sysfs_path() {
  static const std::string* const path = [] {
    std::string set = weft::os::environment("SYSFS_PATH");
    while (set.size() > 1 && set.back() == '/') set.pop_back();
    return new std::string(set.empty() ? "/sys" : set);
  }();
  return path->c_str();
}

// Reads at most `size` bytes of dir/file, without the newline at the end and with a zero behind
// them if there is room. Returns how many, or -1.
extern "C" int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, std::size_t size) {
  try {
    const std::string path = std::string(dir) + "/" + file;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(path.c_str(), "re"),
                                                                 &std::fclose);
    if (!stream) return -1;
    std::size_t length = std::fread(buf, 1, size, stream.get());
    if (std::ferror(stream.get()) != 0) return -1;
    if (length > 0 && buf[length - 1] == '\n') --length;
    if (length < size) buf[length] = '\0';
    return static_cast<int>(length);
  } catch (const std::exception&) {
    return weft::verbs::minus_one_with(ENOMEM);
  }
}
