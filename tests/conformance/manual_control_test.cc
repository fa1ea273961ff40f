// SPDX-License-Identifier: BSD-2-Clause
// Does each call for an event queue bring every kind of control operation to its end, where no
// other call helps? (fi_domain(3), FI_PROGRESS_MANUAL)
#include <rdma/fi_eq.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "support/peer_process.h"
#include "support/place.h"

namespace weft::conformance {
namespace {

// The calls for an event queue.
enum class EventCall { kRead, kSread, kWait };

int patience_ms() { return static_cast<int>(patience().count()); }

Options manual_connections() {
  Options options = connected();
  options.control_progress = FI_PROGRESS_MANUAL;
  options.data_progress = FI_PROGRESS_MANUAL;
  return options;
}

// This process makes one call only, for the event queue; the peer reads its own.
class ManualControl : public testing::TestWithParam<EventCall> {
 protected:
  ManualControl() : place_(manual_connections(), wait_object()) {}
  void SetUp() override { ASSERT_TRUE(place_.ok()); }

  static fi_wait_obj wait_object() {
    return GetParam() == EventCall::kWait    ? FI_WAIT_SET
           : GetParam() == EventCall::kSread ? FI_WAIT_FD
                                             : FI_WAIT_NONE;
  }
  // Makes the call once, and waits in it so long. True when it says that there is an event.
  bool ask(int timeout_ms) {
    alignas(fi_eq_cm_entry) std::array<char, 512> entry;
    std::uint32_t what = 0;
    ssize_t got = 0;
    switch (GetParam()) {
      case EventCall::kRead:
        got = fi_eq_read(place_.eq(), &what, entry.data(), entry.size(), FI_PEEK);
        break;
      case EventCall::kSread:
        got = fi_eq_sread(place_.eq(), &what, entry.data(), entry.size(), timeout_ms, FI_PEEK);
        break;
      case EventCall::kWait:
        return fi_wait(place_.wait_set(), timeout_ms) == 0;
    }
    EXPECT_TRUE(got > 0 || got == -FI_EAGAIN || got == -FI_EAVAIL) << got;
    return got != -FI_EAGAIN;
  }
  Event next() {
    const auto end = std::chrono::steady_clock::now() + patience();
    bool told = false;
    while (!told && std::chrono::steady_clock::now() < end) {
      told = ask(patience_ms());
      sched_yield();
    }
    EXPECT_TRUE(told) << "the call told of nothing";
    std::optional<Event> event = place_.read();
    EXPECT_TRUE(event);
    return event ? std::move(*event) : Event{};
  }
  Event expect(std::uint32_t what, const fid* object) {
    Event event = next();
    EXPECT_EQ(event.what, what) << "error " << event.err;
    EXPECT_EQ(event.object, object);
    return event;
  }

