// SPDX-License-Identifier: BSD-2-Clause
// How are completions polled?
#include "polling.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "device/provider_error.h"
#include "operations.h"
#include "wire/endian.h"

namespace weft::verbs {
namespace {

using device::Completion;
using work::CompletionStatus;

static_assert(static_cast<int>(queue::CompletionOpcode::kSend) == IBV_WC_SEND);
static_assert(static_cast<int>(queue::CompletionOpcode::kWrite) == IBV_WC_RDMA_WRITE);
static_assert(static_cast<int>(queue::CompletionOpcode::kRead) == IBV_WC_RDMA_READ);
static_assert(static_cast<int>(queue::CompletionOpcode::kCompareSwap) == IBV_WC_COMP_SWAP);
static_assert(static_cast<int>(queue::CompletionOpcode::kFetchAdd) == IBV_WC_FETCH_ADD);
static_assert(static_cast<int>(queue::CompletionOpcode::kReceive) == IBV_WC_RECV);
static_assert(static_cast<int>(queue::CompletionOpcode::kReceiveWrite) ==
              IBV_WC_RECV_RDMA_WITH_IMM);
static_assert(static_cast<int>(CompletionStatus::kGeneral) == IBV_WC_GENERAL_ERR);
static_assert(static_cast<int>(CompletionStatus::kRetryExceeded) == IBV_WC_RETRY_EXC_ERR);

unsigned flags_of(const Completion& completion) {
  unsigned flags = 0;
  if ((completion.flags & queue::kHasGrh) != 0) flags |= IBV_WC_GRH;
  if ((completion.flags & queue::kHasImmediate) != 0) flags |= IBV_WC_WITH_IMM;
  return flags;
}

std::uint32_t immediate_of(const Completion& completion) {
  return wire::swapped(static_cast<std::uint32_t>(completion.data));
}

void fill(ibv_wc& wc, const Completion& completion) {
  queue::QueuePair::polled(completion);
  wc.wr_id = reinterpret_cast<std::uint64_t>(completion.context);
  wc.status = static_cast<ibv_wc_status>(completion.status);
  wc.opcode = static_cast<ibv_wc_opcode>(queue::opcode_of(completion));
  wc.vendor_err = static_cast<std::uint32_t>(device::provider_error(completion));
  wc.byte_len = static_cast<std::uint32_t>(completion.length);
  wc.imm_data = immediate_of(completion);
  wc.qp_num = queue::qpn_of(completion);
  wc.src_qp = queue::sender_of(completion);
  wc.wc_flags = flags_of(completion);
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = 0;
  wc.dlid_path_bits = 0;
}

int take(device::CompletionQueue& queue, int count, ibv_wc* wc) {
  int done = 0;
  queue.pop_any(static_cast<std::size_t>(std::max(count, 0)),
                [&](const Completion& completion) { fill(wc[done++], completion); });
  return done;
}

// Extended polling: one completion at a time.

bool take_current(VerbsCq& queue) {
  const bool taken = queue.entries->pop_any(1, [&](const Completion& completion) {
    queue.current = completion;
    queue::QueuePair::polled(completion);
  }) != 0;
  if (!taken) return false;
  queue.wr_id = reinterpret_cast<std::uint64_t>(queue.current.context);
  queue.status = static_cast<ibv_wc_status>(queue.current.status);
  return true;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  if (attributes != nullptr && attributes->comp_mask != 0) return EINVAL;
  auto& queue = object_of(cq);
  if (take_current(queue)) return 0;
  queue.entries->engines().progress();
  return take_current(queue) ? 0 : ENOENT;
}

int next_poll(ibv_cq_ex* cq) { return take_current(object_of(cq)) ? 0 : ENOENT; }

void end_poll(ibv_cq_ex* /*cq*/) {}

const Completion& current(ibv_cq_ex* cq) { return object_of(cq).current; }

std::uint64_t time_of(const Completion& completion) {
  return reinterpret_cast<std::uint64_t>(completion.buffer);
}

std::uint64_t wallclock_of(const Completion& completion) {
  timespec real{};
  timespec monotonic{};
  ::clock_gettime(CLOCK_REALTIME, &real);
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  const auto ns = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
  };
  return ns(real) - ns(monotonic) + time_of(completion);
}

}  // namespace

int poll_cq(ibv_cq* cq, int count, ibv_wc* wc) {
  device::CompletionQueue& entries = *object_of(cq).entries;
  if (!entries.empty()) {
    const int done = take(entries, count, wc);
    if (done != 0) return done;
  }
  entries.engines().progress();
  return entries.empty() ? 0 : take(entries, count, wc);
}

void fill_poll_functions(VerbsCq& queue, std::uint64_t reads) {
  ibv_cq_ex& cq = queue;
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = [](ibv_cq_ex* each) {
    return static_cast<ibv_wc_opcode>(queue::opcode_of(current(each)));
  };
  cq.read_vendor_err = [](ibv_cq_ex* each) {
    return static_cast<std::uint32_t>(device::provider_error(current(each)));
  };
  cq.read_wc_flags = [](ibv_cq_ex* each) { return flags_of(current(each)); };
  const auto has = [reads](ibv_create_cq_wc_flags one) { return (reads & one) != 0; };
  if (has(IBV_WC_EX_WITH_BYTE_LEN)) {
    cq.read_byte_len = [](ibv_cq_ex* each) {
      return static_cast<std::uint32_t>(current(each).length);
    };
  }
  if (has(IBV_WC_EX_WITH_IMM)) {
    cq.read_imm_data = [](ibv_cq_ex* each) -> __be32 { return immediate_of(current(each)); };
  }
  if (has(IBV_WC_EX_WITH_QP_NUM)) {
    cq.read_qp_num = [](ibv_cq_ex* each) { return queue::qpn_of(current(each)); };
  }
  if (has(IBV_WC_EX_WITH_SRC_QP)) {
    cq.read_src_qp = [](ibv_cq_ex* each) { return queue::sender_of(current(each)); };
  }
  if (has(IBV_WC_EX_WITH_SLID)) cq.read_slid = [](ibv_cq_ex*) { return std::uint32_t{0}; };
  if (has(IBV_WC_EX_WITH_SL)) cq.read_sl = [](ibv_cq_ex*) { return std::uint8_t{0}; };
  if (has(IBV_WC_EX_WITH_DLID_PATH_BITS)) {
    cq.read_dlid_path_bits = [](ibv_cq_ex*) { return std::uint8_t{0}; };
  }
  if (has(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)) {
    cq.read_completion_ts = [](ibv_cq_ex* each) { return time_of(current(each)); };
  }
  if (has(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)) {
    cq.read_completion_wallclock_ns = [](ibv_cq_ex* each) { return wallclock_of(current(each)); };
  }
}

}  // namespace weft::verbs
