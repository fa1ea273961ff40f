// SPDX-License-Identifier: BSD-2-Clause
// Which ports does a device have? One, with the number 1.
#pragma once

#include <cstdint>

namespace weft::verbs {

// Whether a device has that port.
constexpr bool is_port(std::uint32_t number) { return number == 1; }

}  // namespace weft::verbs
