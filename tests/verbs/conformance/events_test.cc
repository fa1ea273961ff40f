// SPDX-License-Identifier: BSD-2-Clause
// Which asynchronous events does a program get, and how often? (ibv_get_async_event(3))
#include <fcntl.h>
#include <poll.h>

#include <cerrno>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

TEST(Established, IsReportedWhenAPacketArrivesInReadyToReceive) {
  End a;
  End b;
  a.partner_with(b);
  b.partner_with(a);
  const ibv_qp_attr usual = b.usual();
  ASSERT_EQ(b.to_init(usual), 0);
  ASSERT_EQ(b.to_rtr(a.qp()->qp_num, usual), 0);
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(b.receive(8, id), 0);
  a.connect(b.qp()->qp_num);
  ASSERT_EQ(a.send(8), 0);
  EXPECT_EQ(a.sent().status, IBV_WC_SUCCESS);
  const ibv_async_event event = await_event(b.context());
  EXPECT_EQ(event.event_type, IBV_EVENT_COMM_EST);
  EXPECT_EQ(event.element.qp, b.qp());
  ASSERT_EQ(a.send(8), 0);
  EXPECT_EQ(a.sent().status, IBV_WC_SUCCESS);
  EXPECT_FALSE(next_event(b.context(), std::chrono::milliseconds(0)));
}

TEST(Established, IsNotReportedInReadyToSend) {
  Pair two;
  ASSERT_EQ(two.b.receive(8), 0);
  ASSERT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_FALSE(next_event(two.b.context(), std::chrono::milliseconds(0)));
}

TEST(Descriptor, IsReadableWhileAnEventWaits) {
  EndSetup shared;
  shared.shared_receives = 1;
  End end(shared);
  pollfd look{end.context()->async_fd, POLLIN, 0};
  EXPECT_EQ(::poll(&look, 1, 0), 0);
  ASSERT_EQ(end.to_init(end.usual()), 0);
  ASSERT_EQ(end.to_error(), 0);
  EXPECT_EQ(::poll(&look, 1, 0), 1);
  EXPECT_EQ(await_event(end.context()).event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(::poll(&look, 1, 0), 0);
}

TEST(Descriptor, IsNonBlockingWhenTheProgramSaysSo) {
  const auto context = open_device();
  const int flags = ::fcntl(context->async_fd, F_GETFL);
  ASSERT_EQ(::fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
  ibv_async_event event{};
  errno = 0;
  EXPECT_EQ(ibv_get_async_event(context.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(Descriptor, OfACompletionChannelIsNonBlockingWhenTheProgramSaysSo) {
  const auto context = open_device();
  const Owned<ibv_comp_channel> channel(ibv_create_comp_channel(context.get()));
  ASSERT_EQ(::fcntl(channel->fd, F_SETFL, ::fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
  ibv_cq* cq = nullptr;
  void* of = nullptr;
  errno = 0;
  EXPECT_EQ(ibv_get_cq_event(channel.get(), &cq, &of), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// Two contexts of one device: each hears of its own objects.
TEST(Events, GoToTheContextOfTheirObject) {
  Pair two;
  ASSERT_EQ(two.a.write({1, 1}, 8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(await_event(two.b.context()).event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_FALSE(next_event(two.a.context(), std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace weft::verbs_conformance
