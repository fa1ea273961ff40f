// SPDX-License-Identifier: BSD-2-Clause
// How do attempts end without a connection? (rdma_reject(3))
#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

// Reasons of a REJ (IBTA 12.6.7.2).
constexpr int kInvalidService = 8;
constexpr int kConsumer = 28;
constexpr int kVendorOption = 35;

ibv_qp_state state_of(const Owned<rdma_cm_id>& id) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  EXPECT_EQ(ibv_query_qp(id->qp, &attributes, IBV_QP_STATE, &initial), 0);
  return attributes.qp_state;
}

TEST(Reject, ReachesTheClientWithReasonAndData) {
  Parties two;
  two.ask();
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), "no", 2)), 0);
  const Event rejected = two.connecting.expect(RDMA_CM_EVENT_REJECTED, kConsumer);
  EXPECT_EQ(rejected.id, two.client.get());
  EXPECT_EQ(rejected.data, padded("no", 148));
  EXPECT_EQ(state_of(two.client), IBV_QPS_ERR);
  EXPECT_FALSE(two.connecting.is_readable());
  EXPECT_FALSE(two.listening.is_readable());
}

TEST(Reject, ForExtendedEstablishmentHasAReasonOfItsOwn) {
  Parties two;
  two.ask();
  EXPECT_EQ(errno_of(rdma_reject_ece(two.server.get(), nullptr, 0)), 0);
  EXPECT_EQ(two.connecting.expect(RDMA_CM_EVENT_REJECTED, kVendorOption).data, padded("", 148));
}

TEST(Reject, TakesUpTo148BytesOfData) {
  Parties two;
  two.ask();
  const std::string data(149, 'x');
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), data.data(), 149)), EINVAL);
  EXPECT_FALSE(two.connecting.is_readable());
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), data.data(), 148)), 0);
  EXPECT_EQ(two.connecting.expect(RDMA_CM_EVENT_REJECTED, kConsumer).data, data.substr(1));
}

TEST(Reject, LeavesNothingToAccept) {
  Parties two;
  two.ask();
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), nullptr, 0)), 0);
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), nullptr, 0)), EINVAL);
  EXPECT_EQ(errno_of(rdma_accept(two.server.get(), nullptr)), EINVAL);
  two.connecting.expect(RDMA_CM_EVENT_REJECTED, kConsumer);
}

TEST(Reject, OfAnIdThatIsOfNoRequestIsRefused) {
  Parties two;
  EXPECT_EQ(errno_of(rdma_reject(two.listener.get(), nullptr, 0)), EINVAL);
  EXPECT_EQ(errno_of(rdma_reject(two.client.get(), nullptr, 0)), EINVAL);
  two.ask();
  two.establish();
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), nullptr, 0)), EINVAL);
  EXPECT_EQ(errno_of(rdma_reject(two.client.get(), nullptr, 0)), EINVAL);
  Parties::expect_message(*two.client, *two.server, 'a');
}

// The client has no queue pair, and decides itself about the reply.
TEST(Reject, OfAReplyReachesTheServer) {
  PartiesSetup setup;
  setup.have_pairs = false;
  Parties two(setup);
  two.ask();
  rdma_conn_param accepted = parameters_with();
  ASSERT_EQ(errno_of(rdma_accept(two.server.get(), &accepted)), 0);
  two.connecting.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(errno_of(rdma_reject(two.client.get(), "why", 3)), 0);
  const Event rejected = two.listening.expect(RDMA_CM_EVENT_REJECTED, kConsumer);
  EXPECT_EQ(rejected.id, two.server.get());
  EXPECT_EQ(rejected.data, padded("why", 148));
}

TEST(Reject, LetsTheClientAskAgainWithAnotherId) {
  Parties two;
  two.ask();
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), nullptr, 0)), 0);
  two.connecting.expect(RDMA_CM_EVENT_REJECTED, kConsumer);
  two.client = resolved_to(two.connecting, Address(kIpv4Loopback, source_port(*two.listener)));
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
  ASSERT_EQ(errno_of(rdma_create_qp(two.client.get(), nullptr, &setup)), 0);
  two.ask();
  two.establish();
}

class WithoutListener : public testing::TestWithParam<const char*> {
 protected:
  void expect_rejection(std::uint16_t port) {
    Channel connecting;
    const auto id = resolved_to(connecting, Address(GetParam(), port));
    ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
    ASSERT_EQ(errno_of(rdma_create_qp(id.get(), nullptr, &setup)), 0);
    ASSERT_EQ(errno_of(rdma_connect(id.get(), nullptr)), 0);
    EXPECT_EQ(connecting.expect(RDMA_CM_EVENT_REJECTED, kInvalidService).id, id.get());
    EXPECT_EQ(state_of(id), IBV_QPS_ERR);
    EXPECT_FALSE(connecting.is_readable());
  }
};

TEST_P(WithoutListener, IsRejectedWhereNoSocketHasThePort) { expect_rejection(free_port()); }

TEST_P(WithoutListener, IsRejectedByAnIdThatDoesNotListen) {
  Channel channel;
  const auto id = new_id(channel.get());
  ASSERT_EQ(errno_of(rdma_bind_addr(id.get(), Address(GetParam()).get())), 0);
  expect_rejection(source_port(*id));
}

TEST_P(WithoutListener, IsRejectedByAListenerOfAnotherPortSpace) {
  Channel channel;
  const auto id = listen_at(channel, GetParam(), RDMA_PS_IB);
  expect_rejection(source_port(*id));
  EXPECT_FALSE(channel.is_readable());
}

TEST_P(WithoutListener, IsRejectedWhereTheListenerHasEnded) {
  Channel channel;
  auto id = listen_at(channel, GetParam());
  const std::uint16_t port = source_port(*id);
  id.reset();
  expect_rejection(port);
}

INSTANTIATE_TEST_SUITE_P(Families, WithoutListener, testing::Values(kIpv4Loopback, kIpv6Loopback));

}  // namespace
}  // namespace weft::rdmacm_conformance
