// SPDX-License-Identifier: BSD-2-Clause
// How the completion queue is polled.
#include "completions.h"

#include <rdma/fi_errno.h>

#include <string>

#include "failure.h"
#include "process.h"

namespace weft::bench {
namespace {

constexpr std::size_t kBatch = 32;

}  // namespace

void Completions::poll() {
  fi_cq_tagged_entry entries[kBatch];
  const ssize_t count = fi_cq_read(queue_, entries, kBatch);
  for (ssize_t i = 0; i < count; ++i) {
    // No context: the target's side of an RMA operation, where a provider reports it.
    if (auto* counter = static_cast<std::uint64_t*>(entries[i].op_context)) ++*counter;
  }
  if (count > 0) return;
  if (watched_child_failed()) die("server", "it has ended with an error");
  if (count == 0 || count == -FI_EAGAIN) return;
  if (count == -FI_EAVAIL) report_error();
  check_fabric(count, "fi_cq_read");
}

void Completions::report_error() {
  fi_cq_err_entry error{};
  check_fabric(fi_cq_readerr(queue_, &error, 0), "fi_cq_readerr");
  const char* detail = fi_cq_strerror(queue_, error.prov_errno, error.err_data, nullptr, 0);
  die("completion with error", std::string(fi_strerror(error.err)) + " (" +
                                   (detail != nullptr ? detail : "no detail") + ")");
}

}  // namespace weft::bench
