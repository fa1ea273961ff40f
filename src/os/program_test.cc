// SPDX-License-Identifier: BSD-2-Clause
// Are programs found as execvp(3) finds them, and are those recognised that ignore LD_LIBRARY_PATH?
#include "os/program.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weft::os {
namespace {

namespace fs = std::filesystem;

// A directory in front of $PATH.
class Programs : public testing::Test {
 protected:
  Programs() : path_(std::getenv("PATH")) {
    char name[] = "/tmp/weft_program_XXXXXX";
    directory_ = ::mkdtemp(name);
    ::setenv("PATH", (directory_ + ":" + path_).c_str(), 1);
  }
  ~Programs() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(directory_);
  }
  std::string make(const std::string& name, const std::string& content, mode_t mode = 0755) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    ::chmod(path.c_str(), mode);
    return path;
  }
  static int error_of(const Status& status) { return status ? 0 : status.error().code; }

  std::string path_;
  std::string directory_;
};

TEST_F(Programs, AreFoundInThePathOrByTheirOwn) {
  const std::string path = make("tool", "#!/bin/sh\n");
  EXPECT_EQ(find_program("tool").value(), path);
  EXPECT_EQ(find_program(path).value(), path);
  EXPECT_EQ(find_program("weft-no-such-program").error().code, ENOENT);
  EXPECT_EQ(find_program(directory_ + "/none").error().code, ENOENT);
  EXPECT_EQ(find_program("").error().code, ENOENT);
}

TEST_F(Programs, ThatCannotBeExecutedAreSkippedWhereAnotherOneFollows) {
  const std::string path = make("weft-tool", "#!/bin/sh\n", 0644);
  EXPECT_EQ(find_program(path).error().code, EACCES);
  EXPECT_EQ(find_program("weft-tool").error().code, EACCES);
  EXPECT_EQ(find_program(directory_).error().code, EACCES);
  make("ls", "", 0644);
  EXPECT_NE(find_program("ls").value(), directory_ + "/ls");
}

TEST_F(Programs, LinkedDynamicallyHeedTheLoadersVariables) {
  EXPECT_EQ(error_of(check_loader_heeds(find_program("sh").value())), 0);
  EXPECT_EQ(error_of(check_loader_heeds(make("script", "#! /bin/sh -e\n"))), 0);
  EXPECT_EQ(error_of(check_loader_heeds(make("text", "echo\n"))), 0);
}

TEST_F(Programs, LinkedStaticallyOrForAnotherProcessorDoNot) {
  Elf64_Ehdr header{};
  std::ifstream("/proc/self/exe").read(reinterpret_cast<char*>(&header), sizeof header);
  header.e_phnum = 0;
  const auto bytes = [&] { return std::string(reinterpret_cast<char*>(&header), sizeof header); };
  const std::string fixed = make("static", bytes());
  EXPECT_EQ(error_of(check_loader_heeds(fixed)), ENOEXEC);
  EXPECT_EQ(error_of(check_loader_heeds(make("script", "#!" + fixed + "\n"))), ENOEXEC);
  header.e_machine = EM_386;
  EXPECT_NE(check_loader_heeds(make("other", bytes())).error().message.find("processor"),
            std::string::npos);
}

TEST_F(Programs, ThatGainRightsDoNot) {
  if (::getuid() != 0) GTEST_SKIP() << "only root makes a file of another user";
  const std::string path = make("setuid", "");
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  ::chmod(path.c_str(), 04755);
  EXPECT_EQ(error_of(check_loader_heeds(path)), EPERM);
  ::chmod(path.c_str(), 02755);
  EXPECT_EQ(error_of(check_loader_heeds(path)), EPERM);
  ::chmod(path.c_str(), 0755);
  EXPECT_EQ(error_of(check_loader_heeds(path)), 0);
}

TEST(OwnProgram, IsThisTest) { EXPECT_TRUE(fs::exists(own_program().value())); }

TEST(RunProgram, ReturnsWhatPreventedIt) {
  EXPECT_EQ(run_program("/nonexistent/program", {"a"}).code, ENOENT);
}

}  // namespace
}  // namespace weft::os
