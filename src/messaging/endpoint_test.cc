// SPDX-License-Identifier: BSD-2-Clause
// Does an endpoint exchange messages with others, and with itself, as fi_endpoint(3) promises?
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>

#include "test_support.h"

namespace weft::messaging {
namespace {

using namespace testing;

constexpr std::size_t kMaxHeldBack = 512;  // messages that wait in a mailbox

class Sizes : public EndpointTest, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(Sizes, AMessageArrivesWholeWhetherItsReceiveCameFirstOrLast) {
  for (const bool receive_first : {true, false}) {
    for (const bool until_delivered : {false, true}) {
      Bytes bytes = pattern(GetParam(), 1);
      Bytes target(bytes.size() + 1);
      if (receive_first) {
        ASSERT_EQ(two.receive(5, target, &contexts[1]), 0);
      }
      ASSERT_EQ(one.send(to_two, 5, bytes, &contexts[0],
                         [&](SendCall& call) { call.until_delivered = until_delivered; }),
                0);
      settle();
      if (!receive_first) {
        ASSERT_EQ(two.receive(5, target, &contexts[1]), 0);
      }
      const Completion received = next(two, false);
      EXPECT_EQ(received.status, CompletionStatus::kSuccess);
      EXPECT_EQ(received.context, &contexts[1]);
      EXPECT_EQ(received.length, bytes.size());
      EXPECT_EQ(received.tag, 5u);
      EXPECT_EQ(received.source, to_one);
      EXPECT_EQ(received.buffer, target.data());
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), target.begin()));
      EXPECT_EQ(target.back(), std::byte{0}) << "nothing behind the message is written";
      const Completion sent = next(one, true);
      EXPECT_EQ(sent.status, CompletionStatus::kSuccess);
      EXPECT_EQ(sent.context, &contexts[0]);
    }
  }
}

TEST_P(Sizes, AnEndpointCanSendToItself) {
  const PeerIndex itself = one.addresses.insert(one.address);
  Bytes bytes = pattern(GetParam(), 1);
  Bytes target(bytes.size());
  ASSERT_EQ(one.send(itself, 5, bytes, &contexts[0]), 0);
  ASSERT_EQ(one.receive(5, target, &contexts[1]), 0);
  const Completion received = next(one, false);
  EXPECT_EQ(received.status, CompletionStatus::kSuccess);
  EXPECT_EQ(received.source, itself);
  EXPECT_TRUE(bytes == target);
  EXPECT_EQ(next(one, true).status, CompletionStatus::kSuccess);
}

TEST_P(Sizes, ALongerMessageIsCutAndSaysByHowMuch) {
  if (GetParam() == 0) GTEST_SKIP() << "nothing to cut";
  for (const bool receive_first : {true, false}) {
    Bytes bytes = pattern(GetParam(), 1);
    Bytes target(bytes.size());
    Bytes room(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2));
    if (receive_first) two.receive(5, room);
    ASSERT_EQ(one.send(to_two, 5, bytes), 0);
    settle();
    if (!receive_first) two.receive(5, room);
    const Completion received = next(two, false);
    EXPECT_EQ(received.status, CompletionStatus::kLocalLength);
    EXPECT_EQ(received.length, room.size());
    EXPECT_EQ(received.vendor, bytes.size() - room.size());
    EXPECT_TRUE(std::equal(room.begin(), room.end(), bytes.begin()));
    EXPECT_EQ(next(one, true).status, CompletionStatus::kSuccess) << "the sender's part went well";
  }
}

INSTANTIATE_TEST_SUITE_P(Endpoint, Sizes,
                         ::testing::Values(0, 1, 40, 41, 64, 65, 8192, 8193, 32768, 1 << 20,
                                           (1 << 20) + 3));

