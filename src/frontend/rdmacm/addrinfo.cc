// SPDX-License-Identifier: BSD-2-Clause
// How do names become addresses of ids? (rdma_getaddrinfo(3))
#include <netdb.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "boundary.h"
#include "cm_id.h"
#include "device_table.h"
#include "os/interfaces.h"

namespace weft::rdmacm {
namespace {

using Freed = std::unique_ptr<rdma_addrinfo, decltype(&rdma_freeaddrinfo)>;

void set_kind(rdma_addrinfo& info, const rdma_addrinfo& hints, int socket_type) {
  info.ai_port_space = hints.ai_port_space;
  if (info.ai_port_space == 0) {
    info.ai_port_space = socket_type == SOCK_DGRAM ? RDMA_PS_UDP : RDMA_PS_TCP;
  }
  info.ai_qp_type = hints.ai_qp_type;
  if (info.ai_qp_type == 0) {
    info.ai_qp_type = info.ai_port_space == RDMA_PS_UDP || info.ai_port_space == RDMA_PS_IPOIB
                          ? IBV_QPT_UD
                          : IBV_QPT_RC;
  }
}

bool copy_address(const sockaddr* from, socklen_t length, sockaddr*& to, socklen_t& to_length) {
  if (from == nullptr || length == 0) return true;
  void* const room = std::calloc(1, sizeof(sockaddr_storage));
  to = static_cast<sockaddr*>(room);
  if (to == nullptr || length > sizeof(sockaddr_storage)) return false;
  std::memcpy(to, from, length);
  to_length = length;
  return true;
}

bool copy_name(const char* from, char*& to) {
  if (from == nullptr) return true;
  to = ::strdup(from);
  return to != nullptr;
}

// The source that leads to the destination, where the program names none.
bool add_source(rdma_addrinfo& info) {
  const auto destination = os::SocketAddress::parse(info.ai_dst_addr, info.ai_dst_len);
  if (!destination) return true;
  const auto source = os::source_towards(destination.value());
  if (!source) return true;
  return copy_address(source.value().get(), source.value().length(), info.ai_src_addr,
                      info.ai_src_len);
}

// A type and a port space that do not fit together are a type and a protocol that do not.
addrinfo socket_hints(const rdma_addrinfo& hints) {
  addrinfo wanted{};
  if ((hints.ai_flags & RAI_PASSIVE) != 0) wanted.ai_flags |= AI_PASSIVE;
  if ((hints.ai_flags & RAI_NUMERICHOST) != 0) wanted.ai_flags |= AI_NUMERICHOST;
  if ((hints.ai_flags & RAI_FAMILY) != 0) wanted.ai_family = hints.ai_family;
  if (hints.ai_qp_type == IBV_QPT_UD) {
    wanted.ai_socktype = SOCK_DGRAM;
  } else if (hints.ai_qp_type != 0) {
    wanted.ai_socktype = SOCK_STREAM;
  }
  switch (hints.ai_port_space) {
    case RDMA_PS_TCP:
      wanted.ai_protocol = IPPROTO_TCP;
      break;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
      wanted.ai_protocol = IPPROTO_UDP;
      break;
    default:  // RDMA_PS_IB has all types
      break;
  }
  return wanted;
}

// 0, an EAI_* value, or -1 with errno.
int look_up(const char* node, const char* service, const rdma_addrinfo& hints,
            rdma_addrinfo& info) {
  const bool is_passive = (hints.ai_flags & RAI_PASSIVE) != 0;
  info.ai_flags = hints.ai_flags;
  if (node == nullptr && service == nullptr) {  // the addresses of the hints
    info.ai_family = hints.ai_family;
    set_kind(info, hints, SOCK_STREAM);
    const bool copied =
        copy_address(hints.ai_src_addr, hints.ai_src_len, info.ai_src_addr, info.ai_src_len) &&
        copy_address(hints.ai_dst_addr, hints.ai_dst_len, info.ai_dst_addr, info.ai_dst_len);
    if (!copied) return minus_one_with(ENOMEM);
    const sockaddr* const known = info.ai_dst_addr != nullptr ? info.ai_dst_addr : info.ai_src_addr;
    if (info.ai_family == 0 && known != nullptr) info.ai_family = known->sa_family;
  } else {
    const addrinfo wanted = socket_hints(hints);
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(node, service, &wanted, &found); error != 0) return error;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> release(found, &::freeaddrinfo);
    info.ai_family = found->ai_family;
    set_kind(info, hints, found->ai_socktype);
    const bool copied =
        is_passive
            ? copy_address(found->ai_addr, found->ai_addrlen, info.ai_src_addr, info.ai_src_len) &&
                  copy_name(found->ai_canonname, info.ai_src_canonname)
            : copy_address(found->ai_addr, found->ai_addrlen, info.ai_dst_addr, info.ai_dst_len) &&
                  copy_name(found->ai_canonname, info.ai_dst_canonname) &&
                  copy_address(hints.ai_src_addr, hints.ai_src_len, info.ai_src_addr,
                               info.ai_src_len);
    if (!copied) return minus_one_with(ENOMEM);
  }
  if (!is_passive && info.ai_src_addr == nullptr && (hints.ai_flags & RAI_NOROUTE) == 0 &&
      !add_source(info)) {
    return minus_one_with(ENOMEM);
  }
  return 0;
}

int get_info(const char* node, const char* service, const rdma_addrinfo* hints,
             rdma_addrinfo** result) {
  if (service == nullptr && node == nullptr && hints == nullptr) return minus_one_with(EINVAL);
  if (auto devices = DeviceTable::instance().list(); !devices) {
    return minus_one_with(devices.error().code);
  }
  static const rdma_addrinfo no_hints{};
  Freed info(static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo))),
             &rdma_freeaddrinfo);
  if (info == nullptr) return minus_one_with(ENOMEM);
  const int error = look_up(node, service, hints != nullptr ? *hints : no_hints, *info);
  if (error != 0) return error;
  *result = info.release();
  return 0;
}

}  // namespace
}  // namespace weft::rdmacm

extern "C" {

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                     rdma_addrinfo** result) {
  using namespace weft::rdmacm;
  if (result == nullptr) return minus_one_with(EINVAL);
  try {
    return get_info(node, service, hints, result);
  } catch (const std::exception&) {
    return minus_one_with(ENOMEM);
  }
}

void rdma_freeaddrinfo(rdma_addrinfo* info) {
  while (info != nullptr) {
    rdma_addrinfo* const next = info->ai_next;
    std::free(info->ai_src_addr);
    std::free(info->ai_dst_addr);
    std::free(info->ai_src_canonname);
    std::free(info->ai_dst_canonname);
    std::free(info->ai_route);
    std::free(info->ai_connect);
    std::free(info);
    info = next;
  }
}

}  // extern "C"
