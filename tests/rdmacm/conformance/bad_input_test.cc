// SPDX-License-Identifier: BSD-2-Clause
// What do calls answer to null pointers, and to what Weft does not offer? (docs/user/rdma_cm.md)
#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/select.h>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

TEST(NullPointers, AreRefusedInPlaceOfAnId) {
  Channel channel;
  Address address(kIpv4Loopback);
  rdma_conn_param parameters = parameters_with();
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
  ibv_qp_init_attr_ex extended{};
  ibv_srq_init_attr shared{};
  ibv_srq_init_attr_ex shared_extended{};
  ibv_qp_attr attributes{};
  int number = 0;
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(errno_of(rdma_destroy_id(nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_bind_addr(nullptr, address.get())), EINVAL);
  EXPECT_EQ(errno_of(rdma_resolve_addr(nullptr, nullptr, address.get(), 1)), EINVAL);
  EXPECT_EQ(errno_of(rdma_resolve_route(nullptr, 1)), EINVAL);
  EXPECT_EQ(errno_of(rdma_listen(nullptr, 1)), EINVAL);
  EXPECT_EQ(errno_of(rdma_connect(nullptr, &parameters)), EINVAL);
  EXPECT_EQ(errno_of(rdma_accept(nullptr, &parameters)), EINVAL);
  EXPECT_EQ(errno_of(rdma_establish(nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_reject(nullptr, nullptr, 0)), EINVAL);
  EXPECT_EQ(errno_of(rdma_reject_ece(nullptr, nullptr, 0)), EINVAL);
  EXPECT_EQ(errno_of(rdma_notify(nullptr, IBV_EVENT_COMM_EST)), EINVAL);
  EXPECT_EQ(errno_of(rdma_disconnect(nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_migrate_id(nullptr, channel.get())), EINVAL);
  EXPECT_EQ(errno_of(rdma_get_request(nullptr, &id)), EINVAL);
  EXPECT_EQ(errno_of(rdma_create_qp(nullptr, nullptr, &setup)), EINVAL);
  EXPECT_EQ(errno_of(rdma_create_qp_ex(nullptr, &extended)), EINVAL);
  EXPECT_EQ(errno_of(rdma_create_srq(nullptr, nullptr, &shared)), EINVAL);
  EXPECT_EQ(errno_of(rdma_create_srq_ex(nullptr, &shared_extended)), EINVAL);
  EXPECT_EQ(errno_of(rdma_init_qp_attr(nullptr, &attributes, &number)), EINVAL);
  EXPECT_EQ(
      errno_of(rdma_set_option(nullptr, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &number, 4)),
      EINVAL);
}

TEST(NullPointers, AreRefusedInPlaceOfResultsAndAttributes) {
  Channel channel;
  const auto id = new_id(channel.get());
  rdma_cm_id* made = nullptr;
  rdma_addrinfo info{};
  ibv_qp_attr attributes{};
  int mask = 0;
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(errno_of(rdma_create_id(channel.get(), nullptr, nullptr, RDMA_PS_TCP)), EINVAL);
  EXPECT_EQ(errno_of(rdma_create_ep(nullptr, &info, nullptr, nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_create_ep(&made, nullptr, nullptr, nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_get_request(id.get(), nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_get_cm_event(nullptr, &event)), EINVAL);
  EXPECT_EQ(errno_of(rdma_get_cm_event(channel.get(), nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_ack_cm_event(nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_create_qp(id.get(), nullptr, nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_create_qp_ex(id.get(), nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_create_srq(id.get(), nullptr, nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_create_srq_ex(id.get(), nullptr)), EINVAL);
  EXPECT_EQ(errno_of(rdma_init_qp_attr(id.get(), nullptr, &mask)), EINVAL);
  EXPECT_EQ(errno_of(rdma_init_qp_attr(id.get(), &attributes, nullptr)), EINVAL);
}

// There is nothing to do.
TEST(NullPointers, AreIgnoredByCallsWithoutAResult) {
  rdma_destroy_event_channel(nullptr);
  rdma_destroy_ep(nullptr);
  rdma_destroy_qp(nullptr);
  rdma_destroy_srq(nullptr);
  rdma_freeaddrinfo(nullptr);
  rdma_free_devices(nullptr);
}

TEST(NotOffered, IsMulticast) {
  Channel channel;
  const auto id = resolved_to(channel, Address(kIpv4Loopback, 1), RDMA_PS_UDP);
  Address group("224.0.0.5");
  rdma_cm_join_mc_attr_ex attributes{};
  EXPECT_EQ(errno_of(rdma_join_multicast(id.get(), group.get(), nullptr)), ENOSYS);
  EXPECT_EQ(errno_of(rdma_join_multicast_ex(id.get(), &attributes, nullptr)), ENOSYS);
  EXPECT_EQ(errno_of(rdma_leave_multicast(id.get(), group.get())), ENOSYS);
  EXPECT_FALSE(channel.is_readable());
}

TEST(NotOffered, IsExtendedEstablishment) {
  Channel channel;
  const auto id = new_id(channel.get());
  ibv_ece options{};
  options.vendor_id = 1;
  EXPECT_EQ(errno_of(rdma_set_local_ece(id.get(), &options)), EOPNOTSUPP);
  EXPECT_EQ(errno_of(rdma_get_remote_ece(id.get(), &options)), EOPNOTSUPP);
}

TEST(NotOffered, AreSocketsOverQueuePairs) {
  EXPECT_EQ(errno_of(rsocket(AF_INET, SOCK_STREAM, 0)), ENOSYS);
  EXPECT_EQ(errno_of(rbind(3, nullptr, 0)), ENOSYS);
  EXPECT_EQ(errno_of(rlisten(3, 1)), ENOSYS);
  EXPECT_EQ(errno_of(rclose(3)), ENOSYS);
}

// rping, ucmatose and others wait so for their channels.
TEST(Descriptors, AreWaitedForByThePollOfRsockets) {
  Channel channel;
  const auto id = new_id(channel.get());
  pollfd look{channel.fd(), POLLIN, 0};
  EXPECT_EQ(rpoll(&look, 1, 0), 0);
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(channel.fd(), &readable);
  timeval none{};
  EXPECT_EQ(rselect(channel.fd() + 1, &readable, nullptr, nullptr, &none), 0);
  Address to(kIpv4Loopback, 1);
  ASSERT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), 1000)), 0);
  EXPECT_EQ(rpoll(&look, 1, -1), 1);
  EXPECT_EQ(look.revents, POLLIN);
  FD_SET(channel.fd(), &readable);
  EXPECT_EQ(rselect(channel.fd() + 1, &readable, nullptr, nullptr, nullptr), 1);
  const int flags = rfcntl(channel.fd(), F_GETFL);
  EXPECT_EQ(rfcntl(channel.fd(), F_SETFL, flags | O_NONBLOCK), 0);
  channel.next();
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(errno_of(rdma_get_cm_event(channel.get(), &event)), EAGAIN);
}

}  // namespace
}  // namespace weft::rdmacm_conformance
