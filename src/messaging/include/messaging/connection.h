// SPDX-License-Identifier: BSD-2-Clause
// What does a connected endpoint report of its connection?
#pragma once

#include <cstddef>
#include <span>

namespace weft::messaging {

// The user of a connected endpoint. Called with the endpoint's lock held: it may use
// Endpoint::peer(), and must not use anything else of the endpoint.
class ConnectionSink {
 public:
  virtual ~ConnectionSink() = default;
  // The connection is established; `data` came with the acceptance.
  virtual void connected(std::span<const std::byte> data) = 0;
  // It is not, for a reason of link::ConnectionUser::failed(), or another errno of a request or an
  // acceptance that could not be sent.
  virtual void failed(int error, std::span<const std::byte> data) = 0;
  // The peer has ended the connection, and a poll has begun since: the messages that have come to
  // other endpoints stand in the completion queue, before the receives that end with this one.
  virtual void parted() = 0;
};

}  // namespace weft::messaging
