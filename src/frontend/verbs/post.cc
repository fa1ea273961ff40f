// SPDX-License-Identifier: BSD-2-Clause
// Work requests: ibv_post_send(3), ibv_post_recv(3), ibv_post_srq_recv(3)

#include <array>
#include <cerrno>
#include <optional>

#include "boundary.h"
#include "operations.h"
#include "qp.h"
#include "wire/endian.h"

namespace weft::verbs {
namespace {

using queue::CompletionOpcode;
using work::WorkKind;

constexpr unsigned kSendFlags =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

using Segments = std::array<work::Segment, queue::kMaxSges>;

// False when there are more entries than the device takes, or a list is missing.
bool read_sges(const ibv_sge* list, int count, Segments& out) {
  if (count < 0 || count > static_cast<int>(out.size()) || (count != 0 && list == nullptr)) {
    return false;
  }
  for (int i = 0; i < count; ++i) {
    out[static_cast<std::size_t>(i)] = segment_of(list[i]);
  }
  return true;
}

struct WrOperation {
  WorkKind kind;
  CompletionOpcode opcode;
  bool has_immediate;
};

std::optional<WrOperation> operation_of(unsigned opcode) {
  if (opcode > IBV_WR_ATOMIC_WRITE) return std::nullopt;
  switch (static_cast<ibv_wr_opcode>(opcode)) {
    case IBV_WR_SEND:
      return WrOperation{WorkKind::kSend, CompletionOpcode::kSend, false};
    case IBV_WR_SEND_WITH_IMM:
      return WrOperation{WorkKind::kSend, CompletionOpcode::kSend, true};
    case IBV_WR_RDMA_WRITE:
      return WrOperation{WorkKind::kWrite, CompletionOpcode::kWrite, false};
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return WrOperation{WorkKind::kWrite, CompletionOpcode::kWrite, true};
    case IBV_WR_RDMA_READ:
      return WrOperation{WorkKind::kRead, CompletionOpcode::kRead, false};
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return WrOperation{WorkKind::kCompareSwap, CompletionOpcode::kCompareSwap, false};
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return WrOperation{WorkKind::kFetchAdd, CompletionOpcode::kFetchAdd, false};
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_TSO:
    case IBV_WR_DRIVER1:
    case IBV_WR_ATOMIC_WRITE:
      break;
  }
  return std::nullopt;
}

// An errno, or 0.
int read_request(ibv_qp_type type, const ibv_send_wr& from, Segments& segments,
                 queue::QpSendRequest& to) {
  const auto operation = operation_of(number_in(from.opcode));
  if (!operation || (from.send_flags & ~kSendFlags) != 0) return EINVAL;
  if (!read_sges(from.sg_list, from.num_sge, segments)) return EINVAL;
  to.id = from.wr_id;
  to.opcode = operation->opcode;
  to.signaled = (from.send_flags & IBV_SEND_SIGNALED) != 0;
  to.copied = (from.send_flags & IBV_SEND_INLINE) != 0;
  work::Work& work = to.work;
  work.kind = operation->kind;
  work.has_immediate = operation->has_immediate;
  if (work.has_immediate) work.immediate = wire::swapped(from.imm_data);
  work.solicited = (from.send_flags & IBV_SEND_SOLICITED) != 0;
  work.fence = (from.send_flags & IBV_SEND_FENCE) != 0;
  work.sges = {segments.data(), static_cast<std::size_t>(from.num_sge)};
  for (const work::Segment& each : work.sges) work.length += each.length;
  if (type == IBV_QPT_UD) {
    if (from.wr.ud.ah == nullptr) return EINVAL;
    to.to = object_of(from.wr.ud.ah).address.get();
    to.destination = from.wr.ud.remote_qpn & 0xFF'FFFF;
    to.queue_key = from.wr.ud.remote_qkey;
  } else if (work.kind == WorkKind::kWrite || work.kind == WorkKind::kRead) {
    work.address = from.wr.rdma.remote_addr;
    work.key = from.wr.rdma.rkey;
  } else if (work.kind != WorkKind::kSend) {
    const bool compares = work.kind == WorkKind::kCompareSwap;
    work.address = from.wr.atomic.remote_addr;
    work.key = from.wr.atomic.rkey;
    work.compare = from.wr.atomic.compare_add;
    work.swap_or_add = compares ? from.wr.atomic.swap : from.wr.atomic.compare_add;
  }
  if (type == IBV_QPT_XRC_SEND) work.shared_receive = from.qp_type.xrc.remote_srqn & 0xFF'FFFF;
  return 0;
}

// Posts a list of receives by post(id, segments), which returns an errno, until one fails.
template <class Post>
int post_receives(ibv_recv_wr* first, ibv_recv_wr** bad, const Post& post) {
  for (ibv_recv_wr* each = first; each != nullptr; each = each->next) {
    Segments segments;
    int error = EINVAL;
    if (read_sges(each->sg_list, each->num_sge, segments)) {
      error =
          post(each->wr_id, std::span(segments.data(), static_cast<std::size_t>(each->num_sge)));
    }
    if (error == 0) continue;
    if (bad != nullptr) *bad = each;
    return error;
  }
  return 0;
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  queue::QueuePair::Posting posting(*object_of(qp).core);
  for (ibv_send_wr* each = first; each != nullptr; each = each->next) {
    Segments segments;
    queue::QpSendRequest request;
    int error = read_request(qp->qp_type, *each, segments, request);
    if (error == 0) error = posting.post(request);
    if (error == 0) continue;
    if (bad != nullptr) *bad = each;
    return error;
  }
  return 0;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
  queue::QueuePair& pair = *object_of(qp).core;
  return post_receives(first, bad, [&](std::uint64_t id, std::span<const work::Segment> segments) {
    return pair.post_receive(id, segments);
  });
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad) {
  queue::QpReceiveQueue& receives = *object_of(srq).receives;
  return post_receives(first, bad, [&](std::uint64_t id, std::span<const work::Segment> segments) {
    return receives.post(id, segments);
  });
}

}  // namespace weft::verbs