TEST_F(EndpointTest, MessagesOfOneSenderAreMatchedInTheirOrder) {
  std::deque<Bytes> sent;
  std::deque<Bytes> received;
  for (std::size_t i = 0; i < 60; ++i) {
    sent.push_back(pattern(i % 5 == 0 ? 20'000 + i : i, i));
    received.emplace_back(30'000);
    ASSERT_EQ(one.send(to_two, 1, sent.back()), 0);
  }
  for (auto& target : received) ASSERT_EQ(two.receive(1, target, &target), 0);
  ASSERT_TRUE(drive([&] { return two.rx.size() == 60; }));
  // They may complete in any order: a large one takes longer.
  std::map<void*, std::size_t> lengths;
  for (const Completion& completion : Node::take(two.rx)) {
    lengths[completion.context] = completion.length;
  }
  for (std::size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(lengths.at(&received[i]), sent[i].size());
    EXPECT_TRUE(std::equal(sent[i].begin(), sent[i].end(), received[i].begin())) << i;
  }
}

TEST_F(EndpointTest, UnexpectedMessagesBeyondTheLimitHoldTheirSenderBackAndNoneIsLost) {
  Surroundings narrow = setup;
  narrow.unexpected_limit = 20'000;
  Node three(narrow, 7003);
  const PeerIndex to_three = one.addresses.insert(three.address);
  std::size_t sent = 0;
  for (int refused = 0; refused < 100 && sent < 5000;) {
    Bytes bytes = pattern(1000, sent);
    const int status = one.send(to_three, 1, bytes);
    ASSERT_TRUE(status == 0 || status == EAGAIN) << status;
    status == 0 ? ++sent : ++refused;
    Node::take(one.tx);
    three.endpoint->port().progress();
  }
  EXPECT_GT(sent, 20u);
  EXPECT_LT(sent, 20u + 64 + kMaxHeldBack) << "the limit does not hold";
  Bytes target(1000);
  for (std::size_t i = 0; i < sent; ++i) {
    ASSERT_EQ(three.receive(1, target), 0);
    ASSERT_TRUE(drive([&] {
      three.endpoint->port().progress();
      return !three.rx.empty();
    }));
    Node::take(three.rx);
    ASSERT_TRUE(target == pattern(1000, i)) << i;
  }
  EXPECT_EQ(one.send(to_three, 1, target), 0) << "the sender is free again";
}

// Each takes more memory to keep than it has bytes.
TEST_F(EndpointTest, EmptyMessagesBeyondTheLimitHoldTheirSenderBackOverBothLinks) {
  for (const bool over_network : {false, true}) {
    SCOPED_TRACE(over_network ? "network" : "host");
    const auto sockets =
        std::array{os::UdpPort::bind(os::loopback(0)), os::UdpPort::bind(os::loopback(0))};
    Surroundings wide = setup;
    Surroundings narrow = setup;
    narrow.unexpected_limit = 100'000;
    wide.connect_timeout = narrow.connect_timeout = milliseconds(20'000);
    if (over_network) {
      wide.socket = &sockets[0].value();
      narrow.socket = &sockets[1].value();
    }
    Node sender(wide, 7003);
    Node receiver(narrow, 7004);
    ASSERT_TRUE(sender.endpoint != nullptr && receiver.endpoint != nullptr);
    const PeerIndex peer = sender.addresses.insert(receiver.address);
    constexpr std::size_t kMost = 50'000;
    Bytes empty;
    std::size_t sent = 0;
    for (int refused = 0; refused < 3000 && sent < kMost;) {
      const int status = sender.send(peer, 1, empty);
      ASSERT_TRUE(status == 0 || status == EAGAIN) << status;
      refused = status == 0 ? 0 : refused + 1;
      sent += status == 0 ? 1 : 0;
      Node::take(sender.tx);
      sender.endpoint->port().progress();
      receiver.endpoint->port().progress();
    }
    EXPECT_LT(sent, kMost / 2) << "the limit does not hold";
    std::size_t received = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (received < sent && std::chrono::steady_clock::now() < end) {
      ASSERT_EQ(receiver.receive(1, empty), 0);
      while (receiver.rx.empty() && std::chrono::steady_clock::now() < end) {
        sender.endpoint->port().progress();
        receiver.endpoint->port().progress();
        Node::take(sender.tx);
      }
      received += Node::take(receiver.rx).size();
    }
    EXPECT_EQ(received, sent) << "none is lost";
  }
}

TEST_F(EndpointTest, TaggedAndUntaggedMessagesDoNotMeet) {
  Bytes bytes = pattern(10, 1);
  Bytes target(10);
  two.receive(0, target);
  one.send(to_two, 0, bytes, nullptr,
           [](SendCall& call) { call.operation = link::MessageOperation::kMessage; });
  settle();
  EXPECT_TRUE(two.rx.empty());
  const LocalRange piece{target.data(), target.size()};
  ReceiveCall untagged;
  untagged.pieces = {&piece, 1};
  two.endpoint->receives().receive(untagged);
  EXPECT_EQ(next(two, false).flags, device::kReceive | device::kMessage);
}

TEST_F(EndpointTest, ADirectedReceiveTakesMessagesOfItsSourceOnly) {
  Node three(setup, 7003);
  const PeerIndex three_to_two = three.addresses.insert(two.address);
  const PeerIndex two_to_three = two.addresses.insert(three.address);
  Bytes bytes = pattern(10, 1);
  Bytes from_three(10);
  Bytes from_any(10);
  two.receive(5, from_three, &contexts[3], two_to_three);
  two.receive(5, from_any, &contexts[0]);
  one.send(to_two, 5, bytes);
  Completion received = next(two, false);
  EXPECT_EQ(received.context, &contexts[0]);
  EXPECT_EQ(received.source, to_one);
  three.send(three_to_two, 5, bytes);
  received = next(two, false);
  EXPECT_EQ(received.context, &contexts[3]);
  EXPECT_EQ(received.source, two_to_three);
  three.send(three_to_two, 6, bytes);
  settle();
  two.receive(6, from_any, &contexts[0], to_one);
  settle();
  EXPECT_TRUE(two.rx.empty()) << "a kept message of another source stays";
  EXPECT_EQ(two.receive(6, from_any, nullptr, 99), EINVAL);
}

TEST_F(EndpointTest, AnUnknownSenderHasNoNumber) {
  Node stranger(setup, 7003);
  const PeerIndex peer = stranger.addresses.insert(two.address);
  Bytes bytes = pattern(10, 1);
  Bytes target(10);
  two.receive(5, target);
  stranger.send(peer, 5, bytes);
  EXPECT_EQ(next(two, false).source, device::kUnknownSource);
}

TEST_F(EndpointTest, APeekReportsWithoutTaking) {
  Bytes bytes = pattern(20'000, 1);
  Bytes target(20'000);
  Bytes none;
  two.receive(5, none, &contexts[0], kNoPeer, Mode::kPeek);
  EXPECT_EQ(next(two, false).status, CompletionStatus::kNoMessage);
  one.send(to_two, 5, bytes);
  settle();
  for (int i = 0; i < 2; ++i) {
    two.receive(5, none, &contexts[0], kNoPeer, Mode::kPeek);
    const Completion seen = next(two, false);
    EXPECT_EQ(seen.status, CompletionStatus::kSuccess);
    EXPECT_EQ(seen.length, bytes.size());
    EXPECT_EQ(seen.source, to_one);
  }
  EXPECT_TRUE(one.tx.empty());
  two.receive(5, target);
  EXPECT_EQ(next(two, false).status, CompletionStatus::kSuccess);
  EXPECT_TRUE(bytes == target);
}

TEST_F(EndpointTest, AClaimedMessageIsForItsClaimerOnly) {
  for (const std::size_t size : {10u, 20'000u}) {
    Bytes bytes = pattern(size, 1);
    Bytes target(size);
    Bytes none;
    one.send(to_two, 5, bytes);
    settle();
    two.receive(5, none, &contexts[0], kNoPeer, Mode::kPeekClaim);
    EXPECT_EQ(next(two, false).status, CompletionStatus::kSuccess);
    EXPECT_EQ(two.receive(5, target, &contexts[1], kNoPeer, Mode::kTakeClaimed), EINVAL);
    Bytes other(size);
    two.receive(5, other, &contexts[2]);
    settle();
    EXPECT_TRUE(two.rx.empty()) << "a claimed message is invisible to others";
    EXPECT_EQ(two.endpoint->cancel(&contexts[2]), 0);
    EXPECT_EQ(next(two, false).status, CompletionStatus::kCancelled);
    ASSERT_EQ(two.receive(5, target, &contexts[0], kNoPeer, Mode::kTakeClaimed), 0);
    EXPECT_EQ(next(two, false).context, &contexts[0]);
    EXPECT_TRUE(bytes == target);
    EXPECT_EQ(next(one, true).status, CompletionStatus::kSuccess);
  }
}

TEST_F(EndpointTest, ADiscardedMessageIsGoneAndItsSenderIsDone) {
  Bytes none;
  for (const Mode mode : {Mode::kPeekDiscard, Mode::kPeekClaim}) {
    for (const std::size_t size : {0u, 10u, 5000u, 20'000u}) {
      Bytes bytes = pattern(size, 1);
      one.send(to_two, 5, bytes, nullptr, [](SendCall& call) { call.until_delivered = true; });
      settle();
      EXPECT_TRUE(one.tx.empty());
      two.receive(5, none, &contexts[0], kNoPeer, mode);
      EXPECT_EQ(next(two, false).length, size);
      if (mode == Mode::kPeekClaim) {
        two.receive(5, none, &contexts[0], kNoPeer, Mode::kDiscardClaimed);
        EXPECT_EQ(next(two, false).status, CompletionStatus::kSuccess);
      }
      EXPECT_EQ(next(one, true).status, CompletionStatus::kSuccess);
      two.receive(5, none, &contexts[0], kNoPeer, Mode::kPeek);
      EXPECT_EQ(next(two, false).status, CompletionStatus::kNoMessage);
    }
  }
}

TEST_F(EndpointTest, ACancelledReceiveEndsOnceAndTakesNothing) {
  Bytes target(10);
  two.receive(5, target, &contexts[0]);
  EXPECT_EQ(two.endpoint->cancel(&contexts[1]), ENOENT);
  EXPECT_EQ(two.endpoint->cancel(&contexts[0]), 0);
  EXPECT_EQ(two.endpoint->cancel(&contexts[0]), ENOENT);
  EXPECT_EQ(next(two, false).status, CompletionStatus::kCancelled);
  Bytes bytes = pattern(10, 1);
  one.send(to_two, 5, bytes);
  settle();
  EXPECT_TRUE(two.rx.empty());
  EXPECT_TRUE(target == Bytes(10));
}

TEST_F(EndpointTest, APeerThatIsNotThereMeansAgainAndThenUnreachable) {
  const PeerIndex absent = one.addresses.insert(loopback(7999));
  Bytes bytes = pattern(10, 1);
  int result = EAGAIN;
  int again = 0;
  while ((result = one.send(absent, 5, bytes, &contexts[0])) == EAGAIN) ++again;
  EXPECT_GT(again, 0);
  EXPECT_EQ(result, 0) << "the operation was started and has failed";
  const Completion failed = next(one, true);
  EXPECT_EQ(failed.status, CompletionStatus::kUnreachable);
  EXPECT_EQ(failed.context, &contexts[0]);
  EXPECT_EQ(one.send(absent, 5, bytes), EAGAIN) << "and a new one waits anew";
}

TEST_F(EndpointTest, AnInjectedMessageReturnsItsFailure) {
  const PeerIndex absent = one.addresses.insert(loopback(7999));
  Bytes bytes = pattern(10, 1);
  const auto inject = [](SendCall& call) {
    call.report = Report::silence();
    call.must_copy = true;
  };
  int result = EAGAIN;
  while (result == EAGAIN) result = one.send(absent, 5, bytes, nullptr, inject);
  EXPECT_EQ(result, EHOSTUNREACH);
  EXPECT_TRUE(one.tx.empty());
}

TEST_F(EndpointTest, APeerThatComesLateIsStillReached) {
  Surroundings patient = setup;
  patient.connect_timeout = std::chrono::seconds(10);
  Node early(patient, 7005);
  const PeerIndex peer = early.addresses.insert(loopback(7004));
  Bytes bytes = pattern(10, 1);
  EXPECT_EQ(early.send(peer, 5, bytes), EAGAIN);
  Node late(setup, 7004);
  EXPECT_EQ(early.send(peer, 5, bytes), 0);
  EXPECT_EQ(early.tx.size(), 1u);
}

TEST_F(EndpointTest, AnUnknownNumberIsInvalid) {
  Bytes bytes = pattern(10, 1);
  EXPECT_EQ(one.send(77, 5, bytes), EINVAL);
  EXPECT_EQ(one.send(kNoPeer, 5, bytes), EINVAL);
}

TEST_F(EndpointTest, ARemovedNumberIsInvalidAndWhatIsPendingToItFails) {
  Bytes bytes = pattern(20'000, 1);
  Bytes small = pattern(10, 1);
  one.send(to_two, 5, bytes, &contexts[0]);
  settle();
  one.addresses.remove(to_two);
  EXPECT_EQ(one.send(to_two, 5, small), EINVAL);
  const Completion failed = next(one, true);
  EXPECT_EQ(failed.context, &contexts[0]);
  EXPECT_EQ(failed.status, CompletionStatus::kRetryExceeded);
}

TEST_F(EndpointTest, ANumberThatIsUsedAgainMeansItsNewAddress) {
  Node three(setup, 7003);
  Bytes bytes = pattern(10, 1);
  Bytes target(10);
  ASSERT_EQ(one.send(to_two, 5, bytes), 0);
  one.addresses.remove(to_two);
  ASSERT_EQ(one.addresses.insert(three.address), to_two);
  three.receive(6, target);
  ASSERT_EQ(one.send(to_two, 6, bytes), 0);
  EXPECT_TRUE(drive([&] {
    three.endpoint->port().progress();
    return !three.rx.empty();
  }));
  two.receive(5, target);
  EXPECT_EQ(next(two, false).tag, 5u) << "what was sent before still arrives where it was sent";
}

TEST_F(EndpointTest, AFullQueueHoldsOperationsBack) {
  Surroundings small = setup;
  small.queue_size = 16;
  Node narrow(small, 7006);
  const PeerIndex peer = narrow.addresses.insert(two.address);
  Bytes bytes = pattern(10, 1);
  int started = 0;
  while (narrow.send(peer, 5, bytes) == 0) ++started;
  EXPECT_EQ(started, 16);
  EXPECT_EQ(narrow.send(peer, 5, bytes), EAGAIN);
  Node::take(narrow.tx);
  EXPECT_EQ(narrow.send(peer, 5, bytes), 0);
}

TEST_F(EndpointTest, MoreMessagesThanTheRingHoldsAllArrive) {
  Bytes bytes = pattern(100, 1);
  std::uint64_t sent = 0;
  std::size_t heard = 0;
  Bytes target(100);
  while (sent < 3000) {
    if (one.send(to_two, sent, bytes) == 0) {
      ++sent;
      Node::take(one.tx);
      continue;
    }
    two.endpoint->port().progress();
  }
  for (std::uint64_t tag = 0; tag < sent; ++tag) {
    two.receive(tag, target);
    two.endpoint->port().progress();
    heard += Node::take(two.rx).size();
  }
  EXPECT_TRUE(drive([&] {
    heard += Node::take(two.rx).size();
    return heard == sent;
  }));
}

TEST_F(EndpointTest, AFencedMessageWaitsForThoseBeforeIt) {
  Bytes bytes = pattern(20'000, 1);
  Bytes target(20'000);
  const auto fenced = [](SendCall& call) { call.fence = true; };
  one.send(to_two, 5, bytes);
  EXPECT_EQ(one.send(to_two, 6, bytes, nullptr, fenced), EAGAIN);
  two.receive(5, target);
  ASSERT_TRUE(drive([&] { return !one.tx.empty(); }));
  EXPECT_EQ(one.send(to_two, 6, bytes, nullptr, fenced), 0);
}

TEST_F(EndpointTest, AWriteWithDataIsReportedAtItsTargetAndCounted) {
  Bytes memory(100);
  Bytes bytes = pattern(60, 1);
  const auto region = setup.device->regions().add({two.domain, Access::kRemoteWrite,
                                                   reinterpret_cast<std::uint64_t>(memory.data()),
                                                   100, 0, false, RegionKey{9}});
  ASSERT_TRUE(region.ok());
  const LocalRange local{bytes.data(), bytes.size()};
  const RemoteRange remote{40, 60, RegionKey{9}};
  AccessCall call;
  call.peer = to_two;
  call.write = true;
  call.has_data = true;
  call.data = 0xabc;
  call.local = {&local, 1};
  call.remote = {&remote, 1};
  call.length = 60;
  ASSERT_EQ(one.endpoint->access(call), 0);
  EXPECT_EQ(next(one, true).flags, device::kRma | device::kWrite);
  const Completion announced = next(two, false);
  EXPECT_EQ(announced.flags, device::kRma | device::kRemoteWrite | device::kHasRemoteData);
  EXPECT_EQ(announced.data, 0xabcu);
  EXPECT_EQ(announced.length, 60u);
  EXPECT_EQ(two.remote_writes.value(), 1u);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin() + 40));
  call.write = false;
  ASSERT_EQ(one.endpoint->access(call), 0);
  const Completion refused = next(one, true);
  EXPECT_EQ(refused.status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(refused.reason, static_cast<int>(memory::AccessError::kNoRight));
  EXPECT_TRUE(setup.device->regions().remove(region.value()).ok());
}

TEST_F(EndpointTest, AnAtomicOperationIsReportedAndCountedByWhatItDoes) {
  std::uint64_t memory = 40;
  const auto region = setup.device->regions().add({two.domain, Access::kRemoteWrite,
                                                   reinterpret_cast<std::uint64_t>(&memory), 8, 0,
                                                   false, RegionKey{9}});
  ASSERT_TRUE(region.ok());
  std::uint64_t operand = 2;
  std::uint64_t initial = 0;
  const LocalRange local{&operand, 8};
  const LocalRange result{&initial, 8};
  const RemoteRange remote{0, 8, RegionKey{9}};
  AtomicCall call;
  call.peer = to_two;
  call.action = {AtomicForm::kBase, AtomicOp::kSum, AtomicType::kUint64};
  call.has_data = true;
  call.data = 0xabc;
  call.operand = {&local, 1};
  call.result = {&result, 1};
  call.remote = {&remote, 1};
  call.length = 8;
  ASSERT_EQ(one.endpoint->atomic(call), 0);
  EXPECT_EQ(next(one, true).flags, device::kAtomic | device::kWrite);
  EXPECT_EQ(memory, 42u);
  const Completion announced = next(two, false);
  EXPECT_EQ(announced.flags, device::kAtomic | device::kRemoteWrite | device::kHasRemoteData);
  EXPECT_EQ(announced.data, 0xabcu);
  EXPECT_EQ(announced.length, 8u);
  EXPECT_EQ(two.remote_writes.value(), 1u);
  call.action.form = AtomicForm::kFetch;
  ASSERT_EQ(one.endpoint->atomic(call), 0);
  const Completion refused = next(one, true);
  EXPECT_EQ(refused.flags, device::kAtomic | device::kRead);
  EXPECT_EQ(refused.status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(refused.reason, static_cast<int>(weft::memory::AccessError::kNoRight));
  call.report = Report::silence();
  EXPECT_EQ(one.endpoint->atomic(call), EACCES) << "an injected one returns its failure";
  EXPECT_EQ(memory, 42u);
  EXPECT_TRUE(setup.device->regions().remove(region.value()).ok());
}

TEST_F(EndpointTest, AnAtomicOperationWaitsBehindAFenceAndAFullQueue) {
  AtomicCall call;
  call.peer = to_two;
  call.fence = true;
  Bytes bytes = pattern(20'000, 1);
  one.send(to_two, 5, bytes);
  EXPECT_EQ(one.endpoint->atomic(call), EAGAIN);
  call.peer = 99;
  EXPECT_EQ(one.endpoint->atomic(call), EINVAL);
}

TEST_F(EndpointTest, ASleepingEndpointIsWokenByAMessage) {
  settle();
  ASSERT_TRUE(two.endpoint->port().fall_asleep());
  Bytes bytes = pattern(10, 1);
  one.send(to_two, 5, bytes);
  EXPECT_TRUE(os::wait_readable(two.endpoint->port().wake_fd(), milliseconds(20000)));
  two.endpoint->port().wake_up();
}

TEST_F(EndpointTest, ASleepingEndpointIsWokenByTheEndOfASend) {
  Bytes bytes = pattern(20'000, 1);
  Bytes target(20'000);
  one.send(to_two, 5, bytes);
  settle();
  ASSERT_TRUE(one.endpoint->port().fall_asleep());
  two.receive(5, target);
  EXPECT_TRUE(os::wait_readable(one.endpoint->port().wake_fd(), milliseconds(20000)));
  one.endpoint->port().wake_up();
  EXPECT_EQ(next(one, true).status, CompletionStatus::kSuccess);
}

// One thread waits, another one sends: fi_trywait(3) with a shared endpoint.
TEST_F(EndpointTest, ASleepingEndpointIsWokenByTheEndOfASendThatBeganDuringItsSleep) {
  Bytes small = pattern(10, 1);
  one.send(to_two, 4, small);
  Node::take(one.tx);
  settle();
  ASSERT_TRUE(one.endpoint->port().fall_asleep());
  Bytes bytes = pattern(20'000, 1);
  Bytes target(20'000);
  ASSERT_EQ(one.send(to_two, 5, bytes), 0);
  two.endpoint->port().progress();
  two.receive(5, target);
  EXPECT_TRUE(os::wait_readable(one.endpoint->port().wake_fd(), milliseconds(1000)));
  one.endpoint->port().wake_up();
  EXPECT_EQ(next(one, true).status, CompletionStatus::kSuccess);
}

TEST_F(EndpointTest, PendingSendsToAnEndpointThatClosesFail) {
  Bytes bytes = pattern(20'000, 1);
  one.send(to_two, 5, bytes, &contexts[0]);
  settle();
  two.endpoint.reset();
  const Completion failed = next(one, true);
  EXPECT_EQ(failed.status, CompletionStatus::kRetryExceeded);
  EXPECT_EQ(failed.context, &contexts[0]);
}

TEST_F(EndpointTest, AnEndpointAtTheAddressOfAClosedOneGetsLaterMessages) {
  Bytes bytes = pattern(20'000, 1);
  Bytes small = pattern(10, 2);
  Bytes target(10);
  one.send(to_two, 5, bytes, &contexts[0]);
  settle();
  two.endpoint.reset();
  Node successor(setup, 7002);
  ASSERT_TRUE(successor.endpoint != nullptr);
  successor.receive(6, target);
  ASSERT_EQ(one.send(to_two, 6, small, &contexts[1]), 0);
  EXPECT_TRUE(drive([&] {
    successor.endpoint->port().progress();
    return !successor.rx.empty();
  }));
  EXPECT_EQ(target, small);
  for (const Completion& each : Node::take(one.tx)) {
    EXPECT_EQ(each.status, each.context == &contexts[0] ? CompletionStatus::kRetryExceeded
                                                        : CompletionStatus::kSuccess);
  }
}

TEST_F(EndpointTest, PendingSendsToAnEndpointThatClosesWithoutAPollFail) {
  Bytes bytes = pattern(20'000, 1);
  one.send(to_two, 5, bytes, &contexts[0]);
  two.endpoint.reset();
  EXPECT_EQ(next(one, true).status, CompletionStatus::kRetryExceeded);
}

TEST_F(EndpointTest, ClosingWithEverythingPendingReportsNothingAndTouchesNothing) {
  Bytes bytes = pattern(20'000, 1);
  Bytes target(20'000);
  for (std::uint64_t i = 0; i < 20; ++i) one.send(to_two, i, bytes);
  two.receive(100, target);
  settle();
  one.endpoint.reset();
  two.endpoint.reset();
  EXPECT_TRUE(one.tx.empty());
  EXPECT_TRUE(two.rx.empty());
}

// A process with an endpoint that sends to us, and is killed in the middle.
TEST(EndpointDeath, ASenderThatIsKilledFailsTheReceivesDirectedAtItAndItsOffersVanish) {
  RuntimeDir dir;
  int ready[2];
  int go[2];
  ASSERT_TRUE(::pipe(ready) == 0 && ::pipe(go) == 0);
  const pid_t child = ::fork();
  char word = 0;
  if (child == 0) {
    if (::read(go[0], &word, 1) != 1) ::_exit(1);
    Surroundings setup{std::move(device::Device::get(dir.path())).value()};
    Node sender(setup, 7002);
    const PeerIndex peer = sender.addresses.insert(loopback(7001));
    Bytes bytes = pattern(20'000, 1);
    sender.send(peer, 5, bytes);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  Surroundings setup{std::move(device::Device::get(dir.path())).value()};
  Node node(setup, 7001);
  const PeerIndex source = node.addresses.insert(loopback(7002));
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  ASSERT_EQ(::read(ready[0], &word, 1), 1);
  Bytes target(20'000);
  Bytes none;
  int directed = 0;
  node.receive(6, target, &directed, source);
  node.receive(5, none, nullptr, kNoPeer, Mode::kPeek);
  EXPECT_EQ(Node::take(node.rx).at(0).status, CompletionStatus::kSuccess) << "its offer is there";
  ASSERT_FALSE(!node.endpoint->port().fall_asleep());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(os::wait_readable(node.endpoint->port().wake_fd(), milliseconds(20000)));
  node.endpoint->port().wake_up();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (node.rx.empty() && std::chrono::steady_clock::now() < end)
    node.endpoint->port().progress();
  const auto failed = Node::take(node.rx);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].status, CompletionStatus::kRetryExceeded);
  EXPECT_EQ(failed[0].context, &directed);
  node.receive(5, none, nullptr, kNoPeer, Mode::kPeek);
  EXPECT_EQ(Node::take(node.rx).at(0).status, CompletionStatus::kNoMessage) << "its offer is void";
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
}

}  // namespace
}  // namespace weft::messaging
