// SPDX-License-Identifier: BSD-2-Clause
// How does a client of datagrams find the queue pair of a service? (RDMA_PS_UDP of rdma_cm(7))
#include <array>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

constexpr std::uint32_t kQueueKey = 0x01234567;  // RDMA_UDP_QKEY
constexpr std::size_t kGrhBytes = 40;
// Status values of a SIDR_REP (IBTA 12.11.1.2).
constexpr int kUnsupported = 1;
constexpr int kRejected = 2;

PartiesSetup datagrams(const char* host = kIpv4Loopback, bool have_pairs = true) {
  PartiesSetup setup;
  setup.at = setup.to = host;
  setup.ps = RDMA_PS_UDP;
  setup.have_pairs = have_pairs;
  return setup;
}

class Datagrams : public testing::TestWithParam<const char*> {};

TEST_P(Datagrams, ReachTheQueuePairOfTheReply) {
  Parties two(datagrams(GetParam()));
  two.ask(parameters_with("request"));
  EXPECT_EQ(two.request.data, padded("request", 180));
  EXPECT_EQ(two.server->ps, RDMA_PS_UDP);
  EXPECT_EQ(two.server->qp_type, IBV_QPT_UD);
  EXPECT_NE(two.server->verbs, nullptr);
  two.establish(parameters_with("reply"));
  EXPECT_EQ(two.answer.data, padded("reply", 136));
  EXPECT_EQ(two.answer.ud.qp_num, two.server->qp->qp_num);
  EXPECT_EQ(two.answer.ud.qkey, kQueueKey);
  EXPECT_FALSE(two.listening.is_readable());  // the server has no ESTABLISHED
  const Owned<ibv_ah> address(ibv_create_ah(two.client->pd, &two.answer.ud.ah_attr));
  ASSERT_NE(address, nullptr);
  std::array<char, 8> sent{'d', 'a', 't', 'a'};
  std::array<char, kGrhBytes + 8> received{};
  const Owned<ibv_mr> source(rdma_reg_msgs(two.client.get(), sent.data(), sent.size()));
  const Owned<ibv_mr> target(rdma_reg_msgs(two.server.get(), received.data(), received.size()));
  ASSERT_EQ(
      rdma_post_recv(two.server.get(), nullptr, received.data(), received.size(), target.get()), 0);
  ASSERT_EQ(rdma_post_ud_send(two.client.get(), nullptr, sent.data(), sent.size(), source.get(), 0,
                              address.get(), two.answer.ud.qp_num),
            0);
  EXPECT_EQ(next_completion(*two.client->send_cq).status, IBV_WC_SUCCESS);
  const ibv_wc arrived = next_completion(*two.server->recv_cq);
  EXPECT_EQ(arrived.status, IBV_WC_SUCCESS);
  EXPECT_EQ(arrived.byte_len, received.size());
  EXPECT_EQ(arrived.src_qp, two.client->qp->qp_num);
  EXPECT_EQ(std::string(received.data() + kGrhBytes, 4), "data");
}

TEST_P(Datagrams, WithoutAListenerAreUnreachable) {
  Channel channel;
  const auto id = resolved_to(channel, Address(GetParam(), free_port()), RDMA_PS_UDP);
  ASSERT_EQ(errno_of(rdma_connect(id.get(), nullptr)), 0);
  EXPECT_EQ(channel.expect(RDMA_CM_EVENT_UNREACHABLE, kUnsupported).id, id.get());
}

INSTANTIATE_TEST_SUITE_P(Families, Datagrams, testing::Values(kIpv4Loopback, kIpv6Loopback));

TEST(DatagramService, OfAnotherPortSpaceIsUnreachable) {
  Channel listening;
  const auto listener = listen_at(listening, kIpv4Loopback, RDMA_PS_TCP);
  Channel channel;
  const auto id = resolved_to(channel, Address(kIpv4Loopback, source_port(*listener)), RDMA_PS_UDP);
  ASSERT_EQ(errno_of(rdma_connect(id.get(), nullptr)), 0);
  channel.expect(RDMA_CM_EVENT_UNREACHABLE, kUnsupported);
  EXPECT_FALSE(listening.is_readable());
}

