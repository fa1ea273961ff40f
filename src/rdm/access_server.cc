// SPDX-License-Identifier: BSD-2-Clause
// How are a peer's accesses to this endpoint's memory executed and reported?
#include "access_server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "memory/atomic_kernels.h"
#include "memory/explanation.h"
#include "shared.h"

namespace weft::rdm {

using work::RequestVerdict;

namespace {

// Aliases of one peer: regions whose keys have more than 31 bits.
constexpr std::size_t kMostAliases = std::size_t{1} << 20;
constexpr std::size_t kFewAliases = 16;
constexpr RequestVerdict kOperational{RequestVerdict::Kind::kOperational, 0};

}  // namespace

// The answer for the peer; the sink hears of a refusal.
RequestVerdict AccessServer::judge(const memory::Accessed& accessed, const char* operation,
                                   const RemoteRange& range) {
  if (accessed.refusal == memory::AccessError::kNone) {
    if (accessed.error == EIO) return {RequestVerdict::Kind::kAccess, memory::kCopyFailed};
    return accessed.error != 0 ? kOperational : RequestVerdict{};
  }
  if (shared_.sink != nullptr)
    shared_.sink->refused(source_, operation, shared_.memory.refused(accessed.refusal, range));
  return {RequestVerdict::Kind::kAccess, static_cast<std::uint8_t>(accessed.refusal)};
}

// A sender numbers its aliases from 0 on: no other number than the next is one.
bool AccessServer::know_alias(const MessageHeader& header) {
  if (header.rendezvous_id != aliases_.size() || header.rendezvous_id >= kMostAliases) return false;
  if (aliases_.size() == aliases_.capacity()) {
    const std::size_t more = std::max(kFewAliases, aliases_.size());
    if (!messages_.take(more * sizeof(RegionKey))) return false;
    aliases_.reserve(aliases_.size() + more);
  }
  aliases_.push_back(RegionKey{header.tag});
  return true;
}

bool AccessServer::begin_ranges(const MessageHeader& header, std::span<const std::byte> bytes) {
  if (header.tag > link::kMaxLinkSges || bytes.size() != header.tag * kRange) return false;
  const Access need = header.data != 0 ? Access::kRemoteWrite : Access::kRemoteRead;
  announced_ = {need};
  refused_ = false;
  reported_keys_.clear();
  memory::Accessed may;
  RemoteRange range;
  for (std::size_t i = 0; i < header.tag && may.ok(); ++i) {
    range = read_range(bytes.data() + i * kRange);
    may = shared_.memory.check(need, range);
    for (const RegionKey key : shared_.memory.keys_to_report()) {
      if (std::find(reported_keys_.begin(), reported_keys_.end(), key) == reported_keys_.end()) {
        reported_keys_.push_back(key);
      }
    }
  }
  ranges_ = judge(may, memory::word_for(need), range);
  return true;
}

void AccessServer::end_ranges() {
  ranges_ = {};
  const auto announced = std::exchange(announced_, std::nullopt);
  if (refused_) reported_keys_.clear();
  if (refused_ || !announced) return;
  report_keys(announced->need);
  if (!announced->has_data) announce_access(announced->need);
}

void AccessServer::expect_immediate(const MessageHeader& header) {
  write_imm_info_ = header;
  write_imm_info_.has_data = true;
  refused_ = false;
  if (announced_) announced_->has_data = true;
}

// Everything is checked before anything is changed.
std::optional<memory::Accessed> AccessServer::execute(const MessageHeader& header,
                                                      std::span<const std::byte> bytes,
                                                      std::byte* fetched) {
  const AtomicAction& action = header.action;
  const std::size_t element = size_of(action.type);
  const std::uint64_t ranges = header.tag;
  const std::uint64_t length = header.length;
  const bool sane = element != 0 && memory::meaningful(action) && length <= kMaxAtomicBytes &&
                    length % element == 0 && ranges <= link::kMaxLinkSges;
  const std::size_t operands =
      (action.has_operand() ? length : 0) + (action.compares() ? length : 0);
  if (!sane || bytes.size() != ranges * kRange + operands) return std::nullopt;
  const std::byte* operand = bytes.data() + ranges * kRange;
  memory::Accessed done;
  RemoteRange list[link::kMaxLinkSges];
  std::size_t judged = 0;  // the last of them
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < ranges; ++i) {
    list[i] = read_range(bytes.data() + i * kRange);
    if (list[i].length > length - sum || list[i].length % element != 0) return std::nullopt;
    sum += list[i].length;
    if (!done.ok()) continue;
    done = shared_.memory.check(memory::rights_for(action), list[i], element);
    judged = i;
  }
  if (sum != length) return std::nullopt;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < ranges && done.ok(); offset += list[i++].length) {
    std::byte both[2 * kMaxAtomicBytes];
    const std::size_t part = list[i].length;
    if (action.has_operand()) std::memcpy(both, operand + offset, part);
    if (action.compares()) std::memcpy(both + part, operand + length + offset, part);
    done = shared_.memory.change(action, list[i], both, fetched + offset, memory::LockWait::kUsual);
    judged = i;
    const std::span<const RegionKey> keys = shared_.memory.keys_to_report();
    if (done.ok() && !keys.empty()) {
      shared_.sink->accessed(source_, memory::rights_for(action), keys);
    }
  }
  if (done.ok()) report_atomic(header);
  judge(done, memory::kAtomicOperation, list[judged]);
  return done;
}

