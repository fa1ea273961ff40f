// SPDX-License-Identifier: BSD-2-Clause
// What does a connected endpoint do before, at and after the end of its connection? (fi_cm(3))
#include <rdma/fi_eq.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "support/local_party.h"
#include "support/place.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kLarge = 4 << 20;

struct Connected : testing::Test {
  Place place;
  void SetUp() override { ASSERT_TRUE(place.ok()); }
};

ssize_t send(fid_ep* ep, const std::uint64_t& value) {
  return fi_send(ep, &value, sizeof value, nullptr, 0, nullptr);
}

ssize_t receive(fid_ep* ep, std::uint64_t& value, void* context = nullptr) {
  return fi_recv(ep, &value, sizeof value, nullptr, 0, context);
}

TEST_F(Connected, NothingIsSentBefore) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  EXPECT_EQ(send(active.get(), 1), -FI_ENOTCONN);
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  EXPECT_EQ(send(active.get(), 1), -FI_ENOTCONN);
  EXPECT_EQ(fi_inject(active.get(), "x", 1, 0), -FI_ENOTCONN);
  EXPECT_EQ(fi_read(active.get(), nullptr, 0, nullptr, 0, 0, 1, nullptr), -FI_ENOTCONN);
  const Fid<fid_ep> passive = place.open(request.info.get());
  ASSERT_EQ(fi_enable(passive.get()), 0);
  EXPECT_EQ(send(passive.get(), 1), -FI_ENOTCONN);
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  EXPECT_EQ(send(passive.get(), 1), -FI_ENOTCONN);
}

TEST_F(Connected, ReceivesMayBePostedBefore) {
  const Fid<fid_pep> pep = place.listen();
  std::uint64_t got[2] = {};
  const Fid<fid_ep> active = place.open();
  ASSERT_EQ(fi_enable(active.get()), 0);
  ASSERT_EQ(receive(active.get(), got[0]), 0);
  const Address address = name_of(&pep->fid);
  ASSERT_EQ(fi_connect(active.get(), address.bytes.data(), nullptr, 0), 0);
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  const Fid<fid_ep> passive = place.open(request.info.get());
  ASSERT_EQ(fi_enable(passive.get()), 0);
  ASSERT_EQ(receive(passive.get(), got[1]), 0);
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  for (int i = 0; i < 2; ++i) place.next();
  ASSERT_EQ(send(active.get(), 11), 0);
  ASSERT_EQ(send(passive.get(), 12), 0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(place.completion().err, 0);
  EXPECT_EQ(got[0], 12u);
  EXPECT_EQ(got[1], 11u);
}

TEST_F(Connected, TheAcceptingEndMaySendAsSoonAsItIsConnected) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  const Fid<fid_ep> passive = place.open(request.info.get());
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  for (Event event = place.next(); event.object != &passive->fid;) event = place.next();
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(send(passive.get(), i), 0);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(place.completion().err, 0);
  for (std::uint64_t i = 0; i < 100; ++i) {
    std::uint64_t got = 1000;
    ASSERT_EQ(receive(active.get(), got), 0);
    EXPECT_EQ(place.completion().err, 0);
    EXPECT_EQ(got, i);
  }
}

TEST_F(Connected, EitherSideEndsItAndEachHearsOfItOnce) {
  for (const bool by_active : {true, false}) {
    SCOPED_TRACE(by_active);
    Pair pair(place);
    fid_ep* const one = (by_active ? pair.active : pair.passive).get();
    fid_ep* const other = (by_active ? pair.passive : pair.active).get();
    ASSERT_EQ(fi_shutdown(one, 0), 0);
    for (fid_ep* ep : {one, other}) place.expect(FI_SHUTDOWN, &ep->fid);
    std::uint64_t got = 0;
    for (fid_ep* ep : {one, other}) {
      EXPECT_EQ(send(ep, 1), -FI_ESHUTDOWN);
      EXPECT_EQ(receive(ep, got), -FI_ESHUTDOWN);
      EXPECT_EQ(fi_inject(ep, "x", 1, 0), -FI_ESHUTDOWN);
      EXPECT_EQ(fi_write(ep, nullptr, 0, nullptr, 0, 0, 1, nullptr), -FI_ESHUTDOWN);
      EXPECT_EQ(fi_shutdown(ep, 0), 0);
    }
    place.expect_silence();
  }
}

