// SPDX-License-Identifier: BSD-2-Clause
// How messages are received without a buffer for each: FI_MULTI_RECV, fi_msg(3).
#pragma once

#include <rdma/fi_eq.h>

#include <vector>

#include "completions.h"
#include "registered_memory.h"

namespace weft::bench {

// Large buffers that take messages one behind the other until they are full. A poll posts
// again those that the provider gave back.
class ReceivePool {
 public:
  explicit ReceivePool(const Endpoint& endpoint);
  ReceivePool(const ReceivePool&) = delete;
  ReceivePool& operator=(const ReceivePool&) = delete;

  // From now on receives are EP's.
  void serve(fid_ep* ep) { ep_ = ep; }
  // Posts every buffer that is not posted. Returns 0, -FI_EAGAIN or an error.
  ssize_t replenish() { return free_.empty() ? 0 : post_free(); }
  // ENTRY completes a receive: whether it brought a message (or only gave back a buffer).
  bool take(const fi_cq_tagged_entry& entry);
  // Where the last message lies; nullptr before the first one.
  const std::byte* last_message() const { return last_message_; }

 private:
  ssize_t post_free();

  RegisteredMemory memory_;
  fid_ep* ep_ = nullptr;
  std::vector<std::byte*> free_;  // the buffers that are not posted
  const std::byte* last_message_ = nullptr;
};

// Counts what a queue tells where receives go to POOL. The context of its receives is the buffer.
class PoolCompletions final : public Completions {
 public:
  PoolCompletions(fid_cq* queue, ReceivePool& pool) : queue_(queue), pool_(pool) {}
  using Completions::poll;
  void poll(Interest interest) override;

 private:
  fid_cq* queue_;
  ReceivePool& pool_;
};

}  // namespace weft::bench
