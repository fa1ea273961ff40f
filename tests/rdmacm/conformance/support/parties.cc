// SPDX-License-Identifier: BSD-2-Clause
// How do a listener and a client of one process come to a connection?
#include "parties.h"

#include <array>

namespace weft::rdmacm_conformance {
namespace {

void make_pair_of(rdma_cm_id& id) {
  ibv_qp_init_attr setup = pair_setup(id.qp_type);
  EXPECT_EQ(errno_of(rdma_create_qp(&id, nullptr, &setup)), 0);
}

}  // namespace

ibv_qp_init_attr pair_setup(ibv_qp_type type) {
  ibv_qp_init_attr setup{};
  setup.cap = {8, 8, 2, 2, 16};
  setup.qp_type = type;
  setup.sq_sig_all = 1;
  return setup;
}

Owned<rdma_cm_id> new_id(rdma_event_channel* channel, rdma_port_space ps, void* context) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(errno_of(rdma_create_id(channel, &id, context, ps)), 0);
  return Owned<rdma_cm_id>(id);
}

Owned<rdma_cm_id> listen_at(Channel& channel, const char* host, rdma_port_space ps, int backlog) {
  auto id = new_id(channel.get(), ps);
  EXPECT_EQ(errno_of(rdma_bind_addr(id.get(), Address(host).get())), 0);
  EXPECT_EQ(errno_of(rdma_listen(id.get(), backlog)), 0);
  return id;
}

Owned<rdma_cm_id> resolved_to(Channel& channel, const Address& peer, rdma_port_space ps) {
  constexpr int kPatienceMs = 2000;
  auto id = new_id(channel.get(), ps);
  Address to = peer;
  EXPECT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), kPatienceMs)), 0);
  EXPECT_EQ(channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED).id, id.get());
  EXPECT_EQ(errno_of(rdma_resolve_route(id.get(), kPatienceMs)), 0);
  EXPECT_EQ(channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED).id, id.get());
  return id;
}

rdma_conn_param parameters_with(std::string_view data) {
  rdma_conn_param parameters{};
  parameters.private_data = data.empty() ? nullptr : data.data();
  parameters.private_data_len = static_cast<std::uint8_t>(data.size());
  parameters.responder_resources = parameters.initiator_depth = 1;
  parameters.retry_count = parameters.rnr_retry_count = 7;
  return parameters;
}

std::string padded(std::string_view text, std::size_t length) {
  std::string bytes(text);
  bytes.resize(length, '\0');
  return bytes;
}

ibv_wc next_completion(ibv_cq& queue) {
  ibv_wc wc{};
  wc.status = IBV_WC_GENERAL_ERR;
  const auto end = std::chrono::steady_clock::now() + patience();
  while (ibv_poll_cq(&queue, 1, &wc) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "no completion in time";
      break;
    }
  }
  return wc;
}

Parties::Parties(const PartiesSetup& setup)
    : listener(listen_at(listening, setup.at, setup.ps)),
      client(resolved_to(connecting, Address(setup.to, source_port(*listener)), setup.ps)),
      setup_(setup) {
  if (setup.have_pairs) make_pair_of(*client);
}

void Parties::ask(const rdma_conn_param& parameters) {
  rdma_conn_param wanted = parameters;
  ASSERT_EQ(errno_of(rdma_connect(client.get(), &wanted)), 0);
  request = listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request.id, nullptr);
  EXPECT_EQ(request.listen_id, listener.get());
  server.reset(request.id);
  if (setup_.have_pairs) make_pair_of(*server);
}

void Parties::establish() { establish(parameters_with()); }

void Parties::establish(const rdma_conn_param& parameters) {
  rdma_conn_param wanted = parameters;
  ASSERT_EQ(errno_of(rdma_accept(server.get(), &wanted)), 0);
  const bool confirms = !setup_.have_pairs && setup_.ps != RDMA_PS_UDP;
  answer = connecting.expect(confirms ? RDMA_CM_EVENT_CONNECT_RESPONSE : RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(answer.id, client.get());
  if (setup_.ps == RDMA_PS_UDP) return;
  if (confirms) {
    ASSERT_EQ(errno_of(rdma_establish(client.get())), 0);
  }
  EXPECT_EQ(listening.expect(RDMA_CM_EVENT_ESTABLISHED).id, server.get());
}

void Parties::expect_message(rdma_cm_id& from, rdma_cm_id& to, char octet) {
  std::array<char, 8> sent{};
  std::array<char, 8> received{};
  sent.fill(octet);
  const Owned<ibv_mr> source(rdma_reg_msgs(&from, sent.data(), sent.size()));
  const Owned<ibv_mr> target(rdma_reg_msgs(&to, received.data(), received.size()));
  ASSERT_NE(source, nullptr);
  ASSERT_NE(target, nullptr);
  ASSERT_EQ(rdma_post_recv(&to, nullptr, received.data(), received.size(), target.get()), 0);
  ASSERT_EQ(rdma_post_send(&from, nullptr, sent.data(), sent.size(), source.get(), 0), 0);
  EXPECT_EQ(next_completion(*from.send_cq).status, IBV_WC_SUCCESS);
  const ibv_wc arrived = next_completion(*to.recv_cq);
  EXPECT_EQ(arrived.status, IBV_WC_SUCCESS);
  EXPECT_EQ(arrived.byte_len, received.size());
  EXPECT_EQ(received, sent);
}

}  // namespace weft::rdmacm_conformance
