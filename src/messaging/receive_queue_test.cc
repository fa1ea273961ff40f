// SPDX-License-Identifier: BSD-2-Clause
// What becomes of receives that several endpoints share?
#include "messaging/receive_queue.h"

#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::messaging {
namespace {

using namespace testing;

// Two nodes that receive from one queue, and EndpointTest's, which send to one of them each.
struct ReceiveQueueTest : EndpointTest {
  ReceiveQueue queue{true, 1000};
  AddressVector numbers{8};
  Surroundings sharing = [this] {
    Surroundings result = setup;
    result.addresses = &numbers;
    return result;
  }();
  Node left{sharing, 7011, &queue};
  Node right{sharing, 7012, &queue};
  PeerIndex to_left = one.addresses.insert(left.address);
  PeerIndex to_right = two.addresses.insert(right.address);

  bool until_reported(Node& node) {
    return drive([&] {
      for (Node* each : {&left, &right}) {
        if (each->endpoint) each->endpoint->port().progress();
      }
      return !node.rx.empty();
    });
  }
};

TEST_F(ReceiveQueueTest, ALargeMessageThatIsUnderWayToAClosedEndpointGivesItsBufferBack) {
  Bytes bytes = pattern(20'000, 1);
  Bytes target(20'000);
  ASSERT_EQ(Node::receive_in(queue, 5, target, &contexts[0]), 0);
  one.send(to_left, 5, bytes);
  left.endpoint->port()
      .progress();  // it has the offer now, and the sender has not been asked to help
  left.endpoint.reset();
  const auto reported = Node::take(left.rx);
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported[0].context, &contexts[0]);
}

TEST_F(ReceiveQueueTest, MessagesKeptForAClosedEndpointAreGone) {
  Bytes small = pattern(10, 1);
  Bytes target(10);
  one.send(to_left, 5, small);
  two.send(to_right, 5, small);
  left.endpoint->port().progress();
  right.endpoint->port().progress();
  left.endpoint.reset();
  ASSERT_EQ(Node::receive_in(queue, 5, target, &contexts[0]), 0);
  ASSERT_TRUE(until_reported(right));
  EXPECT_EQ(Node::take(right.rx).at(0).context, &contexts[0]);
  EXPECT_TRUE(left.rx.empty());
}

TEST_F(ReceiveQueueTest, APeekFindsMessagesOfEachEndpointAndAClaimIsItsOwn) {
  Bytes small = pattern(10, 1);
  Bytes none;
  Bytes target(10);
  two.send(to_right, 7, small);
  ASSERT_EQ(Node::receive_in(queue, 7, none, &contexts[1], kNoPeer, Mode::kPeekClaim), 0);
  const auto seen = Node::take(right.rx);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].length, 10u);
  ASSERT_EQ(Node::receive_in(queue, 7, none, nullptr, kNoPeer, Mode::kPeek), 0);
  EXPECT_EQ(Node::take(left.rx).at(0).status, CompletionStatus::kNoMessage)
      << "the first endpoint says so";
  ASSERT_EQ(Node::receive_in(queue, 7, target, &contexts[1], kNoPeer, Mode::kTakeClaimed), 0);
  EXPECT_EQ(Node::take(right.rx).at(0).context, &contexts[1]);
  EXPECT_EQ(target, small);
}

TEST_F(ReceiveQueueTest, WithoutAnEndpointNothingCanBeLookedForButReceivesWait) {
  ReceiveQueue empty(true, 1000);
  Bytes target(10);
  EXPECT_EQ(Node::receive_in(empty, 7, target, nullptr, kNoPeer, Mode::kPeek), EINVAL);
  EXPECT_EQ(Node::receive_in(empty, 7, target, nullptr, 0), EINVAL);
  EXPECT_EQ(Node::receive_in(empty, 7, target, &contexts[0]), 0);
  Node late(sharing, 7013, &empty);
  const PeerIndex to_late = one.addresses.insert(late.address);
  Bytes small = pattern(10, 1);
  ASSERT_EQ(one.send(to_late, 7, small), 0);
  EXPECT_TRUE(drive([&] {
    late.endpoint->port().progress();
    return !late.rx.empty();
  }));
  EXPECT_EQ(target, small);
}

TEST_F(ReceiveQueueTest, EndpointsOfOtherAddressVectorsCannotJoin) {
  const Node stranger(setup, 7013, &queue);
  EXPECT_TRUE(stranger.endpoint == nullptr);
}

}  // namespace
}  // namespace weft::messaging
