// SPDX-License-Identifier: BSD-2-Clause
// Where do messages arrive that come both from within the host and over the network?
#include "joint_inbox.h"

#include <algorithm>
#include <utility>

namespace weft::device {
namespace {

// After something has come over the network, so many looks find more of it without delay.
constexpr unsigned kHotPolls = 1024;
// Otherwise known peers may have to wait for so many polls, and unknown peers for the next tick
// of the coarse clock.
constexpr unsigned kSeldom = 64;
constexpr unsigned kPollsPerClock = 4;  // looking at it is not for nothing either

}  // namespace

bool JointInbox::time_to_look(bool idle) {
  if (hot_polls_ != 0) return true;
  const link::Inbox::Activity activity = remote_.activity();
  if (activity == link::Inbox::Activity::kHigh) return true;
  if (activity == link::Inbox::Activity::kLow && ++skipped_ >= kSeldom) return true;
  if (!idle || ++idle_ % kPollsPerClock != 0) return false;
  const os::Time now = os::coarse_now();
  return std::exchange(looked_at_, now) != now;
}

unsigned JointInbox::poll(link::InboxSink& sink) {
  const unsigned same_host = same_host_.poll(sink);
  if (!time_to_look(same_host == 0)) return same_host;
  skipped_ = 0;
  const unsigned remote = remote_.poll(sink);
  if (remote != 0) {
    hot_polls_ = kHotPolls;
  } else if (hot_polls_ != 0) {
    --hot_polls_;
  }
  return same_host + remote;
}

// The cause of a wake-up may be an arrival over the network.
void JointInbox::wake_up() {
  same_host_.wake_up();
  remote_.wake_up();
  if (remote_.activity() != Activity::kNone) hot_polls_ = std::max(hot_polls_, 1U);
}

}  // namespace weft::device
