// SPDX-License-Identifier: BSD-2-Clause
// How does a flow access the memory of its peer?
#include "accesses.h"

#include <cerrno>

#include "link/local_buffers.h"
#include "os/user_memory.h"

namespace weft::rdm {

using link::Outcome;
using work::Work;
using work::WorkKind;

std::uint32_t Accesses::wire_key(RegionKey key) {
  return aliases_.wire_key(key,
                           [this](const MessageHeader& header) { queue_.post_control(header); });
}

Outcome Accesses::access(const link::AccessRequest& request) {
  if (const Outcome may = queue_.may_begin(); may.state != Outcome::State::kDone) return may;
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  RdmOperation& operation = queue_.begin(request.cookie, true);
  operation.borrows = true;
  operation.follows_reads = request.write;
  if (!request.write) queue_.operations().mark_as_read(operation);
  std::span<const LocalRange> local = request.local;
  LocalRange copied;
  operation.copy.resize(kMessageHeader);
  if (request.write && request.must_copy) {
    operation.copy.resize(kMessageHeader + request.length);
    copied = {operation.copy.data() + kMessageHeader, request.length};
    if (!os::gather(copied.base, request.local, request.length)) return queue_.fault(operation);
    local = {&copied, 1};
    operation.borrows = false;
  }
  const bool announced = is_announced(request.write, request.remote);
  if (announced) {
    std::byte list[link::kMaxLinkSges * kRange];
    queue_.send_control(announcement_of(request.write, request.remote),
                        {list, write_ranges(request.remote, list)});
  }
  if (request.has_data) {
    MessageHeader write_imm_info;
    write_imm_info.kind = MessageKind::kWriteImmInfo;
    write_imm_info.data = request.data;
    write_imm_info.length = request.length;
    queue_.post_header(operation, write_imm_info, 0);
  }
  std::uint64_t offset = 0;
  for (const RemoteRange& range : request.remote) {
    Work work;
    work.kind = request.write ? WorkKind::kWrite : WorkKind::kRead;
    work.has_immediate = request.has_data && &range == &request.remote.back();
    work.length = range.length;
    work.address = range.address;
    work.key = wire_key(range.key);
    queue_.post_access(operation, work, local, offset);
    offset += range.length;
  }
  if (announced) {
    MessageHeader end;
    end.kind = MessageKind::kRangeEnd;
    queue_.send_control(end);
  }
  queue_.started(operation);
  return Outcome::pending();
}

Outcome Accesses::atomic(const link::AtomicRequest& request) {
  if (const Outcome may = queue_.may_begin(); may.state != Outcome::State::kDone) return may;
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  RdmOperation& operation = queue_.begin(request.cookie, true);
  operation.borrows = request.action.fetches();
  operation.follows_reads = true;
  operation.awaits_answer = true;
  queue_.name(operation);
  operation.keep(request.result, request.action.fetches() ? request.length : 0);
  const std::size_t ranges = request.remote.size() * kRange;
  const std::size_t operand = request.action.has_operand() ? request.length : 0;
  const std::size_t compare = request.action.compares() ? request.length : 0;
  operation.copy.resize(kMessageHeader + ranges + operand + compare);
  std::byte* at = operation.copy.data() + kMessageHeader;
  at += write_ranges(request.remote, at);
  if (!os::gather(at, request.operand, operand) ||
      !os::gather(at + operand, request.compare, compare)) {
    return queue_.fault(operation);
  }
  MessageHeader header;
  header.kind = MessageKind::kAtomic;
  header.has_data = request.has_data;
  header.action = request.action;
  header.rendezvous_id = operation.rendezvous_id;
  header.tag = request.remote.size();
  header.data = request.data;
  header.length = request.length;
  queue_.post_header(operation, header, ranges + operand + compare);
  queue_.started(operation);
  return Outcome::pending();
}

}  // namespace weft::rdm
