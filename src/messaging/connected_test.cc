// SPDX-License-Identifier: BSD-2-Clause
// Which peer does a connected endpoint listen to, and what ends with its connection?
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>

#include "test_support.h"

namespace weft::messaging {
namespace {

using testing::Bytes;
using testing::CompletionStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::loopback;
using testing::pattern;

struct End : testing::ConnectedEnd {
  device::CompletionQueue queue{64, true, device::WaitKind::kNone};
  os::SocketAddress address;

  End(const std::shared_ptr<device::Device>& device, std::uint16_t port,
      const Options* options = nullptr)
      : address(loopback(port)) {
    EndpointSetup setup;
    if (options != nullptr) setup.options = options;
    setup.device = device;
    setup.bindings.tx = &queue;
    setup.bindings.rx = &queue;
    setup.place = address;
    setup.name = address;
    setup.domain = device->new_domain();
    open(setup);
  }
  std::deque<device::Completion> take() { return testing::Node::take(queue); }
};

// A process that does something on the device, and then nothing until it is killed.
class Victim {
 public:
  // Returns when `begin` has: what it returns lives as long as the process.
  template <class Begin>
  Victim(const std::string& directory, Begin begin) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    process_ = ::fork();
    if (process_ == 0) {
      const auto kept = begin(std::move(device::Device::get(directory)).value());
      EXPECT_EQ(::write(ends[1], "!", 1), 1);
      while (kept != nullptr) ::pause();
      ::_exit(1);
    }
    char word = 0;
    EXPECT_EQ(::read(ends[0], &word, 1), 1);
    for (const int end : ends) ::close(end);
  }
  ~Victim() { kill(); }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(std::exchange(process_, 0), nullptr, 0);
  }

 private:
  pid_t process_ = 0;
};

struct ConnectedTest : testing::EndpointTest {
  testing::RequestPort listener{setup.device, 7100};
  End left{setup.device, 7101};
  End right{setup.device, 7102};
  const os::SocketAddress there = loopback(7103);

  void progress() {
    for (const End* const end : {&left, &right}) {
      if (end->endpoint != nullptr) end->endpoint->port().progress();
    }
    settle();
  }
  // Another process listens at `there`.
  Victim listen_elsewhere() {
    return Victim(dir.path(), [this](const std::shared_ptr<device::Device>& device) {
      return std::make_unique<testing::RequestPort>(device, there.port());
    });
  }
  // Until the outcome of all attempts is known, and what is due is done.
  template <class Done>
  bool progress_until(Done done) {
    return drive([&] {
      progress();
      return done();
    });
  }
  void join() {
    left.request(listener.address);
    right.accept(listener.take_request());
    progress();
    ASSERT_EQ(left.log.connections, 1);
    ASSERT_EQ(right.log.connections, 1);
  }
};

TEST_F(ConnectedTest, DataOfTheRequestAndOfTheAcceptanceCome) {
  const Bytes asked = pattern(link::kMaxConnectionData, 1);
  const Bytes answered = pattern(link::kMaxConnectionData, 2);
  left.request(listener.address, asked);
  const link::ConnectionRequest request = listener.take_request();
  EXPECT_EQ(request.data, asked);
  EXPECT_EQ(request.peer, left.address);
  right.accept(request, answered);
  progress();
  EXPECT_EQ(left.log.data, answered);
  EXPECT_THAT(right.log.data, IsEmpty());
}

TEST_F(ConnectedTest, DataOfARejectionCome) {
  const Bytes data = pattern(link::kMaxConnectionData, 3);
  left.request(listener.address);
  listener.reject_request(data);
  progress();
  EXPECT_THAT(left.log.failures, ElementsAre(ECONNREFUSED));
  EXPECT_EQ(left.log.data, data);
}

TEST_F(ConnectedTest, WhatCannotBeAskedOrAcceptedFailsAtOnce) {
  left.request(loopback(7199));
  EXPECT_THAT(left.log.failures, ElementsAre(ECONNREFUSED));
  left.request(listener.address, Bytes(link::kMaxConnectionData + 1));
  EXPECT_THAT(left.log.failures, ElementsAre(ECONNREFUSED, EINVAL));
  left.request(listener.address);
  const link::ConnectionRequest request = listener.take_request();
  left.endpoint.reset();
  right.accept(request);
  EXPECT_THAT(right.log.failures, ElementsAre(ECONNABORTED));
}

TEST_F(ConnectedTest, DataFlowWhicheverPeerTheCallerNames) {
  join();
  for (const PeerIndex peer : {PeerIndex{0}, PeerIndex{12345}, kNoPeer}) {
    Bytes sent = pattern(64, peer & 0xff);
    Bytes got(64);
    ASSERT_EQ(right.receive(got), 0);
    ASSERT_EQ(left.send(sent, nullptr, peer), 0);
    progress();
    EXPECT_EQ(got, sent);
  }
}

