// SPDX-License-Identifier: BSD-2-Clause
// Which requests does a listener report, and what becomes of those that are not decided?
#include "connect/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "test_support.h"

namespace weft::connect {
namespace {

using testing::Asker;
using testing::Bytes;
using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::loopback;
using testing::text_of;

struct Program final : RequestSink {
  std::vector<Request> requests;
  std::vector<std::string> data;
  std::vector<link::ConnectionNumber> withdrawals;
  std::vector<link::ConnectionNumber> decisions;
  bool willing = true;

  bool requested(const Request& request) override {
    requests.push_back(request);
    data.push_back(text_of(request.request.data));
    return willing;
  }
  void withdrawn(link::ConnectionNumber number) override { withdrawals.push_back(number); }
  void decided(link::ConnectionNumber number) override { decisions.push_back(number); }
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
  std::string directory = [] {
    std::string name = "/dev/shm/weft-connect-test-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }();
  std::shared_ptr<device::Device> device = std::move(device::Device::get(directory)).value();
  os::SocketAddress address = loopback(7200);
  Program program;
  Options options;
  std::shared_ptr<Listener> listener = open();

  ~ListenerTest() override {
    listener.reset();
    device.reset();
    std::filesystem::remove_all(directory);
  }

  std::shared_ptr<Listener> open() {
    return std::move(Listener::open(device, address, address, options, program)).value();
  }
  // Looks after requesters, too, which a listener does now and then.
  template <class Done>
  bool drive(Done done) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < end) {
      if (listener != nullptr) listener->progress();
    }
    return done();
  }
  // What the asker hears next; nothing when that does not come.
  std::vector<std::string> next_of(Asker& asker) const {
    std::vector<std::string> heard;
    drive([&] {
      if (heard.empty()) heard = asker.hear();
      return !heard.empty();
    });
    return heard;
  }
};

TEST_F(ListenerTest, TellsOfARequestOnce) {
  Asker asker(device, 7201, address);
  asker.ask("hello");
  for (int i = 0; i < 3; ++i) listener->progress();
  EXPECT_THAT(program.data, ElementsAre("hello"));
  EXPECT_EQ(program.requests.at(0).request.peer, asker.name);
  EXPECT_EQ(program.requests[0].listener.lock(), listener);
  EXPECT_THAT(asker.hear(), IsEmpty());
}

TEST_F(ListenerTest, RejectsOnce) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  ASSERT_EQ(program.requests.size(), 1u);
  listener->reject(program.requests[0].number, bytes_of("no"));
  listener->reject(program.requests[0].number, bytes_of("never"));
  EXPECT_THAT(asker.hear(), ElementsAre("rejected no"));
  EXPECT_THAT(asker.hear(), IsEmpty());
}

TEST_F(ListenerTest, AForwardedRequestIsNotItsBusiness) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  listener->forward(program.requests.at(0).number);
  listener->reject(program.requests[0].number, {});
  EXPECT_THAT(asker.hear(), IsEmpty());
  listener.reset();
  EXPECT_THAT(asker.hear(), IsEmpty());
}

TEST_F(ListenerTest, AGivenRequestOutlivesIt) {
  Asker asker(device, 7201, address);
  Asker endpoint(device, 7210, address);
  asker.ask();
  listener->progress();
  asker.hear();
  const Request request = program.requests.at(0);
  listener->give(request.number);
  listener.reset();
  EXPECT_TRUE(request.listener.expired());
  EXPECT_THAT(asker.hear(), IsEmpty());
  endpoint.accept(request.request);
  EXPECT_THAT(asker.hear(), ElementsAre("connected "));
  EXPECT_THAT(endpoint.hear(), ElementsAre("connected "));
}

TEST_F(ListenerTest, AGivenRequestThatCannotBeAnsweredIsRejected) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  listener->give(program.requests.at(0).number);
  EXPECT_THAT(asker.hear(), IsEmpty());
  listener->reject(program.requests[0].number, bytes_of("no"));
  listener->reject(program.requests[0].number, {});
  EXPECT_THAT(asker.hear(), ElementsAre("rejected no"));
  EXPECT_THAT(asker.hear(), IsEmpty());
}

