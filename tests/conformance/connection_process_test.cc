// SPDX-License-Identifier: BSD-2-Clause
// What becomes of connections between processes, when one of them sleeps or dies? (fi_cm(3))
#include <poll.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_tagged.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <vector>

#include "support/delivery.h"
#include "support/peer_process.h"
#include "support/place.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kLarge = 4 << 20;

enum class Act : int { kAccept, kIgnore, kSleep };

// Listens, tells where, and does with the first request what it was told. Dies when told to.
void be_victim(Channel& to_test, Act act) {
  Place place;
  const Fid<fid_pep> pep = place.listen();
  to_test.send(name_of(&pep->fid));
  int order = 0;
  if (act == Act::kSleep) {
    to_test.receive(&order);
    raise(SIGKILL);
  }
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  Fid<fid_ep> passive;
  if (act == Act::kAccept) {
    passive = place.open(request.info.get());
    fi_accept(passive.get(), nullptr, 0);
    place.expect(FI_CONNECTED, &passive->fid);
  }
  to_test.send(true);
  to_test.receive(&order);
  raise(SIGKILL);
}

template <Act kAct>
void shelter_victim(Channel& to_test) {
  run_to_death([&] { be_victim(to_test, kAct); });
}

struct Victim {
  explicit Victim(PeerScript script) : process(script) {
    EXPECT_TRUE(process.channel().receive(&address));
  }
  void await(Place& place, std::optional<Event>& event) {
    bool ready = false;
    EXPECT_TRUE(process.channel().receive(&ready, [&] {
      if (!event) event = place.read();
    }));
  }
  void kill() { process.channel().send(0); }

  PeerProcess process;
  Address address;
};

TEST(ConnectionDeath, OfTheListenerRefusesWhatItHadNotDecided) {
  Place place;
  Victim victim(shelter_victim<Act::kIgnore>);
  const Fid<fid_ep> active = place.connect(victim.address);
  std::optional<Event> event;
  victim.await(place, event);
  EXPECT_FALSE(event);
  victim.kill();
  place.expect_error(FI_ECONNREFUSED, &active->fid);
}

TEST(ConnectionDeath, OfAListenerThatNeverLookedRefuses) {
  Place place;
  Victim victim(shelter_victim<Act::kSleep>);
  const Fid<fid_ep> active = place.connect(victim.address);
  place.expect_silence();
  victim.kill();
  place.expect_error(FI_ECONNREFUSED, &active->fid);
  victim.process.finish();
  const Fid<fid_ep> late = place.connect(victim.address);
  place.expect_error(FI_ECONNREFUSED, &late->fid);
}

TEST(ConnectionDeath, OfThePeerIsAShutdownAndFailsWhatIsPending) {
  Place place;
  Victim victim(shelter_victim<Act::kAccept>);
  const Fid<fid_ep> active = place.connect(victim.address);
  std::optional<Event> event;
  victim.await(place, event);
  if (!event) event = place.next();
  ASSERT_EQ(event->what, static_cast<std::uint32_t>(FI_CONNECTED));
  std::vector<char> large(kLarge);
  std::uint64_t got = 0;
  ASSERT_EQ(fi_recv(active.get(), &got, sizeof got, nullptr, 0, nullptr), 0);
  ASSERT_EQ(fi_send(active.get(), large.data(), large.size(), nullptr, 0, nullptr), 0);
  victim.kill();
  place.expect(FI_SHUTDOWN, &active->fid);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(place.completion().err, FI_ECONNRESET);
  EXPECT_EQ(fi_send(active.get(), &got, sizeof got, nullptr, 0, nullptr), -FI_ESHUTDOWN);
}

