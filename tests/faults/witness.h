// SPDX-License-Identifier: BSD-2-Clause
// Is a third process, which is never killed, served without a fault all the time?
#pragma once

#include <chrono>
#include <random>
#include <vector>

#include "fork_server.h"
#include "node.h"

namespace weft::faults {

// The third process: answers every request with the same bytes until `channel` is closed, then
// closes everything and returns. The two tell each other their addresses over the channel; of
// FI_EP_MSG the witness then connects to the survivor's, as kWitnessId.
int live_as_witness(const Channel& channel, fi_ep_type type);
inline constexpr std::uint64_t kWitnessId = 0xfeed'0000'0000;

// The survivor's side: one request after the other, of sizes up to 100,000 bytes, each answer
// verified. Any error, wrong byte or answer that takes longer than five seconds ends the test.
class WitnessLink final : public CompletionTarget {
 public:
  // `witness`: its address from `endpoint`.
  WitnessLink(fid_ep* endpoint, fi_addr_t witness, std::uint64_t seed);
  ~WitnessLink() override;

  // Starts the next request when the last one was answered (unless `paused`); checks that it does
  // not take too long.
  void step(bool paused);
  std::uint64_t answered() const { return answered_; }
  bool idle() const { return !receive_.pending && !send_.pending && !wants_send_; }

  void completed(Operation& operation, const fi_cq_tagged_entry& entry) override;
  void failed(Operation& operation, const fi_cq_err_entry& error) override;

 private:
  void begin();
  void try_send();

  fid_ep* const endpoint_;
  const fi_addr_t witness_;
  std::mt19937_64 random_;
  std::vector<std::uint8_t> request_;
  std::vector<std::uint8_t> answer_;
  Operation send_;
  Operation receive_;
  bool wants_send_ = false;
  std::uint64_t answered_ = 0;
  std::chrono::steady_clock::time_point begun_{};
};

}  // namespace weft::faults
