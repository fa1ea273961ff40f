// SPDX-License-Identifier: BSD-2-Clause
// Is logging harmless when libfabric's log is not ready, and does it keep errno?
#include "log.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace weft::fabric {
namespace {

TEST(Log, IsSilentBeforeStartAndAfterStop) {
  fi_provider provider{};
  provider.name = "weftlog";
  EXPECT_FALSE(log_enabled(FI_LOG_WARN, FI_LOG_CORE));
  start_log(&provider);
  stop_log();
  EXPECT_FALSE(log_enabled(FI_LOG_WARN, FI_LOG_CORE));
  testing::internal::CaptureStderr();
  log_warning(FI_LOG_CORE, "lost {}", 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Log, KeepsErrnoAndPrintsTheMessageWhole) {
  fi_provider provider{};
  provider.name = "weftlog";
  start_log(&provider);
  errno = 77;
  testing::internal::CaptureStderr();
  const fmt::string_view format = "{} of {}%n";
  write_log(FI_LOG_WARN, FI_LOG_MR, {"here", 1}, format, fmt::make_format_args("one", 2));
  EXPECT_EQ(errno, 77);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("one of 2%n"), std::string::npos);
  stop_log();
}

}  // namespace
}  // namespace weft::fabric
