// SPDX-License-Identifier: BSD-2-Clause
// What does a process in shortage try, without needing memory for that itself?
#pragma once

#include <array>
#include <chrono>
#include <memory>

#include "fork_server.h"
#include "mode.h"
#include "switchboard.h"

namespace weft::faults {

// One side of an exchange with the partner behind `channel`. All the memory it needs it takes when
// it is constructed and in look_up().
class ConnectedPeer final : public CompletionTarget {
 public:
  ConnectedPeer(const Mode& mode, const Channel& channel, const Address& partner);
  ~ConnectedPeer() override;

  int look_up() { return node_.look_up(0); }
  // 0 or libfabric's negative error; failed_call() names the call.
  int open();
  const char* failed_call() const;
  // Registers some regions; 0 or the first negative error.
  int register_some();
  // Connects if need be, sends a small and a large message, gets each one back, and adds to the
  // partner's number: 0, the positive error of a call or of an operation, or ETIMEDOUT when `limit`
  // passed first. May be called again after any of them.
  int exchange(std::chrono::milliseconds limit);

  void completed(Operation& operation, const fi_cq_tagged_entry& entry) override;
  void failed(Operation& operation, const fi_cq_err_entry& error) override;

 private:
  using Clock = std::chrono::steady_clock;

  fid_ep* endpoint() const { return mode_.connects() ? connection_.get() : node_.endpoint(); }
  int meet(Clock::time_point end);
  int ask();
  int heed(ConnectionEvent& event);
  int accept(const ConnectionEvent& request);
  int hang_up(int error);
  int exchange_one(std::size_t bytes, Clock::time_point end);
  int count_up(Clock::time_point end);
  int post_receive();
  int post_send();
  void compose(std::size_t bytes);

  const Mode& mode_;
  const Channel& channel_;
  const Address partner_address_;
  Node node_;
  Switchboard switchboard_;
  Owned<fid_ep> connection_;
  Clock::time_point asked_{};  // when; never: at the beginning
  std::uint64_t asks_ = 0;     // how often
  bool connected_ = false;
  fi_addr_t partner_ = FI_ADDR_UNSPEC;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::array<Owned<fid_mr>, 16> regions_;
  std::uint64_t next_key_ = 1000;
  Operation send_;
  Operation receive_;
  Operation count_;
  std::uint64_t one_ = 1;
  std::uint64_t counted_ = 0;  // what the partner's number was
  std::uint64_t number_ = 0;
  bool answered_ = false;
  int error_ = 0;
};

}  // namespace weft::faults
