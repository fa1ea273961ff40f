// SPDX-License-Identifier: BSD-2-Clause
// How does the descriptor of an event channel behave? (rdma_get_cm_event(3))
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

// Makes one event of the id, at once.
void cause_event(rdma_cm_id& id) {
  Address to(kIpv4Loopback, 1);
  ASSERT_EQ(errno_of(rdma_resolve_addr(&id, nullptr, to.get(), 1000)), 0);
}

// An event that comes is acknowledged.
int get_errno(Channel& channel) {
  rdma_cm_event* event = nullptr;
  const int code = errno_of(rdma_get_cm_event(channel.get(), &event));
  const Owned<rdma_cm_event> end(event);
  return code;
}

// An edge-triggered watch of a channel.
class Edges {
 public:
  explicit Edges(const Channel& channel) : fd_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event wanted{};
    wanted.events = EPOLLIN | EPOLLET;
    EXPECT_EQ(::epoll_ctl(fd_, EPOLL_CTL_ADD, channel.fd(), &wanted), 0);
  }
  ~Edges() { ::close(fd_); }
  Edges(const Edges&) = delete;
  Edges& operator=(const Edges&) = delete;
  // 1 when the channel has become readable since the last call.
  int seen(int timeout_ms = 0) const {
    epoll_event seen{};
    return ::epoll_wait(fd_, &seen, 1, timeout_ms);
  }

 private:
  int fd_;
};

TEST(EventChannel, IsReadableWhileAnEventWaits) {
  Channel channel;
  const auto first = new_id(channel.get());
  const auto second = new_id(channel.get());
  EXPECT_FALSE(channel.is_readable());
  cause_event(*first);
  cause_event(*second);
  EXPECT_TRUE(channel.is_readable());
  EXPECT_EQ(channel.next().id, first.get());
  EXPECT_TRUE(channel.is_readable());
  EXPECT_EQ(channel.next().id, second.get());
  EXPECT_FALSE(channel.is_readable());
}

TEST(EventChannel, IsNotReadableOnceTheLastEventIsTakenAndNotYetAcknowledged) {
  Channel channel;
  const auto id = new_id(channel.get());
  cause_event(*id);
  const auto event = channel.take();
  EXPECT_FALSE(channel.is_readable());
}

TEST(EventChannel, HasAnEdgeForEachEventAndNoOther) {
  Channel channel;
  const Edges edges(channel);
  const auto first = new_id(channel.get());
  const auto second = new_id(channel.get());
  EXPECT_EQ(edges.seen(), 0);
  cause_event(*first);
  EXPECT_EQ(edges.seen(), 1);
  EXPECT_EQ(edges.seen(), 0);
  cause_event(*second);  // behind an event that nothing has taken
  EXPECT_EQ(edges.seen(), 1);
  channel.next();
  EXPECT_EQ(edges.seen(), 0);
  channel.next();
  EXPECT_EQ(edges.seen(), 0);
  ASSERT_EQ(errno_of(rdma_resolve_route(first.get(), 1000)), 0);
  EXPECT_EQ(edges.seen(), 1);
  channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(edges.seen(), 0);
}

TEST(EventChannel, HasAnEdgeForARequestThatArrivesWhileTheProgramSleeps) {
  PartiesSetup setup;
  setup.have_pairs = false;
  Parties two(setup);
  const Edges edges(two.listening);
  rdma_conn_param wanted = parameters_with();
  ASSERT_EQ(errno_of(rdma_connect(two.client.get(), &wanted)), 0);
  ASSERT_EQ(edges.seen(static_cast<int>(patience().count()) * 1000), 1);
  two.request = two.listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  two.server.reset(two.request.id);
  EXPECT_EQ(edges.seen(), 0);
}

