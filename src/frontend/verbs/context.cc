// SPDX-License-Identifier: BSD-2-Clause
// What is an open device?
#include "context.h"

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "boundary.h"
#include "wire/packet.h"

namespace weft::verbs {
namespace {

// The context lies so far behind the start of its allocation: old OFED programs look for a table of
// theirs in front of it (verbs_context_exp).
constexpr std::size_t kInFront = 4096;
constexpr std::size_t kAllocated = kInFront + sizeof(ibv_context);

}  // namespace

verbs_context& extended(ibv_context* context) {
  return *reinterpret_cast<verbs_context*>(reinterpret_cast<char*>(context) -
                                           offsetof(verbs_context, context));
}

VerbsContext::VerbsContext(VerbsDevice& device, std::shared_ptr<device::Device> opened,
                           std::unique_ptr<device::EventChannel> events)
    : shown_(device), device_(std::move(opened)), events_(std::move(events)) {}

VerbsContext& VerbsContext::of(ibv_context* context) {
  return *reinterpret_cast<VerbsContext*>(extended(context).priv);
}

ibv_context* VerbsContext::open(VerbsDevice& device) {
  return at_c_border<ibv_context>([&]() -> ibv_context* {
    auto opened = device::Device::get("");
    if (!opened) return refuse<ibv_context>(errno_of(opened.error()));
    auto events = device::EventChannel::open();
    if (!events) return refuse<ibv_context>(errno_of(events.error()));
    std::unique_ptr<VerbsContext> made(
        new VerbsContext(device, std::move(opened).value(), std::move(events).value()));
    void* const allocation = std::calloc(1, kAllocated);
    if (allocation == nullptr) return refuse<ibv_context>(ENOMEM);
    made->allocation_ = allocation;
    auto* const context = reinterpret_cast<ibv_context*>(static_cast<char*>(allocation) + kInFront);
    verbs_context& all = extended(context);
    all.sz = sizeof all;
    all.priv = reinterpret_cast<verbs_ex_private*>(made.get());
    context->abi_compat = __VERBS_ABI_IS_EXTENDED;
    context->device = &device.shown;
    context->cmd_fd = -1;
    context->async_fd = made->events_->fd();
    context->num_comp_vectors = 1;
    pthread_mutex_init(&context->mutex, nullptr);
    static_cast<void>(made.release());
    return context;
  });
}

int VerbsContext::close(ibv_context* context) {
  VerbsContext& object = of(context);
  pthread_mutex_destroy(&context->mutex);
  std::free(object.allocation_);
  delete &object;
  return 0;
}

Result<std::shared_ptr<queue::QpPort>> VerbsContext::port(std::size_t number) {
  while (ports_.size() <= number) {
    auto opened = queue::QpPort::open(device_);
    if (!opened) {
      if (ports_.empty()) return opened.error();
      return ports_.front();  // descriptors are short: queue pairs share what there is
    }
    ports_.push_back(std::move(opened).value());
  }
  return ports_[number];
}

Result<std::shared_ptr<queue::QpPort>> VerbsContext::port_in_turn() {
  const std::lock_guard guard(mutex_);
  return port(turn_++ % kMostPorts);
}

Result<std::shared_ptr<queue::QpPort>> VerbsContext::first_port() {
  const std::lock_guard guard(mutex_);
  return port(0);
}

std::optional<os::SocketAddress> VerbsContext::gid_address(unsigned index) const {
  if (index >= shown_.addresses.size()) return std::nullopt;
  return shown_.addresses[index];
}

int VerbsContext::index_of(const ibv_gid& gid) const {
  const os::SocketAddress wanted = address_of_gid(gid);
  for (std::size_t i = 0; i < shown_.addresses.size(); ++i) {
    if (shown_.addresses[i] == wanted) return static_cast<int>(i);
  }
  return -1;
}

std::size_t VerbsContext::most_mtu() const {
  constexpr std::size_t kHeaders = 40 + 8 + wire::kMaxHeaderBytesOfPayload + wire::kIcrcBytes;
  std::size_t mtu = 4096;
  while (mtu > 256 && mtu + kHeaders > shown_.mtu) mtu /= 2;
  return mtu;
}

}  // namespace weft::verbs
