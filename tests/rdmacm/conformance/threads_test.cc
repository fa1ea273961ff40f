// SPDX-License-Identifier: BSD-2-Clause
// May several threads use one channel and its ids? (rdma_cm(7))
#include <atomic>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

constexpr int kThreads = 4;

template <class Body>
void in_threads(const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& each : threads) each.join();
}

// A server of that many connections, each accepted and then destroyed after its end.
void serve(Channel& listening, int connections) {
  std::vector<Owned<rdma_cm_id>> served;
  for (int ended = 0; ended < connections;) {
    const Event event = listening.next();
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
      ASSERT_EQ(errno_of(rdma_create_qp(event.id, nullptr, &setup)), 0);
      rdma_conn_param wanted = parameters_with();
      ASSERT_EQ(errno_of(rdma_accept(event.id, &wanted)), 0);
    } else if (event.type == RDMA_CM_EVENT_DISCONNECTED) {
      served.emplace_back(event.id);
      ++ended;
    } else {
      const bool is_usual =
          event.type == RDMA_CM_EVENT_ESTABLISHED || event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT;
      ASSERT_TRUE(is_usual) << rdma_event_str(event.type) << ' ' << event.status;
    }
  }
}

TEST(Threads, ConnectAtOnceWithChannelsOfTheirOwn) {
  constexpr int kRounds = 8;
  Channel listening;
  const auto listener = listen_at(listening, kIpv4Loopback);
  std::thread server([&] { serve(listening, kThreads * kRounds); });
  in_threads([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      Channel connecting;
      const auto id = resolved_to(connecting, Address(kIpv4Loopback, source_port(*listener)));
      ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
      ASSERT_EQ(errno_of(rdma_create_qp(id.get(), nullptr, &setup)), 0);
      rdma_conn_param wanted = parameters_with();
      ASSERT_EQ(errno_of(rdma_connect(id.get(), &wanted)), 0);
      connecting.expect(RDMA_CM_EVENT_ESTABLISHED);
      ASSERT_EQ(errno_of(rdma_disconnect(id.get())), 0);
      connecting.expect(RDMA_CM_EVENT_DISCONNECTED);
    }
  });
  server.join();
}

// All ids are on one channel, and each thread takes the next step of the id whose event it gets.
TEST(Threads, ConnectAtOnceOnOneChannel) {
  constexpr int kIds = 24;
  Channel listening;
  Channel connecting;
  connecting.set_nonblocking();
  const auto listener = listen_at(listening, kIpv4Loopback);
  std::thread server([&] { serve(listening, kIds); });
  std::vector<Owned<rdma_cm_id>> ids;
  for (int i = 0; i < kIds; ++i) ids.push_back(new_id(connecting.get()));
  std::atomic<int> ended{0};
  const auto step = [&](const rdma_cm_event& event) {
    rdma_conn_param wanted = parameters_with();
    ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
    if (event.event == RDMA_CM_EVENT_ADDR_RESOLVED) {
      ASSERT_EQ(errno_of(rdma_resolve_route(event.id, 1000)), 0);
    } else if (event.event == RDMA_CM_EVENT_ROUTE_RESOLVED) {
      ASSERT_EQ(errno_of(rdma_create_qp(event.id, nullptr, &setup)), 0);
      ASSERT_EQ(errno_of(rdma_connect(event.id, &wanted)), 0);
    } else if (event.event == RDMA_CM_EVENT_ESTABLISHED) {
      ASSERT_EQ(errno_of(rdma_disconnect(event.id)), 0);
    } else if (event.event == RDMA_CM_EVENT_DISCONNECTED) {
      ++ended;
    } else {
      ASSERT_EQ(event.event, RDMA_CM_EVENT_TIMEWAIT_EXIT) << event.status;
    }
  };
  in_threads([&](int number) {
    for (int i = number; i < kIds; i += kThreads) {
      Address to(kIpv4Loopback, source_port(*listener));
      const auto at = static_cast<std::size_t>(i);
      ASSERT_EQ(errno_of(rdma_resolve_addr(ids[at].get(), nullptr, to.get(), 1000)), 0);
    }
    while (ended < kIds && !testing::Test::HasFailure()) {
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(connecting.get(), &event) == 0) {
        const Owned<rdma_cm_event> owned(event);
        step(*event);
      } else {
        ASSERT_EQ(errno, EAGAIN);
        connecting.is_readable_within(std::chrono::milliseconds(10));
      }
    }
  });
  server.join();
}

