// SPDX-License-Identifier: BSD-2-Clause
// May any thread make control calls while another one moves data? fi_domain(3): "Control interfaces
// are always considered thread safe", under every threading model.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "support/place.h"

namespace weft::conformance {
namespace {

constexpr int kThreads = 4;

Options of(fi_ep_type type, fi_threading threading) {
  Options options = type == FI_EP_DGRAM ? datagrams() : Options();
  options.type = type;
  options.threading = threading;
  return options;
}

// Runs `control(thread)` in each of a few threads, and `move_data()` in this one until they end.
void run(const std::function<void(int)>& control, const std::function<void()>& move_data) {
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      control(thread);
      --running;
    });
  }
  while (running > 0 && !testing::Test::HasFailure()) move_data();
  for (std::thread& thread : threads) thread.join();
}

// One thread moves data of an endpoint that sends to itself; others use what that one reports to.
class ControlThreads : public testing::TestWithParam<fi_threading> {
 protected:
  void open(fi_ep_type type) {
    const Options options = of(type, GetParam());
    domain_ = std::make_shared<Domain>(options);
    endpoint_ = std::make_unique<Endpoint>(domain_, options);
    ASSERT_TRUE(endpoint_->ok());
    self_ = endpoint_->insert(endpoint_->name());
    pump_.add(endpoint_.get());
  }
  // A message, and its two completions.
  void move_data() {
    fi_context2 context[2]{};
    std::uint64_t received = 0;
    fid_ep* const ep = endpoint_->ep();
    ASSERT_EQ(fi_recv(ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &context[0]), 0);
    ASSERT_TRUE(pump_.until([&] {
      const ssize_t status = fi_send(ep, &sent_, sizeof sent_, nullptr, self_, &context[1]);
      return status == 0;
    }));
    for (fi_context2& one : context) {
      ASSERT_TRUE(pump_.until([&] { return endpoint_->take(&one).has_value(); }));
    }
    ASSERT_EQ(received, sent_++);
  }
  Fid<fid_ep> open_another() {
    return open_fid<fid_ep>(
        [&](fid_ep** out) { return fi_endpoint(domain_->get(), domain_->info(), out, nullptr); });
  }
  void enable(fid_ep* ep) {
    EXPECT_EQ(fi_ep_bind(ep, &endpoint_->cq()->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_ep_bind(ep, &endpoint_->av()->fid, 0), 0);
    EXPECT_EQ(fi_enable(ep), 0);
  }

  std::shared_ptr<Domain> domain_;
  std::unique_ptr<Endpoint> endpoint_;
  Pump pump_;
  fi_addr_t self_ = FI_ADDR_NOTAVAIL;
  std::uint64_t sent_ = 0;
};

TEST_P(ControlThreads, InsertLookUpAndRemoveAddresses) {
  ASSERT_NO_FATAL_FAILURE(open(FI_EP_RDM));
  const auto insert_and_remove = [&](int thread) {
    fid_av* const av = endpoint_->av();
    std::vector<fi_addr_t> numbers;
    for (int i = 0; i < 500; ++i) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(40000 + 1000 * thread + i));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      numbers.push_back(FI_ADDR_NOTAVAIL);
      EXPECT_EQ(fi_av_insert(av, &address, 1, &numbers.back(), 0, nullptr), 1);
      sockaddr_in found{};
      std::size_t size = sizeof found;
      EXPECT_EQ(fi_av_lookup(av, numbers.back(), &found, &size), 0);
      EXPECT_EQ(found.sin_port, address.sin_port);
    }
    EXPECT_EQ(fi_av_remove(av, numbers.data(), numbers.size(), 0), 0);
  };
  const auto control = [&](int thread) {
    for (int round = 0; round < 20 && !HasFailure(); ++round) insert_and_remove(thread);
  };
  run(control, [&] { move_data(); });
}

TEST_P(ControlThreads, OpenBindEnableAndCloseEndpoints) {
  ASSERT_NO_FATAL_FAILURE(open(FI_EP_RDM));
  const auto control = [&](int) {
    for (int i = 0; i < 50; ++i) {
      const Fid<fid_ep> ep = open_another();
      ASSERT_NE(ep, nullptr);
      enable(ep.get());
    }
  };
  run(control, [&] { move_data(); });
}

TEST_P(ControlThreads, RegisterAndCloseRegionsQueuesAndCounters) {
  ASSERT_NO_FATAL_FAILURE(open(FI_EP_RDM));
  const auto control = [&](int) {
    std::vector<std::byte> memory(4096);
    for (int i = 0; i < 100; ++i) {
      const auto region = open_fid<fid_mr>([&](fid_mr** out) {
        return fi_mr_reg(domain_->get(), memory.data(), memory.size(), FI_REMOTE_WRITE, 0,
                         Endpoint::next_key(), 0, out, nullptr);
      });
      fi_cq_attr attributes{};
      const auto cq = open_fid<fid_cq>(
          [&](fid_cq** out) { return fi_cq_open(domain_->get(), &attributes, out, nullptr); });
      fi_cntr_attr counted{};
      const auto counter = open_fid<fid_cntr>(
          [&](fid_cntr** out) { return fi_cntr_open(domain_->get(), &counted, out, nullptr); });
      EXPECT_TRUE(region != nullptr && cq != nullptr && counter != nullptr);
    }
  };
  run(control, [&] { move_data(); });
}

