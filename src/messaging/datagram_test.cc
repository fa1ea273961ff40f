// SPDX-License-Identifier: BSD-2-Clause
// What becomes of a message that may be lost: when is it delivered, when dropped, and which members
// receive those for a group?
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "messaging/endpoint.h"
#include "os/event.h"
#include "test_support.h"

namespace weft::messaging {
namespace {

using namespace testing;

constexpr std::size_t kLargest = 4096;
constexpr std::size_t kRing = 384;  // datagrams that surely find room while their receiver is away

os::SocketAddress group_address(std::uint16_t port) { return os::address_of("224.0.1.129", port); }

struct DatagramTest : ::testing::Test {
  RuntimeDir dir;
  Surroundings setup = [this] {
    Surroundings wanted{std::move(device::Device::get(dir.path())).value()};
    wanted.service = link::Service::kDatagram;
    return wanted;
  }();
  Node one{setup, 7001};
  Node two{setup, 7002};
  PeerIndex to_two = one.addresses.insert(two.address);
  PeerIndex to_one = two.addresses.insert(one.address);
  int contexts[8]{};

  static int send(Node& node, PeerIndex peer, const Bytes& bytes, void* context = nullptr,
                  int (Endpoint::*how)(SendCall&) = &Endpoint::send_datagram) {
    const LocalRange sge{const_cast<std::byte*>(bytes.data()), bytes.size()};
    SendCall call;
    call.peer = peer;
    call.sges = {&sge, 1};
    call.length = bytes.size();
    call.report.context = context;
    call.has_data = true;
    call.data = 77;
    return (node.endpoint.get()->*how)(call);
  }
  static int send_to_group(Node& node, PeerIndex group, const Bytes& bytes) {
    return send(node, group, bytes, nullptr, &Endpoint::send_to_group);
  }
  static int post(Node& node, Bytes& bytes, void* context = nullptr) {
    const LocalRange sge{bytes.data(), bytes.size()};
    ReceiveCall call;
    call.sges = {&sge, 1};
    call.report.context = context;
    return node.endpoint->receives().receive(call);
  }
  static void poll(Node& node) {
    for (int i = 0; i < 20; ++i) node.endpoint->port().progress();
  }
  static std::deque<Completion> heard(Node& node) {
    poll(node);
    return Node::take(node.rx);
  }
};

// The one message of `size` bytes, with the context of its receive.
void expect_whole(const std::deque<Completion>& got, void* context, PeerIndex source,
                  std::size_t size) {
  ASSERT_EQ(got.size(), 1u) << size;
  EXPECT_EQ(got[0].context, context);
  EXPECT_EQ(got[0].length, size);
  EXPECT_EQ(got[0].source, source);
  EXPECT_EQ(got[0].flags, device::kReceive | device::kMessage | device::kHasRemoteData);
  EXPECT_EQ(got[0].data, 77u);
  EXPECT_EQ(got[0].tag, 0u);
  EXPECT_EQ(got[0].status, CompletionStatus::kSuccess);
}

TEST_F(DatagramTest, OneThatFindsAReceiveArrivesWholeWithItsSourceAndData) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{104}, std::size_t{105}, kLargest}) {
    Bytes bytes = pattern(size, 3);
    Bytes target(kLargest);
    ASSERT_EQ(post(two, target, &contexts[0]), 0);
    ASSERT_EQ(send(one, to_two, bytes, &contexts[1]), 0);
    const auto sent = Node::take(one.tx);
    ASSERT_EQ(sent.size(), 1u) << "done when the call returns";
    EXPECT_EQ(sent[0].context, &contexts[1]);
    EXPECT_EQ(sent[0].flags, device::kSend | device::kMessage);
    expect_whole(heard(two), &contexts[0], to_one, size);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), target.begin()));
  }
  EXPECT_EQ(one.sends.value(), 5u);
}

TEST_F(DatagramTest, TheSgesMayChangeAsSoonAsTheCallReturns) {
  Bytes bytes = pattern(kLargest, 1);
  Bytes target(kLargest);
  post(two, target);
  send(one, to_two, bytes);
  const Bytes sent = bytes;
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  ASSERT_EQ(heard(two).size(), 1u);
  EXPECT_TRUE(target == sent);
}

