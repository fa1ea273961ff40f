// SPDX-License-Identifier: BSD-2-Clause
// How are the operations of a point started and awaited?
#include "traffic.h"

#include <chrono>

#include "channel.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kTag = 0x7A6;
constexpr std::uint64_t kFarewellTag = 0xFA;
constexpr std::size_t kFarewellBytes = 8;
constexpr std::uint64_t kScribble = 0xDEADBEEF;
constexpr std::size_t kLeastRoom = 64;

std::size_t operations_of(std::size_t bytes) { return bytes > 16384 ? 2 : 4; }

}  // namespace

Traffic::Traffic(Station& station, const Point& point, std::size_t self,
                 std::vector<std::size_t> others)
    : station_(station),
      point_(point),
      self_(self),
      others_(std::move(others)),
      bytes_(bytes_of(point.size, station.domain().info()->tx_attr->inject_size)),
      each_(operations_of(bytes_)),
      openings_(others_.size()),
      windows_(others_.size()),
      came_(others_.size()) {
  station_.on_completion([this](const Completion& completion) { hear(completion); });
}

std::uint64_t Traffic::seed(std::size_t from, std::size_t to, std::size_t index) const {
  return 1 + (from * 100 + to) * 100 + index;
}

Traffic::Action& Traffic::add(Role role, std::size_t partner, std::size_t index,
                              std::size_t bytes) {
  Action& action = actions_.emplace_back(role, partner, index, bytes);
  action.operation.length = bytes;
  action.operation.peer = station_.address(partner);
  return action;
}

Opening Traffic::prepare(std::size_t partner) {
  const CallTraits& call = traits(point_.call);
  if (says_farewell()) {
    receive(Role::kFarewellReceive, partner, 0, true, kFarewellBytes);
  }
  if (!is_message(point_.call)) return open_window(partner);
  if (point_.call == Call::kMultiReceive) {
    receive_many(partner);
    return {};
  }
  for (std::size_t i = 0; i < each_; ++i) {
    receive(Role::kReceive, partner, i, traits(call.kind).tagged, bytes_);
  }
  return {};
}

void Traffic::receive(Role role, std::size_t partner, std::size_t index, bool tagged,
                      std::size_t bytes) {
  Action& action = add(role, partner, index, bytes);
  Operation& operation = action.operation;
  if (selected()) {
    operation.kind = tagged ? Kind::kTrecvmsg : Kind::kRecvmsg;
    operation.flags = FI_COMPLETION;
  } else {
    operation.kind = tagged ? Kind::kTrecv : Kind::kRecv;
  }
  operation.tag = role == Role::kFarewellReceive ? kFarewellTag : kTag;
  post(action);
}

// Room for all messages: what is left after the last of them, if they have any length, is less than
// may be.
void Traffic::receive_many(std::size_t partner) {
  const std::size_t rest = bytes_ != 0 ? kLeastRoom - 1 : kLeastRoom;
  Action& action = add(Role::kMany, partner, 0, each_ * bytes_ + rest);
  const iovec piece{action.buffer.data(), action.buffer.length()};
  const fi_msg message = message_of({&piece, 1}, action.operation.peer, &action.context);
  const std::uint64_t flags = FI_MULTI_RECV | (silent() ? 0 : FI_COMPLETION);
  EXPECT_EQ(fi_recvmsg(station_.endpoint(partner), &message, flags), 0);
}

