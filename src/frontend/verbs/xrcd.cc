// SPDX-License-Identifier: BSD-2-Clause
// XRC domains and the targets in them: ibv_open_xrcd(3), ibv_open_qp(3)
#include "xrcd.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <utility>

#include "boundary.h"
#include "operations.h"
#include "os/at_fork.h"
#include "os/file_identity.h"

namespace weft::verbs {
namespace {

// The domains of this process that belong to a file.
struct XrcFiles {
  std::mutex mutex;
  os::AtFork at_fork{8, mutex};
  std::map<os::FileIdentity, std::weak_ptr<XrcDomain>> domains;
};

// Outlives every static destructor.
XrcFiles& files = *new XrcFiles;

// Errors: EBADF; those of the kernel: EAGAIN for a domain that is to exist, EINVAL for one that may
// not.
Result<std::shared_ptr<XrcDomain>> domain_of_file(int fd, int flags) {
  const auto file = os::identify_file(fd);
  if (!file) return file.error();
  const std::lock_guard guard(files.mutex);
  std::erase_if(files.domains, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<XrcDomain>& known = files.domains[file.value()];
  if (auto domain = known.lock()) {
    if (os::asks_for_new(flags)) return Error{EINVAL, "the XRC domain of the file exists"};
    return domain;
  }
  if (!os::asks_to_create(flags)) return Error{EAGAIN, "the file has no XRC domain"};
  auto domain = std::make_shared<XrcDomain>();
  known = domain;
  return domain;
}

}  // namespace

XrcDomain::XrcDomain()
    : number([] {
        static std::atomic<std::uint32_t> last{0};
        return ++last;
      }()) {}

bool XrcDomain::find(std::uint32_t wanted, queue::ReceiveEnd& end) {
  const MutexLock guard(mutex);
  for (VerbsSrq* const each : queues) {
    if (each->srq_number != wanted) continue;
    end.receives = each->receives.get();
    end.domain = each->memory_domain;
    end.completions = each->completions.get()->entries.get();
    return true;
  }
  return false;
}

void XrcDomain::add(VerbsSrq& queue) {
  const MutexLock guard(mutex);
  queues.push_back(&queue);
}

void XrcDomain::add(const std::shared_ptr<XrcTarget>& target) {
  const MutexLock guard(mutex);
  std::erase_if(targets, [](const auto& each) { return each.expired(); });
  targets.push_back(target);
}

std::shared_ptr<XrcTarget> XrcDomain::target(std::uint32_t qpn) {
  const MutexLock guard(mutex);
  for (const auto& each : targets) {
    auto target = each.lock();
    if (target != nullptr && target->core->qpn() == qpn) return target;
  }
  return nullptr;
}

// A target looks for the queue whenever it uses it, with the lock of its port held.
void XrcDomain::remove(VerbsSrq& queue) {
  std::vector<std::weak_ptr<XrcTarget>> all;
  {
    const MutexLock guard(mutex);
    std::erase(queues, &queue);
    all = targets;
  }
  for (const auto& each : all) {
    const auto target = each.lock();
    if (target == nullptr) continue;
    const MutexLock driving(target->port->lock());
  }
}

void XrcTarget::happened(queue::QpEvent event) {
  const MutexLock guard(mutex);
  for (VerbsQp* const handle : handles) handle->happened(event);
}

void XrcTarget::add(VerbsQp& handle) {
  const MutexLock guard(mutex);
  handles.push_back(&handle);
}

void XrcTarget::remove(VerbsQp& handle) {
  const MutexLock guard(mutex);
  std::erase(handles, &handle);
}

// A domain without a file has this handle only. One with a file reaches all contexts of this
// process, and no other process.
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* wanted) {
  return at_c_border<ibv_xrcd>([&]() -> ibv_xrcd* {
    constexpr std::uint32_t kMasks = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    if ((wanted->comp_mask & ~kMasks) != 0) return null_with(EOPNOTSUPP);
    if (wanted->comp_mask != kMasks) return null_with(EINVAL);
    auto domain = std::make_unique<VerbsXrcd>();
    domain->context = context;
    domain->context_use = Use(VerbsContext::of(context).uses());
    if (wanted->fd == -1) {
      domain->domain = std::make_shared<XrcDomain>();
    } else {
      auto found = domain_of_file(wanted->fd, wanted->oflags);
      if (!found) return null_with(errno_of(found.error()));
      domain->domain = std::move(found).value();
    }
    return domain.release();
  });
}

int close_xrcd(ibv_xrcd* domain) {
  if (domain == nullptr) return EINVAL;
  VerbsXrcd& object = object_of(domain);
  if (object.in_use()) return EBUSY;
  delete &object;
  return 0;
}

}  // namespace weft::verbs
