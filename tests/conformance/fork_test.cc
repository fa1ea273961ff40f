// SPDX-License-Identifier: BSD-2-Clause
// What may a forked child do with what it has inherited, and with libfabric?
#include <rdma/fi_atomic.h>
#include <rdma/fi_ext_weft.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <optional>
#include <thread>

#include "support/placements.h"

namespace weft::conformance {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kForks = false;
#else
constexpr bool kForks = true;
#endif
constexpr const char* kWhyNot =
    "gcc 12's sanitizers do not bring their own locks through a fork with threads";

// Runs `body` in a child, whose failed expectations are those of the test. It may hang.
void in_child(const std::function<void()>& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);
    body();
    std::fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

class ForkedChild : public testing::TestWithParam<Placement> {};

// The child is not the parent's peer's peer: closing its copies ends no flow and no connection.
TEST_P(ForkedChild, ClosesWhatItHasInheritedAndItsParentGoesOn) {
  if (!kForks) GTEST_SKIP() << kWhyNot;
  std::optional<World> world(std::in_place, GetParam(), Options());
  ASSERT_TRUE(world->ok());
  world->exchange(20000);
  for (int round = 0; round < 3; ++round) {
    in_child([&] { world.reset(); });
    world->exchange(16);
    world->exchange(300000);
  }
}

// A message on its way to the parent stays the parent's.
TEST_P(ForkedChild, IsRefusedTheUseOfWhatItHasInherited) {
  if (!kForks) GTEST_SKIP() << kWhyNot;
  constexpr int kNo = -FI_EPERM;
  Options options = waiting(FI_WAIT_FD);
  options.counters = FI_SEND | FI_RECV;
  options.caps |= FI_ATOMIC;
  World world(GetParam(), options);
  ASSERT_TRUE(world.ok());
  world.exchange(20000);
  const Token received = world.initiator().post({.kind = Kind::kRecv, .length = 100});
  const Token sent = world.target().post(
      {.kind = Kind::kSend, .length = 100, .seed = 3, .peer = world.to_initiator()});
  void* interface = nullptr;
  fi_open_ops(&world.endpoint().domain()->get()->fid, FI_WEFT_DOMAIN_OPS, FI_WEFT_DOMAIN_VERSION,
              &interface, nullptr);  // stays null where another provider is tested
  in_child([&] {
    fid_ep* const ep = world.ep();
    const fi_addr_t peer = world.to_target();
    std::uint64_t word = 0;
    EXPECT_EQ(fi_recv(ep, &word, 8, nullptr, FI_ADDR_UNSPEC, nullptr), kNo);
    EXPECT_EQ(fi_trecv(ep, &word, 8, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr), kNo);
    EXPECT_EQ(fi_send(ep, &word, 8, nullptr, peer, nullptr), kNo);
    EXPECT_EQ(fi_tinject(ep, &word, 8, peer, 0), kNo);
    EXPECT_EQ(fi_write(ep, &word, 8, nullptr, peer, 0, 0, nullptr), kNo);
    EXPECT_EQ(fi_atomic(ep, &word, 1, nullptr, peer, 0, 0, FI_UINT64, FI_SUM, nullptr), kNo);
    EXPECT_EQ(fi_cancel(&ep->fid, nullptr), kNo);
    EXPECT_EQ(fi_enable(ep), kNo);
    Address name;
    name.size = name.bytes.size();
    EXPECT_EQ(fi_getname(&ep->fid, name.bytes.data(), &name.size), kNo);
    Endpoint& objects = world.endpoint();
    fi_cq_tagged_entry entry{};
    fi_cq_err_entry error{};
    EXPECT_EQ(fi_cq_read(objects.cq(), &entry, 1), kNo);
    EXPECT_EQ(fi_cq_sread(objects.cq(), &entry, 1, nullptr, 0), kNo);
    EXPECT_EQ(fi_cq_readerr(objects.cq(), &error, 0), kNo);
    EXPECT_NE(fi_cq_strerror(objects.cq(), FI_EIO, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(fi_cntr_read(objects.counter(FI_RECV)), 0u);
    EXPECT_EQ(fi_cntr_wait(objects.counter(FI_RECV), 9, 0), kNo);
    if (objects.av() != nullptr) {
      EXPECT_EQ(fi_av_insert(objects.av(), name.bytes.data(), 1, nullptr, 0, nullptr), kNo);
    }
    if (objects.eq() != nullptr) {
      std::uint32_t event = 0;
      EXPECT_EQ(fi_eq_read(objects.eq(), &event, &entry, sizeof entry, 0), kNo);
    }
    fid_domain* const domain = objects.domain()->get();
    fid_mr* mr = nullptr;
    EXPECT_EQ(fi_mr_reg(domain, &word, 8, FI_REMOTE_READ, 0, 7, 0, &mr, nullptr), kNo);
    fid_cq* cq = nullptr;
    EXPECT_EQ(fi_cq_open(domain, nullptr, &cq, nullptr), kNo);
    fi_weft_domain_stats stats{};
    auto* const weft = static_cast<fi_weft_ops_domain*>(interface);
    EXPECT_EQ(weft != nullptr ? weft->read(domain, &stats, sizeof stats) : kNo, kNo);
    EXPECT_EQ(
        fi_open_ops(&domain->fid, FI_WEFT_DOMAIN_OPS, FI_WEFT_DOMAIN_VERSION, &interface, nullptr),
        kNo);
    EXPECT_EQ(fi_set_ops(&domain->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, nullptr, nullptr), kNo);
    fid* fids[] = {&objects.cq()->fid};
    EXPECT_EQ(fi_trywait(objects.domain()->fabric(), fids, 1), kNo);
  });
  world.initiator().wait_success(received);
  world.initiator().expect_data(received, 3, 100);
  world.target().wait_success(sent);
  world.exchange(300000);
}

// A fabric is nothing but settings.
TEST_P(ForkedChild, OpensObjectsOfItsOwn) {
  if (!kForks) GTEST_SKIP() << kWhyNot;
  World world(GetParam(), Options());
  ASSERT_TRUE(world.ok());
  world.exchange(20000);
  in_child([&] {
    {
      World own(GetParam(), Options());
      ASSERT_TRUE(own.ok());
      EXPECT_NE(own.endpoint().domain()->get(), world.endpoint().domain()->get());
      EXPECT_NE(own.endpoint().info()->domain_attr->domain, world.endpoint().domain()->get());
      own.exchange(300000);
      in_child([&] {
        fi_cq_tagged_entry entry{};
        EXPECT_EQ(fi_cq_read(own.endpoint().cq(), &entry, 1), -FI_EPERM);
      });
      own.exchange();
    }
    fid_fabric* const fabric = world.endpoint().domain()->fabric();
    const auto domain = open_fid<fid_domain>(
        [&](fid_domain** out) { return fi_domain(fabric, world.endpoint().info(), out, nullptr); });
    EXPECT_NE(domain, nullptr);
  });
  world.exchange();
}

INSTANTIATE_TEST_SUITE_P(Operations, ForkedChild,
                         testing::Values(Placement::kOneProcess, Placement::kTwoDomains,
                                         Placement::kConnected),
                         placement_name);

// Without another domain the device opens and closes with each one.
class ForkBeside : public testing::TestWithParam<bool> {};

TEST_P(ForkBeside, OneThatOpensDomainsTheChildOpensOneToo) {
  if (!kForks) GTEST_SKIP() << kWhyNot;
  int rc = 0;
  const Info info = get_info(Options{}, make_hints(Options{}).get(), &rc);
  ASSERT_EQ(rc, 0);
  const auto open_fabric = [&] {
    return open_fid<fid_fabric>(
        [&](fid_fabric** out) { return fi_fabric(info->fabric_attr, out, nullptr); });
  };
  const auto open_domain = [&](fid_fabric* fabric) {
    return open_fid<fid_domain>(
        [&](fid_domain** out) { return fi_domain(fabric, info.get(), out, nullptr); });
  };
  const auto fabric = open_fabric();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) open_domain(fabric.get());
  });
  for (int round = 0; round < 16 && !HasFailure(); ++round) {
    in_child([&] {
      if (GetParam()) {
        const auto own = open_fabric();
        open_domain(own.get());
      } else {
        open_domain(fabric.get());
      }
    });
  }
  stop = true;
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Operations, ForkBeside, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& one) {
                           return one.param ? "OfItsOwnFabric" : "OfItsParentsFabric";
                         });

}  // namespace
}  // namespace weft::conformance