TEST_F(DatagramTest, OneThatFindsNoReceiveIsKeptForALaterOne) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, kLargest}) {
    Bytes bytes = pattern(size, 1);
    const Bytes sent = bytes;
    Bytes target(kLargest);
    send(one, to_two, bytes);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    EXPECT_TRUE(heard(two).empty());
    post(two, target, &contexts[0]);
    expect_whole(heard(two), &contexts[0], to_one, size);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), target.begin()));
  }
  EXPECT_EQ(two.endpoint->stats().of(Stat::kDatagramsUnwanted), 0u);
}

// Posts receives until none takes anything; how many did, of messages that are all `expected`.
std::size_t take_kept(Node& node, const Bytes& expected) {
  std::size_t count = 0;
  for (;; ++count) {
    Bytes target(expected.size());
    ReceiveCall call;
    const LocalRange sge{target.data(), target.size()};
    call.sges = {&sge, 1};
    call.report = {&target};
    EXPECT_EQ(node.endpoint->receives().receive(call), 0);
    if (Node::take(node.rx).empty()) {
      EXPECT_EQ(node.endpoint->cancel(&target), 0);
      Node::take(node.rx);
      return count;
    }
    EXPECT_TRUE(target == expected);
  }
}

TEST_F(DatagramTest, OnlyAFewAreKeptUntilThereIsAReceive) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, kLargest}) {
    const auto unwanted = two.endpoint->stats().of(Stat::kDatagramsUnwanted);
    constexpr std::size_t kCount = 4000;
    const Bytes bytes = pattern(size, 1);
    for (std::size_t i = 0; i < kCount; ++i) {
      send(one, to_two, bytes);
      Node::take(one.tx);
      two.endpoint->port().progress();
    }
    poll(two);
    const std::size_t kept = take_kept(two, bytes);
    EXPECT_GE(kept, 40u);
    EXPECT_LE(kept * std::max<std::size_t>(size, 100), std::size_t{192} * 1024);
    EXPECT_EQ(kept + two.endpoint->stats().of(Stat::kDatagramsUnwanted) - unwanted, kCount);
  }
}

TEST_F(DatagramTest, UnexpectedMessagesAreForgottenWhenTheEndpointCloses) {
  send(one, to_two, pattern(10, 1));
  poll(two);
  EXPECT_TRUE(two.endpoint->close().ok());
}

TEST_F(DatagramTest, ADatagramToAnAddressWithoutAnEndpointIsSent) {
  const PeerIndex absent = one.addresses.insert(loopback(7009));
  const Bytes bytes = pattern(10, 1);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(send(one, absent, bytes), 0);
    ASSERT_EQ(Node::take(one.tx).at(0).status, CompletionStatus::kSuccess);
  }
  EXPECT_EQ(one.endpoint->stats().of(Stat::kDatagramsNoPeer), 1000u);
}

TEST_F(DatagramTest, APeerThatComesLaterIsFound) {
  const PeerIndex late = one.addresses.insert(loopback(7003));
  const Bytes bytes = pattern(10, 1);
  Bytes target(10);
  send(one, late, bytes);
  Node three(setup, 7003);
  post(three, target);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (three.rx.empty() && std::chrono::steady_clock::now() < end) {
    send(one, late, bytes);
    three.endpoint->port().progress();
    Node::take(one.tx);
  }
  EXPECT_EQ(heard(three).size(), 1u);
}

TEST_F(DatagramTest, AFullQueueOfAPeerThatNeverPollsDelaysNoSender) {
  const Bytes bytes = pattern(kLargest, 1);
  constexpr int kCount = 5000;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(send(one, to_two, bytes), 0);
    ASSERT_EQ(Node::take(one.tx).size(), 1u);
  }
  const auto lost = one.endpoint->stats().of(Stat::kDatagramsNoRoom);
  EXPECT_LT(lost, static_cast<std::uint64_t>(kCount)) << "some found room";
  poll(two);
  const std::size_t kept = take_kept(two, bytes);
  EXPECT_EQ(two.endpoint->stats().of(Stat::kDatagramsUnwanted) + kept, kCount - lost)
      << "and those arrived";
}

