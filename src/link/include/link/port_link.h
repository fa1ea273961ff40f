// SPDX-License-Identifier: BSD-2-Clause
// How does a port reach its peers by one link?
#pragma once

#include <cerrno>
#include <memory>

#include "base/result.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "link/membership.h"

namespace weft::link {

// A port's end of one link. Flows and memberships are destroyed before it. One thread at a time.
class PortLink {
 public:
  virtual ~PortLink() = default;
  // Where messages arrive; lives as long as this.
  virtual Inbox& inbox() = 0;
  // Opens the way to a peer. Errors: ENOENT when no peer is there (yet), others of the link.
  virtual Result<std::unique_ptr<Flow>> connect(const os::SocketAddress& peer) = 0;
  // Makes the port a member of a multicast group. Errors: EADDRINUSE when it is one, EOPNOTSUPP
  // when the link has no groups, others of the link.
  virtual Result<Membership> join(const os::SocketAddress&) { return Error{EOPNOTSUPP, "join"}; }
  // Opens the way to all members of a group, and to those to come. Errors: EOPNOTSUPP when the link
  // has no groups, others of the link.
  virtual Result<std::unique_ptr<Flow>> connect_group(const os::SocketAddress&) {
    return Error{EOPNOTSUPP, "connect_group"};
  }
};

}  // namespace weft::link
