// SPDX-License-Identifier: BSD-2-Clause
// How does a sender find the mailbox of its peer?
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>

#include "base/authorization.h"
#include "base/result.h"
#include "link/service.h"
#include "link_shm/geometry.h"
#include "link_shm/layout.h"
#include "memory/access_guard.h"
#include "os/mapping.h"
#include "os/shared_file.h"
#include "os/socket_address.h"
#include "os/waker.h"

namespace weft::shm {

// The endpoint that opens an outbox. Outlives the outbox.
struct Sender {
  std::string directory;      // of the shared files
  os::SocketAddress address;  // of the sending endpoint
  const os::Waker* waker = nullptr;
  std::size_t eager_limit = 8192;  // larger messages are not copied twice; at most kMaxEager
  link::Service service = link::Service::kReliableDatagram;
  // The region table of this process, for an endpoint that accesses its own process.
  std::shared_ptr<memory::RegionTableView> own_regions = nullptr;
  // Of its slots. Messages with must_copy are not longer than max_eager() of it.
  Geometry geometry = kMessageGeometry;
  AuthorizationPtr authorization = nullptr;  // the key of the endpoint
};

// The mailbox of an endpoint that lived when it was found, and whose process can be reached.
class PeerMailbox {
 public:
  // Maps the first `bytes` bytes of the file. Errors: ENOENT when no living endpoint of that
  // service is there, EHOSTUNREACH when the address is another host's, EPROTO for a mailbox of
  // another version, EPERM when the process may not be reached, others of SharedFile.
  static Result<PeerMailbox> open(const Sender& sender, const os::SocketAddress& peer,
                                  std::size_t bytes);

  const os::SharedFilePtr& file() const { return file_; }
  MailboxHeader& header() const { return *memory_.at<MailboxHeader>(0); }
  const os::Mapping& memory() const { return memory_; }
  pid_t owner() const { return owner_; }
  // Whether the endpoints have the same authorization key, or none.
  bool has_key(const AuthorizationPtr& key) const;
  // Wakes the owner if it sleeps; call it after marking the cells or the slot in the header.
  void wake_owner(const os::Waker& waker) const;

 private:
  PeerMailbox(os::SharedFilePtr file, os::Mapping memory, pid_t owner)
      : file_(std::move(file)), memory_(std::move(memory)), owner_(owner) {}

  os::SharedFilePtr file_;
  os::Mapping memory_;
  pid_t owner_;
};

// Errors of PeerMailbox::open() for a peer that is not found within the host. EPERM: its process
// may not be reached, or is ending. EPROTO: it is of another build, which the network reaches.
constexpr bool means_absent(int error) {
  return error == ENOENT || error == EHOSTUNREACH || error == EPERM || error == EPROTO;
}

}  // namespace weft::shm
