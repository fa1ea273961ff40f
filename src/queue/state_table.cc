// SPDX-License-Identifier: BSD-2-Clause
// Which attributes does a transition of a queue pair need, and which may it set? (IBTA table 91)
#include "queue/state_table.h"

#include <fmt/format.h>

#include <array>

namespace weft::queue {
namespace {

// Attributes beside the state itself.
struct Transition {
  QpState from;
  QpState to;
  std::uint32_t required[5];  // by QpType
  std::uint32_t optional[5];
};

constexpr std::uint32_t kPkey = kAttributePkeyIndex;
constexpr std::uint32_t kPort = kAttributePort;
constexpr std::uint32_t kAccess = kAttributeAccess;
constexpr std::uint32_t kKey = kAttributeQueueKey;
constexpr std::uint32_t kCurrent = kAttributeCurrentState;
constexpr std::uint32_t kAlternate = kAttributeAlternatePath;
constexpr std::uint32_t kMigration = kAttributePathMigration;
constexpr std::uint32_t kRnrTimer = kAttributeRnrTimer;
constexpr std::uint32_t kNotice = kAttributeDrainedNotice;

constexpr std::uint32_t kToInit = kPkey | kPort | kAccess;
constexpr std::uint32_t kConnect =
    kAttributeAddress | kAttributePathMtu | kAttributeDestination | kAttributeReceivePsn;
constexpr std::uint32_t kReliableTarget = kAttributeMaxReadsOfPeer | kRnrTimer;
constexpr std::uint32_t kReliableInitiator =
    kAttributeTimeout | kAttributeRetries | kAttributeRnrRetries | kAttributeMaxReads;
constexpr std::uint32_t kAtRtr = kAlternate | kAccess | kPkey;
constexpr std::uint32_t kAtRts = kCurrent | kAlternate | kAccess | kMigration;
// Nearly all attributes may be set while the send queue is drained.
constexpr std::uint32_t kAtSqd =
    kPkey | kPort | kAccess | kAttributeAddress | kAlternate | kMigration;

using enum QpState;
// In the order RC, UC, UD, XRC send, XRC receive.
constexpr std::array kTransitions = {
    Transition{kReset, kInit, {kToInit, kToInit, kPkey | kPort | kKey, kToInit, kToInit}, {}},
    Transition{kInit, kInit, {}, {kToInit, kToInit, kPkey | kPort | kKey, kToInit, kToInit}},
    Transition{kInit,
               kReadyToReceive,
               {kConnect | kReliableTarget, kConnect, 0, kConnect, kConnect | kReliableTarget},
               {kAtRtr, kAtRtr, kPkey | kKey, kAtRtr, kAtRtr}},
    Transition{kReadyToReceive,
               kReadyToSend,
               {kReliableInitiator | kAttributeSendPsn, kAttributeSendPsn, kAttributeSendPsn,
                kReliableInitiator | kAttributeSendPsn, kAttributeTimeout | kAttributeSendPsn},
               {kAtRts | kRnrTimer, kAtRts, kCurrent | kKey, kAtRts, kAtRts | kRnrTimer}},
    Transition{kReadyToSend,
               kReadyToSend,
               {},
               {kAtRts | kRnrTimer, kAtRts, kCurrent | kKey, kAtRts, kAtRts | kRnrTimer}},
    Transition{kReadyToSend, kSendQueueDrained, {}, {kNotice, kNotice, kNotice, kNotice, kNotice}},
    Transition{kSendQueueDrained,
               kReadyToSend,
               {},
               {kAtRts | kRnrTimer, kAtRts, kCurrent | kKey, kAtRts, kAtRts | kRnrTimer}},
    Transition{kSendQueueDrained,
               kSendQueueDrained,
               {},
               {kAtSqd | kRnrTimer | kReliableInitiator | kAttributeMaxReadsOfPeer, kAtSqd,
                kPkey | kKey, kAtSqd | kReliableInitiator,
                kAtSqd | kRnrTimer | kAttributeTimeout | kAttributeMaxReadsOfPeer}},
    Transition{kSendQueueError, kReadyToSend, {}, {0, kCurrent | kAccess, kCurrent | kKey, 0, 0}},
};

}  // namespace

const char* name_of(QpState state) {
  switch (state) {
    case kReset:
      return "RESET";
    case kInit:
      return "INIT";
    case kReadyToReceive:
      return "RTR";
    case kReadyToSend:
      return "RTS";
    case kSendQueueDrained:
      return "SQD";
    case kSendQueueError:
      return "SQE";
    case kError:
      return "ERR";
  }
  return "no state";
}

Status check_transition(QpType type, QpState from, QpState to, std::uint32_t mask) {
  const std::uint32_t given = mask & ~kAttributeState;
  const auto refuse = [&](const std::string& why) {
    return Error{EINVAL, fmt::format("{} to {}: {}", name_of(from), name_of(to), why)};
  };
  if (to == kReset || to == kError) {
    return given == 0 ? Status() : refuse(fmt::format("attributes {:#x} are not allowed", given));
  }
  const auto index = static_cast<std::size_t>(type);
  for (const Transition& each : kTransitions) {
    if (each.from != from || each.to != to) continue;
    const std::uint32_t missing = each.required[index] & ~given;
    const std::uint32_t extra = given & ~(each.required[index] | each.optional[index]);
    if (missing != 0) return refuse(fmt::format("attributes {:#x} are missing", missing));
    if (extra != 0) return refuse(fmt::format("attributes {:#x} are not allowed", extra));
    return {};
  }
  return refuse("no such transition");
}

}  // namespace weft::queue
