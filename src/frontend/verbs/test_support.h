// SPDX-License-Identifier: BSD-2-Clause
// What do tests of verbs objects stand on?
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "abi.h"

namespace weft::verbs {

// Opens the device on the loopback interface; several contexts of it may be open.
inline ibv_context* open_loopback_device() {
  ::setenv("WEFT_IFACE", "lo", 1);  // read once by a process
  ibv_device** const list = ibv_get_device_list(nullptr);
  ibv_context* const context = list[0] != nullptr ? ibv_open_device(list[0]) : nullptr;
  ibv_free_device_list(list);
  return context;
}

// A test with an open device and a protection domain.
class VerbsTest : public testing::Test {
 protected:
  void SetUp() override {
    context_ = open_loopback_device();
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(pd_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

}  // namespace weft::verbs
