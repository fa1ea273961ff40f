// SPDX-License-Identifier: BSD-2-Clause
// Which values are there in each dimension, how are they called, and which exclude each other?
#include "point.h"

#include <algorithm>
#include <array>

namespace weft::conformance {
namespace {

enum Dimension : std::size_t { kCall, kType, kWhere, kReport, kWait, kSize, kPeers };

constexpr std::array<CallTraits, kCalls> kTraits{{
    {"Send", Kind::kSend, Kind::kSendmsg},
    {"Tsend", Kind::kTsend, Kind::kTsendmsg},
    {"Inject", Kind::kInject, Kind::kInject, false, Form::kBase, true},
    {"Tinject", Kind::kTinject, Kind::kTinject, false, Form::kBase, true},
    {"Senddata", Kind::kSenddata, Kind::kSendmsg},
    {"Tsenddata", Kind::kTsenddata, Kind::kTsendmsg},
    {"Injectdata", Kind::kInjectdata, Kind::kInjectdata, false, Form::kBase, true},
    {"Tinjectdata", Kind::kTinjectdata, Kind::kTinjectdata, false, Form::kBase, true},
    {"MultiReceive", Kind::kSend, Kind::kSendmsg},
    {"Write", Kind::kWrite, Kind::kWritemsg},
    {"InjectWrite", Kind::kInjectWrite, Kind::kInjectWrite, false, Form::kBase, true},
    {"Writedata", Kind::kWritedata, Kind::kWritemsg},
    {"InjectWritedata", Kind::kInjectWritedata, Kind::kInjectWritedata, false, Form::kBase, true},
    {"Read", Kind::kRead, Kind::kReadmsg},
    {"Atomic", Kind::kSend, Kind::kSend, true, Form::kBase},
    {"InjectAtomic", Kind::kSend, Kind::kSend, true, Form::kBase, true},
    {"FetchAtomic", Kind::kSend, Kind::kSend, true, Form::kFetch},
    {"CompareAtomic", Kind::kSend, Kind::kSend, true, Form::kCompare},
}};
constexpr fi_ep_type kTypes[] = {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM};
constexpr const char* kTypeNames[] = {"Rdm", "Msg", "Dgram"};
constexpr const char* kWhereNames[] = {"OneProcess", "Processes"};
constexpr const char* kReportNames[] = {"Default",  "Inject",   "Transmit",
                                        "Delivery", "Selected", "Silent"};
constexpr const char* kWaitNames[] = {"None",  "Unspec", "Fd",     "MutexCond",
                                      "Yield", "Set",    "Counter"};
constexpr const char* kSizeNames[] = {
    "0", "1", "8", "InjectLimit", "BelowEager", "EagerLimit", "AboveEager", "64KiB", "1MiB"};
constexpr std::size_t kPeerCounts[] = {1, 2, 3, 8, 16};

bool makes_sense(Call call, fi_ep_type type) {
  const bool plain = !traits(call).atomic && !traits(traits(call).kind).tagged;
  return type != FI_EP_DGRAM || (is_message(call) && plain);
}

bool makes_sense(Call call, Size size) {
  if (traits(call).atomic) {
    return size == Size::kByte || size == Size::kWord || size == Size::kInject;
  }
  return size <= Size::kInject || !traits(call).inject;
}

bool makes_sense(fi_ep_type type, Report report) {
  return type != FI_EP_DGRAM || report != Report::kDelivery;
}

bool makes_sense(fi_ep_type type, Size size) {
  return type != FI_EP_DGRAM || size <= Size::kInject;
}

// `a` is of the lower dimension.
bool meet_in_order(Value a, Value b) {
  const auto call = static_cast<Call>(a.number);
  if (a.dimension == kCall && b.dimension == kType) return makes_sense(call, kTypes[b.number]);
  if (a.dimension == kCall && b.dimension == kSize) {
    return makes_sense(call, static_cast<Size>(b.number));
  }
  if (a.dimension != kType) return true;
  if (b.dimension == kReport) return makes_sense(kTypes[a.number], static_cast<Report>(b.number));
  return b.dimension != kSize || makes_sense(kTypes[a.number], static_cast<Size>(b.number));
}

std::uint64_t flag_of(Report report) {
  switch (report) {
    case Report::kInject:
      return FI_INJECT_COMPLETE;
    case Report::kTransmit:
      return FI_TRANSMIT_COMPLETE;
    case Report::kDelivery:
      return FI_DELIVERY_COMPLETE;
    case Report::kDefault:
    case Report::kSelected:
    case Report::kSilent:
      break;
  }
  return 0;
}

}  // namespace

const CallTraits& traits(Call call) { return kTraits[static_cast<std::size_t>(call)]; }

const Matrix& transfer_matrix() {
  static const Matrix matrix{
      {kCalls, std::size(kTypes), std::size(kWhereNames), std::size(kReportNames),
       std::size(kWaitNames), std::size(kSizeNames), std::size(kPeerCounts)},
      [](Value a, Value b) {
        return a.dimension < b.dimension ? meet_in_order(a, b) : meet_in_order(b, a);
      }};
  return matrix;
}

Point point_of(const Choice& choice) {
  return {static_cast<Call>(choice[kCall]),   kTypes[choice[kType]],
          static_cast<Where>(choice[kWhere]), static_cast<Report>(choice[kReport]),
          static_cast<Wait>(choice[kWait]),   static_cast<Size>(choice[kSize]),
          kPeerCounts[choice[kPeers]]};
}

std::string name_of(const Point& point) {
  const auto number = [](auto value) { return static_cast<std::size_t>(value); };
  const auto type = std::find(std::begin(kTypes), std::end(kTypes), point.type) - kTypes;
  return std::string(traits(point.call).name) + "_" + kTypeNames[type] + "_" +
         kWhereNames[number(point.where)] + "_" + kReportNames[number(point.report)] + "_" +
         kWaitNames[number(point.wait)] + "_" + kSizeNames[number(point.size)] + "_" +
         std::to_string(point.peers);
}

Options options_for(const Point& point) {
  constexpr std::uint64_t kAtomicOrder =
      FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
  Options options;
  options.type = point.type;
  options.caps = FI_MSG | FI_MULTI_RECV;
  options.order = 0;
  if (point.type != FI_EP_MSG) options.caps |= FI_DIRECTED_RECV;
  if (point.type != FI_EP_DGRAM) {
    options.caps |= FI_TAGGED | FI_RMA | FI_ATOMIC;
    options.order = FI_ORDER_SAS | FI_ORDER_SAW | kAtomicOrder;
  }
  if (point.where == Where::kOneProcess) {
    options.mr_mode = FI_MR_BASIC;
  }
  options.tx_flags = flag_of(point.report);
  const bool selective = point.report == Report::kSelected || point.report == Report::kSilent;
  if (selective) options.cq_flags = FI_SELECTIVE_COMPLETION;
  return options;
}

std::size_t bytes_of(Size size, std::size_t inject_size) {
  constexpr std::size_t kEagerLimit = 8192;
  switch (size) {
    case Size::kNothing:
      return 0;
    case Size::kByte:
      return 1;
    case Size::kWord:
      return 8;
    case Size::kInject:
      return inject_size;
    case Size::kBelowEager:
      return kEagerLimit - 1;
    case Size::kEager:
      return kEagerLimit;
    case Size::kAboveEager:
      return kEagerLimit + 1;
    case Size::kLarge:
      return 65536;
    case Size::kHuge:
      return (1 << 20) + 3;
  }
  return 0;
}

}  // namespace weft::conformance
