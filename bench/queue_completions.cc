// SPDX-License-Identifier: BSD-2-Clause
// How a completion queue is polled.
#include "queue_completions.h"

#include <rdma/fi_errno.h>

#include <string>

#include "failure.h"
#include "process.h"

namespace weft::bench {
namespace {

constexpr std::size_t kBatch = 32;

[[noreturn]] void report_error(fid_cq* queue) {
  fi_cq_err_entry error{};
  check_fabric(fi_cq_readerr(queue, &error, 0), "fi_cq_readerr");
  const char* detail = fi_cq_strerror(queue, error.prov_errno, error.err_data, nullptr, 0);
  die("completion with error", std::string(fi_strerror(error.err)) + " (" +
                                   (detail != nullptr ? detail : "no detail") + ")");
}

}  // namespace

std::span<fi_cq_tagged_entry> read_queue(fid_cq* queue, std::span<fi_cq_tagged_entry> entries) {
  const ssize_t count = fi_cq_read(queue, entries.data(), entries.size());
  if (count > 0) return entries.first(static_cast<std::size_t>(count));
  if (a_child_failed()) die("server", "it has ended with an error");
  if (count == -FI_EAVAIL) report_error(queue);
  if (count != 0 && count != -FI_EAGAIN) check_fabric(count, "fi_cq_read");
  return {};
}

void check_queue(fid_cq* queue) {
  fi_cq_tagged_entry entry;
  read_queue(queue, {&entry, 1});
}

void QueueCompletions::poll(Interest) {
  fi_cq_tagged_entry entries[kBatch];
  for (const auto& entry : read_queue(queue_, entries)) {
    // No context: the target's side of an RMA operation, where a provider reports it.
    if (auto* counter = static_cast<std::uint64_t*>(entry.op_context)) ++*counter;
  }
}

}  // namespace weft::bench
