// SPDX-License-Identifier: BSD-2-Clause
// Does each of many operations end exactly once, and does each number arrive whole?
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "endpoint.h"
#include "guarded_buffer.h"
#include "operation.h"

namespace weft::conformance {

// One operation, which is its own context: so a completion leads to it.
struct Numbered : fi_context2 {
  Numbered(std::size_t its_number, std::size_t length)
      : fi_context2{}, number(its_number), buffer(length) {}
  void* context() { return static_cast<fi_context2*>(this); }

  std::size_t number;
  GuardedBuffer buffer;
  std::size_t* ended = nullptr;  // how many of its row have
  std::size_t ends = 0;
  Completion end;
};

// A row of operations with the numbers 0, 1, 2 ... in the order in which they were accepted.
// Outlives the endpoint, which uses the buffers. One thread.
class Numbers {
 public:
  using Call = std::function<ssize_t(Numbered& one)>;
  // The buffer of a source holds the pattern number_seed(number); others are blank.
  enum class Buffers : std::uint8_t { kSources, kBlank };
  Numbers(std::size_t length, Buffers buffers, Call call)
      : length_(length), buffers_(buffers), call_(std::move(call)) {}
  // By the call that `like` says, at this endpoint or shared receive context. The number is the
  // data. A remote access goes to a place of its own, `number` times the length behind the address.
  Numbers(fid_ep* ep, const Operation& like);
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  // Makes the call for the next number. It answers 0 or -FI_EAGAIN; all else is a test failure.
  ssize_t post();
  // Posts until so many are accepted, and calls `between` after each call. False if the answer was
  // -FI_EAGAIN for long.
  bool post_up_to(std::size_t count, const std::function<void()>& between);

  std::size_t count() const { return all_.size(); }
  std::size_t ended() const { return ended_; }
  const Numbered& operator[](std::size_t number) const { return all_[number]; }
  Numbered& operator[](std::size_t number) { return all_[number]; }
  // All that were accepted have ended, with this error (0: successfully).
  void expect_all_ended(int err = 0) const;
  // The buffer of this receive or read holds what `number` stands for, and no byte around it was
  // written.
  void expect_holds(std::size_t receive, std::size_t number) const;
  // The same for all, in the order of posting.
  void expect_in_order() const;

 private:
  const std::size_t length_;
  const Buffers buffers_;
  const Call call_;
  std::deque<Numbered> all_;
  std::size_t ended_ = 0;
};

// Reads up to `most` entries, in error or not. An operation that ends twice is a test failure.
// Entries with the context null are of no row.
std::vector<Completion> read_entries(fid_cq* cq, std::size_t most);

}  // namespace weft::conformance
