// SPDX-License-Identifier: BSD-2-Clause
// How does a program wait for an object, whichever wait object it asked for? fi_poll(3)
#include "wait_point.h"

#include <rdma/fi_errno.h>

#include <utility>

#include "boundary.h"
#include "c_enum.h"
#include "wait_set.h"

namespace weft::fabric {
namespace {

// The list of a program that polls by itself has one entry, which never changes.
constexpr std::uint64_t kChangeIndex = 1;

int give_poll_list(fi_wait_pollfd& list, int descriptor) {
  const bool fits = list.nfds >= 1;
  list.change_index = kChangeIndex;
  list.nfds = 1;
  if (!fits) return -FI_ETOOSMALL;
  if (list.fd == nullptr) return -FI_EINVAL;
  *list.fd = {descriptor, POLLIN, 0};
  return 0;
}

}  // namespace

// To a wait set the object is an engine: it is driven, put to sleep, and wakes the set.
class WaitPoint::WaitSetMember final : public device::Engine {
 public:
  WaitSetMember(WaitPoint& point, WaitSet& set) : point_(point), set_(set), use_(set) {}
  ~WaitSetMember() override { set_.leave(point_, *this); }
  Status join() { return set_.join(point_, *this); }

  void progress() override {
    point_.engines_.progress();
    hand_on_signal();
  }
  bool fall_asleep() override {
    const bool quiet = point_.engines_.prepare_wait(point_.has_news_);
    hand_on_signal();
    return quiet;
  }
  void wake_up() override { point_.engines_.end_wait(); }
  int wake_fd() const override { return point_.engines_.descriptor(); }

 private:
  // A thread that waits for the set is woken by the signal to a member.
  void hand_on_signal() {
    if (point_.engines_.take_signal()) set_.signal();
  }

  WaitPoint& point_;
  WaitSet& set_;
  const Use use_;
};

int WaitWish::read(const fi_wait_obj& object, fid_wait* set, Fabric& fabric, WaitWish& wish) {
  switch (number_of(object)) {
    case FI_WAIT_NONE:
    case FI_WAIT_UNSPEC:
    case FI_WAIT_FD:
    case FI_WAIT_MUTEX_COND:
    case FI_WAIT_YIELD:
    case FI_WAIT_POLLFD:
      wish = {object, nullptr};
      return 0;
    case FI_WAIT_SET:
      if (set == nullptr || &WaitSet::from(set).fabric() != &fabric) return -FI_EINVAL;
      if (WaitSet::from(set).wait_point().inherited()) return -FI_EPERM;
      wish = {object, &WaitSet::from(set)};
      return 0;
    default:
      return -FI_EINVAL;
  }
}

device::WaitKind WaitWish::kind() const {
  if (object == FI_WAIT_NONE) return device::WaitKind::kNone;
  return object == FI_WAIT_YIELD ? device::WaitKind::kYield : device::WaitKind::kDescriptor;
}

WaitPoint::WaitPoint(device::EngineGroup& engines, const WaitWish& wish,
                     std::function<bool()> has_news, device::EngineRegistry* registry)
    : engines_(engines), wish_(wish), has_news_(std::move(has_news)), registry_(registry) {}

WaitPoint::~WaitPoint() {
  if (registry_ != nullptr) registry_->leave(engines_);
}

int WaitPoint::open() {
  if (const Status ok = engines_.open(); !ok) return fabric_status(ok.error());
  if (wish_.object == FI_WAIT_MUTEX_COND) {
    auto signaller = device::CondSignaller::open(engines_);
    if (!signaller) return fabric_status(signaller.error());
    signaller_ = std::move(signaller).value();
  }
  if (wish_.set != nullptr) {
    member_ = std::make_unique<WaitSetMember>(*this, *wish_.set);
    if (const Status ok = member_->join(); !ok) return fabric_status(ok.error());
  }
  const Status joined = registry_ != nullptr ? registry_->join(engines_) : Status();
  return joined ? 0 : fabric_status(joined.error());
}

int WaitPoint::control(int command, void* argument) {
  if (command != FI_GETWAIT && command != FI_GETWAITOBJ) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  if (command == FI_GETWAITOBJ) {
    *static_cast<fi_wait_obj*>(argument) = wish_.object;
    return 0;
  }
  switch (wish_.object) {
    case FI_WAIT_FD:
      *static_cast<int*>(argument) = engines_.descriptor();
      return 0;
    case FI_WAIT_POLLFD:
      return give_poll_list(*static_cast<fi_wait_pollfd*>(argument), engines_.descriptor());
    case FI_WAIT_MUTEX_COND:
      *static_cast<fi_mutex_cond*>(argument) = {signaller_->object().mutex(),
                                                signaller_->object().cond()};
      return 0;
    case FI_WAIT_NONE:
    case FI_WAIT_UNSPEC:
    case FI_WAIT_SET:
    case FI_WAIT_YIELD:
      break;
  }
  return -FI_ENODATA;
}

int WaitPoint::try_wait() {
  if (inherited()) return -FI_EPERM;
  if (engines_.descriptor() < 0) return -FI_EINVAL;
  if (engines_.prepare_wait(has_news_)) {
    if (signaller_ != nullptr) signaller_->arm();
    return 0;
  }
  engines_.take_signal();  // this answer is what a signal asks for
  return -FI_EAGAIN;
}

}  // namespace weft::fabric