// Accepts, rejects or destroys each request, and destroys ids whose connection has ended.
class CarelessServer {
 public:
  explicit CarelessServer(Channel& channel) : channel_(channel) { channel_.set_nonblocking(); }

  // Until that holds and no event waits.
  void run(const std::atomic<bool>& is_over) {
    while (!is_over || channel_.is_readable()) {
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(channel_.get(), &event) != 0) {
        ASSERT_EQ(errno, EAGAIN);
        channel_.is_readable_within(std::chrono::milliseconds(1));
        continue;
      }
      const Event copy(*event);
      ASSERT_EQ(rdma_ack_cm_event(event), 0);
      take(copy);
    }
  }
  unsigned requests() const { return requests_; }

 private:
  void take(const Event& event) {
    if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) {
      if (event.type != RDMA_CM_EVENT_ESTABLISHED) ids_.erase(event.id);
      return;
    }
    Owned<rdma_cm_id> id(event.id);
    const unsigned number = ++requests_;
    if (number % 4 == 1) return;  // destroyed
    if (number % 4 == 2) {
      rdma_reject(id.get(), nullptr, 0);  // or its client has gone already
      return;
    }
    rdma_conn_param wanted = parameters_with();
    wanted.qp_num = number;
    if (rdma_accept(id.get(), &wanted) == 0) ids_.emplace(event.id, std::move(id));
  }

  Channel& channel_;
  unsigned requests_ = 0;
  std::map<rdma_cm_id*, Owned<rdma_cm_id>> ids_;
};

TEST(Threads, DestroyIdsInEachStateWhileOthersConnect) {
  constexpr int kRounds = 40;
  Channel listening;
  const auto listener = listen_at(listening, kIpv4Loopback);
  std::atomic<bool> is_over{false};
  CarelessServer careless(listening);
  std::thread server([&] { careless.run(is_over); });
  in_threads([&](int number) {
    for (int round = 0; round < kRounds; ++round) {
      Channel connecting;
      auto id = resolved_to(connecting, Address(kIpv4Loopback, source_port(*listener)));
      rdma_conn_param wanted = parameters_with();
      wanted.qp_num = static_cast<std::uint32_t>(number * kRounds + round + 1);
      ASSERT_EQ(errno_of(rdma_connect(id.get(), &wanted)), 0);
      if (round % 4 == 0) continue;  // destroyed while the request is under way
      ASSERT_TRUE(connecting.is_readable_within(patience()));
      if (round % 4 == 1) continue;  // with the answer in its channel
      const Event answer = connecting.next();
      const bool is_accepted = answer.type == RDMA_CM_EVENT_CONNECT_RESPONSE;
      ASSERT_TRUE(is_accepted || answer.type == RDMA_CM_EVENT_REJECTED) << answer.status;
      if (round % 4 == 2 || !is_accepted) continue;
      ASSERT_EQ(errno_of(rdma_establish(id.get())), 0);
    }
  });
  is_over = true;
  server.join();
  EXPECT_GT(careless.requests(), 0U);
}

// Each event is handed out once, whichever thread asks; the ids of all threads are on one channel.
TEST(Threads, GetEventsOfOneChannelAtOnce) {
  constexpr int kIds = 64;
  Channel channel;
  channel.set_nonblocking();
  std::vector<Owned<rdma_cm_id>> ids;
  std::atomic<int> resolved{0};
  for (int i = 0; i < kIds; ++i) ids.push_back(new_id(channel.get()));
  in_threads([&](int number) {
    for (int i = number; i < kIds; i += kThreads) {
      Address to(kIpv4Loopback, 1);
      const auto at = static_cast<std::size_t>(i);
      ASSERT_EQ(errno_of(rdma_resolve_addr(ids[at].get(), nullptr, to.get(), 1000)), 0);
    }
    while (resolved < kIds) {
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(channel.get(), &event) != 0) {
        ASSERT_EQ(errno, EAGAIN);
        continue;
      }
      EXPECT_EQ(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
      ASSERT_EQ(rdma_ack_cm_event(event), 0);
      ++resolved;
    }
  });
  EXPECT_EQ(resolved, kIds);
}

