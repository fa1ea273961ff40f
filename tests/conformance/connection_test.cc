// SPDX-License-Identifier: BSD-2-Clause
// How is a connection made, and how does it fail to be? (fi_cm(3), fi_eq(3))
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_eq.h>
#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "support/place.h"

namespace weft::conformance {
namespace {

struct Connecting : testing::Test {
  Place place;
  void SetUp() override { ASSERT_TRUE(place.ok()); }
};

std::size_t data_size(fid* object) {
  std::size_t size = 0;
  std::size_t length = sizeof size;
  EXPECT_EQ(fi_getopt(object, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &length), 0);
  EXPECT_EQ(length, sizeof size);
  return size;
}

TEST_F(Connecting, DataGoWithTheRequestAndWithTheReply) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid), "hello");
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  EXPECT_EQ(request.data, "hello");
  const Fid<fid_ep> passive = place.open(request.info.get());
  ASSERT_EQ(fi_accept(passive.get(), "welcome", 7), 0);
  int told = 0;
  for (int i = 0; i < 2; ++i) {
    const Event made = place.next();
    EXPECT_EQ(made.what, static_cast<std::uint32_t>(FI_CONNECTED));
    EXPECT_EQ(made.data, made.object == &active->fid ? "welcome" : "");
    told += made.object == &active->fid ? 1 : made.object == &passive->fid ? 2 : 4;
  }
  EXPECT_EQ(told, 3);
}

TEST_F(Connecting, TheInfoOfARequestHasBothAddresses) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  ASSERT_NE(request.info, nullptr);
  EXPECT_NE(request.info->handle, nullptr);
  EXPECT_EQ(request.info->ep_attr->type, FI_EP_MSG);
  const Address asks = name_of(&active->fid);
  const Address asked = name_of(&pep->fid);
  ASSERT_EQ(request.info->dest_addrlen, asks.size);
  EXPECT_EQ(std::memcmp(request.info->dest_addr, asks.bytes.data(), asks.size), 0);
  ASSERT_EQ(request.info->src_addrlen, asked.size);
  EXPECT_EQ(std::memcmp(request.info->src_addr, asked.bytes.data(), asked.size), 0);
  EXPECT_EQ(fi_reject(pep.get(), request.info->handle, nullptr, 0), 0);
  place.expect_error(FI_ECONNREFUSED, &active->fid);
}

TEST_F(Connecting, BothKnowTheirPeersAddress) {
  Pair pair(place);
  Address peer;
  peer.size = peer.bytes.size();
  ASSERT_EQ(fi_getpeer(pair.active.get(), peer.bytes.data(), &peer.size), 0);
  EXPECT_EQ(peer, name_of(&pair.pep->fid));
  peer = {};
  peer.size = peer.bytes.size();
  ASSERT_EQ(fi_getpeer(pair.passive.get(), peer.bytes.data(), &peer.size), 0);
  EXPECT_EQ(peer, name_of(&pair.active->fid));
  peer.size = 3;
  EXPECT_EQ(fi_getpeer(pair.passive.get(), peer.bytes.data(), &peer.size), -FI_ETOOSMALL);
  EXPECT_EQ(peer.size, name_of(&pair.active->fid).size);
}

// As with sockets: accept(2) gives one with the address of the listener.
TEST_F(Connecting, AnAcceptedEndpointHasItsListenersAddress) {
  Pair pair(place);
  EXPECT_EQ(name_of(&pair.passive->fid), name_of(&pair.pep->fid));
  EXPECT_NE(name_of(&pair.active->fid), name_of(&pair.pep->fid));
}

// A passive endpoint that listens at all addresses of this host, and its address at `host`.
Fid<fid_pep> listen_everywhere(const Place& place, const char* host, Address& address) {
  const Info info(fi_dupinfo(place.info()));
  reinterpret_cast<sockaddr_in*>(info->src_addr)->sin_addr.s_addr = htonl(INADDR_ANY);
  Fid<fid_pep> pep = open_fid<fid_pep>([&](fid_pep** out) {
    return fi_passive_ep(place.domain().fabric(), info.get(), out, nullptr);
  });
  EXPECT_EQ(fi_pep_bind(pep.get(), &place.eq()->fid, 0), 0);
  EXPECT_EQ(fi_listen(pep.get()), 0);
  address = name_of(&pep->fid);
  EXPECT_EQ(
      inet_pton(AF_INET, host, &reinterpret_cast<sockaddr_in*>(address.bytes.data())->sin_addr), 1);
  return pep;
}