TEST_F(DatagramTest, TheContentOfTheRingArrivesWhenTheReceiverPolls) {
  const Bytes bytes = pattern(64, 1);
  std::vector<Bytes> targets(kRing, Bytes(64));
  for (Bytes& target : targets) post(two, target);
  for (std::size_t i = 0; i < kRing; ++i) {
    send(one, to_two, bytes);
    Node::take(one.tx);
  }
  EXPECT_EQ(heard(two).size(), kRing);
}

TEST_F(DatagramTest, AFullCompletionQueueOfTheReceiverDropsRatherThanGrows) {
  Surroundings narrow = setup;
  narrow.rx_queue_size = 4;
  Node three(narrow, 7003);
  const PeerIndex peer = one.addresses.insert(three.address);
  std::vector<Bytes> targets(8, Bytes(10));
  for (Bytes& target : targets) post(three, target);
  for (int i = 0; i < 8; ++i) send(one, peer, pattern(10, 1));
  EXPECT_EQ(heard(three).size(), 4u);
  EXPECT_EQ(three.endpoint->stats().of(Stat::kDatagramsUnwanted), 4u);
}

TEST_F(DatagramTest, AFullCompletionQueueOfTheSenderHoldsItBack) {
  Surroundings narrow = setup;
  narrow.queue_size = 4;
  Node three(narrow, 7003);
  const PeerIndex peer = three.addresses.insert(two.address);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(send(three, peer, pattern(10, 1)), 0);
  EXPECT_EQ(send(three, peer, pattern(10, 1)), EAGAIN);
  Node::take(three.tx);
  EXPECT_EQ(send(three, peer, pattern(10, 1)), 0);
}

TEST_F(DatagramTest, ANumberWithoutAPeerIsInvalid) {
  EXPECT_EQ(send(one, 77, pattern(10, 1)), EINVAL);
  EXPECT_EQ(send(one, kNoPeer, pattern(10, 1)), EINVAL);
  one.addresses.remove(to_two);
  EXPECT_EQ(send(one, to_two, pattern(10, 1)), EINVAL);
}

TEST_F(DatagramTest, EndpointsOfTheReliableKindAreNotReachedAndDoNotReach) {
  Surroundings reliable = setup;
  reliable.service = link::Service::kReliableDatagram;
  Node three(reliable, 7003);
  const PeerIndex to_three = one.addresses.insert(three.address);
  const PeerIndex three_to_one = three.addresses.insert(one.address);
  Bytes target(10);
  post(three, target);
  EXPECT_EQ(send(one, to_three, pattern(10, 1)), 0);
  EXPECT_EQ(one.endpoint->stats().of(Stat::kDatagramsNoPeer), 1u);
  EXPECT_TRUE(heard(three).empty());
  post(one, target);
  Bytes bytes = pattern(10, 1);
  while (three.send(three_to_one, 5, bytes) == EAGAIN) {
  }
  EXPECT_EQ(Node::take(three.tx).at(0).status, CompletionStatus::kUnreachable);
  EXPECT_TRUE(heard(one).empty());
}

TEST_F(DatagramTest, ASleepingEndpointIsWokenByADatagram) {
  Bytes target(10);
  post(two, target);
  poll(two);
  ASSERT_TRUE(two.endpoint->port().fall_asleep());
  send(one, to_two, pattern(10, 1));
  EXPECT_TRUE(os::wait_readable(two.endpoint->port().wake_fd(), milliseconds(20000)));
  two.endpoint->port().wake_up();
  EXPECT_EQ(heard(two).size(), 1u);
}

struct GroupTest : DatagramTest {
  Node three{setup, 7003};
  os::SocketAddress address = group_address(5000);

  PeerIndex join(Node& node, bool sends, bool receives) {
    const auto joined = node.endpoint->join(address, sends, receives);
    EXPECT_TRUE(joined.ok());
    return joined ? joined.value() : kNoPeer;
  }
};