TEST(ConnectionDeath, WakesAThreadThatSleepsOnTheEventQueue) {
  Place place(FI_WAIT_FD);
  Victim victim(shelter_victim<Act::kAccept>);
  const Fid<fid_ep> active = place.connect(victim.address);
  std::optional<Event> event;
  victim.await(place, event);
  if (!event) event = place.next();
  ASSERT_EQ(event->what, static_cast<std::uint32_t>(FI_CONNECTED));
  victim.kill();
  std::uint32_t what = 0;
  fi_eq_cm_entry entry{};
  ssize_t got = -FI_EAGAIN;
  while (got == -FI_EAGAIN) got = fi_eq_sread(place.eq(), &what, &entry, sizeof entry, 20000, 0);
  EXPECT_EQ(what, static_cast<std::uint32_t>(FI_SHUTDOWN));
}

// What is in the middle of happening when one side dies.
struct Traffic {
  const char* name;
  std::size_t length;
  bool tagged;
};
constexpr Traffic kTraffic[] = {{"Small", 8, false},
                                {"SmallTagged", 8, true},
                                {"Bulk", 8000, false},
                                {"Large", 200000, true},
                                {"Huge", kLarge, false}};

// Keeps a few sends and receives under way on one endpoint, both ways, until posts are refused.
class Stream {
 public:
  Stream(Place& place, fid_ep* ep, const Traffic& traffic)
      : place_(place), ep_(ep), traffic_(traffic), out_(traffic.length), in_(traffic.length) {
    for (int i = 0; i < kDepth; ++i) post(true);
    for (int i = 0; i < kDepth; ++i) post(false);
  }
  // Takes completions, each of which posts the next operation.
  void step() {
    while (const auto c = place_.take_completion()) {
      --pending_;
      EXPECT_TRUE(c->err == 0 || c->err == FI_ECONNRESET) << c->err;
      const bool received = (c->flags & FI_RECV) != 0;
      if (!over_) post(received);
    }
  }
  void finish() { over_ = true; }
  int pending() const { return pending_; }

 private:
  static constexpr int kDepth = 4;

  void post(bool receive) {
    ssize_t rc = -FI_EAGAIN;
    for (int tries = 0; rc == -FI_EAGAIN && tries < 1000; ++tries) rc = try_post(receive);
    if (rc == 0) ++pending_;
    EXPECT_TRUE(rc == 0 || rc == -FI_EAGAIN || rc == -FI_ESHUTDOWN || rc == -FI_ENOTCONN) << rc;
  }
  ssize_t try_post(bool receive) {
    const std::size_t n = traffic_.length;
    if (receive && traffic_.tagged) return fi_trecv(ep_, in_.data(), n, nullptr, 0, 1, 0, nullptr);
    if (receive) return fi_recv(ep_, in_.data(), n, nullptr, 0, nullptr);
    if (traffic_.tagged) return fi_tsend(ep_, out_.data(), n, nullptr, 0, 1, nullptr);
    return fi_send(ep_, out_.data(), n, nullptr, 0, nullptr);
  }

  Place& place_;
  fid_ep* const ep_;
  const Traffic traffic_;
  std::vector<char> out_;
  std::vector<char> in_;
  int pending_ = 0;
  bool over_ = false;
};

// What a victim is told first: how it behaves and how many microseconds it lives.
struct Fate {
  Traffic traffic{};
  unsigned lifetime_us = 0;
  bool asks = false;
  Address address;  // of the listener that it asks
};

void stream_until_killed(Channel& to_test, const Fate& fate) {
  Place place;
  const Fid<fid_pep> pep = place.listen();
  to_test.send(name_of(&pep->fid));
  Fid<fid_ep> ep;
  if (fate.asks) {
    ep = place.connect(fate.address);
  } else {
    const Event request = place.expect(FI_CONNREQ, &pep->fid);
    ep = place.open(request.info.get());
    fi_accept(ep.get(), nullptr, 0);
  }
  place.expect(FI_CONNECTED, &ep->fid);
  Stream stream(place, ep.get(), fate.traffic);
  for (;;) stream.step();
}

void kill_in_the_middle(Channel& to_test) {
  Fate fate;
  ASSERT_TRUE(to_test.receive(&fate));
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    stream_until_killed(to_test, fate);
  }
  bool connected = false;
  ASSERT_TRUE(to_test.receive(&connected));
  usleep(fate.lifetime_us);
  kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  to_test.send(true);
}

