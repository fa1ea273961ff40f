// SPDX-License-Identifier: BSD-2-Clause
// Where do messages arrive that come both from within the host and over the network?
#pragma once

#include "link/inbox.h"
#include "link_shm/layout.h"
#include "os/clock.h"

namespace weft::device {

// From there on sources have come over the network.
inline constexpr std::uint32_t kFirstRemoteSource = shm::kSlots;

// The two inboxes of an endpoint as one; they outlive it. The network costs a system call for each
// look, about ten times as much as the mailbox: so while nothing is under way there, it is looked
// at every now and then only.
class JointInbox final : public link::Inbox {
 public:
  JointInbox(link::Inbox& same_host, link::Inbox& remote)
      : same_host_(same_host), remote_(remote) {}

  unsigned poll(link::InboxSink& sink) override;
  bool accept(link::InboxSink& sink, const link::Offer& offer, std::span<const LocalRange> sges,
              std::uint64_t length, void* cookie) override {
    return inbox_of(offer.source).accept(sink, offer, sges, length, cookie);
  }
  void acknowledge(const link::Offer& offer) override { inbox_of(offer.source).acknowledge(offer); }
  void refuse(link::InboxSink& sink, std::uint32_t source) override {
    inbox_of(source).refuse(sink, source);
  }
  bool reclaim_buffers() override {
    const bool same_host = same_host_.reclaim_buffers();
    return remote_.reclaim_buffers() && same_host;
  }
  void check_sources(link::InboxSink& sink) override {
    same_host_.check_sources(sink);
    remote_.check_sources(sink);
  }
  bool fall_asleep() override {
    const bool same_host = same_host_.fall_asleep();
    return remote_.fall_asleep() && same_host;
  }
  void wake_up() override;

 private:
  bool time_to_look(bool idle);
  link::Inbox& inbox_of(std::uint32_t source) {
    return source < kFirstRemoteSource ? same_host_ : remote_;
  }

  link::Inbox& same_host_;
  link::Inbox& remote_;
  unsigned hot_polls_ = 0;  // looks at the network before they become seldom
  unsigned skipped_ = 0;    // polls since the last look
  unsigned idle_ = 0;       // polls that found nothing
  os::Time looked_at_{};    // when polls found nothing
};

}  // namespace weft::device
