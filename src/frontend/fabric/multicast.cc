// SPDX-License-Identifier: BSD-2-Clause
// What is a multicast group to a libfabric program? fi_cm(3): fi_join, fi_mc_addr
#include <rdma/fi_cm.h>

#include <algorithm>
#include <memory>

#include "boundary.h"
#include "ep.h"
#include "fid_object.h"
#include "log.h"
#include "name.h"
#include "os/interfaces.h"

namespace weft::fabric {
namespace {

// The object behind a fid_mc: an endpoint's place in a group. The endpoint outlives it.
class Multicast : public ChildObject<Multicast, fid_mc, Ep> {
 public:
  Multicast(Ep& ep, void* context)
      : ChildObject(FI_CLASS_MC, ep, context, fid_operations<kCalls>()) {}
  ~Multicast() { parent().core()->leave(fi_addr); }

 private:
  static constexpr FidCalls kCalls{.close = close_object<Multicast>};
};

// A wildcard stands for every interface.
bool has_groups(const os::SocketAddress& own) {
  const auto interfaces = os::usable_interfaces();
  if (!interfaces) return false;
  if (own.is_any()) return std::ranges::any_of(interfaces.value(), &os::Interface::multicast);
  const os::Interface* owner = os::owner_of(interfaces.value(), own);
  return owner != nullptr && owner->multicast;
}

// The group that a program names, in the format of its endpoint's addresses.
Result<os::SocketAddress> group_of(const void* bytes, int family) {
  auto group = address_at(bytes);
  if (!group || group.value().family() != family) {
    return Error{FI_EINVAL, "a group of another address family"};
  }
  if (!group.value().is_multicast()) {
    return Error{FI_EINVAL, group.value().text() + " is no multicast address"};
  }
  return group;
}

// What the flags ask for, within what the endpoint can: both when they do not say.
int directions(const Ep& ep, std::uint64_t flags, bool& sends, bool& receives) {
  if ((flags & ~ep.caps()) != 0) return -FI_EINVAL;
  const std::uint64_t wanted = (flags != 0 ? flags : FI_SEND | FI_RECV) & ep.caps();
  sends = (wanted & FI_SEND) != 0;
  receives = (wanted & FI_RECV) != 0;
  return 0;
}

int join(Ep& ep, const os::SocketAddress& address, std::uint64_t flags, fid_mc** mc,
         void* context) {
  bool sends = false;
  bool receives = false;
  if (const int wrong = directions(ep, flags, sends, receives)) return wrong;
  auto group = std::make_unique<Multicast>(ep, context);
  const auto joined = ep.core()->join(address, sends, receives);
  if (!joined) {
    log_warning(FI_LOG_EP_CTRL, "cannot join {}: {}", address.text(), joined.error().message);
    return fabric_status(joined.error());
  }
  group->fi_addr = joined.value();
  *mc = group.get();  // before the event says so
  const fi_eq_entry entry{&group->fid, context, 0};
  ep.event_queue()->push(FI_JOIN_COMPLETE, &entry, sizeof entry);
  (void)group.release();
  return 0;
}

}  // namespace

int join_group(fid_ep* fid, const void* address, std::uint64_t flags, fid_mc** mc, void* context) {
  Ep& ep = Ep::from(fid);
  if ((ep.caps() & FI_MULTICAST) == 0) return -FI_EOPNOTSUPP;
  // Before the address: with FI_COLLECTIVE it is none (fi_join_collective(3)).
  if ((flags & ~std::uint64_t{FI_SEND | FI_RECV}) != 0) return -FI_EBADFLAGS;
  if (address == nullptr || mc == nullptr) return -FI_EINVAL;
  if (ep.core() == nullptr) return -FI_EOPBADSTATE;
  if (ep.event_queue() == nullptr) return -FI_ENOEQ;
  return at_c_border([&] {
    const os::SocketAddress own = ep.name();
    const auto group = group_of(address, own.family());
    if (!group) return fabric_status(group.error());
    if (!has_groups(own)) return -FI_EOPNOTSUPP;
    return join(ep, group.value(), flags, mc, context);
  });
}

}  // namespace weft::fabric
