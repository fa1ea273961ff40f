// SPDX-License-Identifier: BSD-2-Clause
// What do the ends of a connection of libfabric (FI_EP_MSG) say in messages of the connection
// manager, through packets and through the mailbox?
#include "rdm/connection_message.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "link/connection.h"
#include "wire/endian.h"

namespace weft::rdm {
namespace {

constexpr std::uint64_t kConnectionServices = 0x5765'6674'0003'0000;  // "Weft", 3
constexpr std::size_t kLengthBytes = 2;
// In place of a length: no program has more.
constexpr std::uint16_t kOtherAuthorization = 0xFFFF;
static_assert(kOtherAuthorization > link::kMaxConnectionData);

bool names_authorization(std::span<const std::byte> data) {
  return data.size() >= kLengthBytes &&
         wire::load<std::uint16_t>(data.data()) == kOtherAuthorization;
}

}  // namespace

std::uint64_t connection_service(std::uint16_t port) { return kConnectionServices | port; }

Status check_connection_data(std::span<const std::byte> data) {
  if (data.size() <= link::kMaxConnectionData) return {};
  return Error{EINVAL, std::to_string(data.size()) + " bytes of private data, the limit is " +
                           std::to_string(link::kMaxConnectionData)};
}

std::vector<std::byte> write_rejection(std::span<const std::byte> data) {
  std::vector<std::byte> bytes(kLengthBytes + data.size());
  wire::store<std::uint16_t>(bytes.data(), static_cast<std::uint16_t>(data.size()));
  std::copy(data.begin(), data.end(), bytes.begin() + kLengthBytes);
  return bytes;
}

std::vector<std::byte> write_other_authorization() {
  std::vector<std::byte> bytes(kLengthBytes);
  wire::store<std::uint16_t>(bytes.data(), kOtherAuthorization);
  return bytes;
}

std::vector<std::byte> read_rejection(std::span<const std::byte> data,
                                      std::span<const std::byte> more) {
  std::vector<std::byte> all(data.size() + more.size());
  std::copy(more.begin(), more.end(), std::copy(data.begin(), data.end(), all.begin()));
  if (all.size() < kLengthBytes) return {};
  const std::size_t length = wire::load<std::uint16_t>(all.data());
  if (length > all.size() - kLengthBytes) return {};
  return {all.begin() + kLengthBytes, all.begin() + kLengthBytes + static_cast<long>(length)};
}

AttemptFailure failure_of(const cm::CmEvent& end, bool requester) {
  if (!requester) return {ECONNABORTED, {}};
  if (end.kind == cm::EventKind::kTimedOut) return {ETIMEDOUT, {}};
  if (end.kind != cm::EventKind::kRejected) return {ECONNREFUSED, {}};
  const auto& data = std::get<wire::CmRej>(end.mad->message).data;
  if (names_authorization(data)) return {EACCES, {}};
  return {ECONNREFUSED, read_rejection(data, end.more)};
}

}  // namespace weft::rdm