TEST_F(ListenerTest, ARequestThatIsTakenBackIsItsOwnAgain) {
  listener->set_backlog(1);
  Asker asker(device, 7201, address);
  asker.ask("first");
  listener->progress();
  const link::ConnectionNumber number = program.requests.at(0).number;
  EXPECT_TRUE(listener->give(number));
  listener->take_back(number);
  Asker second(device, 7202, address);
  second.ask("second");
  listener->progress();
  EXPECT_THAT(program.data, ElementsAre("first")) << "it counts towards the backlog again";
  EXPECT_TRUE(listener->give(number));
  listener->take_back(number);
  listener.reset();
  EXPECT_THAT(asker.hear(), ElementsAre("rejected "));
}

TEST_F(ListenerTest, TellsOfDecisions) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  Asker second(device, 7202, address);
  second.ask();
  listener->progress();
  listener->forward(program.requests.at(0).number);
  listener->reject(program.requests.at(1).number, {});
  EXPECT_THAT(program.decisions,
              ElementsAre(program.requests[0].number, program.requests[1].number));
}

// As when an endpoint accepts at this moment.
TEST_F(ListenerTest, OutlivesItsSinkForAnEndpoint) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  const link::ConnectionNumber number = program.requests.at(0).number;
  listener->give(number);
  listener->end_reports();
  Asker second(device, 7202, address);
  second.ask();
  EXPECT_TRUE(listener->holds(number));
  listener->forward(number);
  EXPECT_EQ(program.requests.size(), 1u);
  EXPECT_THAT(program.decisions, IsEmpty());
  listener.reset();
  EXPECT_THAT(second.hear(), ElementsAre("rejected "));
}

TEST_F(ListenerTest, AGivenRequestCanBeTurnedDownWithoutIt) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  asker.hear();
  const Request request = program.requests.at(0);
  listener->give(request.number);
  listener.reset();
  reject(device, loopback(7300), options, request.request);
  EXPECT_THAT(asker.hear(), ElementsAre("rejected "));
}

TEST_F(ListenerTest, ARequesterThatHasClosedNeedsNoRejection) {
  auto asker = std::make_unique<Asker>(device, 7201, address);
  asker->ask();
  listener->progress();
  const Request request = program.requests.at(0);
  listener->give(request.number);
  asker.reset();
  listener->progress();
  listener->reject(request.number, {});
  reject(device, loopback(7300), options, request.request);
  EXPECT_TRUE(listener->fall_asleep()) << "nothing is owed";
  listener->wake_up();
  EXPECT_THAT(program.withdrawals, IsEmpty()) << "the endpoint finds out";
}

TEST_F(ListenerTest, ARejectionThatCannotBeSaidIsSaidLater) {
  // A sanitizer takes descriptors where it looks at an object for the first time.
  Asker before(device, 7202, address);
  before.ask();
  listener->progress();
  listener->reject(program.requests.at(0).number, {});
  EXPECT_THAT(next_of(before), ElementsAre("rejected "));
  program.requests.clear();
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  {
    const NoDescriptors shortage;
    listener->reject(program.requests.at(0).number, bytes_of("no"));
    EXPECT_FALSE(listener->fall_asleep()) << "no event would wake it to send the answer";
    listener->wake_up();
  }
  EXPECT_THAT(asker.hear(), IsEmpty());
  listener->reject(program.requests[0].number, {});  // it is decided
  EXPECT_THAT(next_of(asker), ElementsAre("rejected no"));
  listener->progress();
  EXPECT_TRUE(listener->fall_asleep());
  listener->wake_up();
}

TEST_F(ListenerTest, EndingItRejectsWhatWasToldAndWhatWasNot) {
  Asker told(device, 7201, address);
  told.ask("told");
  listener->progress();
  Asker untold(device, 7202, address);
  untold.ask("untold");
  listener.reset();
  EXPECT_THAT(told.hear(), ElementsAre("rejected "));
  EXPECT_THAT(untold.hear(), ElementsAre("rejected "));
  EXPECT_THAT(program.data, ElementsAre("told"));
}