TEST_F(ConnectedTest, NothingIsSentBeforeTheConnection) {
  Bytes bytes(8);
  EXPECT_EQ(left.send(bytes), ENOTCONN);
  left.request(listener.address);
  EXPECT_EQ(left.send(bytes), ENOTCONN);
  right.accept(listener.take_request());
  EXPECT_EQ(right.send(bytes), ENOTCONN) << "the requester may be gone";
  progress();
  EXPECT_EQ(left.send(bytes), 0);
  EXPECT_EQ(right.send(bytes), 0);
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
  EXPECT_EQ(right.log.partings, 0);
}

TEST_F(ConnectedTest, ADatagramEndpointRefusesASourceOfControlMessages) {
  left.request(two.address);
  EXPECT_TRUE(progress_until([&] { return !left.log.failures.empty(); }));
  EXPECT_THAT(left.log.failures, ElementsAre(ECONNREFUSED));
  EXPECT_TRUE(testing::Node::take(two.rx).empty());
}

TEST_F(ConnectedTest, ARequesterThatLeavesBeforeItConfirmsIsReported) {
  left.request(listener.address);
  right.accept(listener.take_request());
  left.endpoint.reset();
  EXPECT_TRUE(progress_until([&] { return !right.log.failures.empty(); }));
  EXPECT_THAT(right.log.failures, ElementsAre(ECONNABORTED));
  EXPECT_EQ(right.log.partings, 0);
  Bytes bytes(8);
  EXPECT_EQ(right.send(bytes), ENOTCONN);
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
  for (int i = 0; i < 3; ++i) right.endpoint->port().progress();
  EXPECT_EQ(right.log.partings, 1);
}

TEST_F(ConnectedTest, APartingIsDueInTheNextPollAndKeepsAwake) {
  join();
  left.disconnect(ECANCELED);
  right.endpoint->exclusively([&] { right.endpoint->at().poll(); });
  EXPECT_FALSE(right.endpoint->port().fall_asleep());
  right.endpoint->port().wake_up();
  EXPECT_EQ(right.log.partings, 0);
  for (int i = 0; i < 2; ++i) right.endpoint->port().progress();
  EXPECT_EQ(right.log.partings, 1);
}

TEST_F(ConnectedTest, ABrokenPathIsReportedAsAnEndBeforeTheDisconnect) {
  join();
  right.endpoint.reset();
  Bytes large(100000);
  int status = 0;
  for (int i = 0; i < 3 && status == 0; ++i) status = left.send(large);
  EXPECT_EQ(status, ESHUTDOWN);
  EXPECT_EQ(left.log.partings, 0) << "no poll has noticed it yet";
  for (const auto& completion : left.take())
    EXPECT_EQ(completion.status, CompletionStatus::kRetryExceeded);
  EXPECT_TRUE(progress_until([&] { return left.log.partings != 0; }));
}

TEST_F(ConnectedTest, PartingReportsWhatIsPendingAndWhatWaits) {
  join();
  Bytes got(8);
  Bytes large(100000);
  ASSERT_EQ(left.receive(got), 0);
  ASSERT_EQ(left.send(large), 0);
  left.disconnect(ECANCELED);
  const auto ended = left.take();
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].status, CompletionStatus::kCancelled);
  EXPECT_EQ(ended[1].status, CompletionStatus::kCancelled);
  EXPECT_EQ(left.send(large), ESHUTDOWN);
  EXPECT_EQ(left.receive(got), ESHUTDOWN);
  for (int i = 0; i < 3; ++i) progress();
  EXPECT_EQ(right.log.partings, 1);
  EXPECT_EQ(left.log.partings, 0) << "it parted by itself";
}

TEST_F(ConnectedTest, AfterPartingThePeersMessagesAreNotTakenIn) {
  join();
  left.disconnect(ECANCELED);
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
  right.disconnect(ECONNRESET);
  Bytes got(8);
  EXPECT_EQ(right.receive(got), 0);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(right.receive(got), ESHUTDOWN);
}

TEST_F(ConnectedTest, AnAttemptThatIsEndedReportsNothing) {
  left.request(listener.address);
  left.disconnect(ECANCELED);
  for (int i = 0; i < 3; ++i) progress();
  listener.port->inbox().poll(listener);
  EXPECT_TRUE(listener.requests.empty());
  EXPECT_EQ(left.log.connections + left.log.partings, 0);
  EXPECT_THAT(left.log.failures, IsEmpty());
  Bytes bytes(8);
  EXPECT_EQ(left.send(bytes), ESHUTDOWN);
}

