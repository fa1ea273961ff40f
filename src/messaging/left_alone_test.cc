// SPDX-License-Identifier: BSD-2-Clause
// Is an endpoint served that only the background thread polls? (FI_PROGRESS_AUTO)
#include <thread>

#include "device/progress_thread.h"
#include "test_support.h"

namespace weft::messaging {
namespace {

using namespace testing;

// The tests never call progress(): everything is done by the thread.
struct LeftAlone : EndpointTest {
  std::shared_ptr<device::ProgressThread> thread = device::ProgressThread::get().value();

  void SetUp() override {
    EndpointTest::SetUp();
    ASSERT_TRUE(thread->start().ok());
    thread->attach(one.endpoint->port());
    thread->attach(two.endpoint->port());
  }
  void TearDown() override {
    thread->detach(two.endpoint->port());
    thread->detach(one.endpoint->port());
  }
  template <class Condition>
  static bool comes_true(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  }
  int post_until_taken(std::uint64_t tag, Bytes& bytes) {
    int answer = EAGAIN;
    comes_true([&] { return (answer = one.send(to_two, tag, bytes)) != EAGAIN; });
    return answer;
  }
};

TEST_F(LeftAlone, MessagesOfEverySizeArrive) {
  for (const std::size_t length : {0, 8, 500, 9000, 1000000}) {
    Bytes to(length);
    Bytes from = pattern(length, length);
    ASSERT_EQ(two.receive(length, to), 0);
    ASSERT_EQ(post_until_taken(length, from), 0);
    EXPECT_TRUE(comes_true([&] { return !two.rx.empty() && !one.tx.empty(); })) << length;
    Node::take(two.rx);  // what it says has happened then, also for this thread
    Node::take(one.tx);
    EXPECT_EQ(to, from);
  }
}

TEST_F(LeftAlone, ManyPendingSendsFinish) {
  constexpr std::uint64_t kCount = 300;
  Bytes from = pattern(20000, 1);
  std::vector<Bytes> to(kCount, Bytes(from.size()));
  for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(post_until_taken(i, from), 0);
  for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(two.receive(i, to[i]), 0);
  EXPECT_TRUE(comes_true([&] { return one.sends.value() == kCount; })) << one.sends.value();
  for (const Bytes& bytes : to) EXPECT_EQ(bytes, from);
}

TEST_F(LeftAlone, RemoteWritesAreCountedAndTheirDataQueued) {
  Bytes memory(100);
  Bytes bytes = pattern(60, 2);
  const auto region = setup.device->regions().add({two.domain, Access::kRemoteWrite,
                                                   reinterpret_cast<std::uint64_t>(memory.data()),
                                                   100, 0, false, RegionKey{9}});
  ASSERT_TRUE(region.ok());
  const LocalRange local{bytes.data(), bytes.size()};
  const RemoteRange remote{40, 60, RegionKey{9}};
  AccessCall call;
  call.peer = to_two;
  call.write = true;
  call.local = {&local, 1};
  call.remote = {&remote, 1};
  call.length = bytes.size();
  call.has_data = true;
  call.data = 1234;
  for (std::uint64_t round = 1; round <= 5; ++round) {
    int answer = EAGAIN;
    ASSERT_TRUE(comes_true([&] { return (answer = one.endpoint->access(call)) != EAGAIN; }));
    ASSERT_EQ(answer, 0);
    EXPECT_TRUE(comes_true([&] { return two.remote_writes.value() == round; }));
    EXPECT_TRUE(comes_true([&] { return two.rx.size() == round; }));
  }
  EXPECT_EQ(Node::take(two.rx)[0].data, 1234u);
  EXPECT_TRUE(setup.device->regions().remove(region.value()).ok());
}

}  // namespace
}  // namespace weft::messaging