TEST_F(GroupTest, EveryMemberHearsWhatIsSentAndSoDoesTheSenderIfItIsOne) {
  const PeerIndex group = join(one, true, true);
  join(two, true, true);
  join(three, false, true);
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, kLargest}) {
    const Bytes bytes = pattern(size, 7);
    Bytes targets[3] = {Bytes(kLargest), Bytes(kLargest), Bytes(kLargest)};
    Node* nodes[3] = {&one, &two, &three};
    for (int i = 0; i < 3; ++i) post(*nodes[i], targets[i]);
    ASSERT_EQ(send_to_group(one, group, bytes), 0);
    EXPECT_EQ(Node::take(one.tx).at(0).flags,
              device::kSend | device::kMessage | device::kMulticast);
    for (int i = 0; i < 3; ++i) {
      const auto got = heard(*nodes[i]);
      ASSERT_EQ(got.size(), 1u) << i;
      EXPECT_EQ(got[0].flags,
                device::kReceive | device::kMessage | device::kMulticast | device::kHasRemoteData);
      EXPECT_EQ(got[0].tag, 0u);
      EXPECT_EQ(got[0].length, size);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), targets[i].begin()));
    }
  }
}

TEST_F(GroupTest, OneThatJoinsLaterHearsWhatIsSentLater) {
  const PeerIndex group = join(one, true, false);
  Bytes target(10);
  post(two, target);
  EXPECT_EQ(send_to_group(one, group, pattern(10, 1)), 0);
  EXPECT_TRUE(heard(two).empty());
  join(two, false, true);
  EXPECT_EQ(send_to_group(one, group, pattern(10, 2)), 0);
  EXPECT_EQ(heard(two).size(), 1u);
  EXPECT_TRUE(target == pattern(10, 2));
}

TEST_F(GroupTest, OneThatHasLeftHearsNothingMore) {
  const PeerIndex group = join(one, true, false);
  const PeerIndex membership = join(two, false, true);
  Bytes target(10);
  post(two, target);
  send_to_group(one, group, pattern(10, 1));
  two.endpoint->leave(membership);
  EXPECT_TRUE(heard(two).empty()) << "not even what was on its way";
  EXPECT_EQ(two.endpoint->stats().of(Stat::kDatagramsUnwanted), 0u);
  send_to_group(one, group, pattern(10, 1));
  EXPECT_TRUE(heard(two).empty());
  join(two, false, true);
  send_to_group(one, group, pattern(10, 1));
  EXPECT_EQ(heard(two).size(), 1u) << "and may come back";
}

TEST_F(GroupTest, OnlyMembersMaySendAndOnlyAsTheyJoined) {
  const PeerIndex group = join(one, false, true);
  EXPECT_EQ(send_to_group(one, group, pattern(10, 1)), EACCES);
  EXPECT_EQ(send_to_group(two, group, pattern(10, 1)), EINVAL) << "it has not joined";
  EXPECT_EQ(send_to_group(one, to_two, pattern(10, 1)), EINVAL) << "that is no group";
  EXPECT_EQ(send(one, group, pattern(10, 1)), EINVAL) << "that is no peer";
  one.endpoint->leave(group);
  EXPECT_EQ(send_to_group(one, group, pattern(10, 1)), EINVAL);
}

TEST_F(GroupTest, OneThatOnlySendsHearsNothing) {
  const PeerIndex group = join(one, true, false);
  Bytes target(10);
  post(one, target);
  send_to_group(one, group, pattern(10, 1));
  EXPECT_TRUE(heard(one).empty());
}

TEST_F(GroupTest, GroupsThatDifferInThePortAreDifferent) {
  const PeerIndex group = join(one, true, false);
  ASSERT_TRUE(two.endpoint->join(group_address(5001), true, true).ok());
  Bytes target(10);
  post(two, target);
  send_to_group(one, group, pattern(10, 1));
  EXPECT_TRUE(heard(two).empty());
}

TEST_F(GroupTest, AGroupIsJoinedOnce) {
  join(one, true, true);
  const auto again = one.endpoint->join(address, true, false);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, EADDRINUSE);
}

