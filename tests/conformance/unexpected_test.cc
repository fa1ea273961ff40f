// SPDX-License-Identifier: BSD-2-Clause
// Are messages that arrive before their receives kept whole, however many and large?
#include <vector>

#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kSizes[] = {0, 1, 8, 40, 41, 64, 65, 1000, 4096, 4097, 16385, 65537, 250000};
constexpr std::size_t kMessages = 400;

class Unexpected : public PlacementTest {
 protected:
  Unexpected() : world_(GetParam(), Options{}) {}

  static std::size_t size(std::size_t i) { return kSizes[i % std::size(kSizes)]; }

  void send_all() {
    for (std::size_t i = 0; i < kMessages && !HasFailure(); ++i) {
      sent_.push_back(world_.initiator().post({.kind = Kind::kTsenddata,
                                               .length = size(i),
                                               .seed = i + 1,
                                               .peer = world_.to_target(),
                                               .tag = i,
                                               .data = i * 3}));
    }
    world_.target().leftovers();
  }
  void receive(std::size_t i) {
    SCOPED_TRACE(i);
    const Token token = world_.target().post({.kind = Kind::kTrecv, .length = size(i), .tag = i});
    const Completion c = world_.target().wait_success(token);
    EXPECT_EQ(c.length, size(i));
    EXPECT_EQ(c.tag, i);
    EXPECT_EQ(c.data, i * 3);
    world_.target().expect_data(token, i + 1, size(i));
    world_.initiator().wait_success(sent_[i]);
  }

  World world_;
  std::vector<Token> sent_;
};

TEST_P(Unexpected, HundredsAreReceivedInOrder) {
  ASSERT_TRUE(world_.ok());
  send_all();
  for (std::size_t i = 0; i < kMessages && !HasFailure(); ++i) receive(i);
}

TEST_P(Unexpected, HundredsAreReceivedBackwards) {
  ASSERT_TRUE(world_.ok());
  send_all();
  for (std::size_t i = kMessages; i > 0 && !HasFailure(); --i) receive(i - 1);
}

TEST_P(Unexpected, EndpointsCloseWithUnreceivedMessages) {
  ASSERT_TRUE(world_.ok());
  send_all();
}

INSTANTIATE_TEST_SUITE_P(Arrival, Unexpected, every_placement(), placement_name);

}  // namespace
}  // namespace weft::conformance
