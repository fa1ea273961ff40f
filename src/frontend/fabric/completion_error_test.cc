// SPDX-License-Identifier: BSD-2-Clause
// Does a program see the errno with which an operation ended, and why?
#include "completion_error.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <cerrno>
#include <string>

#include "device/provider_error.h"
#include "memory/access_guard.h"

namespace weft::fabric {
namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);

fi_cq_err_entry entry_of(const device::Completion& completion) {
  fi_cq_err_entry entry{};
  fill_error(completion, kApi, entry);
  return entry;
}

TEST(CompletionError, EveryErrnoComesBackAsItself) {
  for (int error = 0; error < 4096; ++error) {
    device::Completion completion;
    completion.end(error, 0);
    const int seen = error == EMSGSIZE ? FI_ETRUNC : error;
    EXPECT_EQ(device::error_of(work::ending_of_errno(error)), seen);
    EXPECT_EQ(entry_of(completion).err, seen);
    EXPECT_EQ(entry_of(completion).prov_errno, seen);
  }
}

TEST(CompletionError, EveryStatusButSuccessIsAnError) {
  for (int number = 0; number < 256; ++number) {
    const auto status = static_cast<work::CompletionStatus>(number);
    EXPECT_EQ(device::error_of(work::Ending{status, 0}) == FI_SUCCESS, number == 0) << number;
  }
}

TEST(CompletionError, ATruncatedMessageSaysHowManyBytesDidNotFit) {
  device::Completion completion;
  completion.status = work::CompletionStatus::kLocalLength;
  completion.vendor = device::Completion::kMaxVendor;
  EXPECT_EQ(entry_of(completion).olen, device::Completion::kMaxVendor);
  completion.end(ENOMEM, 0);
  EXPECT_EQ(entry_of(completion).olen, 0U) << "an errno is no length";
}

TEST(CompletionError, ARefusedAccessSaysWhy) {
  device::Completion completion;
  completion.end(EACCES, static_cast<int>(memory::AccessError::kPastEnd));
  const fi_cq_err_entry entry = entry_of(completion);
  EXPECT_EQ(entry.err, FI_EACCES);
  EXPECT_EQ(error_text(entry.prov_errno),
            std::string(memory::describe(memory::AccessError::kPastEnd)));
}

TEST(CompletionError, TheArgumentsOfTheProgramAndTheReceivedLengthAreThere) {
  int buffer = 0;
  const fi_cq_err_entry entry = entry_of({&buffer, FI_RECV | FI_TAGGED, 7, 8, 9, 10, &buffer,
                                          work::CompletionStatus::kLocalLength, 0, 12});
  EXPECT_EQ(entry.op_context, &buffer);
  EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED);
  EXPECT_EQ(entry.len, 7U);
  EXPECT_EQ(entry.data, 8U);
  EXPECT_EQ(entry.tag, 9U);
  EXPECT_EQ(entry.buf, &buffer);
  EXPECT_EQ(entry.olen, 12U);
}

}  // namespace
}  // namespace weft::fabric
