// SPDX-License-Identifier: BSD-2-Clause
// What is reported when a message is longer than the receive that it matches? (fi_cq(3))
#include "support/placements.h"

namespace weft::conformance {
namespace {

struct Lengths {
  std::size_t message;
  std::size_t buffer;
};
constexpr Lengths kCases[] = {{1, 0},      {8, 7},           {64, 1},
                              {65, 64},    {4096, 4095},     {20000, 4096},
                              {300000, 0}, {300000, 299999}, {300000, 1}};

class Truncation : public testing::TestWithParam<std::tuple<Placement, bool>> {
 protected:
  Truncation() : world_(std::get<0>(GetParam()), Options{}) {}
  bool tagged() const { return std::get<1>(GetParam()); }

  Token receive(std::size_t length) {
    return world_.target().post(
        {.kind = tagged() ? Kind::kTrecv : Kind::kRecv, .length = length, .tag = 1});
  }
  Token send(std::size_t length) {
    return world_.initiator().post({.kind = tagged() ? Kind::kTsend : Kind::kSend,
                                    .length = length,
                                    .seed = length,
                                    .peer = world_.to_target(),
                                    .tag = 1});
  }
  // The buffer may or may not hold the message's beginning; nothing past it may change, and the
  // next message must arrive whole.
  void expect_truncated(Token received, Token sent, const Lengths& lengths) {
    const Completion c = world_.target().wait_error(received, FI_ETRUNC);
    EXPECT_EQ(c.overflow, lengths.message - lengths.buffer);
    EXPECT_EQ(c.length, lengths.buffer);
    EXPECT_EQ(c.tag, tagged() ? 1u : c.tag);
    EXPECT_EQ(c.flags & FI_RECV, FI_RECV);
    world_.target().expect_data(received, lengths.message, lengths.buffer);
    world_.initiator().wait_success(sent);
    world_.exchange();
  }

  World world_;
};

TEST_P(Truncation, PostedReceiveReportsTheOverflow) {
  ASSERT_TRUE(world_.ok());
  for (const Lengths& one : kCases) {
    SCOPED_TRACE(testing::Message() << one.message << " into " << one.buffer);
    const Token received = receive(one.buffer);
    expect_truncated(received, send(one.message), one);
    if (HasFailure()) return;
  }
}

TEST_P(Truncation, LateReceiveReportsTheOverflow) {
  ASSERT_TRUE(world_.ok());
  for (const Lengths& one : kCases) {
    SCOPED_TRACE(testing::Message() << one.message << " into " << one.buffer);
    const Token sent = send(one.message);
    world_.target().leftovers();
    expect_truncated(receive(one.buffer), sent, one);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Receives, Truncation, testing::Combine(every_placement(), testing::Bool()),
                         [](const testing::TestParamInfo<std::tuple<Placement, bool>>& one) {
                           return std::string(to_string(std::get<0>(one.param))) +
                                  (std::get<1>(one.param) ? "_Tagged" : "_Plain");
                         });

}  // namespace
}  // namespace weft::conformance
