// SPDX-License-Identifier: BSD-2-Clause
// What do the ends of a connection of libfabric (FI_EP_MSG) say in messages of the connection
// manager, through packets and through the mailbox?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cm/event.h"

namespace weft::rdm {

// The service id of the listener of that port.
std::uint64_t connection_service(std::uint16_t port);

// Errors: EINVAL for more private data than a program may give to a connection.
Status check_connection_data(std::span<const std::byte> data);

// Private data of a rejection: 2 bytes for the length, then that many bytes of the program.
std::vector<std::byte> write_rejection(std::span<const std::byte> data);
// The same of a rejection because of the requester's authorization key.
std::vector<std::byte> write_other_authorization();
// Those of the program in a REJ; `more` stands behind the MAD. Nothing when the length is wrong.
std::vector<std::byte> read_rejection(std::span<const std::byte> data,
                                      std::span<const std::byte> more);

// The end of an attempt, for link::ConnectionUser::failed().
struct AttemptFailure {
  int error = 0;
  std::vector<std::byte> data;  // of the program that has rejected it
};
AttemptFailure failure_of(const cm::CmEvent& end, bool requester);

}  // namespace weft::rdm