Opening Traffic::open_window(std::size_t partner) {
  Window& window = windows_[partner];
  const std::size_t length = std::max<std::size_t>(each_ * bytes_, 1);
  window.buffer = std::make_unique<GuardedBuffer>(length);
  if (is_read(point_.call) && !traits(point_.call).atomic) {
    for (std::size_t i = 0; i < each_; ++i) {
      window.buffer->fill(sent_to_us(partner, i), i * bytes_, bytes_);
    }
  }
  const std::uint64_t key = Endpoint::next_key();
  window.region = open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(station_.domain().get(), window.buffer->data(), length,
                     FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, out, nullptr);
  });
  if (window.region == nullptr) return {};
  const int mode = station_.domain().info()->domain_attr->mr_mode;
  const bool by_address = mode == FI_MR_BASIC || (mode & FI_MR_VIRT_ADDR) != 0;
  return {fi_mr_key(window.region.get()),
          by_address ? reinterpret_cast<std::uintptr_t>(window.buffer->data()) : 0};
}

void Traffic::post(Action& action) {
  const auto end = std::chrono::steady_clock::now() + patience();
  fid_ep* const endpoint = station_.endpoint(action.partner);
  ssize_t rc = -FI_EAGAIN;
  while (rc == -FI_EAGAIN && std::chrono::steady_clock::now() < end) {
    rc = traits(point_.call).atomic && action.role == Role::kOperation
             ? issue(endpoint, action.atomic, &action.context)
             : issue(endpoint, action.operation, action.buffer.data(), &action.context);
    if (rc == -FI_EAGAIN) station_.progress();
  }
  EXPECT_EQ(rc, 0) << fi_strerror(static_cast<int>(-rc));
}

void Traffic::start(std::size_t partner, std::size_t index) {
  Action& action = add(Role::kOperation, partner, index, bytes_);
  const CallTraits& call = traits(point_.call);
  if (call.atomic) return start_atomic(action);
  Operation& operation = action.operation;
  operation.kind = selected() ? call.with_flags : call.kind;
  operation.tag = kTag;
  operation.data = self_ << 16 | index;  // datagrams carry 32 bits of it
  operation.remote_address = openings_[partner].base + index * bytes_;
  operation.key = openings_[partner].key;
  if (selected()) operation.flags = FI_COMPLETION | (has_data(point_.call) ? FI_REMOTE_CQ_DATA : 0);
  if (!is_read(point_.call)) action.buffer.fill(sent_by_us(partner, index), 0, bytes_);
  post(action);
  if (call.inject) action.buffer.fill(kScribble, 0, bytes_);
}

void Traffic::start_atomic(Action& action) {
  action.atomic = atomic_of(self_, others_[action.partner], action.index);
  action.atomic.peer = station_.address(action.partner);
  action.atomic.address = openings_[action.partner].base;
  action.atomic.key = openings_[action.partner].key;
  post(action);
}

// Comparing ones find what the one before has left there, so that each of them swaps.
Atomic Traffic::atomic_of(std::size_t from, std::size_t to, std::size_t index) const {
  const CallTraits& call = traits(point_.call);
  Atomic atomic;
  atomic.form = call.form;
  atomic.shape = call.inject ? Shape::kInject : selected() ? Shape::kMessage : Shape::kPlain;
  atomic.flags = selected() ? FI_COMPLETION : 0;
  atomic.type = bytes_ < sizeof(std::uint64_t) ? FI_UINT8 : FI_UINT64;
  atomic.op = call.form == Form::kCompare ? FI_CSWAP : FI_SUM;
  atomic.count = bytes_ / element_size(atomic.type);
  for (std::size_t i = 0; i < bytes_; ++i) {
    atomic.operand.push_back(pattern_byte(seed(from, to, index), i));
  }
  if (call.form == Form::kCompare) atomic.compare = after(from, to, index);
  if (call.form != Form::kBase) atomic.result.assign(bytes_, 0xCD);
  return atomic;
}

// The numbers at `to` after so many operations of `from`.
Bytes Traffic::after(std::size_t from, std::size_t to, std::size_t count) const {
  const GuardedBuffer blank(bytes_);
  Bytes numbers(blank.data(), blank.data() + bytes_);
  for (std::size_t i = 0; i < count; ++i) numbers = outcome(atomic_of(from, to, i), numbers);
  return numbers;
}