TEST_F(GroupTest, AMemberWithoutRoomDoesNotHoldUpTheOthers) {
  const PeerIndex group = join(one, true, false);
  join(two, false, true);
  join(three, false, true);
  const Bytes bytes = pattern(100, 1);
  std::size_t arrived = 0;
  Bytes target(100);
  constexpr std::size_t kCount = 2000;
  for (std::size_t i = 0; i < kCount; ++i) {
    post(three, target);
    ASSERT_EQ(send_to_group(one, group, bytes), 0);
    Node::take(one.tx);
    three.endpoint->port().progress();
    arrived += Node::take(three.rx).size();
  }
  EXPECT_EQ(arrived, kCount);
  EXPECT_GT(one.endpoint->stats().of(Stat::kDatagramsNoRoom), 0u);
}

// A member that is killed: its file vanishes, the others are served, and the next endpoint at its
// address receives nothing of a group that it has not joined.
TEST(GroupDeath, OfAMemberConcernsNoOtherMember) {
  RuntimeDir dir;
  int ready[2];
  int go[2];
  ASSERT_TRUE(::pipe(ready) == 0 && ::pipe(go) == 0);
  const pid_t child = ::fork();
  char word = 0;
  const auto surroundings = [&] {
    Surroundings setup{std::move(device::Device::get(dir.path())).value()};
    setup.service = link::Service::kDatagram;
    return setup;
  };
  if (child == 0) {
    if (::read(go[0], &word, 1) != 1) ::_exit(1);
    const Surroundings setup = surroundings();
    Node member(setup, 7002);
    if (!member.endpoint->join(group_address(5000), false, true)) ::_exit(1);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  const Surroundings setup = surroundings();
  Node sender(setup, 7001);
  Node other(setup, 7003);
  const auto group = sender.endpoint->join(group_address(5000), true, false);
  ASSERT_TRUE(group.ok());
  ASSERT_TRUE(other.endpoint->join(group_address(5000), false, true).ok());
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  ASSERT_EQ(::read(ready[0], &word, 1), 1);
  const Bytes bytes = pattern(10, 1);
  Bytes target(10);
  const auto round = [&] {
    DatagramTest::post(other, target);
    EXPECT_EQ(DatagramTest::send_to_group(sender, group.value(), bytes), 0);
    EXPECT_EQ(DatagramTest::heard(other).size(), 1u);
    Node::take(sender.tx);
  };
  round();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (int i = 0; i < 100; ++i) round();
  Node heir(setup, 7002);
  DatagramTest::post(heir, target);
  const auto files = [&] {
    const auto all = std::filesystem::recursive_directory_iterator(dir.path());
    return std::count_if(begin(all), end(all), [](const auto& entry) {
      return entry.path().filename().string().starts_with("mc-");
    });
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (files() != 1 && std::chrono::steady_clock::now() < end) round();
  EXPECT_EQ(files(), 1) << "the file of the dead member";
  EXPECT_TRUE(DatagramTest::heard(heir).empty());
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
}

TEST_F(DatagramTest, APeerWithAnotherAuthorizationKeyIsNotThereAndThatIsCounted) {
  Surroundings other = setup;
  other.authorization =
      setup.device->authorizations().take(std::as_bytes(std::span("a job"))).value();
  Node keyed{other, 7003};
  Bytes bytes = pattern(8, 1);
  const PeerIndex to_keyed = one.addresses.insert(keyed.address);
  EXPECT_EQ(send(one, to_keyed, bytes), 0);
  EXPECT_EQ(one.endpoint->stats().of(Stat::kDatagramsNoPeer), 1u);
  EXPECT_EQ(send(keyed, keyed.addresses.insert(one.address), bytes), 0);
  EXPECT_EQ(keyed.endpoint->stats().of(Stat::kDatagramsNoPeer), 1u);
  EXPECT_TRUE(heard(keyed).empty());
  EXPECT_TRUE(heard(one).empty());
  EXPECT_EQ(send(one, to_two, bytes), 0);
}

}  // namespace
}  // namespace weft::messaging
