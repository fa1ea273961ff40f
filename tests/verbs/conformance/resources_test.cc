// SPDX-License-Identifier: BSD-2-Clause
// What does a creating call say when descriptors are used up? (open(2): EMFILE)
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <vector>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

// Leaves this process that many descriptors, until the end.
class FewDescriptors {
 public:
  explicit FewDescriptors(int left) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    // The limit is a number, not how many there are: gaps below it are filled.
    const int last = highest();
    do {
      taken_.push_back(::fcntl(0, F_DUPFD_CLOEXEC, 0));
    } while (taken_.back() >= 0 && taken_.back() < last);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(std::max(taken_.back(), last) + 1 + left);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() {
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0);
    for (const int fd : taken_) ::close(fd);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  // The highest descriptor that was open before.
  static int highest() {
    int found = 2;
    for (int fd = 3; fd < 4096; ++fd) {
      if (::fcntl(fd, F_GETFD) >= 0) found = fd;
    }
    return found;
  }
  rlimit before_{};
  std::vector<int> taken_;
};

bool is_shortage(int error) { return error == EMFILE || error == ENOMEM; }

// With none left, then with one more at a time, until the call succeeds: it fails whole each time.
template <class Object, class Create>
void fails_until_there_are_enough(const Create& create) {
  for (int left = 0; left < 64; ++left) {
    Owned<Object> made;
    int error = 0;
    {
      const FewDescriptors few(left);
      errno = 0;
      made.reset(create());
      error = errno;
    }
    if (made != nullptr) {
      EXPECT_GT(left, 0);
      return;
    }
    EXPECT_PRED1(is_shortage, error) << "with " << left;
  }
  FAIL() << "64 descriptors were too few";
}

TEST(Descriptors, AreNeededToOpenADevice) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  fails_until_there_are_enough<ibv_context>([&] { return ibv_open_device(list[0]); });
  ibv_free_device_list(list);
}

TEST(Descriptors, AreNeededForAChannel) {
  const auto context = open_device();
  fails_until_there_are_enough<ibv_comp_channel>(
      [&] { return ibv_create_comp_channel(context.get()); });
}

TEST(Descriptors, AreNeededForTheFirstQueue) {
  const auto context = open_device();
  fails_until_there_are_enough<ibv_cq>(
      [&] { return ibv_create_cq(context.get(), 4, nullptr, nullptr, 0); });
}

TEST(Descriptors, AreNotNeededByEveryQueueAndQueuePair) {
  const auto context = open_device();
  const Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  std::vector<Owned<ibv_cq>> queues;
  std::vector<Owned<ibv_qp>> pairs;
  for (int i = 0; i < 8; ++i) {  // one for each port
    queues.emplace_back(ibv_create_cq(context.get(), 4, nullptr, nullptr, 0));
  }
  const int before = ::dup(0);
  for (int i = 0; i < 100; ++i) {
    queues.emplace_back(ibv_create_cq(context.get(), 4, nullptr, nullptr, 0));
    ASSERT_NE(queues.back(), nullptr);
    ibv_qp_init_attr wanted = reliable_setup(queues.back().get(), {1, 1, 1, 1, 0});
    pairs.emplace_back(ibv_create_qp(pd.get(), &wanted));
    ASSERT_NE(pairs.back(), nullptr);
  }
  const int after = ::dup(0);
  EXPECT_LT(after - before, 100 * 6) << "a queue has a handful of descriptors";
  ::close(before);
  ::close(after);
}

// Without a descriptor for another UDP port the number of queue pairs ends, and what is there
// works.
TEST(Descriptors, AreNeededForMoreQueuePairsThanAPortHas) {
  Pair two;
  std::vector<Owned<ibv_qp>> pairs;
  ibv_qp_init_attr wanted = reliable_setup(two.a.receives(), {1, 1, 1, 1, 0});
  int error = 0;
  {
    const FewDescriptors few(0);
    while (error == 0 && pairs.size() < 1000) {
      errno = 0;
      ibv_qp* const made = ibv_create_qp(two.a.pd(), &wanted);
      if (made != nullptr) {
        pairs.emplace_back(made);
      } else {
        error = errno;
      }
    }
  }
  EXPECT_PRED1(is_shortage, error);
  EXPECT_LT(pairs.size(), 254u);
  ASSERT_EQ(two.b.receive(8), 0);
  ASSERT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  const Owned<ibv_qp> another(ibv_create_qp(two.a.pd(), &wanted));
  EXPECT_NE(another, nullptr);
}

