// SPDX-License-Identifier: BSD-2-Clause
// How does the conformance program of rdma_cm start?
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  ::setenv("WEFT_IFACE", "lo", 0);  // before the library reads it, once
  return RUN_ALL_TESTS();
}
