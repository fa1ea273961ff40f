// SPDX-License-Identifier: BSD-2-Clause
// What tells a network interface from every other one, here and on other hosts?
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weft::os {

// Octets of an Ethernet address.
using HardwareAddress = std::array<std::uint8_t, 6>;

// The Ethernet address of that interface; zeros where it has none (the loopback) and in case of an
// error.
HardwareAddress hardware_address(const std::string& interface);

// A number of that interface: its Ethernet address as EUI-64 (RFC 4291, appendix A), or, where it
// has none, a number of its name, its network namespace and the boot of its host, marked as locally
// administered. Never 0, and the same in all processes of the namespace.
std::uint64_t interface_identity(const std::string& interface);

}  // namespace weft::os
