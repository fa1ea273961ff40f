// SPDX-License-Identifier: BSD-2-Clause
// Where do datagrams of a queue pair go? (ibv_create_ah(3))
#pragma once

#include "base/types.h"
#include "queue/attributes.h"

namespace weft::queue {

// The address of a peer's host, and the local one to send from. Immutable: any thread.
class AddressHandle {
 public:
  AddressHandle(DomainId domain, const QpAddress& address);

  DomainId domain() const { return domain_; }
  const QpAddress& address() const { return address_; }
  // The peer's host is this one.
  bool is_near() const { return is_near_; }

 private:
  const DomainId domain_;
  const QpAddress address_;
  const bool is_near_;
};

}  // namespace weft::queue
