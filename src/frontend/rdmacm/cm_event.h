// SPDX-License-Identifier: BSD-2-Clause
// What is behind the rdma_cm_event of a program?
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "abi.h"
#include "cm/event.h"
#include "os/socket_address.h"
#include "terms.h"

namespace weft::rdmacm {

class CmId;
class PortManager;

// An event from when it has happened to rdma_ack_cm_event(3).
struct CmEventRecord : rdma_cm_event {
  CmEventRecord(CmId& of, rdma_cm_id* handle, rdma_cm_event_type type, int status);
  // Parameters with private data of that size, which is that of the field of the message.
  template <class Parameters>
  void set_private_data(Parameters& parameters, std::span<const std::byte> field) {
    std::ranges::copy(field, private_data_.begin());
    parameters.private_data = private_data_.data();
    parameters.private_data_len = static_cast<std::uint8_t>(field.size());
  }

  CmId* target;  // the id whose event it is: a listener's, of a request
  // A request without an id yet. 0: it has ended, for that reason of a REJ if it is not 0.
  cm::ConnectionId request = 0;
  int end_of_request = 0;
  std::shared_ptr<PortManager> manager;
  os::SocketAddress own_address;   // that the request came to
  os::SocketAddress peer_address;  // of the program that asks
  ConnectionTerms terms;           // also of a reply

 private:
  std::array<std::byte, 224> private_data_{};
};

}  // namespace weft::rdmacm
