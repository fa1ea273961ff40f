// SPDX-License-Identifier: BSD-2-Clause
// What do the codes of timers mean?
#include "transport/settings.h"

namespace weft::transport {

Duration rnr_wait(std::uint8_t code) {
  constexpr std::uint32_t kMicroseconds[32] = {
      655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,   320,
      480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240, 15360,
      20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};
  return std::chrono::microseconds(kMicroseconds[code & 31]);
}

Duration ack_timeout(std::uint8_t code) {
  if (code == 0) return Duration::max();
  return Duration(std::int64_t{4096} << (code & 31));
}

}  // namespace weft::transport
