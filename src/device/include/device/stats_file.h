// SPDX-License-Identifier: BSD-2-Clause
// Where do the counters of a process lie, so that other processes can read them?
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stats.h"
#include "os/mapping.h"
#include "os/shared_file.h"

namespace weft::device {

// The format of the file stats-PID in the runtime directory (docs/formats/statistics.md): one page
// with the header and the names of the counters, then blocks. Byte 0 of the file is claimed by the
// process, as long as it lives (os/shared_file.h).
namespace stats_format {

inline constexpr std::uint64_t kMagic = 0x5441'5453'5446'4557;  // "WEFTSTAT"
inline constexpr std::uint32_t kVersion = 7;
inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kNameBytes = 32;
inline constexpr std::uint32_t kBlocks = 4096;

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t counters;
  std::uint32_t blocks;
  std::uint32_t block_bytes;
  std::array<std::uint8_t, 40> reserved;
  // The names of the counters, in their order, each padded with zeros.
  std::array<std::array<char, kNameBytes>, kStats> names;
};
static_assert(sizeof(Header) == 64 + kStats * kNameBytes && sizeof(Header) <= kPage);

struct StatsBlock {
  std::atomic<std::uint32_t> used;  // 1: `owner` and `stats` are valid
  std::array<char, 60> owner;       // address and port; "process" in block 0; padded with zeros
  Stats stats;
  std::array<std::uint8_t, 1024 - 64 - sizeof(Stats)> reserved;
};
static_assert(sizeof(StatsBlock) == 1024);

}  // namespace stats_format

// The counters of this process. Without a runtime directory, or without memory for the file, they
// lie in memory of this process alone. Any thread.
class StatsFile : public std::enable_shared_from_this<StatsFile> {
 public:
  // Never fails: statistics are no reason not to open a device.
  static std::shared_ptr<StatsFile> open(const std::string& directory);
  StatsFile(const StatsFile&) = delete;
  StatsFile& operator=(const StatsFile&) = delete;

  // Counters that are 0, of a port with that address; given back with the last reference. They keep
  // the file. In a forked child they lie in memory of the child alone.
  std::shared_ptr<Stats> take(const std::string& owner);
  // Those of the events that belong to no port.
  Stats& of_process() { return *of_process_; }

 private:
  StatsFile() = default;
  Status create(const std::string& path);
  stats_format::StatsBlock& block(std::uint32_t index) const;
  Stats& begin(std::uint32_t index, const std::string& owner);
  Status back(std::size_t at, std::size_t length);
  bool back_block(std::uint32_t index);
  std::optional<std::uint32_t> take_block();
  void give_back(std::uint32_t index);

  os::SharedFilePtr file_;  // null: no block is shared
  os::Mapping memory_;
  std::mutex mutex_;                 // of all that follows
  std::vector<std::uint32_t> free_;  // blocks that were used before
  std::uint32_t unused_ = 1;         // the first block that never was; block 0 is the process's
  std::unique_ptr<Stats> private_;   // of the process, where there is no file
  Stats* of_process_ = nullptr;
};

}  // namespace weft::device