  Place place_;
};

// Accepts, and ends the connection when it is told to.
void be_listener(Channel& to_test) {
  Place place(manual_connections());
  const Fid<fid_pep> pep = place.listen();
  to_test.send(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  ASSERT_NE(request.info, nullptr);
  EXPECT_EQ(request.data, "asks");
  const Fid<fid_ep> passive = place.open(request.info.get());
  EXPECT_EQ(fi_accept(passive.get(), "grants", 6), 0);
  place.expect(FI_CONNECTED, &passive->fid);
  bool end = false;
  EXPECT_TRUE(to_test.receive(&end, [&] { EXPECT_FALSE(place.read()); }));
  EXPECT_EQ(fi_shutdown(passive.get(), 0), 0);
  place.expect(FI_SHUTDOWN, &passive->fid);
  EXPECT_TRUE(to_test.receive(&end, [&] { EXPECT_FALSE(place.read()); }));
}

TEST_P(ManualControl, RequestersHearOfTheirConnectionAndOfItsEnd) {
  PeerProcess peer(be_listener);
  Address address;
  ASSERT_TRUE(peer.channel().receive(&address));
  const Fid<fid_ep> active = place_.connect(address, "asks");
  EXPECT_EQ(expect(FI_CONNECTED, &active->fid).data, "grants");
  peer.channel().send(true);
  expect(FI_SHUTDOWN, &active->fid);
  peer.channel().send(true);
  peer.finish([&] { ask(1); });
}

void be_requester(Channel& to_test) {
  Place place(manual_connections());
  Address address;
  ASSERT_TRUE(to_test.receive(&address));
  const Fid<fid_ep> active = place.connect(address, "asks");
  EXPECT_EQ(place.expect(FI_CONNECTED, &active->fid).data, "grants");
  place.expect(FI_SHUTDOWN, &active->fid);
}

TEST_P(ManualControl, ListenersHearOfRequestsConnectionsAndTheirEnd) {
  const Fid<fid_pep> pep = place_.listen();
  PeerProcess peer(be_requester);
  peer.channel().send(name_of(&pep->fid));
  const Event request = expect(FI_CONNREQ, &pep->fid);
  ASSERT_NE(request.info, nullptr);
  EXPECT_EQ(request.data, "asks");
  const Fid<fid_ep> passive = place_.open(request.info.get());
  ASSERT_EQ(fi_accept(passive.get(), "grants", 6), 0);
  expect(FI_CONNECTED, &passive->fid);
  ASSERT_EQ(fi_shutdown(passive.get(), 0), 0);
  expect(FI_SHUTDOWN, &passive->fid);
  peer.finish([&] { ask(1); });
}

void be_rejected(Channel& to_test) {
  Place place(manual_connections());
  Address address;
  ASSERT_TRUE(to_test.receive(&address));
  const Fid<fid_ep> active = place.connect(address);
  EXPECT_EQ(place.expect_error(FI_ECONNREFUSED, &active->fid).data, "no");
}

TEST_P(ManualControl, ListenersReject) {
  const Fid<fid_pep> pep = place_.listen();
  PeerProcess peer(be_rejected);
  peer.channel().send(name_of(&pep->fid));
  const Event request = expect(FI_CONNREQ, &pep->fid);
  ASSERT_NE(request.info, nullptr);
  ASSERT_EQ(fi_reject(pep.get(), request.info->handle, "no", 2), 0);
  peer.finish([&] { ask(1); });
}

void be_rejecter(Channel& to_test) {
  Place place(manual_connections());
  const Fid<fid_pep> pep = place.listen();
  to_test.send(name_of(&pep->fid));
  const Event request = place.expect(FI_CONNREQ, &pep->fid);
  ASSERT_NE(request.info, nullptr);
  EXPECT_EQ(fi_reject(pep.get(), request.info->handle, "no", 2), 0);
  bool end = false;
  EXPECT_TRUE(to_test.receive(&end, [&] { EXPECT_FALSE(place.read()); }));
}

TEST_P(ManualControl, RequestersHearOfRejections) {
  PeerProcess peer(be_rejecter);
  Address address;
  ASSERT_TRUE(peer.channel().receive(&address));
  const Fid<fid_ep> active = place_.connect(address);
  const Event rejection = next();
  EXPECT_EQ(rejection.err, FI_ECONNREFUSED);
  EXPECT_EQ(rejection.object, &active->fid);
  EXPECT_EQ(rejection.data, "no");
  peer.channel().send(true);
  peer.finish([&] { ask(1); });
}

TEST_P(ManualControl, InsertionsOfAddressesEnd) {
  fi_av_attr attributes{};
  attributes.flags = FI_EVENT;
  const auto av = open_fid<fid_av>(
      [&](fid_av** out) { return fi_av_open(place_.domain().get(), &attributes, out, nullptr); });
  ASSERT_EQ(fi_av_bind(av.get(), &place_.eq()->fid, 0), 0);
  const Fid<fid_pep> pep = place_.open_passive();
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(av.get(), name_of(&pep->fid).bytes.data(), 1, &number, 0, nullptr), 0);
  EXPECT_TRUE(ask(patience_ms()));
  fi_eq_entry entry{};
  std::uint32_t what = 0;
  ASSERT_EQ(fi_eq_read(place_.eq(), &what, &entry, sizeof entry, 0),
            static_cast<ssize_t>(sizeof entry));
  EXPECT_EQ(what, static_cast<std::uint32_t>(FI_AV_COMPLETE));
  EXPECT_EQ(entry.data, 1u);
  EXPECT_NE(number, FI_ADDR_NOTAVAIL);
}

TEST_P(ManualControl, RegistrationsEnd) {
  const auto domain = open_fid<fid_domain>([&](fid_domain** out) {
    return fi_domain(place_.domain().fabric(), place_.info(), out, nullptr);
  });
  ASSERT_EQ(fi_domain_bind(domain.get(), &place_.eq()->fid, FI_REG_MR), 0);
  std::uint64_t memory = 0;
  const auto mr = open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(domain.get(), &memory, sizeof memory, FI_REMOTE_READ, 0, Endpoint::next_key(),
                     0, out, nullptr);
  });
  EXPECT_TRUE(ask(patience_ms()));
  fi_eq_entry entry{};
  std::uint32_t what = 0;
  ASSERT_EQ(fi_eq_read(place_.eq(), &what, &entry, sizeof entry, 0),
            static_cast<ssize_t>(sizeof entry));
  EXPECT_EQ(what, static_cast<std::uint32_t>(FI_MR_COMPLETE));
  EXPECT_EQ(entry.fid, &mr->fid);
}

INSTANTIATE_TEST_SUITE_P(Manual, ManualControl,
                         testing::Values(EventCall::kRead, EventCall::kSread, EventCall::kWait),
                         [](const auto& one) {
                           return one.param == EventCall::kRead    ? "EqRead"
                                  : one.param == EventCall::kSread ? "EqSread"
                                                                   : "WaitForEvents";
                         });

}  // namespace
}  // namespace weft::conformance
