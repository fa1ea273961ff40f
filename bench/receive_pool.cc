// SPDX-License-Identifier: BSD-2-Clause
// How large receive buffers go round.
#include "receive_pool.h"

#include <rdma/fi_errno.h>

#include "failure.h"
#include "queue_completions.h"

namespace weft::bench {
namespace {

// One is filled while the other, given back, waits to be posted again.
constexpr std::size_t kBuffers = 2;
constexpr std::size_t kBatch = 32;

}  // namespace

ReceivePool::ReceivePool(const Endpoint& endpoint)
    : memory_(endpoint, kBuffers * kMultiReceiveBytes) {
  for (std::size_t i = kBuffers; i-- > 0;)
    free_.push_back(memory_.begin() + i * kMultiReceiveBytes);
}

ssize_t ReceivePool::post_free() {
  while (!free_.empty()) {
    void* descriptor = memory_.descriptor();
    const iovec piece{free_.back(), kMultiReceiveBytes};
    fi_msg message{};
    message.msg_iov = &piece;
    message.desc = &descriptor;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = piece.iov_base;
    if (const ssize_t rc = fi_recvmsg(ep_, &message, FI_MULTI_RECV); rc != 0) return rc;
    free_.pop_back();
  }
  return 0;
}

bool ReceivePool::take(const fi_cq_tagged_entry& entry) {
  if ((entry.flags & FI_MULTI_RECV) != 0) {
    free_.push_back(static_cast<std::byte*>(entry.op_context));
  }
  if ((entry.flags & FI_RECV) == 0) return false;
  last_message_ = static_cast<const std::byte*>(entry.buf);
  return true;
}

void PoolCompletions::poll(Interest) {
  fi_cq_tagged_entry entries[kBatch];
  for (const auto& entry : read_queue(queue_, entries)) {
    if (entry.op_context == sent_context()) {
      ++sent_;
    } else if (pool_.take(entry)) {
      ++received_;
    }
  }
  const ssize_t rc = pool_.replenish();
  if (rc != -FI_EAGAIN) check_fabric(rc, "fi_recvmsg with FI_MULTI_RECV");
}

}  // namespace weft::bench
