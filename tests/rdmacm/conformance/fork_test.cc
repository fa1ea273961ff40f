// SPDX-License-Identifier: BSD-2-Clause
// Can a child process use rdma_cm, whatever its parent has done? (fork(2))
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace
}  // namespace weft::rdmacm_conformance