TEST(DatagramService, ThatRejectsIsUnreachable) {
  Parties two(datagrams());
  two.ask();
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), "no", 2)), 0);
  const Event refused = two.connecting.expect(RDMA_CM_EVENT_UNREACHABLE, kRejected);
  EXPECT_EQ(refused.id, two.client.get());
  EXPECT_EQ(refused.data, "");  // it is no ESTABLISHED
}

TEST(DatagramService, WhoseRequestIsDestroyedIsUnreachable) {
  Parties two(datagrams());
  two.ask();
  two.server.reset();
  two.connecting.expect(RDMA_CM_EVENT_UNREACHABLE, kRejected);
}

TEST(DatagramService, WhoseListenerEndsIsUnreachable) {
  Parties two(datagrams());
  ASSERT_EQ(errno_of(rdma_connect(two.client.get(), nullptr)), 0);
  ASSERT_TRUE(two.listening.is_readable_within(patience()));
  two.listener.reset();
  two.connecting.expect(RDMA_CM_EVENT_UNREACHABLE, kUnsupported);
}

TEST(DatagramService, NamesTheQueuePairOfTheProgram) {
  Parties two(datagrams(kIpv4Loopback, false));
  two.ask();
  EXPECT_EQ(errno_of(rdma_accept(two.server.get(), nullptr)), EINVAL);  // there is none
  rdma_conn_param accepted = parameters_with();
  accepted.qp_num = 4711;
  two.establish(accepted);
  EXPECT_EQ(two.answer.ud.qp_num, 4711U);
  EXPECT_EQ(two.answer.ud.qkey, kQueueKey);
}

TEST(DatagramService, TakesPrivateDataUpToTheirLimits) {
  const std::string of_request(181, 'r');
  const std::string of_reply(137, 'p');
  Parties two(datagrams());
  rdma_conn_param too_long = parameters_with(of_request);
  EXPECT_EQ(errno_of(rdma_connect(two.client.get(), &too_long)), EINVAL);
  two.ask(parameters_with(std::string_view(of_request).substr(1)));
  EXPECT_EQ(two.request.data, of_request.substr(1));
  too_long = parameters_with(of_reply);
  EXPECT_EQ(errno_of(rdma_accept(two.server.get(), &too_long)), EINVAL);
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), of_reply.data(), 137)), EINVAL);
  two.establish(parameters_with(std::string_view(of_reply).substr(1)));
  EXPECT_EQ(two.answer.data, of_reply.substr(1));
}

TEST(DatagramService, HasNoConnection) {
  Parties two(datagrams());
  two.ask();
  two.establish();
  EXPECT_EQ(errno_of(rdma_disconnect(two.client.get())), EINVAL);
  EXPECT_EQ(errno_of(rdma_disconnect(two.server.get())), EINVAL);
  EXPECT_EQ(errno_of(rdma_establish(two.client.get())), EINVAL);
  EXPECT_EQ(errno_of(rdma_accept(two.server.get(), nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), nullptr, 0)), EINVAL);
}

// As udaddy's clients do: many at once.
TEST(DatagramService, AnswersSeveralClients) {
  constexpr std::size_t kClients = 10;
  Channel listening;
  Channel connecting;
  const auto listener = listen_at(listening, kIpv4Loopback, RDMA_PS_UDP);
  std::array<Owned<rdma_cm_id>, kClients> clients;
  std::array<Owned<rdma_cm_id>, kClients> servers;
  for (auto& each : clients) {
    each = resolved_to(connecting, Address(kIpv4Loopback, source_port(*listener)), RDMA_PS_UDP);
    ASSERT_EQ(errno_of(rdma_connect(each.get(), nullptr)), 0);
  }
  for (auto& each : servers) {
    each.reset(listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
    rdma_conn_param accepted = parameters_with();
    accepted.qp_num = 1000;
    ASSERT_EQ(errno_of(rdma_accept(each.get(), &accepted)), 0);
  }
  for (std::size_t i = 0; i < kClients; ++i) {
    EXPECT_EQ(connecting.expect(RDMA_CM_EVENT_ESTABLISHED).ud.qp_num, 1000U);
  }
}

}  // namespace
}  // namespace weft::rdmacm_conformance
