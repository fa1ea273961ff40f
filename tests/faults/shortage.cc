// SPDX-License-Identifier: BSD-2-Clause
// How is each thing of the system made short?
#include "shortage.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "failure.h"

namespace weft::faults {

namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr std::size_t kPlenty = 4096 * kMiB;

// A resource limit whose soft value goes down and up again.
class Limit : public Shortage {
 public:
  explicit Limit(__rlimit_resource which) : which_(which) {
    require(getrlimit(which_, &before_) == 0, "getrlimit");
  }
  void lift() final { set(before_.rlim_cur); }

 protected:
  void set(rlim_t soft) {
    const rlimit limit{std::min(soft, before_.rlim_max), before_.rlim_max};
    require(setrlimit(which_, &limit) == 0, "setrlimit");
  }

 private:
  __rlimit_resource which_;
  rlimit before_{};
};

class Descriptors final : public Limit {
 public:
  Descriptors() : Limit(RLIMIT_NOFILE) {}
  std::span<const std::size_t> amounts() const override {
    static constexpr std::array<std::size_t, 24> kAmounts{
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 24, 28, 32, 64, 256};
    return kAmounts;
  }
  // The limit is on a descriptor's number, and the lowest free one is taken. So holes are filled
  // first.
  void apply(std::size_t amount) override {
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    require(next >= 0, "open");
    close(next);
    set(static_cast<rlim_t>(next) + amount);
  }
};

class AddressSpace final : public Limit {
 public:
  AddressSpace() : Limit(RLIMIT_AS) {}
  std::span<const std::size_t> amounts() const override {
    static constexpr std::array<std::size_t, 18> kAmounts{
        0,         64 * kKiB, 256 * kKiB, 512 * kKiB, kMiB,       2 * kMiB,
        3 * kMiB,  5 * kMiB,  8 * kMiB,   12 * kMiB,  16 * kMiB,  24 * kMiB,
        32 * kMiB, 48 * kMiB, 64 * kMiB,  128 * kMiB, 512 * kMiB, kPlenty};
    return kAmounts;
  }
  void apply(std::size_t amount) override {
    std::size_t pages = 0;
    FILE* file = std::fopen("/proc/self/statm", "r");
    require(file != nullptr && std::fscanf(file, "%zu", &pages) == 1, "/proc/self/statm");
    std::fclose(file);
    set(pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + amount);
  }
};

class FileSize final : public Limit {
 public:
  FileSize() : Limit(RLIMIT_FSIZE) {}
  bool of_files() const override { return true; }
  std::span<const std::size_t> amounts() const override {
    static constexpr std::array<std::size_t, 9> kAmounts{
        0, 4 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, kPlenty};
    return kAmounts;
  }
  void apply(std::size_t amount) override { set(amount); }
};

class FileSystem final : public Shortage {
 public:
  explicit FileSystem(std::string directory) : directory_(std::move(directory)) {}
  ~FileSystem() override { umount2(directory_.c_str(), MNT_DETACH); }
  bool shared() const override { return true; }
  bool of_files() const override { return true; }
  std::span<const std::size_t> amounts() const override {
    static constexpr std::array<std::size_t, 11> kAmounts{
        0,        4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB,
        2 * kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, kPlenty};
    return kAmounts;
  }
  void apply(std::size_t amount) override {
    struct statvfs now {};
    require(statvfs(directory_.c_str(), &now) == 0, "statvfs");
    resize((now.f_blocks - now.f_bfree) * now.f_frsize + amount);
  }
  void lift() override { resize(kPlenty); }

 private:
  void resize(std::size_t bytes) {
    // Size 0 would mean no limit.
    const std::string options = "size=" + std::to_string(std::max<std::size_t>(bytes, 4096));
    require(mount("none", directory_.c_str(), "tmpfs", MS_REMOUNT, options.c_str()) == 0,
            "remounting with " + options);
  }

  std::string directory_;
};

bool write_text(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

bool enter_namespaces(std::string& reason) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (user == 0 && unshare(CLONE_NEWNS) == 0) return true;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    reason = std::string("no namespace of its own: ") + std::strerror(errno);
    return false;
  }
  if (write_text("/proc/self/setgroups", "deny") &&
      write_text("/proc/self/uid_map", "0 " + std::to_string(user) + " 1") &&
      write_text("/proc/self/gid_map", "0 " + std::to_string(group) + " 1")) {
    return true;
  }
  reason = "the user namespace takes no mapping";
  return false;
}

}  // namespace

std::unique_ptr<Shortage> descriptor_shortage() { return std::make_unique<Descriptors>(); }
std::unique_ptr<Shortage> address_space_shortage() { return std::make_unique<AddressSpace>(); }
std::unique_ptr<Shortage> file_size_shortage() { return std::make_unique<FileSize>(); }

std::unique_ptr<Shortage> file_system_shortage(const std::string& directory, std::string& reason) {
  if (!enter_namespaces(reason)) return nullptr;
  // Nothing that is mounted here may reach the rest of the machine.
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", directory.c_str(), "tmpfs", 0, "size=1g,mode=0700") != 0) {
    reason = std::string("no file system may be mounted: ") + std::strerror(errno);
    return nullptr;
  }
  return std::make_unique<FileSystem>(directory);
}

}  // namespace weft::faults