TEST_F(ListenerTest, ABacklogHoldsTheOthersBack) {
  listener->set_backlog(2);
  std::vector<std::unique_ptr<Asker>> askers;
  for (std::uint16_t i = 0; i < 5; ++i) {
    askers.push_back(std::make_unique<Asker>(device, 7201 + i, address));
    askers.back()->ask(std::to_string(i));
    listener->progress();
  }
  EXPECT_THAT(program.data, ElementsAre("0", "1"));
  listener->reject(program.requests[0].number, {});
  EXPECT_THAT(program.data, ElementsAre("0", "1", "2"));
  EXPECT_TRUE(listener->give(program.requests[1].number));
  EXPECT_THAT(program.data, ElementsAre("0", "1", "2", "3"));
  EXPECT_FALSE(listener->give(program.requests[1].number)) << "it was given before";
  EXPECT_EQ(program.data.size(), 4u);
  listener->set_backlog(3);
  EXPECT_THAT(program.data, ElementsAre("0", "1", "2", "3", "4"));
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
  EXPECT_TRUE(drive([&] { return program.data.size() == 2; }));
  EXPECT_THAT(program.data, ElementsAre("first", "second"));
  EXPECT_THAT(program.withdrawals, ElementsAre(program.requests.at(0).number));
  listener->reject(program.requests[0].number, {});  // the requester has closed
  EXPECT_THAT(second.hear(), IsEmpty());
}

TEST_F(ListenerTest, ARequestThatIsWithdrawnUnreportedIsNotReported) {
  listener->set_backlog(1);
  Asker first(device, 7201, address);
  first.ask("first");
  listener->progress();
  Asker second(device, 7202, address);
  second.ask("second");
  listener->progress();
  second.port->connections().disconnect(second.number);
  listener->progress();
  listener->reject(program.requests.at(0).number, {});
  EXPECT_THAT(program.data, ElementsAre("first"));
  EXPECT_THAT(program.withdrawals, IsEmpty());
}

TEST_F(ListenerTest, ARequestThatTheProgramCannotTakeIsForgotten) {
  program.willing = false;
  Asker asker(device, 7201, address);
  asker.ask();
  for (int i = 0; i < 3; ++i) listener->progress();
  EXPECT_EQ(program.requests.size(), 1u);
  EXPECT_THAT(asker.hear(), IsEmpty());
  listener->reject(program.requests[0].number, {});
  EXPECT_THAT(asker.hear(), IsEmpty());
}

// Everything but a request; the tests of mailbox connections have more of it.
TEST_F(ListenerTest, SourcesOfOtherMessagesAreRefused) {
  const std::vector<Bytes> nonsense{
      {}, bytes_of("GET / HTTP/1.0"), Bytes(256), Bytes(1000), Bytes(4000)};
  for (const Bytes& bytes : nonsense) {
    Asker asker(device, 7201, address);
    asker.say(bytes);
    listener->progress();
    EXPECT_TRUE(asker.is_refused()) << bytes.size();
  }
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  ASSERT_EQ(program.requests.size(), 1u);
  Asker sender(device, 7202, address);
  sender.say(bytes_of(program.requests[0].request.req), link::MessageOperation::kMessage);
  listener->progress();
  EXPECT_TRUE(sender.is_refused());
  EXPECT_EQ(program.requests.size(), 1u);
}

// Requests are management datagrams.
TEST_F(ListenerTest, ASourceThatSendsARequestIsRefused) {
  Asker asker(device, 7201, address);
  asker.ask();
  listener->progress();
  Bytes message = bytes_of(program.requests.at(0).request.req);
  for (const std::size_t last : {15, 27, 62}) message.at(last) ^= std::byte{0x10};  // another one
  Asker other(device, 7202, address);
  other.say(message);
  listener->progress();
  EXPECT_TRUE(other.is_refused());
  EXPECT_EQ(program.requests.size(), 1u);
  EXPECT_THAT(program.withdrawals, IsEmpty());
}

TEST_F(ListenerTest, ARequestWakesASleeper) {
  EXPECT_TRUE(listener->fall_asleep());
  Asker asker(device, 7201, address);
  asker.ask();
  EXPECT_TRUE(os::wait_readable(listener->wake_fd(), std::chrono::milliseconds(0)));
  listener->wake_up();
  listener->progress();
  EXPECT_EQ(program.requests.size(), 1u);
}

}  // namespace
}  // namespace weft::connect
