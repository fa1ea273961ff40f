// SPDX-License-Identifier: BSD-2-Clause
// Where do datagrams of a queue pair go?
#include "queue/address_handle.h"

#include "os/interfaces.h"

namespace weft::queue {

AddressHandle::AddressHandle(DomainId domain, const QpAddress& address)
    : domain_(domain), address_(address), is_near_(os::is_local_address(address.remote.get())) {}

}  // namespace weft::queue
