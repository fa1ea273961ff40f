// SPDX-License-Identifier: BSD-2-Clause
// Can a child process use rdma_cm, whatever its parent has done? (fork(2))
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kForks = false;  // gcc 12's do not bring their own locks through a fork with threads
#else
constexpr bool kForks = true;
#endif

class Fork : public testing::Test {
 protected:
  void SetUp() override {
    if (!kForks) GTEST_SKIP() << "not under a sanitizer";
  }
  // Runs in a child, whose failures are this process's.
  template <class Body>
  static void in_child(const Body& body) {
    const pid_t child = ::fork();
    ASSERT_NE(child, -1);
    if (child == 0) {
      ::alarm(60);
      body();
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
};

void connect_and_move() {
  Parties two;
  two.ask();
  two.establish();
  Parties::expect_message(*two.client, *two.server, 'c');
}

// As pyverbs' tests: the parent has listed devices and opened contexts.
TEST_F(Fork, LetsTheChildConnectWhereTheParentHasNoIds) {
  int count = 0;
  ibv_context** const devices = rdma_get_devices(&count);
  ASSERT_NE(devices, nullptr);
  rdma_free_devices(devices);
  in_child(connect_and_move);
}

TEST_F(Fork, LetsTheChildConnectAndLeavesTheConnectionOfTheParent) {
  Parties two;
  two.ask();
  two.establish();
  in_child(connect_and_move);
  Parties::expect_message(*two.client, *two.server, 'p');
  ASSERT_EQ(errno_of(rdma_disconnect(two.client.get())), 0);
  two.connecting.expect(RDMA_CM_EVENT_DISCONNECTED);
  two.listening.expect(RDMA_CM_EVENT_DISCONNECTED);
}

// Whatever the port space.
TEST_F(Fork, LeavesThePortsOfTheParentInUse) {
  Channel channel;
  const auto listener = listen_at(channel, kIpv4Loopback);
  in_child([&] {
    Channel own;
    const auto same = new_id(own.get());
    const auto other = new_id(own.get(), RDMA_PS_UDP);
    Address taken(kIpv4Loopback, source_port(*listener));
    EXPECT_EQ(errno_of(rdma_bind_addr(same.get(), taken.get())), EADDRINUSE);
    EXPECT_EQ(errno_of(rdma_bind_addr(other.get(), taken.get())), EADDRINUSE);
  });
}

// A server that listens, says so by its port, and exits with all its objects once it has a request.
[[noreturn]] void serve_and_exit(int to_parent) {
  Channel channel;
  const auto listener = listen_at(channel, kIpv4Loopback);
  const std::uint16_t port = source_port(*listener);
  if (::write(to_parent, &port, sizeof port) != sizeof port) ::_exit(2);
  if (!channel.is_readable_within(patience())) ::_exit(3);
  std::exit(0);
}

TEST_F(Fork, LetsTheChildExitWhileRequestsArrive) {
  constexpr int kRounds = 10;
  constexpr int kRequests = 30;
  for (int round = 0; round < kRounds; ++round) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    ASSERT_NE(child, -1);
    if (child == 0) {
      ::alarm(60);
      serve_and_exit(pipe[1]);
    }
    std::uint16_t port = 0;
    ASSERT_EQ(::read(pipe[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    std::array<Channel, kRequests> channels;  // each has the end of its request, too
    std::vector<Owned<rdma_cm_id>> clients;
    for (Channel& each : channels) {
      clients.push_back(resolved_to(each, Address(kIpv4Loopback, port)));
      rdma_conn_param wanted = parameters_with();
      ASSERT_EQ(errno_of(rdma_connect(clients.back().get(), &wanted)), 0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
}

}  // namespace
}  // namespace weft::rdmacm_conformance
