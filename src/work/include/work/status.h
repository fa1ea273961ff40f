// SPDX-License-Identifier: BSD-2-Clause
// How did a work request end?
#pragma once

#include <cstdint>

namespace weft::work {

// The status of a completion. The numbers up to 63 are those of enum ibv_wc_status
// (ibv_poll_cq(3)), which the InfiniBand Architecture Specification, volume 1, 11.6.2, explains.
// Those from 64 on have no counterpart there: only messages of libfabric end so.
enum class CompletionStatus : std::uint8_t {
  kSuccess = 0,
  kLocalLength = 1,              // IBV_WC_LOC_LEN_ERR: longer than the receive buffer
  kLocalOperation = 2,           // IBV_WC_LOC_QP_OP_ERR
  kLocalEecOperation = 3,        // IBV_WC_LOC_EEC_OP_ERR
  kLocalProtection = 4,          // IBV_WC_LOC_PROT_ERR: a local buffer is not mapped
  kFlushed = 5,                  // IBV_WC_WR_FLUSH_ERR
  kWindowBind = 6,               // IBV_WC_MW_BIND_ERR
  kBadResponse = 7,              // IBV_WC_BAD_RESP_ERR
  kLocalAccess = 8,              // IBV_WC_LOC_ACCESS_ERR
  kRemoteInvalidRequest = 9,     // IBV_WC_REM_INV_REQ_ERR
  kRemoteAccess = 10,            // IBV_WC_REM_ACCESS_ERR: the target's region table refuses it
  kRemoteOperation = 11,         // IBV_WC_REM_OP_ERR
  kRetryExceeded = 12,           // IBV_WC_RETRY_EXC_ERR: the peer has ended or does not answer
  kRnrRetryExceeded = 13,        // IBV_WC_RNR_RETRY_EXC_ERR
  kLocalRddViolation = 14,       // IBV_WC_LOC_RDD_VIOL_ERR
  kRemoteInvalidRdRequest = 15,  // IBV_WC_REM_INV_RD_REQ_ERR
  kRemoteAborted = 16,           // IBV_WC_REM_ABORT_ERR
  kInvalidEecn = 17,             // IBV_WC_INV_EECN_ERR
  kInvalidEecState = 18,         // IBV_WC_INV_EEC_STATE_ERR
  kFatal = 19,                   // IBV_WC_FATAL_ERR
  kResponseTimeout = 20,         // IBV_WC_RESP_TIMEOUT_ERR: a process stopped in the middle of it
  kGeneral = 21,                 // IBV_WC_GENERAL_ERR: an errno without a status of its own
  kCancelled = 64,               // cancelled, or its connection was shut down at this end
  kUnreachable = 65,             // no peer was found at the address in time
  kNoMessage = 66,               // a peek found no message
  kShutDown = 67,                // a receive that was left over when its connection had ended
};

// A status, and for kGeneral the errno.
struct Ending {
  CompletionStatus status = CompletionStatus::kSuccess;
  std::uint32_t error = 0;
};

// The ending of an operation for which a link or the system reports `error`: an errno, or 0. No two
// errnos have the same ending.
Ending ending_of_errno(int error);

}  // namespace weft::work
