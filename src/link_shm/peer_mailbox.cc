// SPDX-License-Identifier: BSD-2-Clause
// How does a sender find the mailbox of its peer?
#include "link_shm/peer_mailbox.h"

#include <cerrno>

#include "link_shm/names.h"
#include "os/interfaces.h"
#include "os/process_memory.h"

namespace weft::shm {
namespace {

Result<os::SharedFilePtr> find(const Sender& sender, const os::SocketAddress& peer) {
  auto file = os::SharedFile::open(mailbox_path(sender.directory, peer, sender.service));
  if (file || file.error().code != ENOENT) return file;
  if (!os::is_local_address(peer.get())) {
    return Error{EHOSTUNREACH,
                 peer.text() + " is on another host, which shared memory does not reach"};
  }
  return os::SharedFile::open(mailbox_path(sender.directory, any_host(peer), sender.service));
}

}  // namespace

Result<PeerMailbox> PeerMailbox::open(const Sender& sender, const os::SocketAddress& peer,
                                      std::size_t bytes) {
  auto file = find(sender, peer);
  if (!file) return file.error();
  const auto pid = file.value()->holder(0);
  if (!pid) return Error{ENOENT, "no living endpoint at " + peer.text()};
  auto memory = file.value()->map(0, bytes);
  if (!memory) return memory.error();
  const auto* header = memory.value().at<MailboxHeader>(0);
  if (header->magic != kMailboxMagic || header->version != kMailboxVersion) {
    return Error{EPROTO, peer.text() + " has a mailbox of another version"};
  }
  if (header->service != sender.service) {
    return Error{ENOENT, "the endpoint at " + peer.text() + " is of another type"};
  }
  const Probe probe = header->probe;
  if (*pid == 0 || !reaches(*pid, probe)) {
    if (errno == ESRCH && !file.value()->holder(0))
      return Error{ENOENT, "the endpoint at " + peer.text() + " has just closed"};
    return Error{EPERM, "the process of " + peer.text() + " may not be reached (process_vm_readv)"};
  }
  return PeerMailbox(std::move(file).value(), std::move(memory).value(), *pid);
}

bool PeerMailbox::has_key(const AuthorizationPtr& key) const {
  return is_same(header().authorization_hash, hash_of(key, header().authorization_salt));
}

// The waker first: a sender that is stopped in between leaves the mark, so that others ring, too.
// By the time that it goes on, the owner may have slept anew: that mark is not this sender's to
// clear.
void PeerMailbox::wake_owner(const os::Waker& waker) const {
  std::uint32_t sleep = header().asleep.load();
  if (sleep == 0) return;
  const os::WakerName name = header().waker;
  waker.ring(name);
  header().asleep.compare_exchange_strong(sleep, 0);
}

}  // namespace weft::shm