TEST_F(Connecting, OfAListenerAtAllAddressesAnAcceptedEndpointHasTheOneThatWasAsked) {
  for (const char* const host : {"127.0.0.1", "127.0.0.2"}) {
    Address asked;
    const Fid<fid_pep> pep = listen_everywhere(place, host, asked);
    const Fid<fid_ep> active = place.connect(asked);
    const Event request = place.expect(FI_CONNREQ, &pep->fid);
    ASSERT_EQ(request.info->src_addrlen, asked.size);
    EXPECT_EQ(std::memcmp(request.info->src_addr, asked.bytes.data(), asked.size), 0) << host;
    const Fid<fid_ep> passive = place.open(request.info.get());
    EXPECT_EQ(name_of(&passive->fid), asked) << host;
    ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(place.next().what, static_cast<std::uint32_t>(FI_CONNECTED));
    EXPECT_EQ(name_of(&passive->fid), asked) << host;
  }
}

TEST_F(Connecting, ARejectionIsAnErrorWithItsData) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  ASSERT_EQ(fi_reject(pep.get(), request.info->handle, "no room", 7), 0);
  EXPECT_EQ(place.expect_error(FI_ECONNREFUSED, &active->fid).data, "no room");
  EXPECT_EQ(fi_reject(pep.get(), request.info->handle, nullptr, 0), -FI_EINVAL);
}

TEST_F(Connecting, TheDataOfARejectionGoIntoTheReadersBuffer) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  ASSERT_EQ(fi_reject(pep.get(), request.info->handle, "no room", 7), 0);
  std::uint32_t event = 0;
  char raw[64];
  ssize_t got = -FI_EAGAIN;
  while (got == -FI_EAGAIN) got = fi_eq_read(place.eq(), &event, raw, sizeof raw, 0);
  ASSERT_EQ(got, -FI_EAVAIL);
  char buffer[4] = {};
  fi_eq_err_entry error{};
  error.err_data = buffer;
  error.err_data_size = 3;
  ASSERT_EQ(fi_eq_readerr(place.eq(), &error, FI_PEEK), static_cast<ssize_t>(sizeof error));
  EXPECT_EQ(error.err_data, buffer);
  EXPECT_EQ(error.err_data_size, 3u);
  EXPECT_STREQ(buffer, "no ");
  error.err_data_size = 0;
  ASSERT_EQ(fi_eq_readerr(place.eq(), &error, 0), static_cast<ssize_t>(sizeof error));
  EXPECT_EQ(std::string(static_cast<char*>(error.err_data), error.err_data_size), "no room");
}

// struct fi_eq_err_entry has never grown. Before API 1.5 its err_data_size says nothing on entry.
class ConnectionByApi : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ConnectionByApi, ARejectionIsAnErrorWithItsData) {
  Place place(FI_WAIT_NONE, FI_THREAD_SAFE, GetParam());
  ASSERT_TRUE(place.ok());
  ASSERT_EQ(place.domain().fabric()->api_version, GetParam());
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  ASSERT_EQ(fi_reject(pep.get(), request.info->handle, "no room", 7), 0);
  std::uint32_t event = 0;
  char raw[64];
  ssize_t got = -FI_EAGAIN;
  while (got == -FI_EAGAIN) got = fi_eq_read(place.eq(), &event, raw, sizeof raw, 0);
  ASSERT_EQ(got, -FI_EAVAIL);
  char buffer[64] = {};
  fi_eq_err_entry error{};
  error.err_data = buffer;
  error.err_data_size = sizeof buffer;
  ASSERT_EQ(fi_eq_readerr(place.eq(), &error, 0), static_cast<ssize_t>(sizeof error));
  EXPECT_EQ(error.fid, &active->fid);
  EXPECT_EQ(error.err, FI_ECONNREFUSED);
  EXPECT_EQ(error.err_data == buffer, GetParam() >= FI_VERSION(1, 5));
  ASSERT_EQ(error.err_data_size, 7u);
  EXPECT_EQ(std::string(static_cast<char*>(error.err_data), 7), "no room");
}

