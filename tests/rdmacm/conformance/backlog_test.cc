// SPDX-License-Identifier: BSD-2-Clause
// How many requests wait for a listener? (rdma_listen(3))
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

// A client without a queue pair asks.
Owned<rdma_cm_id> ask(Channel& connecting, const Owned<rdma_cm_id>& listener,
                      std::uint32_t number) {
  auto id = resolved_to(connecting, Address(kIpv4Loopback, source_port(*listener)));
  rdma_conn_param wanted = parameters_with();
  wanted.qp_num = number;
  EXPECT_EQ(errno_of(rdma_connect(id.get(), &wanted)), 0);
  return id;
}

void accept(rdma_cm_id& id, std::uint32_t number) {
  rdma_conn_param wanted = parameters_with();
  wanted.qp_num = number;
  EXPECT_EQ(errno_of(rdma_accept(&id, &wanted)), 0);
}

class Backlog : public testing::TestWithParam<int> {
 protected:
  // As many clients as that ask before the listener looks are all served.
  void serve(std::uint32_t clients) {
    std::vector<Owned<rdma_cm_id>> asking;
    for (std::uint32_t i = 0; i < clients; ++i) asking.push_back(ask(connecting_, listener_, i));
    std::vector<Owned<rdma_cm_id>> serving;
    for (std::uint32_t i = 0; i < clients; ++i) {
      serving.emplace_back(listening_.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
      ASSERT_NE(serving.back(), nullptr);
      accept(*serving.back(), i);
    }
    for (std::uint32_t i = 0; i < clients; ++i) {
      connecting_.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
    }
    EXPECT_FALSE(listening_.is_readable());
  }

  Channel listening_;
  Channel connecting_;
  Owned<rdma_cm_id> listener_ = listen_at(listening_, kIpv4Loopback, RDMA_PS_TCP, GetParam());
};

TEST_P(Backlog, HoldsTheRequestsOfManyClients) { serve(100); }

// 0 and less: as many as there may be.
INSTANTIATE_TEST_SUITE_P(Sizes, Backlog, testing::Values(-1, 0, 100, 1 << 20));

// Younger requests displace older ones, whose clients ask again.
TEST(SmallBacklog, ServesAllClientsInTheEnd) {
  constexpr std::uint32_t kClients = 4;
  Channel listening;
  Channel connecting;
  const auto listener = listen_at(listening, kIpv4Loopback, RDMA_PS_TCP, 1);
  std::vector<Owned<rdma_cm_id>> asking;
  for (std::uint32_t i = 0; i < kClients; ++i) asking.push_back(ask(connecting, listener, i));
  std::vector<Owned<rdma_cm_id>> serving;
  std::uint32_t established = 0;
  while (established < kClients) {
    const Event event = listening.next();
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      ASSERT_NE(event.id, nullptr);
      serving.emplace_back(event.id);
      accept(*event.id, 0);
      const Event response = connecting.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
      ASSERT_NE(response.id, nullptr);
      ASSERT_EQ(errno_of(rdma_establish(response.id)), 0);
    } else {
      ASSERT_EQ(event.type, RDMA_CM_EVENT_ESTABLISHED);
      ++established;
    }
  }
  EXPECT_EQ(serving.size(), kClients);
}

// A request that is decided or held by the program does not count.
TEST(SmallBacklog, CountsRequestsThatTheListenerWasNotToldOf) {
  Channel listening;
  Channel connecting;
  const auto listener = listen_at(listening, kIpv4Loopback, RDMA_PS_TCP, 1);
  const auto first = ask(connecting, listener, 1);
  const Owned<rdma_cm_id> held(listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
  const auto second = ask(connecting, listener, 2);
  const Owned<rdma_cm_id> other(listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
  accept(*held, 3);
  EXPECT_EQ(connecting.expect(RDMA_CM_EVENT_CONNECT_RESPONSE).id, first.get());
  accept(*other, 4);
  EXPECT_EQ(connecting.expect(RDMA_CM_EVENT_CONNECT_RESPONSE).id, second.get());
}

// Descriptors of this process, up to its limit.
class AllDescriptors {
 public:
  AllDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = 200;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    for (;;) {
      const int fd = ::fcntl(0, F_DUPFD_CLOEXEC, 0);
      if (fd < 0) break;
      fds_.push_back(fd);
    }
    EXPECT_EQ(errno, EMFILE);
  }
  ~AllDescriptors() {
    for (const int fd : fds_) ::close(fd);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  AllDescriptors(const AllDescriptors&) = delete;
  AllDescriptors& operator=(const AllDescriptors&) = delete;

 private:
  rlimit before_{};
  std::vector<int> fds_;
};

// The id of a request needs one where the listener is synchronous.
TEST(WithoutDescriptors, ARequestWaits) {
  Channel connecting;
  const auto listener = new_id(nullptr);
  ASSERT_EQ(errno_of(rdma_bind_addr(listener.get(), Address(kIpv4Loopback).get())), 0);
  ASSERT_EQ(errno_of(rdma_listen(listener.get(), 0)), 0);
  const auto client = ask(connecting, listener, 1);
  rdma_cm_id* id = nullptr;
  {
    const AllDescriptors taken;
    EXPECT_EQ(errno_of(rdma_get_request(listener.get(), &id)), EMFILE);
    EXPECT_EQ(id, nullptr);
  }
  ASSERT_EQ(errno_of(rdma_get_request(listener.get(), &id)), 0);
  const Owned<rdma_cm_id> server(id);
  ASSERT_EQ(errno_of(rdma_reject(server.get(), nullptr, 0)), 0);
  connecting.expect(RDMA_CM_EVENT_REJECTED, 28);
}

TEST(WithoutDescriptors, CallsThatNeedOneFailAlone) {
  Channel channel;
  const auto id = new_id(channel.get());
  {
    const AllDescriptors taken;
    EXPECT_EQ(rdma_create_event_channel(), nullptr);
    EXPECT_EQ(errno, EMFILE);
    rdma_cm_id* none = nullptr;
    EXPECT_EQ(errno_of(rdma_create_id(nullptr, &none, nullptr, RDMA_PS_TCP)), EMFILE);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(errno_of(rdma_bind_addr(id.get(), Address(kIpv4Loopback).get())), EMFILE);
    EXPECT_EQ(errno_of(rdma_migrate_id(id.get(), nullptr)), EMFILE);
    EXPECT_EQ(id->verbs, nullptr);
  }
  EXPECT_EQ(id->channel, channel.get());
  EXPECT_EQ(errno_of(rdma_bind_addr(id.get(), Address(kIpv4Loopback).get())), 0);
}

}  // namespace
}  // namespace weft::rdmacm_conformance
