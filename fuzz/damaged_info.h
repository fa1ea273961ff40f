// SPDX-License-Identifier: BSD-2-Clause
// How does a fuzzer damage what a program passes to libfabric: attributes, names, keys, addresses?
#pragma once

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "input.h"

namespace weft::fuzz {

inline std::uint64_t draw_number(Input& input) {
  constexpr std::uint64_t kGiga = std::uint64_t{1} << 30;
  return input.number({0, 2, 4, 8, 64, 256, 4096, 8192, 65'535, 65'536, 1 << 20, 1 << 24, kGiga,
                       2 * kGiga, 4 * kGiga, kGiga << 16, ~std::uint64_t{0}});
}

// Flags: none, one, or any.
inline std::uint64_t draw_flags(Input& input) {
  const std::uint8_t choice = input.byte();
  if (choice < 0x60) return 0;
  return choice < 0xf0 ? std::uint64_t{1} << (choice & 63) : input.word();
}

// A bit of the member changes, or all of it.
template <class Member>
void damage(Input& input, Member& member) {
  std::uint64_t number = 0;
  std::memcpy(&number, &member, sizeof member);
  const std::uint8_t choice = input.byte();
  if (choice < 0x80) {
    number ^= std::uint64_t{1} << (choice & 63);
  } else {
    number = draw_number(input);
  }
  std::memcpy(&member, &number, sizeof member);
}

// Damages one of the members.
template <class... Member>
void damage_one(Input& input, Member&... member) {
  std::uint32_t left = input.below(sizeof...(member));
  ((left-- == 0 ? damage(input, member) : void()), ...);
}

// As many bytes as an allocation has, so that ASan sees the first one behind them.
using Bytes = std::vector<std::uint8_t>;

inline Bytes draw_bytes(Input& input, std::uint32_t most) {
  Bytes bytes(input.below(most + 1));
  input.bytes(bytes.data(), bytes.size());
  return bytes;
}

// A host of the loopback interface, each one, or a group.
inline void draw_host(Input& input, sockaddr_in& address) {
  constexpr std::uint32_t kHosts[] = {INADDR_LOOPBACK, INADDR_ANY, INADDR_LOOPBACK + 1,
                                      INADDR_ALLHOSTS_GROUP};
  address.sin_addr.s_addr = htonl(kHosts[input.below(std::size(kHosts))]);
}
inline void draw_host(Input& input, sockaddr_in6& address) {
  in6_addr group = in6addr_any;
  group.s6_addr[0] = 0xff;
  const in6_addr hosts[] = {in6addr_loopback, in6addr_any, group};
  address.sin6_addr = hosts[input.below(std::size(hosts))];
  damage_one(input, address.sin6_scope_id, address.sin6_flowinfo);
}

// An address as libfabric's calls without a length take it: as long as its family says.
inline Bytes draw_address(Input& input) {
  sockaddr_in6 address{};
  const std::uint8_t choice = input.byte();
  const bool is_6 = choice >= 0xa0 && choice < 0xf0;
  if (is_6) {
    address.sin6_family = AF_INET6;
    draw_host(input, address);
  } else {
    auto& old = reinterpret_cast<sockaddr_in&>(address);
    old.sin_family = choice < 0xf0 ? AF_INET : input.byte();
    draw_host(input, old);
  }
  if (input.byte() >= 0x80) address.sin6_port = static_cast<in_port_t>(input.below(0x1'0000));
  const auto* first = reinterpret_cast<const std::uint8_t*>(&address);
  const bool is_long = address.sin6_family == AF_INET6;
  return {first, first + (is_long ? sizeof(sockaddr_in6) : sizeof(sockaddr_in))};
}

// The same, or cut off.
inline Bytes draw_part_of_address(Input& input) {
  Bytes address = draw_address(input);
  if (input.byte() >= 0xc0) address.resize(input.below(40));
  address.shrink_to_fit();
  return address;
}

inline std::string draw_name(Input& input, const std::string& usual) {
  switch (input.below(5)) {
    case 0:
      return usual;
    case 1:
      return "";
    case 2:
      return usual.substr(0, usual.size() / 2);
    case 3:
      return std::string(5000, 'x');
    default: {
      const Bytes bytes = draw_bytes(input, 30);
      return {bytes.begin(), bytes.end()};
    }
  }
}

// An fi_info of a program that owns all of it.
class DamagedInfo {
 public:
  // Pointers to objects that the damaged info may name; each may be null.
  struct Named {
    fid* handle = nullptr;
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
  };

  explicit DamagedInfo(const fi_info& whole) : info_(whole) {
    info_.next = nullptr;
    take(whole.tx_attr, info_.tx_attr, tx_);
    take(whole.rx_attr, info_.rx_attr, rx_);
    take(whole.ep_attr, info_.ep_attr, ep_);
    take(whole.domain_attr, info_.domain_attr, domain_);
    take(whole.fabric_attr, info_.fabric_attr, fabric_);
    take_address(whole.src_addr, whole.src_addrlen, source_, info_.src_addr);
    take_address(whole.dest_addr, whole.dest_addrlen, destination_, info_.dest_addr);
    take_name(domain_.name, domain_name_);
    take_name(fabric_.name, fabric_name_);
  }
  DamagedInfo(const DamagedInfo&) = delete;
  DamagedInfo& operator=(const DamagedInfo&) = delete;

  fi_info* get() { return &info_; }
  fi_tx_attr* tx() { return info_.tx_attr; }
  fi_rx_attr* rx() { return info_.rx_attr; }
  fi_fabric_attr* fabric() { return info_.fabric_attr; }

  // Changes a few of its members.
  void damage_some(Input& input, const Named& named) {
    for (std::uint32_t i = input.below(4); i != 0; --i) damage_part(input, named);
  }

 private:
  template <class Attributes>
  static void take(const Attributes* from, Attributes*& place, Attributes& own) {
    if (from != nullptr) own = *from;
    place = from != nullptr ? &own : nullptr;
  }
  static void take_address(const void* from, std::size_t length, Bytes& own, void*& place) {
    if (from == nullptr) return;
    const auto* bytes = static_cast<const std::uint8_t*>(from);
    own.assign(bytes, bytes + length);
    place = own.data();
  }
  static void take_name(char*& name, std::string& own) {
    if (name == nullptr) return;
    own = name;
    name = own.data();
  }

  void damage_part(Input& input, const Named& named) {
    switch (input.below(10)) {
      case 0:
        return damage_one(input, info_.caps, info_.mode, info_.addr_format);
      case 1:
        return damage_one(input, tx_.caps, tx_.mode, tx_.op_flags, tx_.msg_order, tx_.comp_order,
                          tx_.inject_size, tx_.size, tx_.iov_limit, tx_.rma_iov_limit, tx_.tclass);
      case 2:
        return damage_one(input, rx_.caps, rx_.mode, rx_.op_flags, rx_.msg_order, rx_.comp_order,
                          rx_.total_buffered_recv, rx_.size, rx_.iov_limit);
      case 3:
        return damage_one(input, ep_.type, ep_.protocol, ep_.protocol_version, ep_.max_msg_size,
                          ep_.msg_prefix_size, ep_.max_order_raw_size, ep_.max_order_war_size,
                          ep_.max_order_waw_size, ep_.mem_tag_format, ep_.tx_ctx_cnt,
                          ep_.rx_ctx_cnt);
      case 4:
        return damage_domain(input);
      case 5:
        return damage_one(input, fabric_.prov_version, fabric_.api_version);
      case 6:
        return drop_one(input);
      case 7:
        return rename_one(input);
      case 8:
        return damage_addresses(input);
      default:
        return damage_pointers(input, named);
    }
  }
  void damage_domain(Input& input) {
    damage_one(input, domain_.threading, domain_.control_progress, domain_.data_progress,
               domain_.resource_mgmt, domain_.av_type, domain_.mr_mode, domain_.mr_key_size,
               domain_.cq_data_size, domain_.cq_cnt, domain_.ep_cnt, domain_.tx_ctx_cnt,
               domain_.rx_ctx_cnt, domain_.max_ep_tx_ctx, domain_.max_ep_rx_ctx,
               domain_.max_ep_stx_ctx, domain_.max_ep_srx_ctx, domain_.cntr_cnt,
               domain_.mr_iov_limit, domain_.caps, domain_.mode, domain_.max_err_data,
               domain_.mr_cnt, domain_.tclass);
  }
  void drop_one(Input& input) {
    switch (input.below(5)) {
      case 0:
        info_.tx_attr = nullptr;
        return;
      case 1:
        info_.rx_attr = nullptr;
        return;
      case 2:
        info_.ep_attr = nullptr;
        return;
      case 3:
        info_.domain_attr = nullptr;
        return;
      default:
        info_.fabric_attr = nullptr;
    }
  }
  void rename_one(Input& input) {
    const bool is_domain = input.byte() % 2 != 0;
    std::string& own = is_domain ? domain_name_ : fabric_name_;
    char*& name = is_domain ? domain_.name : fabric_.name;
    own = draw_name(input, own);
    name = input.byte() >= 0xc0 ? nullptr : own.data();
  }
  void damage_addresses(Input& input) {
    const bool is_source = input.byte() < 0xc0;
    Bytes& own = is_source ? source_ : destination_;
    own = draw_part_of_address(input);
    void* const place = input.byte() >= 0xc0 ? nullptr : own.data();
    (is_source ? info_.src_addr : info_.dest_addr) = place;
    (is_source ? info_.src_addrlen : info_.dest_addrlen) = own.size();
  }
  template <class Attributes>
  void damage_key(Input& input, Attributes& attributes) {
    key_ = draw_bytes(input, 80);
    attributes.auth_key = key_.data();
    attributes.auth_key_size = key_.size();
    if (input.byte() < 0xc0) return;
    attributes.auth_key = nullptr;
    damage(input, attributes.auth_key_size);
  }
  // Both keys are the same bytes.
  void damage_pointers(Input& input, const Named& named) {
    switch (input.below(4)) {
      case 0:
        ep_.auth_key_size = 0;
        return damage_key(input, domain_);
      case 1:
        domain_.auth_key_size = 0;
        return damage_key(input, ep_);
      case 2:
        info_.handle = named.handle;
        return;
      default:
        fabric_.fabric = named.fabric;
        domain_.domain = named.domain;
    }
  }

  fi_info info_;
  fi_tx_attr tx_{};
  fi_rx_attr rx_{};
  fi_ep_attr ep_{};
  fi_domain_attr domain_{};
  fi_fabric_attr fabric_{};
  std::string domain_name_;
  std::string fabric_name_;
  Bytes source_;
  Bytes destination_;
  Bytes key_;
};

}  // namespace weft::fuzz
