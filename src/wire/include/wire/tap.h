// SPDX-License-Identifier: BSD-2-Clause
// How does an observer see packets as they come and go?
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "wire/icrc.h"
#include "wire/pcapng.h"

namespace weft::wire {

// Hears of packets. Any thread.
class Tap {
 public:
  virtual ~Tap() = default;
  // False when it wants no more packets: they need not be made.
  virtual bool takes() const = 0;
  // A UDP payload that went over `route`: a RoCEv2 packet (base header to ICRC), or a record in its
  // place. `remark`, if any, says what is special about it. Nothing of the arguments is kept.
  virtual void packet(CaptureDirection direction, const Route& route, Ipv4Words words,
                      std::span<const std::byte> datagram, std::string_view remark) = 0;
};

}  // namespace weft::wire
