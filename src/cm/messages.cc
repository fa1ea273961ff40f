// SPDX-License-Identifier: BSD-2-Clause
// How are messages put together, and how long is a service timeout?
#include "messages.h"

namespace weft::cm {

std::vector<std::byte> compose(std::uint64_t transaction, const wire::CmMessage& message,
                               std::span<const std::byte> more) {
  const auto mad = wire::write_cm({0, transaction, 0, message});
  std::vector<std::byte> bytes;
  bytes.reserve(mad.size() + more.size());
  bytes.assign(mad.begin(), mad.end());
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

wire::CmRej rejection(std::uint8_t message, wire::CmReason reason, std::uint64_t guid) {
  wire::CmRej rej;
  rej.message = message;
  rej.reason = reason;
  if (reason == wire::CmReason::kTimeout) rej.info_length = put_guid(rej.info, guid);
  return rej;
}

std::chrono::nanoseconds service_time(std::uint8_t code) {
  constexpr std::uint8_t kLongest = 24;  // 69 s, which rdma_cm asks for
  return std::chrono::nanoseconds(std::uint64_t{4096} << std::min(code, kLongest));
}

}  // namespace weft::cm
