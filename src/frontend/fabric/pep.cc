// SPDX-License-Identifier: BSD-2-Clause
// What is a passive endpoint to a libfabric program? fi_endpoint(3), fi_cm(3)
#include "pep.h"

#include <algorithm>
#include <new>
#include <utility>

#include "boundary.h"
#include "c_enum.h"
#include "device/device.h"
#include "internal.h"
#include "link/place.h"
#include "log.h"
#include "name.h"
#include "negotiate.h"
#include "offer.h"
#include "terms.h"

namespace weft::fabric {

namespace {

// The thread that drives the listener, or null where the program does.
Result<std::shared_ptr<device::ProgressThread>> thread_for(const fi_info& info,
                                                           const Options& options) {
  if (!controls_automatically(info.domain_attr, terms_of(options).control_progress))
    return std::shared_ptr<device::ProgressThread>();
  auto thread = device::ProgressThread::get();
  if (!thread) return thread;
  if (Status ok = thread.value()->start(); !ok) return ok.error();
  return thread;
}

}  // namespace

PassiveEndpoint::PassiveEndpoint(Fabric& fabric, InfoList info, os::UdpPort port, void* context)
    : ChildObject(FI_CLASS_PEP, fabric, context, pep_fid_operations()),
      info_(std::move(info)),
      port_(std::move(port)) {
  ops = pep_operations();
  cm = pep_cm_operations();
  parent().passive_endpoints().add(*this);
}

int PassiveEndpoint::open(Fabric& fabric, const fi_info& info, fid_pep** pep, void* context) {
  if (info.ep_attr == nullptr || number_of(info.ep_attr->type) != FI_EP_MSG) return -FI_EINVAL;
  const auto address = wanted_address(info);
  if (!address) return -FI_EINVAL;
  auto port = os::UdpPort::bind(address.value());
  if (!port) {
    log_warning(FI_LOG_EP_CTRL, "{}", port.error().message);
    return fabric_status(port.error());
  }
  InfoList copy(fi_dupinfo(&info));
  if (!copy) return -FI_ENOMEM;
  *pep = new PassiveEndpoint(fabric, std::move(copy), std::move(port).value(), context);
  return 0;
}

PassiveEndpoint::~PassiveEndpoint() {
  parent().passive_endpoints().remove(*this);
  stop_listening();
  if (eq_.get() != nullptr) eq_.get()->forget(fid);
}

void PassiveEndpoint::stop_listening() {
  if (listener_ == nullptr) return;
  driven_ = {};
  eq_.get()->waiting().detach(*listener_);
  listener_->end_reports();
  listener_.reset();
}

int PassiveEndpoint::listen() {
  EventQueue* const eq = eq_.get();
  if (eq == nullptr) return -FI_ENOEQ;
  if (listener_ != nullptr || !port_) return -FI_EOPBADSTATE;
  if (serves_devices(info_->caps) && !parent().options().links.udp) return -FI_EINVAL;
  auto device = device::Device::get(parent().options().runtime_dir);
  if (!device) return fabric_status(device.error());
  auto listener = connect::Listener::open(std::move(device).value(),
                                          {*port_, links_for(parent().options(), info_->caps)},
                                          public_name(), parent().options(), *this);
  if (!listener) {
    log_warning(FI_LOG_EP_CTRL, "cannot listen: {}", listener.error().message);
    return fabric_status(listener.error());
  }
  const auto thread = thread_for(*info_, parent().options());
  if (!thread) return fabric_status(thread.error());
  listener.value()->set_backlog(backlog_);
  if (Status ok = eq->waiting().attach(*listener.value()); !ok) {
    eq->waiting().detach(*listener.value());
    return fabric_status(ok.error());
  }
  {
    const std::lock_guard guard(mutex_);
    listener_ = std::move(listener).value();
  }
  if (thread.value() == nullptr) return 0;
  try {
    driven_ = device::DrivenEngine(thread.value(), *listener_);
  } catch (const std::bad_alloc&) {
    stop_listening();
    return -FI_ENOMEM;
  }
  return 0;
}

// The address that the requester knows this endpoint by.
os::SocketAddress PassiveEndpoint::name_for(const link::ConnectionRequest& request) const {
  const std::lock_guard guard(mutex_);
  return port_ ? name_of(*port_, request.asked) : os::SocketAddress();
}

// The info by which the request may be accepted: the listener's, from its address to the other's.
InfoList PassiveEndpoint::info_for(Undecided& undecided) const {
  const link::ConnectionRequest& request = undecided.request.request;
  InfoList info(fi_dupinfo(info_.get()));
  if (!info || !write_address(name_for(request), info->src_addr, info->src_addrlen) ||
      !write_address(request.peer, info->dest_addr, info->dest_addrlen)) {
    return nullptr;
  }
  info->handle = &undecided.handle;
  return info;
}

bool PassiveEndpoint::requested(const connect::Request& request) {
  auto undecided = std::make_unique<Undecided>();
  undecided->handle.fclass = FI_CLASS_CONNREQ;
  undecided->request = request;
  InfoList info = info_for(*undecided);
  if (!info) return false;
  {
    const std::lock_guard guard(mutex_);
    undecided_.emplace(&undecided->handle, std::move(undecided));
  }
  eq_.get()->push_request(fid, std::move(info), request.request.data);
  return true;
}

// A request that the program knows stays: an acceptance of it fails.
void PassiveEndpoint::withdrawn(link::ConnectionNumber number) {
  const std::lock_guard guard(mutex_);
  const auto found = std::find_if(undecided_.begin(), undecided_.end(), [&](const auto& each) {
    return each.second->request.number == number;
  });
  if (found != undecided_.end() && eq_.get()->withdraw_request(found->first))
    undecided_.erase(found);
}

void PassiveEndpoint::decided(link::ConnectionNumber number) {
  const std::lock_guard guard(mutex_);
  std::erase_if(undecided_,
                [&](const auto& each) { return each.second->request.number == number; });
}

int PassiveEndpoint::reject(const struct fid* handle, const void* data, std::size_t length) {
  std::unique_lock guard(mutex_);
  const auto undecided = undecided_.extract(handle);
  guard.unlock();
  if (undecided.empty()) return -FI_EINVAL;
  // One that has gone meanwhile needs no answer.
  listener_->reject(undecided.mapped()->request.number, private_data(data, length));
  return 0;
}

bool PassiveEndpoint::give_request(const struct fid* handle, Beginning& beginning) {
  std::unique_lock guard(mutex_);
  const auto undecided = undecided_.find(handle);
  if (undecided == undecided_.end()) return false;
  connect::Request request = undecided->second->request;
  guard.unlock();
  if (!listener_->give(request.number)) return false;
  beginning.listener = name_for(request.request);
  beginning.request = std::move(request);
  return true;
}

int PassiveEndpoint::give_port(Beginning& beginning) {
  if (listener_ != nullptr) return -FI_EBUSY;
  const std::lock_guard guard(mutex_);
  if (!port_) return -FI_EINVAL;
  beginning.port = std::exchange(port_, std::nullopt);
  return 0;
}

int PassiveEndpoint::set_backlog(int count) {
  if (count < 0) return -FI_EINVAL;
  backlog_ = std::max<std::size_t>(static_cast<std::size_t>(count), 1);
  if (listener_ != nullptr) listener_->set_backlog(backlog_);
  return 0;
}

os::SocketAddress PassiveEndpoint::public_name() const {
  const std::lock_guard guard(mutex_);
  return port_ ? name_of(*port_) : os::SocketAddress();
}

int PassiveEndpoint::rename(const os::SocketAddress& address) {
  if (listener_ != nullptr) return -FI_EOPBADSTATE;
  auto port = os::UdpPort::bind(address);
  if (!port) return fabric_status(port.error());
  const std::lock_guard guard(mutex_);
  port_ = std::move(port).value();
  return 0;
}

int open_passive_endpoint(Fabric& fabric, fi_info* info, fid_pep** pep, void* context) {
  return at_c_border([&] { return PassiveEndpoint::open(fabric, *info, pep, context); });
}

}  // namespace weft::fabric
