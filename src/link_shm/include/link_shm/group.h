// SPDX-License-Identifier: BSD-2-Clause
// Which endpoints belong to a multicast group of this host, and how does a send reach all of them?
//
// Each member has one small file in the runtime directory, mc-GROUP-MEMBER, which holds the
// member's address and is locked by its process for as long as the membership lasts. Senders list
// these files again when the directory has changed. A file whose owner died is removed by the sweep
// or by the sender that finds it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "link/membership.h"
#include "link/unreliable_flow.h"
#include "link_shm/outbox.h"
#include "os/directory.h"

namespace weft::shm {

// Makes the endpoint that peers know as `member` a member of `group`. Errors: EADDRINUSE when it is
// one, ENOSPC, EMFILE, others of SharedFile.
Result<link::Membership> join_group(const std::string& directory, const os::SocketAddress& group,
                                    const os::SocketAddress& member);

// The Flow to the members that a group has at the moment of a send. A member without room, with
// another authorization key, or whose process has ended, is skipped; the others are not delayed by
// it.
class GroupOutbox final : public link::UnreliableFlow {
 public:
  GroupOutbox(const Sender& sender, const os::SocketAddress& group);

  // Requests must have must_copy. kDone, or kAgain when at least one member had no room, or kFailed
  // with ENOSPC when shared memory had none for its queue, or with link::kOtherAuthorization.
  link::Outcome send(const link::SendRequest& request) override;
  // Parts from members that are gone; the group itself is always there.
  link::PeerState check_peer(link::FlowSink& sink) override;

 private:
  struct Member {
    os::SocketAddress address;
    std::unique_ptr<Outbox> box;
    os::Time look_again{};  // not before that, when it was not there
    int loss = 0;           // why, if that is to be told: ENOSPC, link::kOtherAuthorization
  };

  void read_members();
  Outbox* reach(const std::string& file, Member& member);

  const Sender& sender_;
  const std::string prefix_;  // of the names of the members' files
  os::DirectoryWatch watch_;
  std::map<std::string, Member> members_;  // by the name of their file
};

}  // namespace weft::shm