INSTANTIATE_TEST_SUITE_P(Connections, ConnectionByApi,
                         testing::Values(FI_VERSION(1, 0), FI_VERSION(1, 4), FI_VERSION(1, 5),
                                         FI_VERSION(1, 17)),
                         [](const testing::TestParamInfo<std::uint32_t>& one) {
                           return "Api1_" + std::to_string(FI_MINOR(one.param));
                         });

TEST_F(Connecting, DataForWhichAnEventsReaderHasNoRoomAreCutOff) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid), "hello");
  std::uint32_t event = 0;
  alignas(fi_eq_cm_entry) char raw[sizeof(fi_eq_cm_entry) + 2];
  ssize_t got = -FI_EAGAIN;
  while (got == -FI_EAGAIN) got = fi_eq_read(place.eq(), &event, raw, sizeof raw, FI_PEEK);
  EXPECT_EQ(got, static_cast<ssize_t>(sizeof raw));
  EXPECT_EQ(fi_eq_read(place.eq(), &event, raw, sizeof(fi_eq_cm_entry) - 1, 0), -FI_ETOOSMALL);
  EXPECT_EQ(fi_eq_read(place.eq(), &event, raw, sizeof raw, 0), static_cast<ssize_t>(sizeof raw));
  EXPECT_EQ(std::string(raw + sizeof(fi_eq_cm_entry), 2), std::string("hello", 2));
  fi_freeinfo(reinterpret_cast<fi_eq_cm_entry*>(raw)->info);
}

TEST_F(Connecting, MoreDataThanGoAreRefused) {
  const Fid<fid_pep> pep = place.listen();
  const std::size_t most = data_size(&pep->fid);
  const Fid<fid_ep> probe = place.open();
  EXPECT_EQ(data_size(&probe->fid), most);
  ASSERT_LE(most, 400u) << "the test's buffers are too small";
  const std::string data(most, 'x');
  const std::string longer(most + 1, 'x');
  const Address address = name_of(&pep->fid);
  EXPECT_EQ(fi_connect(probe.get(), address.bytes.data(), longer.data(), longer.size()),
            -FI_EINVAL);
  const Fid<fid_ep> active = place.connect(address, data);
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  EXPECT_EQ(request.data, data);
  EXPECT_EQ(fi_reject(pep.get(), request.info->handle, longer.data(), longer.size()), -FI_EINVAL);
  ASSERT_EQ(fi_reject(pep.get(), request.info->handle, data.data(), data.size()), 0);
  EXPECT_EQ(place.expect_error(FI_ECONNREFUSED, &active->fid).data, data);
}

// The request stays undecided: an acceptance with fewer data follows.
TEST_F(Connecting, MoreDataThanGoAreNoAcceptance) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  const Fid<fid_ep> passive = place.open(request.info.get());
  const std::string data(data_size(&passive->fid), 'x');
  const std::string longer = data + 'x';
  EXPECT_EQ(fi_accept(passive.get(), longer.data(), longer.size()), -FI_EINVAL);
  place.expect_silence();
  ASSERT_EQ(fi_accept(passive.get(), data.data(), data.size()), 0);
  for (int i = 0; i < 2; ++i) {
    const Event made = place.next();
    EXPECT_EQ(made.what, static_cast<std::uint32_t>(FI_CONNECTED));
    EXPECT_EQ(made.data, made.object == &active->fid ? data : "");
  }
}

TEST_F(Connecting, WithoutAListenerItIsRefused) {
  Fid<fid_pep> pep = place.open_passive();
  const Address address = name_of(&pep->fid);
  const Fid<fid_ep> early = place.connect(address);
  place.expect_error(FI_ECONNREFUSED, &early->fid);
  ASSERT_EQ(fi_listen(pep.get()), 0);
  pep.reset();
  const Fid<fid_ep> late = place.connect(address);
  place.expect_error(FI_ECONNREFUSED, &late->fid);
}

// That of an accepted one is a listener's address.
TEST_F(Connecting, AnotherEndpointIsNoListener) {
  Pair pair(place);
  const Fid<fid_ep> active = place.connect(name_of(&pair.active->fid));
  place.expect_error(FI_ECONNREFUSED, &active->fid);
}

