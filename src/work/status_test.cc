// SPDX-License-Identifier: BSD-2-Clause
// Does a status have the number of its counterpart in verbs, and every errno an ending of its own?
#include "work/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <utility>

namespace weft::work {
namespace {

using enum CompletionStatus;

TEST(CompletionStatus, TheNumbersAreThoseOfEnumIbvWcStatus) {
  const std::pair<CompletionStatus, int> numbers[] = {
      {kSuccess, 0},         // IBV_WC_SUCCESS
      {kLocalLength, 1},     // IBV_WC_LOC_LEN_ERR
      {kLocalOperation, 2},  // IBV_WC_LOC_QP_OP_ERR
      {kLocalEecOperation, 3},
      {kLocalProtection, 4},  // IBV_WC_LOC_PROT_ERR
      {kFlushed, 5},          // IBV_WC_WR_FLUSH_ERR
      {kWindowBind, 6},
      {kBadResponse, 7},
      {kLocalAccess, 8},
      {kRemoteInvalidRequest, 9},
      {kRemoteAccess, 10},  // IBV_WC_REM_ACCESS_ERR
      {kRemoteOperation, 11},
      {kRetryExceeded, 12},  // IBV_WC_RETRY_EXC_ERR
      {kRnrRetryExceeded, 13},
      {kLocalRddViolation, 14},
      {kRemoteInvalidRdRequest, 15},
      {kRemoteAborted, 16},
      {kInvalidEecn, 17},
      {kInvalidEecState, 18},
      {kFatal, 19},
      {kResponseTimeout, 20},  // IBV_WC_RESP_TIMEOUT_ERR
      {kGeneral, 21},          // IBV_WC_GENERAL_ERR
  };
  for (const auto& [status, number] : numbers) EXPECT_EQ(static_cast<int>(status), number);
}

TEST(CompletionStatus, ThoseWithoutACounterpartBeginAt64) {
  for (const CompletionStatus status : {kCancelled, kUnreachable, kNoMessage, kShutDown}) {
    EXPECT_GE(static_cast<int>(status), 64);
  }
}

TEST(CompletionStatus, NoTwoErrnosHaveTheSameEnding) {
  std::set<std::pair<CompletionStatus, std::uint32_t>> endings;
  for (int error = 0; error < 4096; ++error) {
    const Ending ending = ending_of_errno(error);
    EXPECT_TRUE(endings.emplace(ending.status, ending.error).second) << error;
    EXPECT_EQ(ending.status == kSuccess, error == 0);
  }
}

TEST(CompletionStatus, AnErrnoWithoutAStatusOfItsOwnIsKept) {
  const Ending ending = ending_of_errno(ENOMEM);
  EXPECT_EQ(ending.status, kGeneral);
  EXPECT_EQ(ending.error, static_cast<std::uint32_t>(ENOMEM));
}

}  // namespace
}  // namespace weft::work