TEST_F(Connected, MessagesSentBeforeTheEndArrive) {
  for (const bool close : {true, false}) {
    SCOPED_TRACE(close);
    Pair pair(place);
    std::vector<std::uint64_t> got(20);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(receive(pair.passive.get(), got[i]), 0);
    for (std::uint64_t i = 0; i < 20; ++i) ASSERT_EQ(send(pair.active.get(), i), 0);
    if (close) {
      pair.active.reset();
    } else {
      ASSERT_EQ(fi_shutdown(pair.active.get(), 0), 0);
      place.expect(FI_SHUTDOWN, &pair.active->fid);
    }
    place.expect(FI_SHUTDOWN, &pair.passive->fid);
    // Half of it had no receive yet.
    for (int i = 10; i < 20; ++i) ASSERT_EQ(receive(pair.passive.get(), got[i]), 0);
    for (int i = 0; i < 40; ++i) ASSERT_EQ(place.completion().err, 0);
    std::vector<std::uint64_t> sent(20);
    std::iota(sent.begin(), sent.end(), 0);
    EXPECT_EQ(got, sent);
    EXPECT_EQ(receive(pair.passive.get(), got[0]), -FI_ESHUTDOWN);
  }
}

// A server that answers each of its clients and leaves: no answer is behind the end of a
// connection.
TEST_F(Connected, MessagesOfOthersComeBeforeTheReceivesThatEndWithAConnection) {
  if (only_links("udp"))
    GTEST_SKIP() << "a background thread polls each endpoint in its own time there";
  for (int round = 0; round < 10; ++round) {
    Pair pairs[] = {Pair(place), Pair(place), Pair(place)};
    std::uint64_t got[4] = {};
    std::size_t waiting = 0;
    for (const Pair& pair : pairs) ASSERT_EQ(receive(pair.active.get(), got[waiting++]), 0);
    ASSERT_EQ(receive(pairs[0].active.get(), got[waiting]), 0);
    for (const Pair& pair : pairs) {
      const std::uint64_t value = 7;
      ASSERT_EQ(fi_inject(pair.passive.get(), &value, sizeof value, 0), 0);
    }
    for (Pair& pair : pairs) pair.passive.reset();
    for (std::size_t i = 0; i < waiting; ++i) EXPECT_EQ(place.completion().err, 0) << i;
    EXPECT_NE(place.completion().err, 0);
    for (std::size_t i = 0; i < waiting; ++i) EXPECT_EQ(got[i], 7u);
    while (place.read()) {
    }
  }
}

TEST_F(Connected, OperationsPendingAtTheEndAreReportedOnce) {
  Pair pair(place);
  std::vector<char> large(kLarge);
  std::uint64_t got[2] = {};
  int contexts[6];
  // One end: a receive, a multi-receive and a send that is never received. The other: receives.
  ASSERT_EQ(receive(pair.active.get(), got[0], &contexts[0]), 0);
  ASSERT_EQ(fi_trecv(pair.active.get(), &got[0], 8, nullptr, 0, 1, 0, &contexts[1]), 0);
  ASSERT_EQ(fi_tsend(pair.active.get(), large.data(), large.size(), nullptr, 0, 9, &contexts[2]),
            0);
  ASSERT_EQ(fi_tsend(pair.active.get(), large.data(), large.size(), nullptr, 0, 9, &contexts[3]),
            0);
  ASSERT_EQ(receive(pair.passive.get(), got[1], &contexts[4]), 0);
  ASSERT_EQ(fi_trecv(pair.passive.get(), &got[1], 8, nullptr, 0, 1, 0, &contexts[5]), 0);
  ASSERT_EQ(fi_shutdown(pair.active.get(), 0), 0);
  int seen[6] = {};
  // This side's are written before fi_shutdown returns.
  for (int i = 0; i < 4; ++i) {
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(fi_cq_read(place.cq(), &entry, 1), -FI_EAVAIL);
    const auto c = place.take_completion();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->err, FI_ECANCELED);
    ++seen[static_cast<int*>(c->context) - contexts];
  }
  for (int i = 0; i < 2; ++i) {
    const Completion c = place.completion();
    EXPECT_EQ(c.err, FI_ECONNRESET);
    ++seen[static_cast<int*>(c.context) - contexts];
  }
  for (const int count : seen) EXPECT_EQ(count, 1);
  for (const auto* ep : {&pair.active, &pair.passive}) place.expect(FI_SHUTDOWN, &(*ep)->fid);
  EXPECT_FALSE(place.take_completion());
}

