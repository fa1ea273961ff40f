// SPDX-License-Identifier: BSD-2-Clause
// Batches of work requests: ibv_wr_start(3), ibv_wr_complete(3)

#include <cerrno>
#include <cstring>

#include "qp.h"
#include "wire/endian.h"
#include "work_builder.h"

namespace weft::verbs {
namespace {

using queue::CompletionOpcode;
using work::WorkKind;

WorkBuilder& builder_of(ibv_qp_ex* qp) { return *object_of(qp).builder; }

WorkBuilder::BuiltRequest& begin(ibv_qp_ex* qp, WorkKind kind, CompletionOpcode opcode) {
  WorkBuilder::BuiltRequest& made = builder_of(qp).requests.emplace_back();
  queue::QpSendRequest& request = made.request;
  request.id = qp->wr_id;
  request.opcode = opcode;
  request.signaled = (qp->wr_flags & IBV_SEND_SIGNALED) != 0;
  request.work.kind = kind;
  request.work.solicited = (qp->wr_flags & IBV_SEND_SOLICITED) != 0;
  request.work.fence = (qp->wr_flags & IBV_SEND_FENCE) != 0;
  return made;
}

WorkBuilder::BuiltRequest* last(ibv_qp_ex* qp) {
  WorkBuilder& builder = builder_of(qp);
  if (builder.requests.empty()) {
    builder.error = EINVAL;
    return nullptr;
  }
  return &builder.requests.back();
}

void access(ibv_qp_ex* qp, WorkKind kind, CompletionOpcode opcode, std::uint32_t key,
            std::uint64_t address) {
  work::Work& work = begin(qp, kind, opcode).request.work;
  work.key = key;
  work.address = address;
}

void set_immediate(ibv_qp_ex* qp, std::uint32_t value) {
  work::Work& work = builder_of(qp).requests.back().request.work;
  work.has_immediate = true;
  work.immediate = wire::swapped(value);
}

void set_sges(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  WorkBuilder::BuiltRequest* const to = last(qp);
  if (to == nullptr) return;
  if (count > queue::kMaxSges) {
    builder_of(qp).error = EINVAL;
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    to->segments.push_back(segment_of(list[i]));
    to->request.work.length += list[i].length;
  }
}

void set_inline(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* list) {
  WorkBuilder::BuiltRequest* const to = last(qp);
  if (to == nullptr) return;
  to->request.copied = true;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* bytes = static_cast<const std::byte*>(list[i].addr);
    if (to->copy.size() + list[i].length > queue::kMaxInline) {
      builder_of(qp).error = EINVAL;
      return;
    }
    to->copy.insert(to->copy.end(), bytes, bytes + list[i].length);
  }
  to->segments.assign(1, {to->copy.data(), to->copy.size(), 0});
  to->request.work.length = to->copy.size();
}

void start(ibv_qp_ex* qp) {
  WorkBuilder& builder = builder_of(qp);
  builder.mutex.lock();
  builder.requests.clear();
  builder.error = 0;
}

void abort(ibv_qp_ex* qp) {
  builder_of(qp).requests.clear();
  builder_of(qp).mutex.unlock();
}

// All requests are posted, or none.
int complete(ibv_qp_ex* qp) {
  WorkBuilder& builder = builder_of(qp);
  int error = builder.error;
  if (error == 0) {
    queue::QueuePair::Posting posting(*object_of(qp).core);
    if (builder.requests.size() > posting.room()) error = ENOMEM;
    for (WorkBuilder::BuiltRequest& each : builder.requests) {
      each.request.work.sges = each.segments;
      if (error == 0) error = posting.check(each.request);
    }
    for (const WorkBuilder::BuiltRequest& each : builder.requests) {
      if (error == 0) error = posting.post(each.request);
    }
  }
  abort(qp);
  return error;
}

std::uint64_t operations_of(queue::QpType type) {
  constexpr std::uint64_t kSends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr std::uint64_t kWrites = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  constexpr std::uint64_t kAsks = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  switch (type) {
    case queue::QpType::kRc:
    case queue::QpType::kXrcSend:
      return kSends | kWrites | kAsks;
    case queue::QpType::kUc:
      return kSends | kWrites;
    case queue::QpType::kUd:
      return kSends;
    case queue::QpType::kXrcReceive:
      return 0;
  }
  return 0;
}

void fill_operations(ibv_qp_ex& qp) {
  qp.wr_send = [](ibv_qp_ex* each) { begin(each, WorkKind::kSend, CompletionOpcode::kSend); };
  qp.wr_send_imm = [](ibv_qp_ex* each, __be32 value) {
    begin(each, WorkKind::kSend, CompletionOpcode::kSend);
    set_immediate(each, value);
  };
  qp.wr_rdma_write = [](ibv_qp_ex* each, std::uint32_t key, std::uint64_t address) {
    access(each, WorkKind::kWrite, CompletionOpcode::kWrite, key, address);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* each, std::uint32_t key, std::uint64_t address,
                            __be32 value) {
    access(each, WorkKind::kWrite, CompletionOpcode::kWrite, key, address);
    set_immediate(each, value);
  };
  qp.wr_rdma_read = [](ibv_qp_ex* each, std::uint32_t key, std::uint64_t address) {
    access(each, WorkKind::kRead, CompletionOpcode::kRead, key, address);
  };
  qp.wr_atomic_cmp_swp = [](ibv_qp_ex* each, std::uint32_t key, std::uint64_t address,
                            std::uint64_t compare, std::uint64_t swap) {
    access(each, WorkKind::kCompareSwap, CompletionOpcode::kCompareSwap, key, address);
    work::Work& work = builder_of(each).requests.back().request.work;
    work.compare = compare;
    work.swap_or_add = swap;
  };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* each, std::uint32_t key, std::uint64_t address,
                              std::uint64_t add) {
    access(each, WorkKind::kFetchAdd, CompletionOpcode::kFetchAdd, key, address);
    builder_of(each).requests.back().request.work.swap_or_add = add;
  };
}

