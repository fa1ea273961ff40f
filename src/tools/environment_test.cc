// SPDX-License-Identifier: BSD-2-Clause
// Does the environment lead programs to Weft, and keep what the user chose?
#include "environment.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace weft::tools {
namespace {

using Values = std::map<std::string, std::string>;

Values environment_after(const Values& before, const std::string& links = "") {
  const VariableLookup lookup = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = before.find(name);
    return found == before.end() ? std::nullopt : std::optional(found->second);
  };
  Values values;
  for (const Variable& each : environment_for({"/w/verbs", "/w"}, links, lookup)) {
    EXPECT_TRUE(values.emplace(each.name, each.value).second) << each.name;
  }
  return values;
}

TEST(ProgramEnvironment, NamesTheLibrariesAndTheProvider) {
  const Values values = environment_after({});
  EXPECT_EQ(values.at("LD_LIBRARY_PATH"), "/w/verbs");
  EXPECT_EQ(values.at("FI_PROVIDER_PATH"), "/w");
  EXPECT_EQ(values.at("FI_PROVIDER"), "weft");
  EXPECT_EQ(values.at("WEFT_LOG"), "on");
  EXPECT_FALSE(values.contains("FI_WEFT_LINKS"));
}

TEST(ProgramEnvironment, HasTheFoldersOfWeftFirstAndOnce) {
  EXPECT_EQ(environment_after({{"LD_LIBRARY_PATH", "/a:/b"}}).at("LD_LIBRARY_PATH"),
            "/w/verbs:/a:/b");
  EXPECT_EQ(environment_after({{"LD_LIBRARY_PATH", ""}}).at("LD_LIBRARY_PATH"), "/w/verbs");
  for (const char* there : {"/w", "/w:/a"}) {
    EXPECT_EQ(environment_after({{"FI_PROVIDER_PATH", there}}).at("FI_PROVIDER_PATH"), there);
  }
  EXPECT_EQ(environment_after({{"FI_PROVIDER_PATH", "/w2"}}).at("FI_PROVIDER_PATH"), "/w:/w2");
}

TEST(ProgramEnvironment, KeepsWhatTheUserChose) {
  const Values values = environment_after({{"FI_PROVIDER", "tcp"}, {"OMPI_MCA_pml", "ob1"}});
  EXPECT_FALSE(values.contains("FI_PROVIDER"));
  EXPECT_FALSE(values.contains("OMPI_MCA_pml"));
  EXPECT_EQ(values.at("OMPI_MCA_mtl"), "ofi");
}

TEST(ProgramEnvironment, HasTheLinksThatTheCommandLineNames) {
  EXPECT_EQ(environment_after({{"FI_WEFT_LINKS", "all"}}, "udp").at("FI_WEFT_LINKS"), "udp");
}

TEST(ExportLine, IsQuotedForTheShell) {
  EXPECT_EQ(export_line({"A", "b c"}), "export A='b c'");
  EXPECT_EQ(export_line({"A", "it's $HOME"}), "export A='it'\\''s $HOME'");
}

namespace fs = std::filesystem;

class LibrariesTest : public testing::Test {
 protected:
  LibrariesTest() {
    char name[] = "/tmp/weft_tools_XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~LibrariesTest() override { fs::remove_all(root_); }
  void make(const std::string& file) {
    fs::create_directories(fs::path(root_ + "/" + file).parent_path());
    std::ofstream(root_ + "/" + file) << "";
  }
  std::string root_;
};

TEST_F(LibrariesTest, AreThoseOfTheSameBuild) {
  make("lib/verbs/libibverbs.so.1");
  make("lib/libweft-fi.so");
  const auto libraries = find_libraries(root_ + "/bin");
  ASSERT_TRUE(libraries.ok()) << libraries.error().message;
  EXPECT_EQ(libraries.value().verbs, root_ + "/lib/verbs");
  EXPECT_EQ(libraries.value().fabric, root_ + "/lib");
}

TEST_F(LibrariesTest, ThatAreMissingAreNamed) {
  make("lib/libweft-fi.so");
  const auto libraries = find_libraries(root_ + "/bin");
  ASSERT_FALSE(libraries.ok());
  EXPECT_NE(libraries.error().message.find("/lib/verbs/libibverbs.so.1"), std::string::npos);
}

}  // namespace
}  // namespace weft::tools