TEST_F(Connected, ReceivesThatWaitForAConnectionThatFailsAreReported) {
  const Fid<fid_pep> pep = place.open_passive();
  const Fid<fid_ep> active = place.open();
  ASSERT_EQ(fi_enable(active.get()), 0);
  std::uint64_t got = 0;
  int context = 0;
  ASSERT_EQ(receive(active.get(), got, &context), 0);
  const Address address = name_of(&pep->fid);
  ASSERT_EQ(fi_connect(active.get(), address.bytes.data(), nullptr, 0), 0);
  place.expect_error(FI_ECONNREFUSED, &active->fid);
  const Completion c = place.completion();
  EXPECT_EQ(c.err, FI_ECONNREFUSED);
  EXPECT_EQ(c.context, &context);
  EXPECT_EQ(send(active.get(), 1), -FI_ESHUTDOWN);
}

// A datagram endpoint that knows the address of a connected one, and no more.
TEST_F(Connected, OtherEndpointsAreNotHeard) {
  Pair pair(place);
  std::uint64_t got = 0;
  ASSERT_EQ(receive(pair.passive.get(), got), 0);
  const Fid<fid_ep> idle = place.open();
  ASSERT_EQ(fi_enable(idle.get()), 0);
  Options options;
  Pump pump;
  LocalParty stranger(std::make_shared<Domain>(options), options, &pump);
  ASSERT_TRUE(stranger.ok());
  for (fid_ep* target : {pair.passive.get(), idle.get()}) {
    Operation send;
    send.kind = Kind::kSend;
    send.length = 8;
    send.seed = 5;
    send.peer = stranger.insert(name_of(&target->fid));
    const Token sent = stranger.post(send);
    send.length = kLarge;
    const Token large = stranger.post(send);
    std::optional<Completion> failed;
    EXPECT_TRUE(pump.until([&] {
      EXPECT_FALSE(place.read());
      EXPECT_FALSE(place.take_completion());
      return (failed = stranger.endpoint().take(stranger.context_of(large))).has_value();
    }));
    EXPECT_TRUE(failed && failed->err == FI_ECONNRESET);
    stranger.wait(sent);  // it had gone before anybody could refuse it
  }
  ASSERT_EQ(send(pair.active.get(), 77), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(place.completion().err, 0);
  EXPECT_EQ(got, 77u);
}

// The other way round: a connected endpoint is no datagram endpoint's peer, whatever it says.
TEST_F(Connected, ADatagramEndpointIsNoListener) {
  Options options;
  Pump pump;
  LocalParty other(std::make_shared<Domain>(options), options, &pump);
  ASSERT_TRUE(other.ok());
  const Fid<fid_ep> active = place.connect(other.name(), "hello");
  Event event;
  EXPECT_TRUE(pump.until([&] {
    auto read = place.read();
    if (read) event = std::move(*read);
    return read.has_value();
  }));
  EXPECT_EQ(event.err, FI_ECONNREFUSED);
  EXPECT_EQ(other.leftovers(), 0u);
}

}  // namespace
}  // namespace weft::conformance
