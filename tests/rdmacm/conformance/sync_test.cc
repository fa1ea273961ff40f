// SPDX-License-Identifier: BSD-2-Clause
// How do ids without an event channel behave? (rdma_create_id(3), rdma_create_ep(3),
// rdma_get_request(3))
#include <fcntl.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

constexpr int kPatienceMs = 2000;

rdma_cm_event_type event_of(const Owned<rdma_cm_id>& id) {
  return id->event != nullptr ? id->event->event : RDMA_CM_EVENT_DEVICE_REMOVAL;
}

Owned<rdma_cm_id> resolved_sync(std::uint16_t port, rdma_port_space ps = RDMA_PS_TCP) {
  auto id = new_id(nullptr, ps);
  Address to(kIpv4Loopback, port);
  EXPECT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), kPatienceMs)), 0);
  EXPECT_EQ(event_of(id), RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(errno_of(rdma_resolve_route(id.get(), kPatienceMs)), 0);
  EXPECT_EQ(event_of(id), RDMA_CM_EVENT_ROUTE_RESOLVED);
  return id;
}

// The result of rdma_getaddrinfo(3) for numbers.
Owned<rdma_addrinfo> info_of(const char* host, std::uint16_t port, int flags,
                             int port_space = RDMA_PS_TCP) {
  rdma_addrinfo hints{};
  hints.ai_flags = flags | RAI_NUMERICHOST;
  hints.ai_port_space = port_space;
  rdma_addrinfo* info = nullptr;
  EXPECT_EQ(rdma_getaddrinfo(host, std::to_string(port).c_str(), &hints, &info), 0);
  return Owned<rdma_addrinfo>(info);
}

Owned<rdma_cm_id> endpoint(rdma_addrinfo& info, ibv_qp_init_attr* setup) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(errno_of(rdma_create_ep(&id, &info, nullptr, setup)), 0);
  return Owned<rdma_cm_id>(id);
}

// A synchronous listener, whose requests have queue pairs of that kind.
Owned<rdma_cm_id> listening_endpoint(const char* host = kIpv4Loopback) {
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
  const auto info = info_of(host, 0, RAI_PASSIVE);
  auto id = endpoint(*info, &setup);
  EXPECT_EQ(errno_of(rdma_listen(id.get(), 0)), 0);
  return id;
}

Owned<rdma_cm_id> request_of(const Owned<rdma_cm_id>& listener) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(errno_of(rdma_get_request(listener.get(), &id)), 0);
  return Owned<rdma_cm_id>(id);
}

TEST(Synchronous, ResolutionLeavesItsEventInTheId) {
  const auto id = resolved_sync(1);
  EXPECT_EQ(id->event->id, id.get());
  EXPECT_EQ(id->event->status, 0);
  EXPECT_NE(id->verbs, nullptr);
  EXPECT_EQ(id->route.num_paths, 1);
}

TEST(Synchronous, ResolutionThatFailsHasTheErrnoOfItsEvent) {
  const auto id = new_id(nullptr);
  Address to(kForeignIpv4, 1);
  const int code = errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), kPatienceMs));
  EXPECT_TRUE(code == ENODEV || code == ENETUNREACH || code == EHOSTUNREACH) << code;
  EXPECT_EQ(event_of(id), RDMA_CM_EVENT_ADDR_ERROR);
  EXPECT_EQ(id->event->status, -code);
}

