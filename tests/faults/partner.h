// SPDX-License-Identifier: BSD-2-Clause
// With whom does a process in shortage exchange messages, and how does it without needing memory
// for that itself?
#pragma once

#include <array>
#include <chrono>
#include <memory>

#include "node.h"
#include "nursery.h"

namespace weft::faults {

// Lacks nothing: answers every message with the same bytes, whatever becomes of its sender, until
// `channel` is closed or says so. Tells its address over the channel first.
int live_as_partner(const Channel& channel);

// One side of such an exchange. All the memory it needs it takes when it is constructed and in
// look_up().
class Guest final : public CompletionTarget {
 public:
  Guest();
  ~Guest() override;

  int look_up() { return node_.look_up(0); }
  // 0 or libfabric's negative error; failed_call() names the call.
  int open(const Address& partner);
  const char* failed_call() const { return node_.failed_call(); }
  // Registers some regions; 0 or the first negative error.
  int register_some();
  // Sends a small and a large message and gets each one back: 0, the positive error of a post or of
  // an operation, or ETIMEDOUT when `limit` passed first. May be called again after any of them.
  int exchange(std::chrono::milliseconds limit);

  void completed(Operation& operation, const fi_cq_tagged_entry& entry) override;
  void failed(Operation& operation, const fi_cq_err_entry& error) override;

 private:
  int exchange_one(std::size_t bytes, std::chrono::steady_clock::time_point end);
  int post_receive();
  int post_send(std::size_t bytes);

  Node node_;
  fi_addr_t partner_ = FI_ADDR_UNSPEC;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::array<Owned<fid_mr>, 16> regions_;
  std::uint64_t next_key_ = 1000;
  Operation send_;
  Operation receive_;
  std::uint64_t number_ = 0;
  bool answered_ = false;
  int error_ = 0;
};

}  // namespace weft::faults
