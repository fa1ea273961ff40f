// SPDX-License-Identifier: BSD-2-Clause
// Does a result hold either its value or the error, and nothing in between?
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace weft {
namespace {

TEST(Result, AValueIsOkAndCanBeTaken) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  ASSERT_TRUE(result.ok());
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Result, AnErrorKeepsItsCodeAndMessage) {
  const Result<int> result(Error{ENOSPC, "no room"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ENOSPC);
  EXPECT_EQ(result.error().message, "no room");
}

TEST(Status, SuccessIsTheDefaultAndAnErrorFails) {
  EXPECT_TRUE(Status{}.ok());
  const Status failed(Error{EACCES, "not yours"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, EACCES);
}

TEST(Status, AnErrorWithoutACodeIsAnInvalidArgument) {
  const Status failed{Error{}};
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, EINVAL);
}

}  // namespace
}  // namespace weft
