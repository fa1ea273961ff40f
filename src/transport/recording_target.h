// SPDX-License-Identifier: BSD-2-Clause
// A target that writes down what comes, and notices what must not.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "work/target.h"
#include "work/work.h"

namespace weft::transport::testing {

// One region of memory, and as many receives as a test posts.
class RecordingTarget : public work::Target {
 public:
  using Bytes = std::vector<std::byte>;
  static constexpr std::uint64_t kBase = 0x10000;
  static constexpr std::uint32_t kKey = 0x1234;
  static constexpr std::size_t kAreaBytes = 32 * 1024;

  // A message, or a write as its memory was at that moment.
  struct Came {
    Bytes bytes;
    std::optional<std::uint32_t> immediate;
    bool solicited = false;
    std::uint64_t address = 0;
  };

  // Receives that are left, and what each holds.
  unsigned receives = 0;
  std::size_t room = 1 << 20;
  bool lenient = false;  // no bytes need no key
  bool gone = false;     // the memory, after a write to it was allowed

  std::vector<Came> messages;
  std::vector<Came> writes;
  unsigned breaks = 0;
  Bytes area = Bytes(kAreaBytes);
  // What broke the contract, if anything did.
  std::string wrong;

  work::RequestVerdict message_begins() override {
    if (open_) wrong = "a message begins within another one";
    if (receives == 0) return {work::RequestVerdict::Kind::kNotReady, 0};
    open_ = true;
    bytes_.clear();
    return {};
  }
  work::RequestVerdict message_goes_on(std::span<const std::byte> bytes) override {
    if (!open_) wrong = "bytes of no message";
    if (bytes_.size() + bytes.size() > room) return {work::RequestVerdict::Kind::kInvalid, 0};
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return {};
  }
  void message_ends(const work::MessageEnd& end) override {
    if (!open_) wrong = "the end of no message";
    open_ = false;
    --receives;
    messages.push_back(came(std::move(bytes_), end));
    bytes_.clear();
  }
  void message_breaks() override {
    if (!open_) wrong = "no message breaks";
    open_ = false;
    ++breaks;
  }

  work::RequestVerdict may_access(Access need, const work::RemoteMemory& memory) override {
    if (need != Access::kRemoteWrite) wrong = "an access without a request";
    if (!within(memory) && !(lenient && memory.length == 0))
      return {work::RequestVerdict::Kind::kAccess, 1};
    allowed_ = memory;
    return {};
  }
  work::RequestVerdict write(const work::RemoteMemory& memory, std::uint64_t offset,
                             std::span<const std::byte> bytes) override {
    if (memory.address != allowed_.address || memory.length != allowed_.length || !within(memory) ||
        offset + bytes.size() > memory.length) {
      wrong = "bytes written where they may not be";
      return {work::RequestVerdict::Kind::kAccess, 1};
    }
    if (gone) return {work::RequestVerdict::Kind::kOperational, 0};
    std::copy(bytes.begin(), bytes.end(), at(memory.address + offset));
    return {};
  }
  work::RequestVerdict may_report_immediate() override {
    return {
        receives == 0 ? work::RequestVerdict::Kind::kNotReady : work::RequestVerdict::Kind::kYes,
        0};
  }
  void written(const work::RemoteMemory& memory, const work::MessageEnd& end) override {
    Bytes bytes;
    if (memory.length != 0) bytes.assign(at(memory.address), at(memory.address + memory.length));
    writes.push_back(came(std::move(bytes), end));
    writes.back().address = memory.address;
    if (writes.back().immediate) --receives;
  }
  work::RequestVerdict read(const work::RemoteMemory&, std::uint64_t,
                            std::span<std::byte>) override {
    wrong = "something was read";
    return {work::RequestVerdict::Kind::kAccess, 1};
  }
  work::RequestVerdict atomic(bool, const work::AtomicOperands&, std::uint64_t&) override {
    wrong = "an atomic operation";
    return {work::RequestVerdict::Kind::kAccess, 1};
  }

 private:
  static bool within(const work::RemoteMemory& memory) {
    return memory.key == kKey && memory.address >= kBase && memory.length <= kAreaBytes &&
           memory.address - kBase <= kAreaBytes - memory.length;
  }
  static Came came(Bytes bytes, const work::MessageEnd& end) {
    Came came{std::move(bytes), std::nullopt, end.solicited, 0};
    if (end.has_immediate) came.immediate = end.immediate;
    return came;
  }
  Bytes::iterator at(std::uint64_t address) {
    return area.begin() + static_cast<std::ptrdiff_t>(address - kBase);
  }

  bool open_ = false;
  Bytes bytes_;
  work::RemoteMemory allowed_;
};

}  // namespace weft::transport::testing
