// SPDX-License-Identifier: BSD-2-Clause
// Do control operations end though the program makes no further call? fi_domain(3)

#include <chrono>
#include <cstdlib>
#include <thread>

#include "support/peer_process.h"
#include "support/place.h"

namespace weft::conformance {
namespace {

// Calls nothing of libfabric until the other process has ended its part.
void sleep_until_told(Channel& from_other) {
  bool done = false;
  EXPECT_TRUE(from_other.receive(&done));
}

// A place that listens.
struct Acceptor {
  Event request() { return place.expect(FI_CONNREQ, &pep->fid); }
  // Accepts the next request, whose acceptance is not confirmed yet.
  Fid<fid_ep> accept() {
    const Event requested = request();
    if (requested.info == nullptr) return nullptr;
    Fid<fid_ep> ep = place.open(requested.info.get());
    EXPECT_EQ(fi_accept(ep.get(), nullptr, 0), 0);
    return ep;
  }

  Place place;
  Fid<fid_pep> pep = place.listen();
};

// A place that connects to a listener in another process.
struct Requester {
  explicit Requester(PeerScript script, const Options& options = connected())
      : place(options), peer(script) {
    Address address;
    EXPECT_TRUE(peer.channel().receive(&address));
    active = place.connect(address);
  }

  Place place;
  PeerProcess peer;
  Fid<fid_ep> active;
};

void accept_from_sleeper(Channel& to_test) {
  Acceptor acceptor;
  to_test.send(name_of(&acceptor.pep->fid));
  const Fid<fid_ep> passive = acceptor.accept();
  ASSERT_NE(passive, nullptr);
  acceptor.place.expect(FI_CONNECTED, &passive->fid);
  to_test.send(true);
  sleep_until_told(to_test);
}

TEST(ControlProgress, EstablishesAConnectionWhileTheRequesterSleeps) {
  Requester requester(accept_from_sleeper);
  sleep_until_told(requester.peer.channel());
  requester.place.expect(FI_CONNECTED, &requester.active->fid);
  requester.peer.channel().send(true);
  requester.peer.finish();
  requester.place.expect(FI_SHUTDOWN, &requester.active->fid);
}

// Sleeps from fi_accept on until the requester knows of the connection.
void accept_and_sleep(Channel& to_test) {
  Acceptor acceptor;
  to_test.send(name_of(&acceptor.pep->fid));
  const Fid<fid_ep> passive = acceptor.accept();
  ASSERT_NE(passive, nullptr);
  sleep_until_told(to_test);
  acceptor.place.expect(FI_CONNECTED, &passive->fid);
}

TEST(ControlProgress, EstablishesAConnectionWhileTheAcceptorSleeps) {
  Requester requester(accept_and_sleep);
  requester.place.expect(FI_CONNECTED, &requester.active->fid);
  requester.peer.channel().send(true);
  requester.peer.finish();
  requester.place.expect(FI_SHUTDOWN, &requester.active->fid);
}

// Connects with the patience of a second to the address that it is told.
void connect_impatiently(Channel& to_test) {
  setenv("FI_WEFT_REQUEST_TIMEOUT_MS", "1000", 1);
  Place place;
  Address address;
  ASSERT_TRUE(to_test.receive(&address));
  const Fid<fid_ep> active = place.connect(address);
  place.expect(FI_CONNECTED, &active->fid);
  place.expect(FI_SHUTDOWN, &active->fid);
}

// Without the listener's answer the request ends (ConnectionTimeout).
TEST(ControlProgress, TakesARequestWhileTheListenerSleeps) {
  if (provider_name() != "weft") GTEST_SKIP() << "the variable is weft's";
  Acceptor acceptor;
  PeerProcess peer(connect_impatiently);
  peer.channel().send(name_of(&acceptor.pep->fid));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  Fid<fid_ep> passive = acceptor.accept();
  ASSERT_NE(passive, nullptr);
  acceptor.place.expect(FI_CONNECTED, &passive->fid);
  passive.reset();
  peer.finish([&] { acceptor.place.read(); });
}

void refuse_sleeper(Channel& to_test) {
  Acceptor acceptor;
  to_test.send(name_of(&acceptor.pep->fid));
  const Event request = acceptor.request();
  ASSERT_NE(request.info, nullptr);
  ASSERT_EQ(fi_reject(acceptor.pep.get(), request.info->handle, "no", 2), 0);
  to_test.send(true);
}

TEST(ControlProgress, RefusesAConnectionWhileTheRequesterSleeps) {
  Requester requester(refuse_sleeper);
  sleep_until_told(requester.peer.channel());
  requester.peer.finish();
  EXPECT_EQ(requester.place.expect_error(FI_ECONNREFUSED, &requester.active->fid).data, "no");
}

// With FI_PROGRESS_MANUAL the connection waits for the requester.
void accept_from_idle(Channel& to_test) {
  Acceptor acceptor;
  to_test.send(name_of(&acceptor.pep->fid));
  const Fid<fid_ep> passive = acceptor.accept();
  ASSERT_NE(passive, nullptr);
  acceptor.place.expect_silence();
  to_test.send(true);
  acceptor.place.expect(FI_CONNECTED, &passive->fid);
}

TEST(ControlProgress, IsMadeByCallsOnlyWhereTheProgramWantsThat) {
  if (only_links("udp")) GTEST_SKIP() << "a thread serves the network there";
  Options options = connected();
  options.control_progress = FI_PROGRESS_MANUAL;
  Requester requester(accept_from_idle, options);
  EXPECT_EQ(requester.place.info()->domain_attr->control_progress, FI_PROGRESS_MANUAL);
  sleep_until_told(requester.peer.channel());
  requester.place.expect(FI_CONNECTED, &requester.active->fid);
  requester.peer.finish([&] { requester.place.read(); });
}

}  // namespace
}  // namespace weft::conformance
