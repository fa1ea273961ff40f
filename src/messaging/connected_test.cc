// SPDX-License-Identifier: BSD-2-Clause
// Which peer does a connected endpoint listen to, and what ends with its connection?
#include <cstring>

#include "test_support.h"

namespace weft::messaging {
namespace {

using testing::Bytes;
using testing::CompletionStatus;
using testing::loopback;
using testing::pattern;

// Writes down what it hears; its answers are the test's.
struct Manager final : ConnectionSink {
  std::vector<std::pair<std::uint32_t, std::string>> said;
  int losses = 0;
  int partings = 0;
  bool last_died = false;
  int ticks = 0;

  void heard(std::uint32_t source, std::span<const std::byte> message) override {
    said.emplace_back(source,
                      std::string(reinterpret_cast<const char*>(message.data()), message.size()));
  }
  void lost(bool died) override {
    ++losses;
    last_died = died;
  }
  void tick(os::Time) override { ++ticks; }
  void reached() override {}
  void parting_is_due() override { ++partings; }
};

struct ConnectedEnd {
  Manager manager;
  AddressVector no_addresses{0};
  device::CompletionQueue queue{64, true, device::WaitKind::kNone};
  os::SocketAddress address;
  std::unique_ptr<Endpoint> endpoint;

  ConnectedEnd(const std::shared_ptr<device::Device>& device, std::uint16_t port)
      : address(loopback(port)) {
    EndpointSetup setup;
    setup.device = device;
    setup.addresses = &no_addresses;
    setup.connection = &manager;
    setup.bindings.tx = &queue;
    setup.bindings.rx = &queue;
    setup.place = address;
    setup.name = address;
    setup.domain = device->new_domain();
    endpoint = std::move(Endpoint::open(std::move(setup))).value();
  }

  int open_path(const os::SocketAddress& peer) {
    return endpoint->exclusively([&] { return endpoint->peer().open_path(peer); });
  }
  int tell(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return endpoint->exclusively([&] { return endpoint->peer().send_control(bytes); });
  }
  void admit_last() {
    endpoint->exclusively([&] { endpoint->peer().accept_source(manager.said.back().first); });
  }
  void part(int error) {
    endpoint->exclusively([&] { endpoint->peer().disconnect(error); });
  }
  int send(Bytes& bytes, PeerIndex peer = 0) {
    const LocalRange piece{bytes.data(), bytes.size()};
    SendCall call;
    call.peer = peer;
    call.pieces = {&piece, 1};
    call.length = bytes.size();
    return endpoint->send(call);
  }
  int receive(Bytes& bytes) {
    const LocalRange piece{bytes.data(), bytes.size()};
    ReceiveCall call;
    call.pieces = {&piece, 1};
    return endpoint->receive(call);
  }
  std::deque<device::Completion> take() { return testing::Node::take(queue); }
};

struct ConnectedTest : testing::EndpointTest {
  ConnectedEnd left{setup.device, 7101};
  ConnectedEnd right{setup.device, 7102};

