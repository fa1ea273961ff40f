// SPDX-License-Identifier: BSD-2-Clause
// How do connections end, and in which order do both ends learn of it? (rdma_disconnect(3))
#include <array>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

ibv_qp_state state_of(const Owned<rdma_cm_id>& id) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  EXPECT_EQ(ibv_query_qp(id->qp, &attributes, IBV_QP_STATE, &initial), 0);
  return attributes.qp_state;
}

class Disconnect : public testing::Test {
 protected:
  Disconnect() {
    two_.ask();
    two_.establish();
  }

  // Each end has both events, in that order, and no other.
  void expect_end() {
    for (Channel* const each : {&two_.connecting, &two_.listening}) {
      const rdma_cm_id* const id = each == &two_.connecting ? two_.client.get() : two_.server.get();
      EXPECT_EQ(each->expect(RDMA_CM_EVENT_DISCONNECTED).id, id);
    }
    for (Channel* const each : {&two_.connecting, &two_.listening}) {
      const rdma_cm_id* const id = each == &two_.connecting ? two_.client.get() : two_.server.get();
      EXPECT_EQ(each->expect(RDMA_CM_EVENT_TIMEWAIT_EXIT).id, id);
      EXPECT_FALSE(each->is_readable());
    }
  }

  Parties two_;
};

TEST_F(Disconnect, ByTheClientIsReportedToBothEnds) {
  EXPECT_EQ(errno_of(rdma_disconnect(two_.client.get())), 0);
  expect_end();
}

TEST_F(Disconnect, ByTheServerIsReportedToBothEnds) {
  EXPECT_EQ(errno_of(rdma_disconnect(two_.server.get())), 0);
  expect_end();
}

TEST_F(Disconnect, ByBothEndsAtOnceIsReportedOnceToEach) {
  EXPECT_EQ(errno_of(rdma_disconnect(two_.client.get())), 0);
  EXPECT_EQ(errno_of(rdma_disconnect(two_.server.get())), 0);
  expect_end();
}

// As the manual asks of both sides.
TEST_F(Disconnect, InAnswerToThatOfThePeerSucceeds) {
  EXPECT_EQ(errno_of(rdma_disconnect(two_.client.get())), 0);
  two_.listening.expect(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(state_of(two_.server), IBV_QPS_RTS);  // until the program says so
  EXPECT_EQ(errno_of(rdma_disconnect(two_.server.get())), 0);
  EXPECT_EQ(state_of(two_.server), IBV_QPS_ERR);
  two_.connecting.expect(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_FALSE(two_.listening.is_readable());
}

TEST_F(Disconnect, FlushesTheWorkOfTheQueuePair) {
  std::array<char, 8> bytes{};
  const Owned<ibv_mr> region(rdma_reg_msgs(two_.client.get(), bytes.data(), bytes.size()));
  ASSERT_EQ(rdma_post_recv(two_.client.get(), &bytes, bytes.data(), bytes.size(), region.get()), 0);
  EXPECT_EQ(errno_of(rdma_disconnect(two_.client.get())), 0);
  const ibv_wc wc = next_completion(*two_.client->recv_cq);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wc.wr_id, reinterpret_cast<std::uintptr_t>(&bytes));
  EXPECT_EQ(state_of(two_.client), IBV_QPS_ERR);
}

TEST_F(Disconnect, TwiceIsRefused) {
  EXPECT_EQ(errno_of(rdma_disconnect(two_.client.get())), 0);
  EXPECT_EQ(errno_of(rdma_disconnect(two_.client.get())), EINVAL);
  two_.connecting.expect(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_FALSE(two_.connecting.is_readable());
}

TEST_F(Disconnect, LeavesTheListenerToOthers) {
  EXPECT_EQ(errno_of(rdma_disconnect(two_.server.get())), 0);
  two_.connecting.expect(RDMA_CM_EVENT_DISCONNECTED);
  two_.listening.expect(RDMA_CM_EVENT_DISCONNECTED);
  two_.client.reset();
  two_.server.reset();
  two_.client = resolved_to(two_.connecting, Address(kIpv4Loopback, source_port(*two_.listener)));
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
  ASSERT_EQ(errno_of(rdma_create_qp(two_.client.get(), nullptr, &setup)), 0);
  two_.ask();
  two_.establish();
  Parties::expect_message(*two_.client, *two_.server, 'a');
}

TEST(DisconnectOf, AnIdWithoutAConnectionIsRefused) {
  Parties two;
  Channel channel;
  const auto id = new_id(channel.get());
  EXPECT_EQ(errno_of(rdma_disconnect(id.get())), EINVAL);
  EXPECT_EQ(errno_of(rdma_disconnect(two.listener.get())), EINVAL);
  EXPECT_EQ(errno_of(rdma_disconnect(two.client.get())), EINVAL);
  two.ask();
  EXPECT_EQ(errno_of(rdma_disconnect(two.server.get())), EINVAL);
  two.establish();
}

TEST(DisconnectOf, IdsWithoutQueuePairsIsReportedToBothEnds) {
  PartiesSetup setup;
  setup.have_pairs = false;
  Parties two(setup);
  two.ask();
  two.establish();
  EXPECT_EQ(errno_of(rdma_disconnect(two.server.get())), 0);
  two.connecting.expect(RDMA_CM_EVENT_DISCONNECTED);
  two.listening.expect(RDMA_CM_EVENT_DISCONNECTED);
}

}  // namespace
}  // namespace weft::rdmacm_conformance