TEST_P(ControlThreads, JoinAndLeaveGroups) {
  ASSERT_NO_FATAL_FAILURE(open(FI_EP_DGRAM));
  if (domain_->info()->addr_format != FI_SOCKADDR_IN) GTEST_SKIP() << "groups of IPv4 are joined";
  const auto control = [&](int thread) {
    sockaddr_in group{};
    group.sin_family = AF_INET;
    group.sin_port = htons(static_cast<std::uint16_t>(20000 + (getpid() * 4 + thread) % 40000));
    group.sin_addr.s_addr = inet_addr("224.0.1.129");
    for (int i = 0; i < 20; ++i) {
      fid_mc* joined = nullptr;
      ASSERT_EQ(fi_join(endpoint_->ep(), &group, 0, &joined, nullptr), 0);
      EXPECT_EQ(fi_close(&joined->fid), 0);
    }
  };
  run(control, [&] { pump_.once(); });
}

// Each thread has an event queue of its own; all endpoints report to the queue that is polled.
TEST_P(ControlThreads, ConnectAndDisconnect) {
  Place place(FI_WAIT_UNSPEC, GetParam());
  ASSERT_TRUE(place.ok());
  Pair pair(place);
  std::uint64_t number = 0;
  const auto exchange = [&] {
    std::uint64_t got = 0;
    ASSERT_EQ(fi_recv(pair.passive.get(), &got, sizeof got, nullptr, 0, nullptr), 0);
    ASSERT_EQ(fi_send(pair.active.get(), &number, sizeof number, nullptr, 0, nullptr), 0);
    for (int ends = 0; ends < 2; ++ends) ASSERT_EQ(place.completion().err, 0);
    ASSERT_EQ(got, number++);
  };
  const auto control = [&](int) {
    for (int i = 0; i < 5; ++i) {
      fi_eq_attr attributes{};
      attributes.wait_obj = FI_WAIT_UNSPEC;
      const auto eq = open_fid<fid_eq>([&](fid_eq** out) {
        return fi_eq_open(place.domain().fabric(), &attributes, out, nullptr);
      });
      const auto pep = open_fid<fid_pep>([&](fid_pep** out) {
        return fi_passive_ep(place.domain().fabric(), place.info(), out, nullptr);
      });
      ASSERT_EQ(fi_pep_bind(pep.get(), &eq->fid, 0), 0);
      ASSERT_EQ(fi_listen(pep.get()), 0);
      const auto open = [&](fi_info* info) {
        auto ep = open_fid<fid_ep>(
            [&](fid_ep** out) { return fi_endpoint(place.domain().get(), info, out, nullptr); });
        EXPECT_EQ(fi_ep_bind(ep.get(), &eq->fid, 0), 0);
        EXPECT_EQ(fi_ep_bind(ep.get(), &place.cq()->fid, FI_TRANSMIT | FI_RECV), 0);
        return ep;
      };
      const auto next = [&](std::uint32_t expected) {
        std::uint32_t event = 0;
        fi_eq_cm_entry entry{};
        const int limit = static_cast<int>(patience().count());
        EXPECT_GT(fi_eq_sread(eq.get(), &event, &entry, sizeof entry, limit, 0), 0);
        EXPECT_EQ(event, expected);
        return Info(entry.info);
      };
      const Address listener = name_of(&pep->fid);
      const Fid<fid_ep> active = open(place.info());
      ASSERT_EQ(fi_connect(active.get(), listener.bytes.data(), nullptr, 0), 0);
      const Info request = next(FI_CONNREQ);
      ASSERT_NE(request, nullptr);
      const Fid<fid_ep> passive = open(request.get());
      ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
      next(FI_CONNECTED);
      next(FI_CONNECTED);
      EXPECT_EQ(fi_shutdown(active.get(), 0), 0);
    }
  };
  run(control, exchange);
}

INSTANTIATE_TEST_SUITE_P(Threaded, ControlThreads,
                         testing::Values(FI_THREAD_SAFE, FI_THREAD_DOMAIN),
                         [](const testing::TestParamInfo<fi_threading>& one) {
                           return one.param == FI_THREAD_SAFE ? "Safe" : "Domain";
                         });

// One domain is for one type no more: what waits for an event queue comes in by the gate.
TEST(ControlThreadsOfOneDomain, AConnectedEndpointIsOpenedBesideOthers) {
  Domain domain(of(FI_EP_RDM, FI_THREAD_DOMAIN));
  ASSERT_TRUE(domain.ok());
  int rc = 0;
  const Options connected = of(FI_EP_MSG, FI_THREAD_DOMAIN);
  const Info info = get_info(connected, make_hints(connected).get(), &rc);
  ASSERT_EQ(rc, 0);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(domain.get(), info.get(), &ep, nullptr), 0);
  EXPECT_EQ(fi_close(&ep->fid), 0);
}

}  // namespace
}  // namespace weft::conformance
