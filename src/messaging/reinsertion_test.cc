// SPDX-License-Identifier: BSD-2-Clause
// Do messages keep their order though their peer is removed from the address vector and inserted
// again between them?
#include "test_support.h"

namespace weft::messaging {
namespace {

using namespace testing;

struct ReinsertionTest : EndpointTest {
  Bytes bytes = pattern(10, 1);
  std::uint64_t sent = 0;

  void send(unsigned count = 1) {
    for (; count > 0; --count) ASSERT_EQ(one.send(to_two, ++sent, bytes), 0);
    Node::take(one.tx);
  }
  void reinsert() {
    ASSERT_TRUE(one.addresses.remove(to_two));
    to_two = one.addresses.insert(two.address);
  }
  // Every message, whatever its tag, in the order in which they were sent.
  void expect_all_in_order() {
    Bytes target(10);
    for (std::uint64_t tag = 1; tag <= sent; ++tag) {
      const LocalRange sge{target.data(), target.size()};
      ReceiveCall call;
      call.tagged = true;
      call.ignore = ~std::uint64_t{0};
      call.sges = {&sge, 1};
      ASSERT_EQ(two.endpoint->receives().receive(call), 0);
      ASSERT_EQ(next(two, false).tag, tag);
    }
  }
  // The flows that lead from there to the node two.
  std::size_t flows() const { return two.endpoint->port().main().port->processes().size(); }
  // A flow at which the receiver looks, in a slot behind the first one, which is free again: the
  // next flow would come before it. More lies in it than a poll takes of one peer.
  void leave_a_backlog() {
    send();
    reinsert();
    send();
    settle();
    send(100);
  }
};

TEST_F(ReinsertionTest, ABacklogComesBeforeWhatIsSentToTheInsertedPeer) {
  leave_a_backlog();
  reinsert();
  send();
  expect_all_in_order();
}

TEST_F(ReinsertionTest, ABacklogComesFirstThoughAnotherPeerWasUsedWhileItsPeerWasRemoved) {
  Node three(setup, 7003);
  const PeerIndex to_three = one.addresses.insert(three.address);
  leave_a_backlog();
  ASSERT_TRUE(one.addresses.remove(to_two));
  ASSERT_EQ(one.send(to_three, 1, bytes), 0);
  const PeerIndex takes_its_number = one.addresses.insert(loopback(7004));
  ASSERT_EQ(takes_its_number, to_two);
  to_two = one.addresses.insert(two.address);
  send();
  expect_all_in_order();
}

TEST_F(ReinsertionTest, OfTwoHundredInsertionsEachIsFollowedInOrder) {
  for (int i = 0; i < 200; ++i) {
    send();
    reinsert();
    if (i % 7 == 0) two.endpoint->port().progress();
  }
  expect_all_in_order();
}

TEST_F(ReinsertionTest, TheFlowToARemovedPeerEndsWhenThePeerHasTakenItsMessages) {
  send(3);
  ASSERT_TRUE(one.addresses.remove(to_two));
  EXPECT_EQ(one.send(to_two, 9, bytes), EINVAL);
  EXPECT_TRUE(drive([&] { return two.endpoint->receives().bytes_kept() > 0 && flows() == 0; }));
  expect_all_in_order();
}

// It may have another process behind it.
TEST_F(ReinsertionTest, AnEndpointThatHasTakenTheAddressOfARemovedPeerIsReached) {
  send();
  ASSERT_TRUE(one.addresses.remove(to_two));
  EXPECT_EQ(one.send(to_two, 9, bytes), EINVAL);
  two.endpoint.reset();
  Node successor(setup, 7002);
  to_two = one.addresses.insert(successor.address);
  ASSERT_EQ(one.send(to_two, 2, bytes), 0);
  Bytes target(10);
  successor.receive(2, target);
  EXPECT_TRUE(drive([&] {
    successor.endpoint->port().progress();
    return !successor.rx.empty();
  }));
}

}  // namespace
}  // namespace weft::messaging
