// SPDX-License-Identifier: BSD-2-Clause
// How are messages put together, and how long is a service timeout?
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "cm/remote.h"
#include "wire/cm_message.h"

namespace weft::cm {

// A message that has arrived.
struct CmArrival {
  const Remote& from;
  const wire::CmMad& mad;
  std::span<const std::byte> more;  // behind the MAD
  Time now;
};

// The bytes of a message, with those behind it.
std::vector<std::byte> compose(std::uint64_t transaction, const wire::CmMessage& message,
                               std::span<const std::byte> more = {});

// Which message a REJ or an MRA answers (IBTA 12.6.6, 12.6.7).
inline constexpr std::uint8_t kAnswersReq = 0;
inline constexpr std::uint8_t kAnswersRep = 1;
inline constexpr std::uint8_t kAnswersOther = 2;

// Status of a SIDR_REP (IBTA 12.11.2).
inline constexpr std::uint8_t kNoSuchService = 1;
inline constexpr std::uint8_t kRefused = 2;
inline constexpr std::uint8_t kNoQueuePair = 3;

// An MRA tells the other side to ask again after that: 2 s.
inline constexpr std::uint8_t kDecisionTime = 19;

// A GUID in the additional information of a message. Returns its length.
template <std::size_t kBytes>
std::uint8_t put_guid(std::array<std::byte, kBytes>& info, std::uint64_t guid) {
  for (std::size_t i = 0; i < sizeof guid; ++i) {
    info[i] = static_cast<std::byte>(guid >> (56 - 8 * i));
  }
  return sizeof guid;
}
template <std::size_t kBytes>
std::uint64_t get_guid(const std::array<std::byte, kBytes>& info) {
  std::uint64_t guid = 0;
  for (std::size_t i = 0; i < sizeof guid; ++i) {
    guid = guid << 8 | std::to_integer<std::uint64_t>(info[i]);
  }
  return guid;
}

// The queue pair of the acceptor, which a DREQ to it names. A REP of XRC has its target queue pair
// in the place of the EECN.
inline std::uint32_t queue_pair_of(const wire::CmRep& rep) {
  return rep.qpn != 0 ? rep.qpn : rep.eecn;
}

// A rejection; the GUID is the additional information of a timeout.
wire::CmRej rejection(std::uint8_t message, wire::CmReason reason, std::uint64_t guid);

// Private data: those that fit. Returns the rest.
template <std::size_t kBytes>
std::span<const std::byte> put_data(std::array<std::byte, kBytes>& room,
                                    std::span<const std::byte> data) {
  const std::size_t length = std::min(kBytes, data.size());
  std::copy_n(data.begin(), length, room.begin());
  return data.subspan(length);
}

// Of the code of a service timeout: 4.096 us * 2^code (IBTA 12.6.6), at most 70 s.
std::chrono::nanoseconds service_time(std::uint8_t code);

}  // namespace weft::cm