// Without memory a creating call fails, and the process lives.
TEST(Memory, IsNeededForLargeQueues) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer needs more address space than there is";
#endif
  Pair two;
  std::vector<Owned<ibv_qp>> pairs;
  std::vector<Owned<ibv_srq>> queues;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit little = before;
  little.rlim_cur = pages * 4096 + (std::size_t{64} << 20);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &little), 0);
  int error = 0;
  while (error == 0 && pairs.size() < 100) {
    ibv_qp_init_attr wanted = reliable_setup(two.a.receives(), {16'384, 16'384, 16, 16, 512});
    errno = 0;
    pairs.emplace_back(ibv_create_qp(two.a.pd(), &wanted));
    if (pairs.back() == nullptr) error = errno;
  }
  int error_of_shared = 0;
  while (error_of_shared == 0 && queues.size() < 100) {
    ibv_srq_init_attr wanted{nullptr, {16'384, 16, 0}};
    errno = 0;
    queues.emplace_back(ibv_create_srq(two.a.pd(), &wanted));
    if (queues.back() == nullptr) error_of_shared = errno;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(error, ENOMEM);
  EXPECT_EQ(error_of_shared, ENOMEM);
  ASSERT_EQ(two.b.receive(8), 0);
  ASSERT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
}

// Packets for a queue pair that is gone must not find another.
TEST(ManyQueuePairs, HaveNumbersThatRestAfterUse) {
  End end;
  std::uint32_t last = 0;
  for (int i = 0; i < 300; ++i) {
    ibv_qp_init_attr wanted = reliable_setup(end.receives(), {1, 1, 1, 1, 0});
    const Owned<ibv_qp> qp(ibv_create_qp(end.pd(), &wanted));
    ASSERT_NE(qp, nullptr);
    ASSERT_NE(qp->qp_num, last);
    last = qp->qp_num;
  }
}

// More queue pairs than a UDP port has numbers: another one is opened.
TEST(ManyQueuePairs, OfOneQueueAreReachedByTheirNumbers) {
  constexpr std::size_t kMany = 600;
  End a;
  std::vector<Owned<ibv_qp>> pairs;
  std::vector<std::uint32_t> ports;
  for (std::size_t i = 0; i < kMany; ++i) {
    ibv_qp_init_attr wanted = reliable_setup(a.receives(), {2, 2, 1, 1, 0});
    wanted.sq_sig_all = 1;
    pairs.emplace_back(ibv_create_qp(a.pd(), &wanted));
    ASSERT_NE(pairs.back(), nullptr) << i;
    const std::uint32_t port = pairs.back()->qp_num >> 8;
    if (std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
    for (std::size_t k = 0; k < i; ++k) ASSERT_NE(pairs[k]->qp_num, pairs[i]->qp_num);
  }
  EXPECT_GE(ports.size(), 3u);
  // Each with one of another port.
  for (std::size_t i = 0; i < kMany; ++i) {
    ibv_qp_attr attributes = a.usual();
    attributes.dest_qp_num = pairs[(i + kMany / 2) % kMany]->qp_num;
    ASSERT_EQ(move_to(pairs[i].get(), IBV_QPS_INIT, attributes), 0);
    ASSERT_EQ(move_to(pairs[i].get(), IBV_QPS_RTR, attributes), 0);
    ASSERT_EQ(move_to(pairs[i].get(), IBV_QPS_RTS, attributes), 0);
  }
  for (std::size_t i = 0; i < kMany; ++i) {
    ReceiveRequest receive({a.part(0, 64)}, 1000 + i);
    ibv_recv_wr* bad_receive = nullptr;
    ASSERT_EQ(ibv_post_recv(pairs[(i + kMany / 2) % kMany].get(), receive.get(), &bad_receive), 0);
    SendRequest send(IBV_WR_SEND, {a.part(64, 64)}, i);
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(pairs[i].get(), send.get(), &bad), 0);
    bool sent = false;
    bool received = false;
    while (!sent || !received) {
      const ibv_wc wc = a.received();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << i;
      sent = sent || wc.wr_id == i;
      received = received || wc.wr_id == 1000 + i;
    }
  }
}

}  // namespace
}  // namespace weft::verbs_conformance
