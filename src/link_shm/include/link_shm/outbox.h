// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send to, and access the memory of, another process of its host?
#pragma once

#include <list>
#include <memory>

#include "base/result.h"
#include "link/flow.h"
#include "link_shm/one_sided.h"
#include "link_shm/peer_slot.h"
#include "link_shm/rendezvous_sender.h"
#include "link_shm/ring_writer.h"

namespace weft::shm {

// The Flow of the shared-memory link.
class Outbox final : public link::Flow {
 public:
  // Claims a slot in the mailbox of the endpoint at `peer`. Errors: ENOENT when no living endpoint
  // of this user and of the sender's service has that address (it may come yet), EPERM when its
  // process may not be reached, EUSERS when kSlots peers send to it already, ENOSPC, EPROTO for
  // another version, link::kOtherAuthorization.
  static Result<std::unique_ptr<Outbox>> open(const Sender& sender, const os::SocketAddress& peer);
  ~Outbox() override;

  link::Outcome send(const link::SendRequest& request) override;
  link::Outcome access(const link::AccessRequest& request) override {
    return one_sided_.access(request);
  }
  link::Outcome atomic(const link::AtomicRequest& request) override {
    return one_sided_.atomic(request);
  }
  RefusedAccess refused(int reason, std::span<const RemoteRange> remote) const override {
    return one_sided_.refused(reason, remote);
  }
  bool busy() const override { return rendezvous_.busy() || !queue_.empty(); }
  bool settled() const override { return ring_.consumed(); }
  void progress(link::FlowSink& sink) override;
  link::PeerState check_peer(link::FlowSink& sink) override;
  bool ready() const override;
  bool cancel(void* cookie, link::FlowSink& sink) override;
  void give_up(link::FlowSink& sink) override;
  int process() const override { return slot_->owner().pid(); }
  void set_asleep(bool asleep) override;

 private:
  // A send that waits for a free rendezvous: more of them may be pending than there are rendezvous.
  struct Queued {
    link::SendRequest request;
    LocalRange sges[link::kMaxLinkSges];
  };

  explicit Outbox(std::unique_ptr<PeerSlot> slot);
  // Out of line, so that send() needs no registers of its own.
  [[gnu::noinline]] link::Outcome dispatch(const link::SendRequest& request);
  link::Outcome enqueue(const link::SendRequest& request);
  void drain_queue(link::FlowSink& sink);
  link::Outcome send_inline(const link::SendRequest& request);
  link::Outcome send_bulk(const link::SendRequest& request);
  link::Outcome send_offer(const link::SendRequest& request);
  void end_all(os::Time end, link::FlowSink& sink);

  const std::unique_ptr<PeerSlot> slot_;
  const std::size_t eager_limit_;
  RingWriter ring_;
  std::list<Queued> queue_;  // in order; while it is not empty nothing overtakes it
  RendezvousSender rendezvous_;
  OneSided one_sided_;
};

}  // namespace weft::shm