void fill_settings(ibv_qp_ex& qp) {
  qp.wr_set_ud_addr = [](ibv_qp_ex* each, ibv_ah* ah, std::uint32_t qpn, std::uint32_t key) {
    WorkBuilder::BuiltRequest* const to = last(each);
    if (to == nullptr || ah == nullptr) return;
    to->request.to = object_of(ah).address.get();
    to->request.destination = qpn & 0xFF'FFFF;
    to->request.queue_key = key;
  };
  qp.wr_set_xrc_srqn = [](ibv_qp_ex* each, std::uint32_t number) {
    if (WorkBuilder::BuiltRequest* const to = last(each)) to->request.work.shared_receive = number;
  };
  qp.wr_set_sge = [](ibv_qp_ex* each, std::uint32_t key, std::uint64_t address,
                     std::uint32_t length) {
    const ibv_sge one{address, length, key};
    set_sges(each, 1, &one);
  };
  qp.wr_set_sge_list = set_sges;
  qp.wr_set_inline_data = [](ibv_qp_ex* each, void* address, std::size_t length) {
    const ibv_data_buf one{address, length};
    set_inline(each, 1, &one);
  };
  qp.wr_set_inline_data_list = set_inline;
}

}  // namespace

bool has_operations(queue::QpType type, std::uint64_t operations) {
  return (operations & ~operations_of(type)) == 0;
}

void fill_work_functions(VerbsQp& pair, std::uint64_t operations) {
  if (operations == 0) return;
  pair.send_operations = operations;
  pair.builder = std::make_shared<WorkBuilder>();
  fill_operations(pair);
  fill_settings(pair);
  pair.wr_start = start;
  pair.wr_complete = complete;
  pair.wr_abort = abort;
}

}  // namespace weft::verbs
