// SPDX-License-Identifier: BSD-2-Clause
// How is a failed operation explained to a libfabric program? fi_cq(3), fi_errno(3)
#include "completion_error.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "device/provider_error.h"
#include "memory/explanation.h"

namespace weft::fabric {

static_assert(device::kTruncated == FI_ETRUNC);
static_assert(device::kNoReceives == FI_ENORX);
static_assert(memory::kLongestExplanation < kMaxErrorData);

namespace {

// fi_cq(3): the data goes into the program's buffer. Without one, and always before API 1.5,
// err_data points to the queue's copy until the next read; a buffer that stays empty has the size
// 0.
void give_data(const std::string& text, bool old, LentErrorData& lent, fi_cq_err_entry& entry) {
  const bool lends = old || entry.err_data_size == 0;
  if (lends) entry.err_data = text.empty() ? nullptr : lent.data();
  const std::size_t room = lends ? lent.size() : entry.err_data_size;
  const std::size_t size =
      text.empty() || entry.err_data == nullptr ? 0 : std::min(text.size() + 1, room);
  if (size != 0) {
    auto* const data = static_cast<char*>(entry.err_data);
    text.copy(data, size - 1);
    data[size - 1] = '\0';
  }
  if (!old) entry.err_data_size = size;
}

}  // namespace

void fill_error(const device::Completion& completion, std::uint32_t api_version,
                LentErrorData& lent, fi_cq_err_entry& entry) {
  const bool refused = completion.reason != 0;
  entry.op_context = completion.context;
  entry.flags = completion.flags;
  entry.len = refused ? 0 : completion.length;
  entry.buf = refused ? nullptr : completion.buffer;
  entry.data = refused ? 0 : completion.data;
  entry.tag = completion.tag;
  entry.olen = completion.status == work::CompletionStatus::kLocalLength ? completion.vendor : 0;
  entry.err = device::error_of(completion);
  entry.prov_errno = device::provider_error(completion);
  const std::string text =
      refused ? device::explain(completion.flags, completion.refused()) : std::string();
  give_data(text, FI_VERSION_LT(api_version, FI_VERSION(1, 5)), lent, entry);
}

const char* error_text(int provider_errno) {
  if (const char* const text = device::refusal_text(provider_errno)) return text;
  return fi_strerror(provider_errno);
}

const char* error_text(int provider_errno, const void* data, char* buffer, std::size_t length) {
  const bool explained = data != nullptr && device::refusal_text(provider_errno) != nullptr;
  const char* text = explained ? static_cast<const char*>(data) : error_text(provider_errno);
  if (buffer == nullptr || length == 0) return text;
  std::strncpy(buffer, text, length - 1);
  buffer[length - 1] = '\0';
  return buffer;
}

}  // namespace weft::fabric