class KilledStream : public testing::TestWithParam<std::tuple<Traffic, bool>> {};

TEST_P(KilledStream, IsReportedOnce) {
  const auto& [traffic, victim_asks] = GetParam();
  for (const unsigned lifetime_us : {0u, 2000u}) {
    SCOPED_TRACE(lifetime_us);
    Place place;
    const Fid<fid_pep> pep = place.listen();
    PeerProcess peer(kill_in_the_middle);
    peer.channel().send(Fate{traffic, lifetime_us, victim_asks, name_of(&pep->fid)});
    Address address;
    ASSERT_TRUE(peer.channel().receive(&address));
    Fid<fid_ep> ep;
    if (victim_asks) {
      const Event request = place.expect(FI_CONNREQ, &pep->fid);
      ep = place.open(request.info.get());
      ASSERT_EQ(fi_accept(ep.get(), nullptr, 0), 0);
    } else {
      ep = place.connect(address);
    }
    place.expect(FI_CONNECTED, &ep->fid);
    Stream stream(place, ep.get(), traffic);
    peer.channel().send(true);
    while (!peer.channel().ready()) stream.step();
    const auto dead = std::chrono::steady_clock::now();
    std::optional<Event> event;
    const auto wait_for = [&](auto done) {
      while (!done() && std::chrono::steady_clock::now() - dead < patience()) {
        if (!event) event = place.read();
        stream.step();
      }
    };
    wait_for([&] { return event.has_value(); });
    ASSERT_TRUE(event);
    EXPECT_EQ(event->what, static_cast<std::uint32_t>(FI_SHUTDOWN));
    stream.finish();
    wait_for([&] { return stream.pending() == 0; });
    EXPECT_EQ(stream.pending(), 0);
    stream.step();
    EXPECT_EQ(stream.pending(), 0) << "something was reported twice";
  }
}

INSTANTIATE_TEST_SUITE_P(ConnectionDeath, KilledStream,
                         testing::Combine(testing::ValuesIn(kTraffic), testing::Bool()),
                         [](const testing::TestParamInfo<std::tuple<Traffic, bool>>& one) {
                           return std::string(std::get<0>(one.param).name) +
                                  (std::get<1>(one.param) ? "Asks" : "Accepts");
                         });

constexpr int kMoments = 100;

void connect_for_a_moment(Channel& to_test) {
  Place place;
  Address address;
  ASSERT_TRUE(to_test.receive(&address));
  for (int i = 0; i < kMoments && !testing::Test::HasFailure(); ++i) {
    const Fid<fid_ep> active = place.connect(address);
    place.expect(FI_CONNECTED, &active->fid);
    place.expect(FI_SHUTDOWN, &active->fid);
  }
  to_test.send(true);
}

// Over the network the farewell may come together with the answer after which one may send: what
// the other one hears of first is the connection all the same.
TEST(ConnectionForAMoment, IsToldBeforeItsEnd) {
  Place place;
  const Fid<fid_pep> pep = place.listen();
  PeerProcess peer(connect_for_a_moment);
  peer.channel().send(name_of(&pep->fid));
  for (int i = 0; i < kMoments && !peer.channel().ready(); ++i) {
    const Event request = place.expect(FI_CONNREQ, &pep->fid);
    const Fid<fid_ep> passive = place.open(request.info.get());
    ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
    place.expect(FI_CONNECTED, &passive->fid);
  }
  bool done = false;
  EXPECT_TRUE(peer.channel().receive(&done));
}

// Connects to the other process, whose requests it accepts at the same time, again and again.
class Meetings {
 public:
  explicit Meetings(Channel& other) : pep_(place_.listen()) {
    other.send(name_of(&pep_->fid));
    EXPECT_TRUE(other.receive(&other_));
  }
  void hold() {
    for (std::size_t i = 1; i <= kMeetings; ++i) {
      Fid<fid_ep> active = place_.connect(other_);
      while ((!connected_ || accepted_ < i) && !testing::Test::HasFailure()) heed(active.get());
      active.reset();
      connected_ = false;
      while (ended_ < i && !testing::Test::HasFailure()) heed(nullptr);
    }
  }