TEST_F(Connecting, ItIsDoneOncePerEndpoint) {
  Pair pair(place);
  const Address address = name_of(&pair.pep->fid);
  EXPECT_EQ(fi_connect(pair.active.get(), address.bytes.data(), nullptr, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_connect(pair.passive.get(), address.bytes.data(), nullptr, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_accept(pair.passive.get(), nullptr, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_accept(pair.active.get(), nullptr, 0), -FI_EOPBADSTATE);
}

// A program that lacks what the endpoint needs rejects. Its data may say more than the number.
TEST_F(Connecting, ARequestWithAnEndpointIsRejectedWithItsData) {
  const Fid<fid_pep> pep = place.listen();
  for (const bool enabled : {false, true}) {
    for (const bool closed_first : {false, true}) {
      SCOPED_TRACE(testing::Message() << "enabled " << enabled << ", closed " << closed_first);
      const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
      const Event request = place.expect(FI_CONNREQ, &pep->fid);
      Fid<fid_ep> passive = place.open(request.info.get());
      if (enabled) {
        EXPECT_EQ(fi_enable(passive.get()), 0);
      }
      if (closed_first) passive.reset();
      place.expect_silence();
      ASSERT_EQ(fi_reject(pep.get(), request.info->handle, "no room", 7), 0);
      EXPECT_EQ(place.expect_error(FI_ECONNREFUSED, &active->fid).data, "no room");
      EXPECT_EQ(fi_reject(pep.get(), request.info->handle, nullptr, 0), -FI_EINVAL);
    }
  }
  place.expect_silence();
}

TEST_F(Connecting, ARequestThatIsRejectedIsNotAccepted) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  const Fid<fid_ep> passive = place.open(request.info.get());
  ASSERT_EQ(fi_reject(pep.get(), request.info->handle, nullptr, 0), 0);
  EXPECT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  int errors = 0;
  for (int i = 0; i < 2; ++i) {
    const Event event = place.next();
    errors += event.object == &active->fid && event.err == FI_ECONNREFUSED ? 1 : 0;
    errors += event.object == &passive->fid && event.err == FI_ECONNABORTED ? 2 : 0;
  }
  EXPECT_EQ(errors, 3);
}

TEST_F(Connecting, ARequestThatIsAcceptedIsNotRejected) {
  Pair pair(place);
  EXPECT_EQ(fi_reject(pair.pep.get(), pair.request, nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_shutdown(pair.active.get(), 0), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(place.next().what, static_cast<std::uint32_t>(FI_SHUTDOWN));
  EXPECT_EQ(fi_reject(pair.pep.get(), pair.request, nullptr, 0), -FI_EINVAL);
}

// One endpoint at a time.
TEST_F(Connecting, ARequestOutlivesAnEndpointThatDidNotAcceptIt) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  Fid<fid_ep> passive = place.open(request.info.get());
  fid_ep* second = nullptr;
  EXPECT_EQ(fi_endpoint(place.domain().get(), request.info.get(), &second, nullptr), -FI_EINVAL);
  passive.reset();
  place.expect_silence();
  passive = place.open(request.info.get());
  ASSERT_NE(passive, nullptr);
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(place.next().what, static_cast<std::uint32_t>(FI_CONNECTED));
}

// With the passive endpoint goes the last one that could decide.
TEST_F(Connecting, TheLastOneThatClosesRejectsWhatIsUndecided) {
  for (const bool pep_last : {false, true}) {
    SCOPED_TRACE(pep_last);
    Fid<fid_pep> pep = place.listen();
    const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
    const Event request = place.expect(FI_CONNREQ, &pep->fid);
    Fid<fid_ep> passive = place.open(request.info.get());
    if (pep_last) {
      passive.reset();
      place.expect_silence();
      pep.reset();
    } else {
      pep.reset();
      place.expect_silence();
      passive.reset();
    }
    place.expect_error(FI_ECONNREFUSED, &active->fid);
  }
}

TEST_F(Connecting, AnEventQueueIsNeeded) {
  fid_pep* pep = nullptr;
  ASSERT_EQ(fi_passive_ep(place.domain().fabric(), place.info(), &pep, nullptr), 0);
  const Fid<fid_pep> closes_pep(pep);
  EXPECT_EQ(fi_listen(pep), -FI_ENOEQ);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(place.domain().get(), place.info(), &ep, nullptr), 0);
  const Fid<fid_ep> closes_ep(ep);
  EXPECT_EQ(fi_ep_bind(ep, &place.cq()->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep), -FI_ENOEQ);
  EXPECT_EQ(fi_connect(ep, place.info()->src_addr, nullptr, 0), -FI_ENOEQ);
}

// fi_domain(3): address vectors are used by connectionless endpoints only.
TEST_F(Connecting, AnEndpointNeedsNoAddressVector) {
  const Fid<fid_ep> ep = place.open();
  EXPECT_EQ(fi_enable(ep.get()), 0);
}

TEST_F(Connecting, AQueueInUseIsNotClosed) {
  const Fid<fid_pep> pep = place.listen();
  EXPECT_EQ(fi_close(&place.eq()->fid), -FI_EBUSY);
}

TEST_F(Connecting, BadArgumentsAreRefused) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> ep = place.open();
  const Address address = name_of(&pep->fid);
  EXPECT_EQ(fi_connect(ep.get(), nullptr, nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_connect(ep.get(), address.bytes.data(), nullptr, 4), -FI_EINVAL);
  sockaddr stranger{};
  stranger.sa_family = AF_UNIX;
  EXPECT_EQ(fi_connect(ep.get(), &stranger, nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_accept(ep.get(), nullptr, 4), -FI_EINVAL);
  EXPECT_EQ(fi_reject(pep.get(), nullptr, nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_reject(pep.get(), &ep->fid, nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_shutdown(ep.get(), 1), -FI_EBADFLAGS);
  EXPECT_EQ(fi_shutdown(ep.get(), 0), -FI_ENOTCONN);
  EXPECT_EQ(fi_listen(pep.get()), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_pep_bind(pep.get(), &place.cq()->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_pep_bind(pep.get(), &place.eq()->fid, 0), -FI_EINVAL);
  Address peer;
  peer.size = peer.bytes.size();
  EXPECT_EQ(fi_getpeer(ep.get(), peer.bytes.data(), &peer.size), -FI_ENOTCONN);
}

TEST_F(Connecting, AnEndpointMayTakeOverThePassiveOnesAddress) {
  Fid<fid_pep> pep = place.open_passive();
  const Address address = name_of(&pep->fid);
  Info info(fi_dupinfo(place.info()));
  info->handle = &pep->fid;
  const Fid<fid_ep> ep = place.open(info.get());
  ASSERT_NE(ep, nullptr);
  EXPECT_EQ(name_of(&ep->fid), address);
  EXPECT_EQ(fi_listen(pep.get()), -FI_EOPBADSTATE);
  fid_ep* second = nullptr;
  EXPECT_EQ(fi_endpoint(place.domain().get(), info.get(), &second, nullptr), -FI_EINVAL);
  pep.reset();
  const Fid<fid_pep> other = place.listen();
  const Address listener = name_of(&other->fid);
  ASSERT_EQ(fi_connect(ep.get(), listener.bytes.data(), nullptr, 0), 0);
  place.expect(FI_CONNREQ, &other->fid);
  Info busy(fi_dupinfo(place.info()));
  busy->handle = &other->fid;
  EXPECT_EQ(fi_endpoint(place.domain().get(), busy.get(), &second, nullptr), -FI_EBUSY);
}

TEST_F(Connecting, NamesMayBeSetUntilTheyAreUsed) {
  const Fid<fid_pep> pep = place.open_passive();
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const Address before = name_of(&pep->fid);
  ASSERT_EQ(fi_setname(&pep->fid, &any, sizeof any), 0);
  EXPECT_FALSE(name_of(&pep->fid) == before);
  ASSERT_EQ(fi_listen(pep.get()), 0);
  EXPECT_EQ(fi_setname(&pep->fid, &any, sizeof any), -FI_EOPBADSTATE);
  const Fid<fid_ep> ep = place.open();
  ASSERT_EQ(fi_setname(&ep->fid, &any, sizeof any), 0);
  ASSERT_EQ(fi_enable(ep.get()), 0);
  EXPECT_EQ(fi_setname(&ep->fid, &any, sizeof any), -FI_EOPBADSTATE);
}

TEST_F(Connecting, NoMoreRequestsAreToldThanTheBacklogHolds) {
  const Fid<fid_pep> pep = place.listen();
  int backlog = 1;
  ASSERT_EQ(fi_control(&pep->fid, FI_BACKLOG, &backlog), 0);
  const Address address = name_of(&pep->fid);
  const Fid<fid_ep> one = place.connect(address, "1");
  const Fid<fid_ep> two = place.connect(address, "2");
  const Event first = place.expect(FI_CONNREQ, &pep->fid);
  place.expect_silence();
  ASSERT_EQ(fi_reject(pep.get(), first.info->handle, nullptr, 0), 0);
  int requests = 0;
  int refusals = 0;
  for (int i = 0; i < 2; ++i) {
    const Event event = place.next();
    if (event.what == FI_CONNREQ) ++requests;
    if (event.err == FI_ECONNREFUSED) ++refusals;
  }
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(refusals, 1);
  int nonsense = -1;
  EXPECT_EQ(fi_control(&pep->fid, FI_BACKLOG, &nonsense), -FI_EINVAL);
}

TEST_F(Connecting, TwoMayConnectToEachOtherAtTheSameTime) {
  const Fid<fid_pep> left = place.listen();
  const Fid<fid_pep> right = place.listen();
  const Fid<fid_ep> to_right = place.connect(name_of(&right->fid));
  const Fid<fid_ep> to_left = place.connect(name_of(&left->fid));
  std::vector<Fid<fid_ep>> accepted;
  int made = 0;
  while (made < 4) {
    const Event event = place.next();
    ASSERT_TRUE(event.what == FI_CONNREQ || event.what == FI_CONNECTED) << event.err;
    if (event.what == FI_CONNECTED) ++made;
    if (event.what != FI_CONNREQ) continue;
    accepted.push_back(place.open(event.info.get()));
    ASSERT_EQ(fi_accept(accepted.back().get(), nullptr, 0), 0);
  }
}

TEST_F(Connecting, TwoEndpointsThatConnectToEachOtherAreRefusedWithoutAListener) {
  const Fid<fid_ep> left = place.open();
  const Fid<fid_ep> right = place.open();
  for (fid_ep* each : {left.get(), right.get()}) ASSERT_EQ(fi_enable(each), 0);
  const Address to_left = name_of(&left->fid);
  const Address to_right = name_of(&right->fid);
  ASSERT_EQ(fi_connect(left.get(), to_right.bytes.data(), nullptr, 0), 0);
  ASSERT_EQ(fi_connect(right.get(), to_left.bytes.data(), nullptr, 0), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(place.next().err, FI_ECONNREFUSED);
  place.expect_silence();
}

// What the program has said nothing about yet, when one of the objects is closed.
TEST_F(Connecting, ClosingThePassiveEndpointRejectsWhatIsUndecided) {
  Fid<fid_pep> pep = place.listen();
  const Address address = name_of(&pep->fid);
  const Fid<fid_ep> told = place.connect(address);
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  const Fid<fid_ep> untold = place.connect(address);
  place.expect(FI_CONNREQ, &pep->fid);
  const Fid<fid_ep> unseen = place.connect(address);
  pep.reset();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(place.next().err, FI_ECONNREFUSED);
  fid_ep* late = nullptr;
  EXPECT_EQ(fi_endpoint(place.domain().get(), request.info.get(), &late, nullptr), -FI_EINVAL);
}

TEST_F(Connecting, ARequestThatAnEndpointTookOutlivesThePassiveEndpoint) {
  Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  const Fid<fid_ep> passive = place.open(request.info.get());
  pep.reset();
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(place.next().what, static_cast<std::uint32_t>(FI_CONNECTED));
}

// While one exists no descriptor is to be had.
// Longer than a path that was found stays valid.
constexpr std::chrono::milliseconds kPathForgotten{60};

class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{0, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

// Without a descriptor an acceptance fails, and the requester hears of it once there are some
// again. A path to the host of the requester that was found a moment ago needs none.
TEST_F(Connecting, TheRequesterHearsOfAnAcceptanceThatFailed) {
  const Fid<fid_pep> pep = place.listen();
  for (const bool closed_meanwhile : {false, true}) {
    SCOPED_TRACE(closed_meanwhile);
    const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
    const Event request = place.expect(FI_CONNREQ, &pep->fid);
    Fid<fid_ep> passive = place.open(request.info.get());
    ASSERT_EQ(fi_enable(passive.get()), 0);
    std::this_thread::sleep_for(kPathForgotten);
    {
      const NoDescriptors shortage;
      EXPECT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
      const Event failed = place.next();
      EXPECT_EQ(failed.object, &passive->fid);
      EXPECT_EQ(failed.err, FI_EMFILE);
      if (closed_meanwhile) passive.reset();
    }
    passive.reset();
    place.expect_error(FI_ECONNREFUSED, &active->fid);
  }
}

// That acceptance fails if it needs a descriptor, at once or by an event.
TEST_F(Connecting, AnAcceptanceInAShortageLeavesOtherRequestsWaiting) {
  const Fid<fid_pep> pep = place.listen();
  const Address address = name_of(&pep->fid);
  const Fid<fid_ep> first = place.connect(address);
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  const Fid<fid_ep> second = place.connect(address);
  const Event waiting = place.expect(FI_CONNREQ, &pep->fid);
  Fid<fid_ep> passive = place.open(request.info.get());
  ASSERT_EQ(fi_enable(passive.get()), 0);
  {
    const NoDescriptors shortage;
    if (fi_accept(passive.get(), nullptr, 0) == 0) place.next();
  }
  passive.reset();
  for (Event event; event.err == 0 && event.what != FI_SHUTDOWN && !HasFailure();)
    event = place.next();
  passive = place.open(waiting.info.get());
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(place.next().what, static_cast<std::uint32_t>(FI_CONNECTED));
}

TEST_F(Connecting, TheRequesterMayHaveClosed) {
  const Fid<fid_pep> pep = place.listen();
  Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  const Fid<fid_ep> passive = place.open(request.info.get());
  active.reset();
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  place.expect_error(FI_ECONNABORTED, &passive->fid);
  // The same with a request that is rejected.
  active = place.connect(name_of(&pep->fid));
  const Event second = place.expect(FI_CONNREQ, &pep->fid);
  active.reset();
  place.expect_silence();
  EXPECT_EQ(fi_reject(pep.get(), second.info->handle, nullptr, 0), 0);
}

TEST_F(Connecting, TheRequesterMayCloseBeforeTheAnswer) {
  const Fid<fid_pep> pep = place.listen();
  Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  const Fid<fid_ep> passive = place.open(request.info.get());
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  active.reset();
  place.expect_error(FI_ECONNABORTED, &passive->fid);
}

TEST_F(Connecting, GivingUpWithdrawsTheRequest) {
  const Fid<fid_pep> pep = place.listen();
  const Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  EXPECT_EQ(fi_shutdown(active.get(), 0), 0);
  place.expect_silence();
  EXPECT_EQ(fi_shutdown(active.get(), 0), 0);
}

TEST_F(Connecting, EventsOfAClosedEndpointGoWithIt) {
  const Fid<fid_pep> pep = place.open_passive();
  Fid<fid_ep> active = place.connect(name_of(&pep->fid));
  active.reset();  // its refusal was not read
  place.expect_silence();
}

// Sixty-four at a time, closed in either order.
class ManyConnections : public testing::TestWithParam<bool> {};

TEST_P(ManyConnections, AreMadeAndUnmade) {
  constexpr std::size_t kCount = 64;
  const bool active_first = GetParam();
  Place place;
  ASSERT_TRUE(place.ok());
  const Fid<fid_pep> pep = place.listen();
  const Address address = name_of(&pep->fid);
  std::vector<Fid<fid_ep>> active;
  std::vector<Fid<fid_ep>> passive;
  for (std::size_t i = 0; i < kCount; ++i) active.push_back(place.connect(address));
  for (std::size_t made = 0; made < 2 * kCount;) {
    const Event event = place.next();
    ASSERT_TRUE(event.what == FI_CONNREQ || event.what == FI_CONNECTED) << event.err;
    if (event.what == FI_CONNECTED) ++made;
    if (event.what != FI_CONNREQ) continue;
    passive.push_back(place.open(event.info.get()));
    ASSERT_EQ(fi_accept(passive.back().get(), nullptr, 0), 0);
  }
  std::uint64_t value = 7;
  std::uint64_t got = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(fi_recv(passive[i].get(), &got, sizeof got, nullptr, 0, nullptr), 0);
    ASSERT_EQ(fi_send(active[i].get(), &value, sizeof value, nullptr, 0, nullptr), 0);
  }
  for (std::size_t i = 0; i < 2 * kCount; ++i) ASSERT_EQ(place.completion().err, 0);
  (active_first ? active : passive).clear();
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(place.next().what, static_cast<std::uint32_t>(FI_SHUTDOWN));
  }
  (active_first ? passive : active).clear();
  place.expect_silence();
}

INSTANTIATE_TEST_SUITE_P(Connections, ManyConnections, testing::Bool());

}  // namespace
}  // namespace weft::conformance