TEST_F(ConnectedTest, ControlMessagesOfNoConnectionAreRefused) {
  join();
  for (const std::size_t length : {0, 8, 256, 1024, 1025, 4000}) {
    const auto flow = listener.say(right.address, Bytes(length, std::byte{'x'}));
    right.endpoint->port().progress();
    EXPECT_TRUE(listener.is_refused(*flow)) << length;
  }
  Bytes sent = pattern(8, 1);
  Bytes got(8);
  ASSERT_EQ(right.receive(got), 0);
  ASSERT_EQ(left.send(sent), 0);
  progress();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(right.log.partings, 0);
}

TEST_F(ConnectedTest, AnAnswerWakesASleeper) {
  left.request(listener.address);
  SharedPort& sleeper = left.endpoint->port();
  ASSERT_TRUE(sleeper.fall_asleep());
  right.accept(listener.take_request());
  EXPECT_TRUE(os::wait_readable(sleeper.wake_fd(), std::chrono::seconds(20)));
  sleeper.wake_up();
  progress();
  EXPECT_EQ(left.log.connections, 1);
}

TEST_F(ConnectedTest, TheEndOfAListenersProcessWakesASleeper) {
  Victim victim = listen_elsewhere();
  left.request(there);
  SharedPort& sleeper = left.endpoint->port();
  ASSERT_TRUE(sleeper.fall_asleep());
  victim.kill();
  EXPECT_TRUE(os::wait_readable(sleeper.wake_fd(), std::chrono::seconds(20)));
  sleeper.wake_up();
  EXPECT_TRUE(progress_until([&] { return !left.log.failures.empty(); }));
  EXPECT_THAT(left.log.failures, ElementsAre(ECONNREFUSED));
}

// Its process was watched, and the connections were checked a moment ago.
TEST_F(ConnectedTest, AListenersProcessThatEndsBetweenTwoSleepsIsNoticed) {
  Victim victim = listen_elsewhere();
  left.request(there);
  SharedPort& sleeper = left.endpoint->port();
  ASSERT_TRUE(sleeper.fall_asleep());
  sleeper.wake_up();
  victim.kill();
  sleeper.fall_asleep();
  sleeper.wake_up();
  EXPECT_THAT(left.log.failures, ElementsAre(ECONNREFUSED));
}

TEST_F(ConnectedTest, AListenersProcessThatEndsBeforeItIsWatchedIsNoticed) {
  Victim victim = listen_elsewhere();
  SharedPort& sleeper = left.endpoint->port();
  ASSERT_TRUE(sleeper.fall_asleep());
  sleeper.wake_up();
  left.request(there);
  victim.kill();
  sleeper.fall_asleep();
  sleeper.wake_up();
  EXPECT_THAT(left.log.failures, ElementsAre(ECONNREFUSED));
}

TEST_F(ConnectedTest, TheTimeLimitOfAnAcceptanceWakesASleeper) {
  static const Options brief = [] {  // outlives the endpoint
    Options options;
    options.peer_timeout = std::chrono::milliseconds(50);
    return options;
  }();
  End hasty(setup.device, 7103, &brief);
  left.request(listener.address);  // and does not progress again
  hasty.accept(listener.take_request());
  SharedPort& sleeper = hasty.endpoint->port();
  while (hasty.log.failures.empty()) {
    const bool sleeps = sleeper.fall_asleep() && hasty.log.failures.empty();
    ASSERT_TRUE(!sleeps || os::wait_readable(sleeper.wake_fd(), std::chrono::seconds(20)));
    sleeper.wake_up();
  }
  EXPECT_THAT(hasty.log.failures, ElementsAre(ECONNABORTED));
}

TEST_F(ConnectedTest, TheEndOfARequestersProcessWakesASleeper) {
  Victim victim(dir.path(), [&](const std::shared_ptr<device::Device>& device) {
    auto requester = std::make_unique<End>(device, 7103);
    requester->request(listener.address);
    return requester;
  });
  right.accept(listener.take_request());
  SharedPort& sleeper = right.endpoint->port();
  ASSERT_TRUE(sleeper.fall_asleep());
  victim.kill();
  EXPECT_TRUE(os::wait_readable(sleeper.wake_fd(), std::chrono::seconds(20)));
  sleeper.wake_up();
  EXPECT_TRUE(progress_until([&] { return !right.log.failures.empty(); }));
  EXPECT_THAT(right.log.failures, ElementsAre(ECONNABORTED));
}

}  // namespace
}  // namespace weft::messaging
