// SPDX-License-Identifier: BSD-2-Clause
// In which dimensions can data transfers differ, and which of their values make sense together?
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "atomic.h"
#include "covering.h"
#include "domain.h"
#include "operation.h"

namespace weft::conformance {

// What is done.
enum class Call : std::uint8_t {
  kSend,
  kTsend,
  kInject,
  kTinject,
  kSenddata,
  kTsenddata,
  kInjectdata,
  kTinjectdata,
  kMultiReceive,  // sends into a buffer that takes several
  kWrite,
  kInjectWrite,
  kWritedata,
  kInjectWritedata,
  kRead,
  kAtomic,
  kInjectAtomic,
  kFetchAtomic,
  kCompareAtomic,
};
inline constexpr std::size_t kCalls = 18;

// Where the two sides live.
enum class Where : std::uint8_t { kOneProcess, kProcesses };

// When, and whether, a completion is reported: at a level (fi_cq(3)), or selectively, asked for by
// each call or by none.
enum class Report : std::uint8_t { kDefault, kInject, kTransmit, kDelivery, kSelected, kSilent };

// How one waits: polls, blocks on completion queues and counters by an object of this kind, or
// blocks on counters only.
enum class Wait : std::uint8_t { kNone, kUnspec, kFd, kMutexCond, kYield, kSet, kCounter };

enum class Size : std::uint8_t {
  kNothing,
  kByte,
  kWord,
  kInject,  // the limit
  kBelowEager,
  kEager,  // up to here weft copies through shared memory
  kAboveEager,
  kLarge,
  kHuge,
};

// Trivially copyable: it travels to peer processes.
struct Point {
  Call call = Call::kSend;
  fi_ep_type type = FI_EP_RDM;
  Where where = Where::kOneProcess;
  Report report = Report::kDefault;
  Wait wait = Wait::kNone;
  Size size = Size::kWord;
  std::size_t peers = 1;
};

const Matrix& transfer_matrix();
Point point_of(const Choice& choice);
// For the name of a test.
std::string name_of(const Point& point);

struct CallTraits {
  const char* name;
  Kind kind = Kind::kSend;           // of messages and remote accesses
  Kind with_flags = Kind::kSendmsg;  // the same with flags
  bool atomic = false;
  Form form = Form::kBase;  // of atomic operations
  bool inject = false;      // reports nothing
};
const CallTraits& traits(Call call);
inline bool is_message(Call call) { return call <= Call::kMultiReceive; }
// The call carries data for the target's completion.
inline bool has_data(Call call) { return !traits(call).atomic && traits(traits(call).kind).data; }
inline bool is_read(Call call) {
  const CallTraits& one = traits(call);
  return one.atomic ? one.form != Form::kBase : traits(one.kind).read;
}

// What endpoints for this point are opened with.
Options options_for(const Point& point);
std::size_t bytes_of(Size size, std::size_t inject_size);

}  // namespace weft::conformance
