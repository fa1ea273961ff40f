// SPDX-License-Identifier: BSD-2-Clause
// Does the kernel get only bytes of control messages that were written?
#include "ancillary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "os/loopback_support.h"

namespace weft::os {
namespace {

// The control bytes of a call that is made in memory full of `rest`.
template <class Fill>
std::vector<std::byte> control_over(std::byte rest, Fill fill) {
  alignas(Ancillary) std::byte storage[sizeof(Ancillary)];
  std::fill_n(storage, sizeof storage, rest);
  asm volatile("" : : "r"(storage) : "memory");  // the bytes are there, whatever is constructed
  auto* const ancillary = new (storage) Ancillary;
  fill(*ancillary);
  msghdr message{};
  ancillary->put_into(message);
  asm volatile("" : : "r"(storage) : "memory");
  const auto* const bytes = static_cast<const std::byte*>(message.msg_control);
  std::vector<std::byte> control(bytes, bytes + message.msg_controllen);
  std::destroy_at(ancillary);
  return control;
}

template <class Fill>
void expect_all_written(Fill fill) {
  EXPECT_TRUE(control_over(std::byte{0xAA}, fill) == control_over(std::byte{0x55}, fill));
}

TEST(Ancillary, EveryByteOfATrainIsWritten) {
  expect_all_written([](Ancillary& ancillary) { ancillary.add_segment(1024); });
}

TEST(Ancillary, EveryByteOfASourceIsWritten) {
  for (const char* const host : {"127.0.0.1", "::1"}) {
    SCOPED_TRACE(host);
    const SocketAddress from = address_of(host, 7);
    expect_all_written([&](Ancillary& ancillary) { ancillary.add_source(from); });
    expect_all_written([&](Ancillary& ancillary) {
      ancillary.add_source(from);
      ancillary.add_segment(1024);
    });
  }
}

}  // namespace
}  // namespace weft::os
