// SPDX-License-Identifier: BSD-2-Clause
// What does the peer of an id learn when it is destroyed, and which events are dropped?
// (rdma_destroy_id(3))
#include <filesystem>
#include <iterator>
#include <thread>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

constexpr int kInvalidService = 8;
constexpr int kConsumer = 28;

TEST(Destroy, OfAnUndecidedRequestIsARejection) {
  Parties two;
  two.ask();
  two.server.reset();
  EXPECT_EQ(two.connecting.expect(RDMA_CM_EVENT_REJECTED, kConsumer).id, two.client.get());
}

TEST(Destroy, OfAConnectedIdDisconnectsItsPeer) {
  Parties two;
  two.ask();
  two.establish();
  two.server.reset();
  EXPECT_EQ(two.connecting.expect(RDMA_CM_EVENT_DISCONNECTED).id, two.client.get());
}

TEST(Destroy, OfAConnectedClientDisconnectsItsServer) {
  Parties two;
  two.ask();
  two.establish();
  two.client.reset();
  EXPECT_EQ(two.listening.expect(RDMA_CM_EVENT_DISCONNECTED).id, two.server.get());
  EXPECT_FALSE(two.connecting.is_readable());
}

TEST(Destroy, OfAClientWhoseReplyItHasNotTakenEndsTheServer) {
  Parties two;
  two.ask();
  rdma_conn_param accepted = parameters_with();
  ASSERT_EQ(errno_of(rdma_accept(two.server.get(), &accepted)), 0);
  ASSERT_TRUE(two.connecting.is_readable_within(patience()));
  two.client.reset();
  EXPECT_FALSE(two.connecting.is_readable());
  const Event end = two.listening.next();
  EXPECT_EQ(end.type, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(end.id, two.server.get());
}

TEST(Destroy, OfAClientEndsItsUndecidedRequest) {
  Parties two;
  two.ask();
  two.client.reset();
  const Event end = two.listening.next();
  EXPECT_EQ(end.type, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(end.id, two.server.get());
  EXPECT_EQ(errno_of(rdma_accept(two.server.get(), nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), nullptr, 0)), EINVAL);
}

// A program that has seen the descriptor readable finds the event.
TEST(Destroy, OfAClientEndsARequestThatIsNotReportedYet) {
  Parties two;
  rdma_conn_param wanted = parameters_with();
  ASSERT_EQ(errno_of(rdma_connect(two.client.get(), &wanted)), 0);
  ASSERT_TRUE(two.listening.is_readable_within(patience()));
  two.client.reset();
  const Owned<rdma_cm_id> server(two.listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
  const Event end = two.listening.next();
  EXPECT_EQ(end.type, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(end.id, server.get());
  EXPECT_EQ(errno_of(rdma_accept(server.get(), nullptr)), EINVAL);
}

TEST(Destroy, OfAListenerRejectsRequestsThatItWasNotToldOf) {
  Parties two;
  rdma_conn_param wanted = parameters_with();
  ASSERT_EQ(errno_of(rdma_connect(two.client.get(), &wanted)), 0);
  ASSERT_TRUE(two.listening.is_readable_within(patience()));
  two.listener.reset();
  two.connecting.expect(RDMA_CM_EVENT_REJECTED, kInvalidService);
  EXPECT_FALSE(two.listening.is_readable());
}

TEST(Destroy, OfAListenerLeavesTheIdsOfItsRequests) {
  Parties two;
  two.ask();
  two.listener.reset();
  two.establish();
  Parties::expect_message(*two.client, *two.server, 'a');
}

TEST(Destroy, DropsEventsThatTheProgramHasNotTaken) {
  Channel channel;
  auto first = new_id(channel.get());
  const auto second = new_id(channel.get());
  for (rdma_cm_id* const each : {first.get(), second.get()}) {
    Address to(kIpv4Loopback, 1);
    ASSERT_EQ(errno_of(rdma_resolve_addr(each, nullptr, to.get(), 1000)), 0);
  }
  first.reset();
  EXPECT_EQ(channel.next().id, second.get());
  EXPECT_FALSE(channel.is_readable());
}

TEST(Destroy, LeavesNoEndOfTimeWaitBehind) {
  Parties two;
  two.ask();
  two.establish();
  ASSERT_EQ(errno_of(rdma_disconnect(two.client.get())), 0);
  two.connecting.expect(RDMA_CM_EVENT_DISCONNECTED);
  two.listening.expect(RDMA_CM_EVENT_DISCONNECTED);
  two.client.reset();
  two.listening.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);  // of the server, and later than the other
  EXPECT_FALSE(two.connecting.is_readable());
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(Destroy, LeavesNoDescriptorBehind) {
  std::size_t before = 0;
  for (int round = 0; round < 20; ++round) {
    if (round == 1) before = open_descriptors();  // the first one opens the device
    Parties two;
    two.ask();
    two.establish();
    const auto synchronous = new_id(nullptr);
  }
  // The port of the last one closes when its connections have left TimeWait.
  const auto end = std::chrono::steady_clock::now() + patience();
  while (open_descriptors() > before && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_LE(open_descriptors(), before);
}

// Fields of the id that the program has read remain its own.
TEST(Destroy, LeavesTheEventOfASynchronousIdAcknowledged) {
  auto id = new_id(nullptr);
  Address to(kIpv4Loopback, 1);
  ASSERT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), 1000)), 0);
  ASSERT_NE(id->event, nullptr);
  EXPECT_EQ(errno_of(rdma_destroy_id(id.release())), 0);
}

}  // namespace
}  // namespace weft::rdmacm_conformance
