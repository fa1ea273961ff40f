// SPDX-License-Identifier: BSD-2-Clause
// Which requests does a listener report, and what becomes of those that are not decided?
#include "connect/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "test_support.h"

namespace weft::connect {
namespace {

using testing::Bytes;
using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::loopback;
using testing::text_of;

struct Program final : RequestSink {
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> data;
  bool willing = true;

  bool requested(std::uint64_t number, const Request& request) override {
    numbers.push_back(number);
    data.push_back(text_of(request.data));
    return willing;
  }
};

// A requester: an address of its own, a flow to the listener, and a log of what it receives.
struct Asker final : link::InboxSink, link::FlowSink {
  os::SocketAddress name;
  std::unique_ptr<device::Port> port;
  std::unique_ptr<link::Flow> way;
  Token token = 0;
  std::vector<ConnectKind> heard;

  Asker(const std::shared_ptr<device::Device>& device, std::uint16_t number,
        const os::SocketAddress& listener)
      : name(loopback(number)), token(number) {
    device::PortSetup options;
    options.name = name;
    options.domain = device->new_domain();
    port = std::move(device::Port::open(device, name, options)).value();
    way = std::move(port->connect(listener)).value();
  }
  ~Asker() override { way.reset(); }

  void say(const Bytes& bytes,
           link::MessageOperation operation = link::MessageOperation::kControl) {
    const LocalRange piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    link::SendRequest request;
    request.operation = operation;
    request.must_copy = true;
    request.pieces = {&piece, 1};
    request.length = bytes.size();
    way->send(request);
  }
  void ask(const std::string& data = {}) {
    say(encode({ConnectKind::kRequest, token, 0, name, bytes_of(data)}));
  }
  bool is_refused() { return way->check_peer(*this) == link::PeerState::kRefuses; }
  std::vector<ConnectKind> hear() {
    heard.clear();
    port->inbox().poll(*this);
    return heard;
  }

  void source_opened(std::uint32_t, const os::SocketAddress&) override {}
  void source_closed(std::uint32_t, bool) override {}
  void received(void*, int) override {}
  void ended(void*, int, int) override {}
  void arrived(const link::Arrival& arrival) override {
    const auto message = decode({arrival.payload, arrival.length});
    ASSERT_TRUE(message);
    EXPECT_EQ(message->origin, token);
    heard.push_back(message->kind);
  }
};

// While one exists this process gets no descriptor any more.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

struct ListenerTest : ::testing::Test {
  std::string directory = "/dev/shm/weft-connect-test-" + std::to_string(new_token());
  std::shared_ptr<device::Device> device;
  os::SocketAddress address = loopback(7200);
  Program program;
  std::unique_ptr<Listener> listener;

  ListenerTest() {
    std::filesystem::create_directory(directory);
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all);
    device = std::move(device::Device::get(directory)).value();
    listener = std::move(Listener::open(device, address, address, program)).value();
  }
  ~ListenerTest() override {
    listener.reset();
    device.reset();
    std::filesystem::remove_all(directory);
  }

  // What the asker hears next; nothing when that does not come.
  std::vector<ConnectKind> next_of(Asker& asker) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::vector<ConnectKind> heard;
    while (heard.empty() && std::chrono::steady_clock::now() < end) {
      listener->progress();
      heard = asker.hear();
    }
    return heard;
  }
};

TEST_F(ListenerTest, TellsOfARequestOnceAndSaysSo) {
  Asker asker(device, 7201, address);
  asker.ask("hello");
  for (int i = 0; i < 3; ++i) listener->progress();
  EXPECT_THAT(program.data, ElementsAre("hello"));
  EXPECT_THAT(asker.hear(), ElementsAre(ConnectKind::kPending));
}

TEST_F(ListenerTest, RejectsOnce) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  ASSERT_EQ(program.numbers.size(), 1u);
  EXPECT_TRUE(listener->reject(program.numbers[0], bytes_of("no")));
  EXPECT_FALSE(listener->reject(program.numbers[0], {}));
  EXPECT_THAT(asker.hear(), ElementsAre(ConnectKind::kPending, ConnectKind::kReject));
}

TEST_F(ListenerTest, AReleasedRequestIsNotItsBusiness) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  listener->release(program.numbers.at(0));
  EXPECT_FALSE(listener->reject(program.numbers[0], {}));
  listener.reset();
  EXPECT_THAT(asker.hear(), ElementsAre(ConnectKind::kPending));
}

TEST_F(ListenerTest, AReleasedRequestThatCannotBeAnsweredIsRejected) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  const Request request{asker.name, asker.token, {}};
  EXPECT_FALSE(listener->turn_down(request)) << "the program is to decide";
  listener->release(program.numbers.at(0));
  EXPECT_FALSE(listener->turn_down({asker.name, asker.token + 1, {}})) << "of another requester";
  EXPECT_TRUE(listener->turn_down(request));
  EXPECT_FALSE(listener->turn_down(request)) << "it is decided";
  EXPECT_THAT(asker.hear(), ElementsAre(ConnectKind::kPending, ConnectKind::kReject));
}

TEST_F(ListenerTest, ARequesterThatHasClosedNeedsNoRejection) {
  auto asker = std::make_unique<Asker>(device, 7201, address);
  const Request request{asker->name, asker->token, {}};
  asker->ask();
  listener->progress();
  listener->release(program.numbers.at(0));
  asker.reset();
  listener->progress();
  EXPECT_FALSE(listener->turn_down(request));
}