TEST(EventChannel, ThatIsNonBlockingSaysThatThereIsNoEvent) {
  Channel channel;
  channel.set_nonblocking();
  EXPECT_EQ(get_errno(channel), EAGAIN);
  const auto id = new_id(channel.get());
  cause_event(*id);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(get_errno(channel), EAGAIN);
  // As the descriptor says at the time of the call.
  ASSERT_EQ(::fcntl(channel.fd(), F_SETFL, ::fcntl(channel.fd(), F_GETFL) & ~O_NONBLOCK), 0);
  ASSERT_EQ(errno_of(rdma_resolve_route(id.get(), 1000)), 0);
  EXPECT_EQ(get_errno(channel), 0);
}

TEST(EventChannel, BeginsBlockingAndIsClosedByExec) {
  Channel channel;
  EXPECT_EQ(::fcntl(channel.fd(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(channel.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(EventChannel, ClosesItsDescriptorInTheEnd) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  ASSERT_NE(channel, nullptr);
  const int fd = channel->fd;
  EXPECT_NE(::fcntl(fd, F_GETFD), -1);
  rdma_destroy_event_channel(channel);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

volatile sig_atomic_t alarms = 0;
void count_alarm(int) { alarms = alarms + 1; }

// SIGALRM by a handler with these flags, from now on and in short intervals.
class Alarms {
 public:
  explicit Alarms(int flags) {
    alarms = 0;
    struct sigaction wanted {};
    wanted.sa_handler = &count_alarm;
    wanted.sa_flags = flags;
    EXPECT_EQ(::sigaction(SIGALRM, &wanted, &before_), 0);
    const itimerval often{{0, 2000}, {0, 2000}};
    EXPECT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  }
  ~Alarms() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

 private:
  struct sigaction before_ {};
};

TEST(EventChannel, IsInterruptedByAHandler) {
  Channel channel;
  const Alarms often(0);
  EXPECT_EQ(get_errno(channel), EINTR);
  EXPECT_GT(alarms, 0);
}

TEST(EventChannel, WaitsOnAfterAHandlerThatRestartsCalls) {
  PartiesSetup setup;
  setup.have_pairs = false;
  Parties two(setup);
  two.ask();
  two.establish();
  ASSERT_EQ(errno_of(rdma_disconnect(two.client.get())), 0);
  two.connecting.expect(RDMA_CM_EVENT_DISCONNECTED);
  const Alarms often(SA_RESTART);
  // The event comes later by many alarms.
  rdma_cm_event* event = nullptr;
  ASSERT_EQ(errno_of(rdma_get_cm_event(two.connecting.get(), &event)), 0);
  EXPECT_EQ(Owned<rdma_cm_event>(event)->event, RDMA_CM_EVENT_TIMEWAIT_EXIT);
  EXPECT_GT(alarms, 2);
}

// The same event, taken after its id has moved, belongs to the same id.
TEST(EventChannel, KeepsTheOrderOfOneId) {
  Parties two;
  two.ask();
  rdma_conn_param wanted = parameters_with();
  ASSERT_EQ(errno_of(rdma_accept(two.server.get(), &wanted)), 0);
  two.connecting.expect(RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_EQ(errno_of(rdma_disconnect(two.client.get())), 0);
  EXPECT_EQ(two.listening.expect(RDMA_CM_EVENT_ESTABLISHED).id, two.server.get());
  EXPECT_EQ(two.listening.expect(RDMA_CM_EVENT_DISCONNECTED).id, two.server.get());
}

// As one of rping's, which destroys the channel between two calls of that thread, and exits.
TEST(EventChannel, KeepsAThreadThatAsksAfterItsEnd) {
  constexpr auto kLongEnough = std::chrono::milliseconds(20);
  rdma_event_channel* const channel = rdma_create_event_channel();
  ASSERT_NE(channel, nullptr);
  rdma_destroy_event_channel(channel);
  const auto has_returned = std::make_shared<std::atomic<bool>>(false);
  std::thread([channel, has_returned] {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    rdma_cm_event* event = nullptr;
    rdma_get_cm_event(channel, &event);
    *has_returned = true;
  }).detach();
  std::this_thread::sleep_for(kLongEnough);
  EXPECT_FALSE(*has_returned);
}

}  // namespace
}  // namespace weft::rdmacm_conformance
