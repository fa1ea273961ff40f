// SPDX-License-Identifier: BSD-2-Clause
// Does a file stay its process's own, and end with a whole record, whatever others and the disk do?
#include "os/private_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace weft::os {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class PrivateFileTest : public ::testing::Test {
 protected:
  PrivateFileTest() {
    char name[] = "/tmp/weft-test-XXXXXX";
    if (::mkdtemp(name) != nullptr) directory_ = name;
  }
  ~PrivateFileTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string content(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }

  std::string directory_;
};

TEST_F(PrivateFileTest, HoldsAppendedBytesAndIsReadableByItsOwnerOnly) {
  write("f", "what was there before, and is longer");
  ::chmod(path("f").c_str(), 0666);
  auto file = PrivateFile::create(path("f"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file.value().append(bytes("one ")));
  EXPECT_TRUE(file.value().append(bytes("two")));
  EXPECT_EQ(file.value().size(), 7u);
  EXPECT_EQ(content("f"), "one two");
  struct stat info {};
  ASSERT_EQ(::stat(path("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(PrivateFileTest, IsNotMadeOfAFileOfAnotherUser) {
  write("target", "precious");
  ::symlink(path("target").c_str(), path("symlink").c_str());
  ::symlink(path("nowhere").c_str(), path("dangling").c_str());
  ::link(path("target").c_str(), path("hardlink").c_str());
  ::mkfifo(path("fifo").c_str(), 0600);
  EXPECT_EQ(PrivateFile::create(path("symlink")).error().code, ELOOP);
  EXPECT_EQ(PrivateFile::create(path("dangling")).error().code, ELOOP);
  EXPECT_FALSE(std::filesystem::exists(path("nowhere")));
  EXPECT_EQ(PrivateFile::create(path("hardlink")).error().code, EACCES);
  EXPECT_FALSE(PrivateFile::create(path("fifo")));
  EXPECT_FALSE(PrivateFile::create(directory_));
  EXPECT_EQ(PrivateFile::create("/dev/null").error().code, EACCES);
  EXPECT_EQ(PrivateFile::create(path("no/such")).error().code, ENOENT);
  EXPECT_EQ(content("target"), "precious");
}

TEST_F(PrivateFileTest, IsLeftAloneByOthersWhileItsProcessLives) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto file = PrivateFile::create(path("f"));
    if (!file || !file.value().append(bytes("mine"))) ::_exit(1);
    if (::write(ready[1], "r", 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char word = 0;
  ASSERT_EQ(::read(ready[0], &word, 1), 1);
  EXPECT_EQ(PrivateFile::create(path("f")).error().code, EBUSY);
  EXPECT_EQ(content("f"), "mine");
  ::kill(owner, SIGKILL);
  ASSERT_EQ(::waitpid(owner, nullptr, 0), owner);
  EXPECT_TRUE(PrivateFile::create(path("f")));
  EXPECT_EQ(content("f"), "");
  ::close(ready[0]);
  ::close(ready[1]);
}

// SIGXFSZ would end the child before it can say that all was well.
TEST_F(PrivateFileTest, EndsWithAWholeRecordWhereItMayNotGrow) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{10, 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto file = PrivateFile::create(path("f"));
    const bool well = file && file.value().append(bytes("12345678")) &&
                      file.value().append(bytes("90a")).error().code == EFBIG &&
                      file.value().append(bytes("90")).ok();
    ::_exit(well ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(content("f"), "1234567890");
}

}  // namespace
}  // namespace weft::os
