// SPDX-License-Identifier: BSD-2-Clause
// Where do the counters of a process lie, so that other processes can read them?
#include "device/stats_file.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <string_view>

#include "os/process_memory.h"

namespace weft::device {

using stats_format::Header;
using stats_format::kBlocks;
using stats_format::kPage;
using stats_format::StatsBlock;

namespace {

constexpr std::size_t kBytes = kPage + kBlocks * sizeof(StatsBlock);

template <std::size_t kLength>
void write_padded(std::array<char, kLength>& field, std::string_view text) {
  field.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), kLength - 1), field.begin());
}

void write_header(Header& header) {
  header.magic = stats_format::kMagic;
  header.version = stats_format::kVersion;
  header.counters = kStats;
  header.blocks = kBlocks;
  header.block_bytes = sizeof(StatsBlock);
  for (std::size_t i = 0; i < kStats; ++i) {
    write_padded(header.names[i], name_of(static_cast<Stat>(i)));
  }
}

}  // namespace

std::shared_ptr<StatsFile> StatsFile::open(const std::string& directory) {
  std::shared_ptr<StatsFile> stats(new StatsFile);
  const std::string path = directory + "/stats-" + std::to_string(os::process_id());
  if (!directory.empty() && stats->create(path)) return stats;
  stats->file_ = nullptr;
  stats->private_ = std::make_unique<Stats>();
  stats->of_process_ = stats->private_.get();
  return stats;
}

Status StatsFile::create(const std::string& path) {
  auto file = os::SharedFile::create(path, kBytes);
  if (!file) return file.error();
  file_ = std::move(file).value();
  auto memory = os::Mapping::reserve(kBytes);
  if (!memory) return memory.error();
  memory_ = std::move(memory).value();
  if (Status ok = back(0, 2 * kPage); !ok) return ok;
  write_header(*memory_.at<Header>(0));
  of_process_ = &begin(0, "process");
  return file_->publish();
}

StatsBlock& StatsFile::block(std::uint32_t index) const {
  return *memory_.at<StatsBlock>(kPage + index * sizeof(StatsBlock));
}

Stats& StatsFile::begin(std::uint32_t index, const std::string& owner) {
  StatsBlock& taken = block(index);
  new (&taken.stats) Stats;
  write_padded(taken.owner, owner);
  taken.used.store(1, std::memory_order_release);
  return taken.stats;
}

Status StatsFile::back(std::size_t at, std::size_t length) {
  if (Status ok = file_->reserve(at, length); !ok) return ok;
  return file_->map_into(memory_, at, at, length);
}

// A page is backed when its first block is taken. Blocks are taken in turn, so that block is the
// first one of its page that was ever used.
bool StatsFile::back_block(std::uint32_t index) {
  const std::size_t at = kPage + index * sizeof(StatsBlock);
  return at % kPage != 0 || back(at, kPage).ok();
}

// A forked child has the file of its parent, and leaves it alone.
std::optional<std::uint32_t> StatsFile::take_block() {
  const std::lock_guard guard(mutex_);
  if (file_ == nullptr || file_->inherited()) return std::nullopt;
  if (!free_.empty()) {
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  if (unused_ == kBlocks || !back_block(unused_)) return std::nullopt;
  free_.reserve(unused_);  // so that give_back() needs no memory
  return unused_++;
}

// Without the mutex: if there is no memory for the reference, the block is given back at once.
std::shared_ptr<Stats> StatsFile::take(const std::string& owner) {
  const auto index = take_block();
  if (!index) return std::make_shared<Stats>();
  return {&begin(*index, owner),
          [file = shared_from_this(), index = *index](Stats*) { file->give_back(index); }};
}

void StatsFile::give_back(std::uint32_t index) {
  if (file_->inherited()) return;
  const std::lock_guard guard(mutex_);
  block(index).used.store(0, std::memory_order_release);
  free_.push_back(index);
}

}  // namespace weft::device
