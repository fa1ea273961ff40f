// SPDX-License-Identifier: BSD-2-Clause
// Does a program see the errno with which an operation ended, and why?
#include "completion_error.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "device/provider_error.h"
#include "memory/access_guard.h"
#include "memory/explanation.h"

namespace weft::fabric {
namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);

fi_cq_err_entry entry_of(const device::Completion& completion) {
  static LentErrorData lent;
  fi_cq_err_entry entry{};
  fill_error(completion, kApi, lent, entry);
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

class RefusedCompletion : public testing::Test {
 protected:
  RefusedCompletion() {
    completion_.flags = FI_RMA | FI_WRITE;
    completion_.tag = 9;
    completion_.refuse(EACCES, {.reason = static_cast<int>(memory::AccessError::kPastEnd),
                                .range = {0x1010, 8, RegionKey{0x2a}},
                                .region_known = true,
                                .region_start = 0x1000,
                                .region_length = 20});
  }
  void fill(std::uint32_t api = kApi) { fill_error(completion_, api, lent_, entry_); }

  static constexpr std::string_view kSentence =
      "key 0x2a: write of 8 bytes at 0x1010 ends 4 bytes past the region (region: 20 bytes from "
      "0x1000)";
  device::Completion completion_;
  LentErrorData lent_{};
  fi_cq_err_entry entry_{};
};

TEST_F(RefusedCompletion, HasItsSentenceAsErrorData) {
  fill();
  EXPECT_EQ(static_cast<const char*>(entry_.err_data), kSentence);
  EXPECT_EQ(entry_.err_data_size, kSentence.size() + 1);
  EXPECT_EQ(entry_.err_data, lent_.data());
  EXPECT_EQ(entry_.len, 0U);
  EXPECT_EQ(entry_.buf, nullptr);
  EXPECT_EQ(entry_.data, 0U);
  EXPECT_EQ(entry_.tag, 9U);
}

TEST_F(RefusedCompletion, FillsThePlaceOfTheProgramAsFarAsItGoes) {
  for (const std::size_t room : {std::size_t{1}, std::size_t{10}, kSentence.size(),
                                 kSentence.size() + 1, std::size_t{300}}) {
    std::string place(300, '?');
    entry_.err_data = place.data();
    entry_.err_data_size = room;
    fill();
    const std::size_t size = std::min(room, kSentence.size() + 1);
    EXPECT_EQ(entry_.err_data, place.data());
    EXPECT_EQ(entry_.err_data_size, size);
    EXPECT_EQ(place.substr(0, size - 1), kSentence.substr(0, size - 1));
    EXPECT_EQ(place[size - 1], '\0');
    EXPECT_EQ(place.substr(size), std::string(300 - size, '?')) << room;
  }
}

TEST_F(RefusedCompletion, LendsItsSentenceWhereThePlaceIsNotTheProgramsToName) {
  std::string place(300, '?');
  entry_.err_data = place.data();
  fill();
  EXPECT_EQ(entry_.err_data, lent_.data()) << "a place without a size";
  entry_.err_data = place.data();
  entry_.err_data_size = 77;
  fill(FI_VERSION(1, 4));
  EXPECT_EQ(entry_.err_data, lent_.data());
  EXPECT_EQ(entry_.err_data_size, 77U) << "behind the end of the entry of that API";
  EXPECT_EQ(place, std::string(300, '?'));
}

TEST_F(RefusedCompletion, IsTurnedIntoWordsWithItsErrorDataOrWithout) {
  fill();
  const std::string general = memory::describe(memory::AccessError::kPastEnd);
  std::array<char, 300> text{};
  EXPECT_EQ(error_text(entry_.prov_errno, entry_.err_data, nullptr, 0), kSentence);
  EXPECT_EQ(error_text(entry_.prov_errno, nullptr, nullptr, 0), general);
  EXPECT_EQ(error_text(entry_.prov_errno, entry_.err_data, text.data(), text.size()), text.data());
  EXPECT_EQ(text.data(), kSentence);
  EXPECT_EQ(error_text(entry_.prov_errno, entry_.err_data, text.data(), 5), std::string("key "));
  EXPECT_EQ(error_text(FI_ECANCELED, "data of something else", nullptr, 0),
            std::string(fi_strerror(FI_ECANCELED)));
}

TEST_F(RefusedCompletion, NamesWhatIsKnown) {
  const auto sentence = [&](std::uint64_t flags, const RefusedAccess& refused) {
    completion_ = {};
    completion_.flags = flags;
    completion_.refuse(EACCES, refused);
    entry_ = {};
    fill();
    return std::string(static_cast<const char*>(entry_.err_data));
  };
  const int past = static_cast<int>(memory::AccessError::kPastEnd);
  const RemoteRange range{0x10, 8, RegionKey{3}};
  EXPECT_EQ(sentence(FI_RMA | FI_READ, {.reason = past, .range = range}),
            "key 0x3: read of 8 bytes at 0x10: the access ends past the region");
  EXPECT_EQ(
      sentence(FI_ATOMIC | FI_READ, {.reason = past, .ranges = 3, .range = range}),
      "key 0x3: atomic operation of 8 bytes at 0x10 (first of 3 ranges): the access ends past "
      "the region");
  EXPECT_EQ(sentence(FI_MSG | FI_RECV, {.reason = memory::kLocalRefusal + past,
                                        .range = range,
                                        .region_known = true,
                                        .region_start = 8,
                                        .region_length = 9}),
            "descriptor 0x3: receive of 8 bytes at 0x10: the local buffer ends past the region of "
            "its descriptor (region: 9 bytes from 0x8)");
}

// fi_domain_attr::max_err_data
TEST_F(RefusedCompletion, HasNoLongerSentenceThanErrorData) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  for (int reason = 1; reason < 3 * memory::kLocalRefusal; ++reason) {
    for (const bool region : {false, true}) {
      const std::string text =
          device::explain(FI_ATOMIC, {.reason = reason,
                                      .ranges = region ? 1U : 8U,
                                      .range = {kMost, kMost, RegionKey{kMost}},
                                      .region_known = region,
                                      .region_start = kMost,
                                      .region_length = kMost});
      EXPECT_LE(text.size(), memory::kLongestExplanation) << text;
      EXPECT_EQ(text.ends_with(")"), region) << text;
    }
  }
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
