// SPDX-License-Identifier: BSD-2-Clause
// Which files does a directory have, and have they changed?
#include "os/directory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace weft::os {
namespace {

struct Directory : testing::Test {
  std::string path = "/dev/shm/weft-test-XXXXXX";

  Directory() { EXPECT_NE(::mkdtemp(path.data()), nullptr); }
  ~Directory() override { std::filesystem::remove_all(path); }
  void add(const std::string& name) const { std::ofstream(path + "/" + name).put('x'); }
  void remove(const std::string& name) const { std::filesystem::remove(path + "/" + name); }
  static void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }
};

using Names = std::set<std::string>;

TEST_F(Directory, ListsTheNamesThatBeginAsAsked) {
  for (const char* name : {"mc-a", "mc-b", "ep-a", ".mc-hidden"}) add(name);
  const auto all = names_in(path).value();
  EXPECT_EQ(Names(all.begin(), all.end()), (Names{"mc-a", "mc-b", "ep-a"}));
  const auto some = names_in(path, "mc-").value();
  EXPECT_EQ(Names(some.begin(), some.end()), (Names{"mc-a", "mc-b"}));
  const auto none = names_in(path + "/nothing");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ENOENT);
}

TEST_F(Directory, HasChangedWhenAFileCameOrWent) {
  DirectoryWatch watch(path);
  EXPECT_TRUE(watch.changed()) << "no check has reset it yet";
  settle();
  watch.changed();
  EXPECT_FALSE(watch.changed());
  add("one");
  EXPECT_TRUE(watch.changed());
  settle();
  watch.changed();
  EXPECT_FALSE(watch.changed());
  remove("one");
  EXPECT_TRUE(watch.changed());
}

TEST_F(Directory, AChangeRightAfterALookIsNotMissed) {
  for (int i = 0; i < 200; ++i) {
    DirectoryWatch watch(path);
    add("one");
    EXPECT_TRUE(watch.changed());
    add("two");  // in the same tick of the kernel's clock, most of the time
    EXPECT_TRUE(watch.changed());
    remove("one");
    EXPECT_TRUE(watch.changed());
    remove("two");
  }
}

TEST_F(Directory, OneThatIsGoneHasAlwaysChanged) {
  DirectoryWatch watch(path + "/nothing");
  EXPECT_TRUE(watch.changed());
  EXPECT_TRUE(watch.changed());
}

}  // namespace
}  // namespace weft::os