 private:
  static constexpr std::size_t kMeetings = 20;

  void heed(const fid_ep* active) {
    const Event event = place_.next();
    if (event.what == FI_CONNREQ) {
      passive_.push_back(place_.open(event.info.get()));
      EXPECT_EQ(fi_accept(passive_.back().get(), nullptr, 0), 0);
    } else if (event.what == FI_CONNECTED && active != nullptr && event.object == &active->fid) {
      connected_ = true;
    } else if (event.what == FI_CONNECTED) {
      ++accepted_;
    } else {
      EXPECT_EQ(event.what, static_cast<std::uint32_t>(FI_SHUTDOWN)) << event.err;
      ++ended_;
    }
  }

  Place place_;
  Fid<fid_pep> pep_;
  Address other_;
  std::vector<Fid<fid_ep>> passive_;
  bool connected_ = false;
  std::size_t accepted_ = 0;
  std::size_t ended_ = 0;
};

void hold_meetings(Channel& to_test) { Meetings(to_test).hold(); }

TEST(ConnectionMeetings, TwoProcessesConnectToEachOtherAtTheSameTime) {
  PeerProcess peer(hold_meetings);
  Meetings(peer.channel()).hold();
}

// Connects with little patience to the address that it is told.
void be_impatient(Channel& to_test) {
  setenv("FI_WEFT_REQUEST_TIMEOUT_MS", "300", 1);
  Place place;
  Address address;
  ASSERT_TRUE(to_test.receive(&address));
  const Fid<fid_ep> active = place.connect(address);
  place.expect_error(FI_ETIMEDOUT, &active->fid);
}

TEST(ConnectionTimeout, EndsARequestThatTheListenerDoesNotLookAt) {
  if (provider_name() != "weft") GTEST_SKIP() << "the variable is weft's";
  Options options = connected();
  options.control_progress = FI_PROGRESS_MANUAL;
  Place place(options);
  const Fid<fid_pep> pep = place.listen();
  PeerProcess peer(be_impatient);
  peer.channel().send(name_of(&pep->fid));
  peer.finish();
  // An abandoned request is not reported, unless its withdrawal is lost: the requester is gone and
  // cannot repeat it.
  if (!may_lose()) place.expect_silence();
}

void connect_later(Channel& to_test) {
  Place place;
  Address address;
  ASSERT_TRUE(to_test.receive(&address));
  usleep(100000);
  const Fid<fid_ep> active = place.connect(address, "late");
  place.expect(FI_CONNECTED, &active->fid);
  place.expect(FI_SHUTDOWN, &active->fid);
}

// A thread that blocks on the descriptor alone gets every event of a connection.
TEST(ConnectionWait, TheEventQueuesDescriptorTellsOfEverything) {
  Place place(FI_WAIT_FD);
  const Fid<fid_pep> pep = place.listen();
  PeerProcess peer(connect_later);
  peer.channel().send(name_of(&pep->fid));
  int fd = -1;
  ASSERT_EQ(fi_control(&place.eq()->fid, FI_GETWAIT, &fd), 0);
  const auto sleep = [&] {
    fid* fids[] = {&place.eq()->fid};
    std::optional<Event> event;
    while (!event) {
      if (fi_trywait(place.domain().fabric(), fids, 1) == 0) {
        pollfd waits{fd, POLLIN, 0};
        EXPECT_EQ(::poll(&waits, 1, 20000), 1);
      }
      event = place.read();
    }
    return std::move(*event);
  };
  const Event request = sleep();
  ASSERT_EQ(request.what, static_cast<std::uint32_t>(FI_CONNREQ));
  EXPECT_EQ(request.data, "late");
  Fid<fid_ep> passive = place.open(request.info.get());
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  EXPECT_EQ(sleep().what, static_cast<std::uint32_t>(FI_CONNECTED));
  passive.reset();
  peer.finish();
}

}  // namespace
}  // namespace weft::conformance
