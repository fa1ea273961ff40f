// SPDX-License-Identifier: BSD-2-Clause
// What has a program built between ibv_wr_start(3) and ibv_wr_complete(3)?
#pragma once

#include <array>
#include <deque>
#include <mutex>
#include <vector>

#include "objects.h"
#include "queue/send_queue.h"

namespace weft::verbs {

// Requests of one batch. Between start and its end they belong to one thread.
struct WorkBuilder {
  struct BuiltRequest {
    queue::QpSendRequest request;
    std::vector<work::Segment> segments;
    std::vector<std::byte> copy;  // inline data
  };

  std::mutex mutex;  // held from start to complete or abort
  std::deque<BuiltRequest> requests;
  int error = 0;  // EINVAL after an invalid call
};

}  // namespace weft::verbs