  void progress() {
    left.endpoint->port().progress();
    right.endpoint->port().progress();
    settle();
  }
  void join() {
    ASSERT_EQ(left.open_path(right.address), 0);
    ASSERT_EQ(right.open_path(left.address), 0);
    ASSERT_EQ(left.tell("I am left"), 0);
    ASSERT_EQ(right.tell("I am right"), 0);
    progress();
    ASSERT_EQ(left.manager.said.size(), 1u);
    ASSERT_EQ(right.manager.said.size(), 1u);
    left.admit_last();
    right.admit_last();
  }
};

TEST_F(ConnectedTest, ControlMessagesComeAsTheyWereSaid) {
  join();
  EXPECT_EQ(left.manager.said[0].second, "I am right");
  EXPECT_EQ(right.manager.said[0].second, "I am left");
  const std::string longest(kMaxControlBytes, 'x');
  ASSERT_EQ(left.tell(longest), 0);
  progress();
  EXPECT_EQ(right.manager.said.back().second, longest);
}

TEST_F(ConnectedTest, DataFlowWhicheverPeerTheCallerNames) {
  join();
  for (const PeerIndex peer : {PeerIndex{0}, PeerIndex{12345}, kNoPeer}) {
    Bytes sent = pattern(64, peer & 0xff);
    Bytes got(64);
    ASSERT_EQ(right.receive(got), 0);
    ASSERT_EQ(left.send(sent, peer), 0);
    progress();
    EXPECT_EQ(got, sent);
  }
}

TEST_F(ConnectedTest, NothingIsSentOverAPathThatIsOpenOnly) {
  Bytes bytes(8);
  EXPECT_EQ(left.send(bytes), ENOTCONN);
  ASSERT_EQ(left.open_path(right.address), 0);
  EXPECT_EQ(left.send(bytes), ENOTCONN);
}

TEST_F(ConnectedTest, ASourceOfDataThatIsNotAcceptedIsRefused) {
  Bytes got(8);
  ASSERT_EQ(right.receive(got), 0);
  const PeerIndex to_right = one.addresses.insert(right.address);
  Bytes bytes(8);
  ASSERT_EQ(one.send(to_right, 0, bytes), 0);
  progress();
  EXPECT_TRUE(right.take().empty());
  Bytes large(100000);
  ASSERT_EQ(one.send(to_right, 0, large), 0);
  EXPECT_TRUE(drive([&] { return one.tx.size() == 2; }));
  const auto sends = testing::Node::take(one.tx);
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_EQ(sends[1].status, CompletionStatus::kRetryExceeded);
  EXPECT_EQ(right.manager.losses, 0);
}

TEST_F(ConnectedTest, ADatagramEndpointRefusesASourceOfControlMessages) {
  ASSERT_EQ(left.open_path(two.address), 0);
  ASSERT_EQ(left.tell("hello"), 0);
  settle();
  EXPECT_NE(left.tell("request"), 0);
  EXPECT_TRUE(testing::Node::take(two.rx).empty());
}

TEST_F(ConnectedTest, ThePeerOfAnOpenPathThatLeavesIsReported) {
  ASSERT_EQ(left.open_path(right.address), 0);
  right.endpoint.reset();
  EXPECT_TRUE(drive([&] {
    left.endpoint->port().progress();
    return left.manager.losses != 0;
  }));
  EXPECT_EQ(left.manager.losses, 1);
  EXPECT_EQ(left.tell("still there?"), ENOTCONN);
}

TEST_F(ConnectedTest, ThatThePeerLeavesIsToldAfterWhatItSent) {
  join();
  Bytes sent = pattern(8, 1);
  Bytes got(8);
  ASSERT_EQ(right.receive(got), 0);
  ASSERT_EQ(left.send(sent), 0);
  left.endpoint.reset();
  right.endpoint->port().progress();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(right.manager.losses, 1);
  EXPECT_FALSE(right.manager.last_died);
}

TEST_F(ConnectedTest, ALaterPartingIsDueInTheNextPollAndKeepsAwake) {
  join();
  right.endpoint->peer().part_later();
  EXPECT_FALSE(right.endpoint->port().fall_asleep());
  right.endpoint->port().wake_up();
  EXPECT_EQ(right.manager.partings, 0);
  for (int i = 0; i < 2; ++i) right.endpoint->port().progress();
  EXPECT_EQ(right.manager.partings, 1);
}

TEST_F(ConnectedTest, ABrokenPathIsReportedAsAnEndBeforeTheDisconnect) {
  join();
  right.endpoint.reset();
  Bytes large(100000);
  int status = 0;
  for (int i = 0; i < 3 && status == 0; ++i) status = left.send(large);
  EXPECT_EQ(status, ESHUTDOWN);
  EXPECT_EQ(left.manager.losses, 0) << "no poll has noticed it yet";
  for (const auto& completion : left.take())
    EXPECT_EQ(completion.status, CompletionStatus::kRetryExceeded);
}

TEST_F(ConnectedTest, PartingReportsWhatIsPendingAndWhatWaits) {
  join();
  Bytes got(8);
  Bytes large(100000);
  ASSERT_EQ(left.receive(got), 0);
  ASSERT_EQ(left.send(large), 0);
  left.part(ECANCELED);
  const auto ended = left.take();
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].status, CompletionStatus::kCancelled);
  EXPECT_EQ(ended[1].status, CompletionStatus::kCancelled);
  EXPECT_EQ(left.send(large), ESHUTDOWN);
  EXPECT_EQ(left.receive(got), ESHUTDOWN);
  progress();
  EXPECT_EQ(right.manager.losses, 1);
  EXPECT_EQ(left.manager.losses, 0) << "it parted by itself";
}

TEST_F(ConnectedTest, AfterPartingThePeersMessagesAreNotTakenIn) {
  join();
  left.part(ECANCELED);
  Bytes bytes(8);
  ASSERT_EQ(right.send(bytes), 0);
  progress();
  EXPECT_TRUE(left.take().empty());
  Bytes got(8);
  EXPECT_EQ(left.receive(got), ESHUTDOWN);
}

TEST_F(ConnectedTest, ReceivesStillTakeWhatCameBefore) {
  join();
  Bytes sent = pattern(8, 1);
  ASSERT_EQ(left.send(sent), 0);
  progress();
  right.part(ECONNRESET);
  Bytes got(8);
  EXPECT_EQ(right.receive(got), 0);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(right.receive(got), ESHUTDOWN);
}

TEST_F(ConnectedTest, ControlMessagesThatAreTooLongAreRefused) {
  ASSERT_EQ(left.open_path(right.address), 0);
  ASSERT_EQ(left.tell(std::string(kMaxControlBytes + 1, 'x')), 0);
  right.endpoint->port().progress();
  EXPECT_TRUE(right.manager.said.empty());
  EXPECT_NE(left.tell("hello"), 0);
}

TEST_F(ConnectedTest, ARejectedSourceIsNotHeardAgain) {
  ASSERT_EQ(left.open_path(right.address), 0);
  ASSERT_EQ(left.tell("hello"), 0);
  right.endpoint->port().progress();
  ASSERT_EQ(right.manager.said.size(), 1u);
  right.endpoint->exclusively(
      [&] { right.endpoint->peer().reject_source(right.manager.said[0].first); });
  EXPECT_NE(left.tell("hello?"), 0);
  right.endpoint->port().progress();
  EXPECT_EQ(right.manager.said.size(), 1u);
}

TEST_F(ConnectedTest, TimeIsTold) {
  EXPECT_TRUE(drive([&] {
    left.endpoint->port().progress();
    return left.manager.ticks >= 2;
  }));
}

}  // namespace
}  // namespace weft::messaging
