// SPDX-License-Identifier: BSD-2-Clause
// What tells a network interface from every other one, here and on other hosts?
#include "os/interface_identity.h"

#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>

#include "os/cancellation.h"
#include "os/fd.h"

namespace weft::os {
namespace {

constexpr std::uint64_t kLocalBit = std::uint64_t{2} << 56;  // of the first octet

// FNV-1a, 64 bits: spreads well, and no secret depends on it.
std::uint64_t mix(std::uint64_t hash, std::string_view text) {
  for (const char byte : text) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100'0000'01B3U;
  }
  return hash;
}

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

std::string network_namespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/net", &info) == 0 ? std::to_string(info.st_ino) : "";
}

std::uint64_t eui64_of(const HardwareAddress& address) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 3; ++i) number = number << 8 | address[i];
  number = number << 16 | 0xFFFE;
  for (std::size_t i = 3; i < 6; ++i) number = number << 8 | address[i];
  return number ^ kLocalBit;
}

}  // namespace

HardwareAddress hardware_address(const std::string& interface) {
  const CancellationOff off;
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  HardwareAddress address{};
  if (::ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0 ||
      request.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
    return address;
  }
  std::memcpy(address.data(), request.ifr_hwaddr.sa_data, address.size());
  return address;
}

std::uint64_t interface_identity(const std::string& interface) {
  const HardwareAddress address = hardware_address(interface);
  if (address != HardwareAddress{}) return eui64_of(address);
  const CancellationOff off;
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325U;
  for (const std::string& part : {boot_id(), network_namespace(), interface}) {
    hash = mix(mix(hash, part), "/");
  }
  return hash | kLocalBit;
}

}  // namespace weft::os
