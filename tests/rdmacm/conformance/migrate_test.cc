// SPDX-License-Identifier: BSD-2-Clause
// How does an id change its event channel? (rdma_migrate_id(3))
#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

int resolve_errno(const Owned<rdma_cm_id>& id) {
  Address to(kIpv4Loopback, 1);
  return errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), 1000));
}

TEST(Migrate, MovesEventsThatTheProgramHasNotTaken) {
  Channel first;
  Channel second;
  const auto id = new_id(first.get());
  const auto other = new_id(first.get());
  ASSERT_EQ(resolve_errno(id), 0);
  ASSERT_EQ(resolve_errno(other), 0);
  ASSERT_EQ(errno_of(rdma_migrate_id(id.get(), second.get())), 0);
  EXPECT_EQ(id->channel, second.get());
  EXPECT_EQ(second.expect(RDMA_CM_EVENT_ADDR_RESOLVED).id, id.get());
  EXPECT_FALSE(second.is_readable());
  EXPECT_EQ(first.expect(RDMA_CM_EVENT_ADDR_RESOLVED).id, other.get());
  EXPECT_FALSE(first.is_readable());
  // Later events come on the new one.
  ASSERT_EQ(errno_of(rdma_resolve_route(id.get(), 1000)), 0);
  second.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_FALSE(first.is_readable());
}

TEST(Migrate, OfAConnectedIdMovesItsEnd) {
  Parties two;
  two.ask();
  two.establish();
  Channel other;
  ASSERT_EQ(errno_of(rdma_migrate_id(two.server.get(), other.get())), 0);
  ASSERT_EQ(errno_of(rdma_disconnect(two.client.get())), 0);
  EXPECT_EQ(other.expect(RDMA_CM_EVENT_DISCONNECTED).id, two.server.get());
  EXPECT_EQ(other.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT).id, two.server.get());
  EXPECT_FALSE(two.listening.is_readable());
  two.server.reset();
}

TEST(Migrate, OfAListenerMovesItsRequests) {
  Parties two;
  rdma_conn_param wanted = parameters_with();
  ASSERT_EQ(errno_of(rdma_connect(two.client.get(), &wanted)), 0);
  ASSERT_TRUE(two.listening.is_readable_within(patience()));
  Channel other;
  ASSERT_EQ(errno_of(rdma_migrate_id(two.listener.get(), other.get())), 0);
  EXPECT_FALSE(two.listening.is_readable());
  const Event request = other.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request.id, nullptr);
  EXPECT_EQ(request.listen_id, two.listener.get());
  EXPECT_EQ(request.id->channel, other.get());
  const Owned<rdma_cm_id> server(request.id);
  two.listener.reset();
}

TEST(Migrate, ToNoChannelMakesAnIdSynchronous) {
  Channel channel;
  const auto id = new_id(channel.get());
  ASSERT_EQ(resolve_errno(id), 0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(errno_of(rdma_migrate_id(id.get(), nullptr)), 0);
  ASSERT_NE(id->channel, nullptr);
  EXPECT_NE(id->channel, channel.get());
  ASSERT_EQ(errno_of(rdma_resolve_route(id.get(), 1000)), 0);
  ASSERT_NE(id->event, nullptr);
  EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_FALSE(channel.is_readable());
}

TEST(Migrate, ToAChannelMakesASynchronousIdAsynchronous) {
  Channel channel;
  const auto id = new_id(nullptr);
  ASSERT_EQ(resolve_errno(id), 0);
  ASSERT_NE(id->event, nullptr);
  ASSERT_EQ(errno_of(rdma_migrate_id(id.get(), channel.get())), 0);
  EXPECT_EQ(id->channel, channel.get());
  EXPECT_EQ(id->event, nullptr);  // it was acknowledged
  EXPECT_FALSE(channel.is_readable());
  ASSERT_EQ(errno_of(rdma_resolve_route(id.get(), 1000)), 0);
  EXPECT_EQ(id->event, nullptr);
  EXPECT_EQ(channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED).id, id.get());
}

TEST(Migrate, OfASynchronousIdToNoChannelIsRefused) {
  const auto id = new_id(nullptr);
  rdma_event_channel* const own = id->channel;
  EXPECT_EQ(errno_of(rdma_migrate_id(id.get(), nullptr)), EINVAL);
  EXPECT_EQ(id->channel, own);
  EXPECT_EQ(resolve_errno(id), 0);
}

TEST(Migrate, ToItsOwnChannelChangesNothing) {
  Channel channel;
  const auto id = new_id(channel.get());
  ASSERT_EQ(resolve_errno(id), 0);
  ASSERT_EQ(errno_of(rdma_migrate_id(id.get(), channel.get())), 0);
  EXPECT_EQ(channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED).id, id.get());
  EXPECT_FALSE(channel.is_readable());
}

// libfabric accepts a request and moves its id to a channel of the endpoint before that.
TEST(Migrate, OfARequestedIdLetsItAcceptOnTheNewChannel) {
  Parties two;
  two.ask();
  Channel other;
  ASSERT_EQ(errno_of(rdma_migrate_id(two.server.get(), other.get())), 0);
  ASSERT_EQ(errno_of(rdma_accept(two.server.get(), nullptr)), 0);
  two.connecting.expect(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(other.expect(RDMA_CM_EVENT_ESTABLISHED).id, two.server.get());
  EXPECT_FALSE(two.listening.is_readable());
  two.server.reset();
}

}  // namespace
}  // namespace weft::rdmacm_conformance