TEST(Threads, MakeAndDestroyIdsOfOneChannelAtOnce) {
  constexpr int kRounds = 30;
  Channel channel;
  in_threads([&](int number) {
    for (int round = 0; round < kRounds; ++round) {
      const auto id = new_id(channel.get(), number % 2 == 0 ? RDMA_PS_TCP : RDMA_PS_UDP);
      ASSERT_EQ(errno_of(rdma_bind_addr(id.get(), Address(kIpv4Loopback).get())), 0);
      ASSERT_EQ(errno_of(rdma_listen(id.get(), 1)), 0);
    }
  });
  EXPECT_FALSE(channel.is_readable());
}

// Each event is either dropped, or acknowledged before the id ends.
TEST(Threads, ReadAChannelWhileAnotherOneDestroysItsIds) {
  constexpr int kRounds = 300;
  Channel channel;
  channel.set_nonblocking();
  std::atomic<int> rounds{0};
  in_threads([&](int number) {
    while (rounds < kRounds) {
      if (number == 0) {
        auto id = new_id(channel.get());
        Address to(kIpv4Loopback, 1);
        ASSERT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), 1000)), 0);
        if (rounds % 2 == 0) std::this_thread::yield();
        id.reset();
        ++rounds;
        continue;
      }
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(channel.get(), &event) == 0) {
        EXPECT_EQ(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
        ASSERT_EQ(rdma_ack_cm_event(event), 0);
      } else {
        ASSERT_EQ(errno, EAGAIN);
      }
    }
  });
  EXPECT_FALSE(channel.is_readable());
}

// rdma_destroy_id(3) returns after another thread has acknowledged the event.
TEST(Threads, DestroyAnIdWhoseEventAnotherOneAcknowledges) {
  Channel channel;
  auto id = new_id(channel.get());
  Address to(kIpv4Loopback, 1);
  ASSERT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), 1000)), 0);
  Owned<rdma_cm_event> event = channel.take();
  ASSERT_NE(event, nullptr);
  std::atomic<bool> acknowledges{false};
  std::atomic<bool> is_destroyed{false};
  std::thread destroyer([&] {
    id.reset();
    EXPECT_TRUE(acknowledges);
    is_destroyed = true;
  });
  // Time in which a call that does not wait returns; one that waits passes with any.
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(is_destroyed);
  acknowledges = true;
  event.reset();
  destroyer.join();
}

// rdma_migrate_id(3) waits likewise.
TEST(Threads, MigrateAnIdWhoseEventAnotherOneAcknowledges) {
  Channel first;
  Channel second;
  const auto id = new_id(first.get());
  Address to(kIpv4Loopback, 1);
  ASSERT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), 1000)), 0);
  Owned<rdma_cm_event> event = first.take();
  ASSERT_NE(event, nullptr);
  std::atomic<bool> acknowledges{false};
  std::thread migrant([&] {
    EXPECT_EQ(errno_of(rdma_migrate_id(id.get(), second.get())), 0);
    EXPECT_TRUE(acknowledges);
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  acknowledges = true;
  event.reset();
  migrant.join();
}

TEST(Threads, ConnectSynchronouslyWhileAnotherOneServes) {
  auto listener = new_id(nullptr);
  ASSERT_EQ(errno_of(rdma_bind_addr(listener.get(), Address(kIpv4Loopback).get())), 0);
  ASSERT_EQ(errno_of(rdma_listen(listener.get(), 0)), 0);
  constexpr int kConnections = 6;
  std::thread server([&] {
    for (int i = 0; i < kConnections; ++i) {
      rdma_cm_id* asked = nullptr;
      ASSERT_EQ(errno_of(rdma_get_request(listener.get(), &asked)), 0);
      const Owned<rdma_cm_id> id(asked);
      ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
      ASSERT_EQ(errno_of(rdma_create_qp(id.get(), nullptr, &setup)), 0);
      ASSERT_EQ(errno_of(rdma_accept(id.get(), nullptr)), 0);
      EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
      EXPECT_EQ(errno_of(rdma_disconnect(id.get())), 0);
      EXPECT_EQ(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
    }
  });
  for (int i = 0; i < kConnections; ++i) {
    const auto id = new_id(nullptr);
    Address to(kIpv4Loopback, source_port(*listener));
    ASSERT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), 1000)), 0);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(errno_of(rdma_resolve_route(id.get(), 1000)), 0);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
    ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
    ASSERT_EQ(errno_of(rdma_create_qp(id.get(), nullptr, &setup)), 0);
    ASSERT_EQ(errno_of(rdma_connect(id.get(), nullptr)), 0);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_EQ(errno_of(rdma_disconnect(id.get())), 0);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
  }
  server.join();
}

}  // namespace
}  // namespace weft::rdmacm_conformance