TEST(Synchronous, ConnectToAPortWithoutAListenerIsRefused) {
  const auto id = resolved_sync(free_port());
  rdma_conn_param wanted = parameters_with();
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
  ASSERT_EQ(errno_of(rdma_create_qp(id.get(), nullptr, &setup)), 0);
  EXPECT_EQ(errno_of(rdma_connect(id.get(), &wanted)), ECONNREFUSED);
  EXPECT_EQ(event_of(id), RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(id->event->status, 8);
}

TEST(Synchronous, ResolutionOfAServiceForDatagramsLeavesTheQueuePairInTheId) {
  Channel listening;
  const auto listener = listen_at(listening, kIpv4Loopback, RDMA_PS_UDP);
  const auto id = resolved_sync(source_port(*listener), RDMA_PS_UDP);
  std::thread client([&] { EXPECT_EQ(errno_of(rdma_connect(id.get(), nullptr)), 0); });
  const Event request = listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  const Owned<rdma_cm_id> server(request.id);
  rdma_conn_param accepted = parameters_with();
  accepted.qp_num = 4711;
  EXPECT_EQ(errno_of(rdma_accept(server.get(), &accepted)), 0);
  client.join();
  EXPECT_EQ(event_of(id), RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(id->event->param.ud.qp_num, 4711U);
}

TEST(Synchronous, ResolutionOfAServiceThatIsNotThereHasItsStatus) {
  const auto id = resolved_sync(free_port(), RDMA_PS_UDP);
  constexpr int kNoSuchService = 1;  // of a SIDR_REP
  EXPECT_EQ(errno_of(rdma_connect(id.get(), nullptr)), kNoSuchService);
  EXPECT_EQ(event_of(id), RDMA_CM_EVENT_UNREACHABLE);
}

// The client is asynchronous, so that one thread is both sides.
class Request : public testing::Test {
 protected:
  void ask(std::string_view data = {}) {
    client_ = resolved_to(connecting_, Address(kIpv4Loopback, source_port(*listener_)));
    ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
    ASSERT_EQ(errno_of(rdma_create_qp(client_.get(), nullptr, &setup)), 0);
    rdma_conn_param wanted = parameters_with(data);
    ASSERT_EQ(errno_of(rdma_connect(client_.get(), &wanted)), 0);
  }

  Owned<rdma_cm_id> listener_ = listening_endpoint();
  Channel connecting_;
  Owned<rdma_cm_id> client_;
};

TEST_F(Request, ComesWithItsEventAndAQueuePair) {
  ask("hello");
  const auto server = request_of(listener_);
  ASSERT_NE(server, nullptr);
  ASSERT_EQ(event_of(server), RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(server->event->id, server.get());
  EXPECT_EQ(server->event->listen_id, listener_.get());
  EXPECT_EQ(Event(*server->event).data, padded("hello", 56));
  ASSERT_NE(server->channel, nullptr);
  EXPECT_NE(server->channel, listener_->channel);
  ASSERT_NE(server->qp, nullptr);
  EXPECT_EQ(server->qp->qp_type, IBV_QPT_RC);
  EXPECT_EQ(server->send_cq->cq_context, server.get());
}

TEST_F(Request, HasAQueuePairOfTheDomainOfItsListener) {
  const Owned<ibv_pd> pd(ibv_alloc_pd(listener_->verbs));
  const auto info = info_of(kIpv4Loopback, 0, RAI_PASSIVE);
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_UD);  // the type of the address counts
  rdma_cm_id* made = nullptr;
  ASSERT_EQ(errno_of(rdma_create_ep(&made, info.get(), pd.get(), &setup)), 0);
  listener_.reset(made);
  ASSERT_EQ(errno_of(rdma_listen(listener_.get(), 0)), 0);
  ask();
  auto server = request_of(listener_);
  ASSERT_NE(server, nullptr);
  ASSERT_NE(server->qp, nullptr);
  EXPECT_EQ(server->qp->pd, pd.get());
  EXPECT_EQ(server->qp->qp_type, IBV_QPT_RC);
  server.reset();
}

TEST_F(Request, ThatIsRejectedReachesTheClient) {
  ask();
  const auto server = request_of(listener_);
  ASSERT_EQ(errno_of(rdma_reject(server.get(), "no", 2)), 0);
  EXPECT_EQ(connecting_.expect(RDMA_CM_EVENT_REJECTED, 28).data, padded("no", 148));
}

TEST_F(Request, ThatIsDestroyedRejects) {
  ask();
  request_of(listener_).reset();
  connecting_.expect(RDMA_CM_EVENT_REJECTED, 28);
}

TEST_F(Request, OfAListenerWithAChannelIsNotForThisCall) {
  Channel channel;
  const auto listener = listen_at(channel, kIpv4Loopback);
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(errno_of(rdma_get_request(listener.get(), &id)), EINVAL);
  EXPECT_EQ(id, nullptr);
}

TEST_F(Request, IsAskedForWithoutWaitingOnANonBlockingDescriptor) {
  const int fd = listener_->channel->fd;
  ASSERT_EQ(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(errno_of(rdma_get_request(listener_.get(), &id)), EAGAIN);
}

TEST(Endpoint, OfAServerIsBoundAndHasNoQueuePair) {
  const auto info = info_of(kIpv4Loopback, 0, RAI_PASSIVE);
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
  const auto id = endpoint(*info, &setup);
  EXPECT_EQ(id->qp, nullptr);
  EXPECT_NE(id->verbs, nullptr);
  EXPECT_NE(source_port(*id), 0);
  EXPECT_EQ(id->qp_type, IBV_QPT_RC);
}

TEST(Endpoint, OfAClientHasARouteAndAQueuePair) {
  const auto info = info_of(kIpv4Loopback, 1, 0);
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_UD);  // the type of the address counts
  const auto id = endpoint(*info, &setup);
  ASSERT_NE(id->qp, nullptr);
  EXPECT_EQ(id->qp->qp_type, IBV_QPT_RC);
  EXPECT_EQ(id->route.num_paths, 1);
  EXPECT_EQ(destination_port(*id), 1);
  EXPECT_GT(setup.cap.max_send_wr, 0U);
  ASSERT_NE(id->channel, nullptr);
}

TEST(Endpoint, OfAClientWithoutAttributesHasNoQueuePair) {
  const auto info = info_of(kIpv4Loopback, 1, 0);
  const auto id = endpoint(*info, nullptr);
  EXPECT_EQ(id->qp, nullptr);
  EXPECT_EQ(id->route.num_paths, 1);
}

TEST(Endpoint, UsesTheDomainOfTheProgram) {
  const auto listener = listening_endpoint();
  const Owned<ibv_pd> pd(ibv_alloc_pd(listener->verbs));
  const auto info = info_of(kIpv4Loopback, source_port(*listener), 0);
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
  rdma_cm_id* made = nullptr;
  ASSERT_EQ(errno_of(rdma_create_ep(&made, info.get(), pd.get(), &setup)), 0);
  const Owned<rdma_cm_id> id(made);
  EXPECT_EQ(id->pd, pd.get());
  EXPECT_EQ(id->qp->pd, pd.get());
}

TEST(Endpoint, OfDatagramsHasAQueuePairThatSends) {
  const auto info = info_of(kIpv4Loopback, 1, 0, RDMA_PS_UDP);
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_UD);
  const auto id = endpoint(*info, &setup);
  EXPECT_EQ(id->ps, RDMA_PS_UDP);
  EXPECT_EQ(id->qp->qp_type, IBV_QPT_UD);
}

TEST(Endpoint, ThatCannotBeMadeLeavesNothing) {
  rdma_cm_id* id = nullptr;
  const auto info = info_of(kForeignIpv4, 1, RAI_PASSIVE);
  EXPECT_EQ(errno_of(rdma_create_ep(&id, info.get(), nullptr, nullptr)), EADDRNOTAVAIL);
  EXPECT_EQ(id, nullptr);
  rdma_addrinfo nothing{};
  nothing.ai_port_space = RDMA_PS_TCP;
  EXPECT_EQ(errno_of(rdma_create_ep(&id, &nothing, nullptr, nullptr)), EINVAL);
  EXPECT_EQ(id, nullptr);
  nothing.ai_port_space = 0;
  EXPECT_EQ(errno_of(rdma_create_ep(&id, &nothing, nullptr, nullptr)), EINVAL);
}

// rdma_addrinfo::ai_connect.
TEST_F(Request, HasTheConnectDataOfTheAddressBeforeThoseOfTheProgram) {
  const auto info = info_of(kIpv4Loopback, source_port(*listener_), 0);
  static constexpr std::string_view kData = "from the address";
  info->ai_connect = std::malloc(kData.size());
  ASSERT_NE(info->ai_connect, nullptr);
  kData.copy(static_cast<char*>(info->ai_connect), kData.size());
  info->ai_connect_len = kData.size();
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
  client_ = endpoint(*info, &setup);
  ASSERT_EQ(errno_of(rdma_migrate_id(client_.get(), connecting_.get())), 0);
  const std::string too_long(57 - kData.size(), 'x');
  rdma_conn_param wanted = parameters_with(too_long);
  EXPECT_EQ(errno_of(rdma_connect(client_.get(), &wanted)), EINVAL);
  wanted = parameters_with(", and more");
  ASSERT_EQ(errno_of(rdma_connect(client_.get(), &wanted)), 0);
  const auto server = request_of(listener_);
  ASSERT_NE(server->event, nullptr);
  EXPECT_EQ(Event(*server->event).data, padded("from the address, and more", 56));
}

}  // namespace
}  // namespace weft::rdmacm_conformance