TEST_F(ListenerTest, ARejectionThatCannotBeSaidIsSaidLater) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  {
    const NoDescriptors shortage;
    EXPECT_TRUE(listener->reject(program.numbers.at(0), bytes_of("no")));
  }
  EXPECT_THAT(asker.hear(), ElementsAre(ConnectKind::kPending));
  EXPECT_FALSE(listener->reject(program.numbers[0], {})) << "it is decided";
  EXPECT_FALSE(listener->fall_asleep()) << "no event would wake it to send the answer";
  listener->wake_up();
  EXPECT_THAT(next_of(asker), ElementsAre(ConnectKind::kReject));
  EXPECT_TRUE(listener->fall_asleep());
  listener->wake_up();
}

TEST_F(ListenerTest, ThatTheProgramKnowsIsSaidLaterIfItCannotBeSaidNow) {
  // A sanitizer takes descriptors where it looks at an object for the first time.
  Asker before(device, 7202, address);
  before.ask();
  listener->progress();
  Asker asker(device, 7201, address);
  asker.ask();
  {
    const NoDescriptors shortage;
    listener->progress();
  }
  EXPECT_EQ(program.numbers.size(), 2u);
  EXPECT_THAT(next_of(asker), ElementsAre(ConnectKind::kPending));
}

TEST_F(ListenerTest, EndingItRejectsWhatWasToldAndWhatWasNot) {
  Asker told(device, 7201, address);
  told.ask();
  listener->progress();
  Asker untold(device, 7202, address);
  untold.ask();
  listener.reset();
  EXPECT_THAT(told.hear(), ElementsAre(ConnectKind::kPending, ConnectKind::kReject));
  EXPECT_THAT(untold.hear(), ElementsAre(ConnectKind::kReject));
  EXPECT_THAT(program.numbers, ElementsAre(1u));
}

TEST_F(ListenerTest, ABacklogHoldsTheOthersBack) {
  listener->set_backlog(2);
  std::vector<std::unique_ptr<Asker>> askers;
  for (std::uint16_t i = 0; i < 4; ++i) {
    askers.push_back(std::make_unique<Asker>(device, 7201 + i, address));
    askers.back()->ask(std::to_string(i));
    listener->progress();
  }
  EXPECT_THAT(program.data, ElementsAre("0", "1"));
  listener->reject(program.numbers[0], {});
  EXPECT_THAT(program.data, ElementsAre("0", "1", "2"));
  listener->release(program.numbers[1]);
  EXPECT_THAT(program.data, ElementsAre("0", "1", "2", "3"));
}

TEST_F(ListenerTest, ARequesterThatClosesMakesRoom) {
  listener->set_backlog(1);
  auto first = std::make_unique<Asker>(device, 7201, address);
  first->ask("first");
  listener->progress();
  Asker second(device, 7202, address);
  second.ask("second");
  listener->progress();
  EXPECT_THAT(program.data, ElementsAre("first"));
  first.reset();
  listener->progress();
  EXPECT_THAT(program.data, ElementsAre("first", "second"));
  EXPECT_FALSE(listener->reject(program.numbers[0], {})) << "the requester has closed";
}

TEST_F(ListenerTest, ARequestThatTheProgramCannotTakeIsForgotten) {
  program.willing = false;
  Asker asker(device, 7201, address);
  asker.ask();
  for (int i = 0; i < 3; ++i) listener->progress();
  EXPECT_EQ(program.numbers.size(), 1u);
  EXPECT_THAT(asker.hear(), IsEmpty());
}

// Everything but one request.
TEST_F(ListenerTest, SourcesOfOtherMessagesAreRefused) {
  std::vector<Bytes> nonsense{{}, bytes_of("GET / HTTP/1.0"), Bytes(1000), Bytes(4000)};
  for (const ConnectKind kind : {ConnectKind::kPending, ConnectKind::kReject, ConnectKind::kReply,
                                 ConnectKind::kReady, ConnectKind::kFarewell}) {
    nonsense.push_back(encode({kind, 1, 1, loopback(7201), {}}));
  }
  for (const Bytes& bytes : nonsense) {
    Asker asker(device, 7201, address);
    asker.say(bytes);
    listener->progress();
    EXPECT_TRUE(asker.is_refused()) << bytes.size();
  }
  Asker asker(device, 7201, address);
  asker.say(encode({ConnectKind::kRequest, 1, 0, asker.name, {}}),
            link::MessageOperation::kMessage);
  listener->progress();
  EXPECT_TRUE(asker.is_refused());
  EXPECT_THAT(program.numbers, IsEmpty());
}

TEST_F(ListenerTest, ASourceOfTwoRequestsIsRefusedAltogether) {
  Asker asker(device, 7201, address);
  asker.ask();
  asker.ask();
  listener->progress();
  EXPECT_TRUE(asker.is_refused());
  EXPECT_THAT(program.numbers, IsEmpty());
}

TEST_F(ListenerTest, ANameWithoutAnEndpointCostsNothing) {
  Asker asker(device, 7201, address);
  asker.say(encode({ConnectKind::kRequest, 1, 0, loopback(7999), {}}));
  listener->progress();
  ASSERT_EQ(program.numbers.size(), 1u);
  EXPECT_TRUE(listener->reject(program.numbers[0], {}));
}

TEST_F(ListenerTest, ARequestWakesASleeper) {
  EXPECT_TRUE(listener->fall_asleep());
  Asker asker(device, 7201, address);
  asker.ask();
  EXPECT_TRUE(os::wait_readable(listener->wake_fd(), std::chrono::milliseconds(0)));
  listener->wake_up();
  listener->progress();
  EXPECT_EQ(program.numbers.size(), 1u);
}

TEST_F(ListenerTest, TurningDownReachesTheRequester) {
  Asker asker(device, 7201, address);
  turn_down(device, loopback(7300), {asker.name, asker.token, {}});
  EXPECT_THAT(asker.hear(), ElementsAre(ConnectKind::kReject));
}

}  // namespace
}  // namespace weft::connect
