// SPDX-License-Identifier: BSD-2-Clause
// Which completions, bytes and numbers does a point of the matrix leave behind?
#include <algorithm>

#include "traffic.h"

namespace weft::conformance {
namespace {

constexpr int kLastPolls = 20;

}  // namespace

void Traffic::verify() {
  for (int i = 0; i < kLastPolls; ++i) station_.progress();
  EXPECT_EQ(station_.completions(), expected_) << "something was reported twice, or unasked";
  for (const auto& [event, value] : counts()) {
    EXPECT_EQ(station_.counter(event), value) << "counter " << fi_tostr(&event, FI_TYPE_CAPS);
  }
  for (Action& action : actions_) check(action);
  for (std::size_t partner = 0; partner < others_.size(); ++partner) check_window(partner);
}

void Traffic::check(Action& action) {
  EXPECT_EQ(action.buffer.check_guards(), "");
  switch (action.role) {
    case Role::kOperation:
      return check_result(action);
    case Role::kFarewell:
      return check_source(action, FI_SEND | FI_TAGGED);
    case Role::kReceive:
    case Role::kFarewellReceive:
      return check_received(action);
    case Role::kMany:
      return check_many(action);
  }
}

void Traffic::check_source(const Action& action, std::uint64_t flags) {
  const bool reports = !silent() && (action.role == Role::kFarewell || !traits(point_.call).inject);
  ASSERT_EQ(action.completions.size(), reports ? 1u : 0u);
  if (!reports) return;
  EXPECT_EQ(action.completions[0].err, 0);
  EXPECT_EQ(action.completions[0].flags & flags, flags);
}

void Traffic::check_result(Action& action) {
  const CallTraits& call = traits(point_.call);
  if (is_message(point_.call)) {
    return check_source(action, FI_SEND | (traits(call.kind).tagged ? FI_TAGGED : FI_MSG));
  }
  check_source(action,
               (call.atomic ? FI_ATOMIC : FI_RMA) | (is_read(point_.call) ? FI_READ : FI_WRITE));
  if (!is_read(point_.call)) return;
  if (!call.atomic) {
    EXPECT_EQ(action.buffer.check_pattern(sent_by_us(action.partner, action.index), 0, bytes_), "");
    return;
  }
  collect(action.atomic);
  EXPECT_TRUE(same_elements(action.atomic.type, action.atomic.result,
                            after(self_, others_[action.partner], action.index)))
      << "atomic operation " << action.index << " brought other numbers back";
}

// Reliable messages come in order; of datagrams each comes once.
bool Traffic::is_next(const GuardedBuffer& buffer, std::size_t partner, std::size_t index,
                      std::size_t offset) {
  std::size_t first = index;
  std::size_t last = index;
  if (point_.type == FI_EP_DGRAM) {
    first = 0;
    last = each_ - 1;
  }
  for (std::size_t i = first; i <= last; ++i) {
    if (buffer.check_pattern(sent_to_us(partner, i), offset, bytes_).empty() &&
        came_[partner].insert(i).second) {
      return true;
    }
  }
  return false;
}

void Traffic::check_received(const Action& action) {
  const bool farewell = action.role == Role::kFarewellReceive;
  const bool tagged = farewell || traits(traits(point_.call).kind).tagged;
  ASSERT_EQ(action.completions.size(), silent() ? 0u : 1u);
  if (farewell) {
    EXPECT_EQ(
        action.buffer.check_pattern(sent_to_us(action.partner, each_), 0, action.buffer.length()),
        "");
  } else {
    EXPECT_TRUE(is_next(action.buffer, action.partner, action.index, 0))
        << "message " << action.index << " is not what was sent";
  }
  if (silent()) return;
  const Completion& completion = action.completions[0];
  const std::uint64_t flags = FI_RECV | (tagged ? FI_TAGGED : FI_MSG);
  EXPECT_EQ(completion.err, 0);
  EXPECT_EQ(completion.flags & flags, flags);
  EXPECT_EQ(completion.length, action.buffer.length());
  EXPECT_EQ(completion.tag, tagged ? action.operation.tag : completion.tag);
  const bool data = !farewell && has_data(point_.call);
  EXPECT_EQ((completion.flags & FI_REMOTE_CQ_DATA) != 0, data);
  if (data) {
    EXPECT_EQ(completion.data >> 16, others_[action.partner]);
    if (point_.type != FI_EP_DGRAM) {
      EXPECT_EQ(completion.data & 0xffff, action.index);
    }
  }
}

// The last completion gives the buffer back: that of the last message, or of the cancellation where
// messages use nothing up.
void Traffic::check_many(const Action& action) {
  const std::size_t messages = silent() ? 0 : each_;
  const bool cancelled = bytes_ == 0;
  const std::size_t wanted = cancelled ? messages + 1 : silent() ? 1 : messages;
  ASSERT_EQ(action.completions.size(), wanted);
  for (const Completion& completion : action.completions) {
    const bool last = &completion == &action.completions.back();
    EXPECT_EQ((completion.flags & FI_MULTI_RECV) != 0, last);
    EXPECT_EQ(completion.err, last && cancelled ? FI_ECANCELED : 0);
    if (completion.err == 0) {
      EXPECT_EQ(completion.length, bytes_);
    }
  }
  for (std::size_t i = 0; i < each_; ++i) {
    EXPECT_TRUE(is_next(action.buffer, action.partner, i, i * bytes_))
        << "message " << i << " is not what was sent";
  }
  const std::size_t used = each_ * bytes_;
  EXPECT_EQ(action.buffer.check_blank(used, action.buffer.length() - used), "");
}

void Traffic::check_window(std::size_t partner) {
  const Window& window = windows_[partner];
  if (window.buffer == nullptr) return;
  EXPECT_EQ(window.buffer->check_guards(), "");
  EXPECT_EQ(window.next_data, has_data(point_.call) ? each_ : 0u);
  if (traits(point_.call).atomic) {
    const Bytes wanted = after(others_[partner], self_, each_);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), window.buffer->data()))
        << "the numbers are not what the operations make of them";
    return;
  }
  for (std::size_t i = 0; i < each_; ++i) {
    EXPECT_EQ(window.buffer->check_pattern(sent_to_us(partner, i), i * bytes_, bytes_), "");
  }
}

}  // namespace weft::conformance
