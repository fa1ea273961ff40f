// SPDX-License-Identifier: BSD-2-Clause
// Which receives has a program posted? (ibv_post_recv(3), ibv_post_srq_recv(3))
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "work/local_memory.h"

namespace weft::queue {

// A receive that was taken out of its queue: the buffers of one message.
struct PostedReceive {
  std::uint64_t id = 0;  // the program's (wr_id)
  std::vector<work::Segment> segments;
  std::uint64_t length = 0;  // of all segments
};

// The receives of one queue pair, or those that several share, in their order. Any thread.
class QpReceiveQueue {
 public:
  QpReceiveQueue(std::uint32_t receives, std::uint32_t sges);
  QpReceiveQueue(const QpReceiveQueue&) = delete;
  QpReceiveQueue& operator=(const QpReceiveQueue&) = delete;

  // Posts a receive. Errors: EINVAL for more segments than the queue takes, ENOMEM when it is full.
  int post(std::uint64_t id, std::span<const work::Segment> segments);
  // Takes the first one out into `receive`; false when there is none.
  bool take(PostedReceive& receive);
  // True when one is there: a hint, unless the caller is the only one that takes.
  bool has_one() const { return posted_.load(std::memory_order_acquire) != 0; }
  // Removes all.
  void clear();

  // Calls `reached` when the number of receives falls below `limit`, once (IBV_EVENT_SRQ_LIMIT_
  // REACHED): with the lock of the queue held. 0: never. Error: EINVAL above the size.
  Status arm(std::uint32_t limit, std::function<void()> reached);
  // The limit that is armed, or 0.
  std::uint32_t limit() const;
  // Changes how many it holds. Error: EINVAL when that is 0 or fewer than are posted.
  Status resize(std::uint32_t receives);

  std::uint32_t size() const { return size_; }
  std::uint32_t sges() const { return sges_; }

 private:
  struct PostedEntry {
    std::uint64_t id = 0;
    std::uint32_t count = 0;  // of segments
  };

  mutable Mutex mutex_;
  std::atomic<std::uint32_t> size_;
  const std::uint32_t sges_;
  std::vector<PostedEntry> entries_ WEFT_GUARDED_BY(mutex_);     // a ring
  std::vector<work::Segment> segments_ WEFT_GUARDED_BY(mutex_);  // sges_ for each entry
  std::uint32_t first_ WEFT_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint32_t> posted_{0};
  std::uint32_t limit_ WEFT_GUARDED_BY(mutex_) = 0;
  std::function<void()> reached_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::queue