void AccessServer::report_atomic(const MessageHeader& header) {
  const bool fetches = header.action.fetches();
  const Access need = fetches ? Access::kRemoteRead : Access::kRemoteWrite;
  if (!header.has_data) return announce_access(need, header);
  announce(
      fetches ? link::MessageOperation::kAtomicReadData : link::MessageOperation::kAtomicWriteData,
      header);
}

void AccessServer::announce(link::MessageOperation event, const MessageHeader& from) {
  link::Arrival arrival;
  arrival.operation = event;
  arrival.has_data = from.has_data;
  arrival.source = source_;
  arrival.tag = from.length;
  arrival.data = from.data;
  shared_.sink->arrived(arrival);
}

void AccessServer::announce_access(Access need, const MessageHeader& from) {
  if (!shared_.counts(need)) return;
  const bool write = need == Access::kRemoteWrite;
  announce(write ? link::MessageOperation::kWriteEvent : link::MessageOperation::kReadEvent, from);
}

void AccessServer::report_keys(Access need) {
  if (!reported_keys_.empty()) shared_.sink->accessed(source_, need, reported_keys_);
  reported_keys_.clear();
}

std::optional<RegionKey> AccessServer::region_of(std::uint32_t key) const {
  if (key < kAliasBit) return RegionKey{key};
  const std::uint32_t number = key & kNumberBits;
  if (!is_alias(key) || number >= aliases_.size()) return std::nullopt;
  return aliases_[number];
}

RequestVerdict AccessServer::may_access(Access need, const work::RemoteMemory& memory) {
  if (!ranges_.ok()) return ranges_;
  const auto key = region_of(memory.key);
  memory::Accessed may{memory::AccessError::kUnknownKey, 0};
  const RemoteRange range{memory.address, memory.length, key.value_or(RegionKey{memory.key})};
  if (key || memory.length == 0) may = shared_.memory.check(need, range);
  if (!may.ok()) return judge(may, memory::word_for(need), range);
  if (announced_) return {};
  const auto keys = key ? shared_.memory.keys_to_report() : std::span<const RegionKey>();
  reported_keys_.assign(keys.begin(), keys.end());
  if (need == Access::kRemoteWrite) return {};
  report_keys(need);
  announce_access(need);
  return {};
}

RequestVerdict AccessServer::write(const work::RemoteMemory& memory, std::uint64_t offset,
                                   std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  const auto key = region_of(memory.key);
  if (!key) return work::kInvalidRequest;
  const RemoteRange range{memory.address + offset, bytes.size(), *key};
  return judge(shared_.memory.write(range, bytes), memory::word_for(Access::kRemoteWrite), range);
}

void AccessServer::written(const work::MessageEnd& end) {
  if (!announced_) report_keys(Access::kRemoteWrite);
  const bool with_immediate = end.has_immediate;
  const MessageHeader write_imm_info = write_imm_info_;
  if (with_immediate) write_imm_info_ = {};
  if (with_immediate && !refused_ && write_imm_info.has_data)
    return announce(link::MessageOperation::kWriteData, write_imm_info);
  const bool part = write_imm_info.has_data;  // of one that is announced at its end
  if (!part && !announced_) announce_access(Access::kRemoteWrite);
}

RequestVerdict AccessServer::read(const work::RemoteMemory& memory, std::uint64_t offset,
                                  std::span<std::byte> out) {
  if (out.empty()) return {};
  const auto key = region_of(memory.key);
  if (!key) return kOperational;
  const RemoteRange range{memory.address + offset, out.size(), *key};
  return judge(shared_.memory.read(range, out), memory::word_for(Access::kRemoteRead), range);
}

RequestVerdict AccessServer::atomic(bool compares, const work::AtomicOperands& what,
                                    std::uint64_t& original) {
  const auto key = region_of(what.key);
  if (!key || what.address % 8 != 0) return work::kInvalidRequest;
  const AtomicAction action{compares ? AtomicForm::kCompare : AtomicForm::kFetch,
                            compares ? AtomicOp::kSwapIfEqual : AtomicOp::kSum,
                            AtomicType::kUint64};
  const std::uint64_t operands[] = {what.swap_or_add, what.compare};
  std::byte bytes[sizeof operands];
  std::memcpy(bytes, operands, sizeof operands);
  std::byte fetched[8];
  const RemoteRange range{what.address, 8, *key};
  const memory::Accessed done =
      shared_.memory.change(action, range, bytes, fetched, memory::LockWait::kUsual);
  if (!done.ok()) return judge(done, memory::kAtomicOperation, range);
  std::memcpy(&original, fetched, sizeof original);
  return {};
}

}  // namespace weft::rdm
