// SPDX-License-Identifier: BSD-2-Clause
// Can another process read the counters of this one, and do they never keep it from working?
#include "device/stats_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weft::device {
namespace {

using stats_format::Header;
using stats_format::kPage;
using stats_format::StatsBlock;

struct Directory {
  Directory() {
    char name[] = "/dev/shm/weft-stats-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::filesystem::path file() const { return path / ("stats-" + std::to_string(::getpid())); }
  std::filesystem::path path;
};

// As another process would: by the name of the file alone.
struct Reader {
  explicit Reader(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const Header& header() const { return *reinterpret_cast<const Header*>(bytes.data()); }
  const StatsBlock& block(std::size_t i) const {
    return *reinterpret_cast<const StatsBlock*>(bytes.data() + kPage + i * sizeof(StatsBlock));
  }
  std::vector<char> bytes;
};

TEST(StatsFile, HasTheNamesOfAllCounters) {
  const Directory directory;
  const auto stats = StatsFile::open(directory.path);
  const Reader reader(directory.file());
  ASSERT_GE(reader.bytes.size(), kPage);
  EXPECT_EQ(reader.header().magic, stats_format::kMagic);
  EXPECT_EQ(std::string(reader.bytes.data(), 8), "WEFTSTAT");
  EXPECT_EQ(reader.header().counters, kStats);
  for (std::size_t i = 0; i < kStats; ++i) {
    EXPECT_EQ(reader.header().names[i].data(), name_of(static_cast<Stat>(i)));
  }
}

TEST(StatsFile, ShowsThePortsAndTheirCounters) {
  const Directory directory;
  const auto file = StatsFile::open(directory.path);
  const auto one = file->take("192.0.2.1:40000");
  const auto two = file->take("[2001:db8::1]:40001");
  one->add(Stat::kIcrcErrors, 7);
  two->add(Stat::kPacketsSent, 9);
  file->of_process().add(Stat::kRelayForwarded, 11);
  const Reader reader(directory.file());
  EXPECT_STREQ(reader.block(0).owner.data(), "process");
  EXPECT_EQ(reader.block(0).stats.of(Stat::kRelayForwarded), 11U);
  EXPECT_STREQ(reader.block(1).owner.data(), "192.0.2.1:40000");
  EXPECT_EQ(reader.block(1).stats.of(Stat::kIcrcErrors), 7U);
  EXPECT_STREQ(reader.block(2).owner.data(), "[2001:db8::1]:40001");
  EXPECT_EQ(reader.block(2).stats.of(Stat::kPacketsSent), 9U);
  EXPECT_EQ(reader.block(3).used.load(), 0U);
}

TEST(StatsFile, ABlockThatIsTakenAgainBeginsAtZero) {
  const Directory directory;
  const auto file = StatsFile::open(directory.path);
  auto stats = file->take("a port with a long name that must be cut to fit into the block of it");
  stats->add(Stat::kRequests, 5);
  stats.reset();
  EXPECT_EQ(Reader(directory.file()).block(1).used.load(), 0U);
  stats = file->take("b");
  const Reader reader(directory.file());
  EXPECT_EQ(reader.block(1).used.load(), 1U);
  EXPECT_STREQ(reader.block(1).owner.data(), "b");
  EXPECT_EQ(stats->of(Stat::kRequests), 0U);
}

TEST(StatsFile, AForkedChildLeavesTheBlocksOfItsParentAlone) {
  const Directory directory;
  auto file = StatsFile::open(directory.path);
  auto inherited = file->take("a port of the parent");
  inherited->add(Stat::kRequests, 3);
  const std::filesystem::path path = directory.file();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto own = file->take("a port of the child");
    own->add(Stat::kRequests, 5);
    inherited.reset();
    ::_exit(own->of(Stat::kRequests) == 5 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const Reader reader(path);
  EXPECT_EQ(reader.block(1).used.load(), 1U);
  EXPECT_EQ(reader.block(1).stats.of(Stat::kRequests), 3U);
  EXPECT_EQ(reader.block(2).used.load(), 0U);
}

TEST(StatsFile, GoesWithItsLastUser) {
  const Directory directory;
  auto file = StatsFile::open(directory.path);
  auto stats = file->take("a");
  file.reset();
  EXPECT_TRUE(std::filesystem::exists(directory.file()));
  stats.reset();
  EXPECT_FALSE(std::filesystem::exists(directory.file()));
}

TEST(StatsFile, WithoutADirectoryCountersAreThoseOfTheProcessAlone) {
  for (const char* where : {"", "/proc/no/such/directory"}) {
    const auto file = StatsFile::open(where);
    const auto stats = file->take("a");
    stats->add(Stat::kRequests);
    file->of_process().add(Stat::kRelayDelivered);
    EXPECT_EQ(stats->of(Stat::kRequests), 1U);
    EXPECT_EQ(file->of_process().of(Stat::kRelayDelivered), 1U);
  }
}

TEST(StatsFile, MorePortsThanBlocksHaveCountersToo) {
  const Directory directory;
  const auto file = StatsFile::open(directory.path);
  std::vector<std::shared_ptr<Stats>> taken;
  for (std::uint32_t i = 0; i < stats_format::kBlocks + 10; ++i) taken.push_back(file->take("a"));
  for (const auto& each : taken) each->add(Stat::kRequests);
  for (const auto& each : taken) EXPECT_EQ(each->of(Stat::kRequests), 1U);
}

}  // namespace
}  // namespace weft::device