// Comes behind all operations: what they did is there when it is.
void Traffic::say_farewell(std::size_t partner) {
  Action& action = add(Role::kFarewell, partner, 0, kFarewellBytes);
  action.operation.kind = selected() ? Kind::kTsendmsg : Kind::kTsend;
  action.operation.flags = selected() ? FI_COMPLETION : 0;
  action.operation.tag = kFarewellTag;
  action.buffer.fill(sent_by_us(partner, each_), 0, kFarewellBytes);
  post(action);
}

void Traffic::run() {
  for (std::size_t i = 0; i < each_; ++i) {
    for (std::size_t partner = 0; partner < others_.size(); ++partner) start(partner, i);
  }
  for (std::size_t partner = 0; says_farewell() && partner < others_.size(); ++partner) {
    say_farewell(partner);
  }
  expected_ = others_.size() * completions_per_partner();
  if (point_.wait == Wait::kCounter || silent()) wait_for_counts();
  EXPECT_TRUE(station_.wait_completions(expected_))
      << station_.completions() << " of " << expected_ << " completions came";
  wait_for_counts();
  take_back_buffers();
}

std::size_t Traffic::completions_per_partner() const {
  std::size_t count = 0;
  if (says_farewell() && !silent()) count += 2;
  if (!traits(point_.call).inject && !silent()) count += each_;
  if (is_message(point_.call) && !silent()) count += each_;
  if (!is_message(point_.call) && has_data(point_.call)) count += each_;
  // The buffer is given back all the same.
  if (point_.call == Call::kMultiReceive && silent() && bytes_ != 0) ++count;
  return count;
}

std::map<std::uint64_t, std::uint64_t> Traffic::counts() const {
  const std::size_t all = others_.size() * each_;
  const std::size_t farewells = says_farewell() ? others_.size() : 0;
  const bool message = is_message(point_.call);
  const bool read = is_read(point_.call);
  return {{FI_SEND, (message ? all : 0) + farewells},
          {FI_RECV, (message ? all : 0) + farewells},
          {FI_READ, !message && read ? all : 0},
          {FI_WRITE, !message && !read ? all : 0}};
}

void Traffic::wait_for_counts() {
  for (const auto& [event, value] : counts()) {
    EXPECT_TRUE(station_.wait_counter(event, value))
        << "counter " << fi_tostr(&event, FI_TYPE_CAPS) << " is " << station_.counter(event)
        << ", not " << value;
  }
}

// Of messages without a byte a buffer takes any number.
void Traffic::take_back_buffers() {
  if (point_.call != Call::kMultiReceive || bytes_ != 0) return;
  for (Action& action : actions_) {
    if (action.role != Role::kMany) continue;
    EXPECT_EQ(fi_cancel(&station_.endpoint(action.partner)->fid, &action.context), 0);
    EXPECT_TRUE(station_.wait_completions(++expected_)) << "the buffer did not come back";
  }
}

void Traffic::hear(const Completion& completion) {
  if (completion.context == nullptr) return hear_of_data(completion);
  Action& action = *static_cast<Action*>(completion.context);
  action.completions.push_back(completion);
  const bool source = action.role == Role::kOperation && !is_read(point_.call);
  if (source) action.buffer.fill(kScribble, 0, bytes_);
}

// Data of writes come in the order of the writes.
void Traffic::hear_of_data(const Completion& completion) {
  constexpr std::uint64_t kFlags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
  EXPECT_EQ(completion.err, 0);
  EXPECT_EQ(completion.flags & kFlags, kFlags);
  for (std::size_t partner = 0; partner < others_.size(); ++partner) {
    if (completion.data >> 16 != others_[partner]) continue;
    EXPECT_EQ(completion.data & 0xffff, windows_[partner].next_data++);
    return;
  }
  ADD_FAILURE() << "data " << completion.data << " of no operation";
}

}  // namespace weft::conformance
