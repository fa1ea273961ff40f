// SPDX-License-Identifier: BSD-2-Clause
// Which raw keys of its peers' regions has a domain mapped? fi_mr(3), fi_mr_map_raw
#include "raw_keys.h"

#include <algorithm>
#include <cstring>

#include "os/runtime_dir.h"

namespace weft::fabric {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

// Each step is a bijection of either argument: raw keys that differ in one word have different
// keys. The constant is 2^64 divided by the golden ratio, as in memory::hash_key().
std::uint64_t fold(std::uint64_t key, std::uint64_t word) {
  key = ((key ^ word) + 1) * 0x9e3779b97f4a7c15;
  return key ^ key >> 32;
}

}  // namespace

RawKeys::RawKeys(bool required, std::size_t size)
    : required_(required), size_(std::clamp<std::size_t>(size, 1, kMaxRawKeySize)) {}

RawKey RawKeys::random() const {
  RawKey raw;
  raw.size = size_;
  for (std::size_t at = 0; at < size_; at += kWord) {
    const std::uint64_t word = os::random_number();
    std::memcpy(raw.bytes.data() + at, &word, std::min(kWord, size_ - at));
  }
  return raw;
}

RawKey RawKeys::of(RegionKey key) const {
  RawKey raw;
  raw.size = size_;
  std::memcpy(raw.bytes.data(), &key.v, std::min(kWord, size_));
  return raw;
}

RegionKey RawKeys::key_of(std::span<const std::uint8_t> raw) const {
  std::uint64_t key = 0;
  for (std::size_t at = 0; at < raw.size(); at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, raw.data() + at, std::min(kWord, raw.size() - at));
    key = required_ ? fold(key, word) : key | word;
  }
  return RegionKey{key};
}

RegionKey RawKeys::map(std::span<const std::uint8_t> raw) {
  const RegionKey key = key_of(raw);
  const std::lock_guard guard(mutex_);
  ++mappings_[key.v];
  return key;
}

bool RawKeys::unmap(RegionKey key) {
  const std::lock_guard guard(mutex_);
  const auto found = mappings_.find(key.v);
  if (found == mappings_.end()) return false;
  if (--found->second == 0) mappings_.erase(found);
  return true;
}

bool RawKeys::is_mapped(RegionKey key) const {
  const std::lock_guard guard(mutex_);
  return mappings_.contains(key.v);
}

bool RawKeys::none_mapped() const {
  const std::lock_guard guard(mutex_);
  return mappings_.empty();
}

}  // namespace weft::fabric
