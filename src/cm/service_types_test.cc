// SPDX-License-Identifier: BSD-2-Clause
// Does a connection of each service type begin and end, also with a peer that fills in vendor
// fields?
#include <gtest/gtest.h>

#include <tuple>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

struct ServiceType {
  const char* name;
  std::uint8_t transport;
  std::uint8_t extended = 0;
};

constexpr std::uint8_t kRd = 2;
constexpr std::uint8_t kXrc = 1;  // extended
constexpr ServiceType kTypes[] = {{"RC", 0}, {"UC", 1}, {"RD", kRd}, {"XRC", 3, kXrc}};
constexpr std::uint32_t kTarget = 0x9C4003;  // queue pair of the acceptor

// A service type, and whether the ends are Weft's.
struct ServiceTypes : ::testing::TestWithParam<std::tuple<ServiceType, bool>> {
  static ServiceType type() { return std::get<0>(GetParam()); }
  static bool is_watched() { return std::get<1>(GetParam()); }

  void ask() {
    ConnectRequest request = pair.request(is_watched());
    request.req.transport = type().transport;
    request.req.extended_transport = type().extended;
    request.req.eecn = type().transport == kRd ? 3 : 0;
    pair.at_a = pair.a.agent.connect(request, pair.a.program, nullptr, pair.now).value();
  }
  // A REP of XRC names its target queue pair in the place of the EECN.
  void accept() {
    const Heard& heard = pair.b.program.events.back();
    const auto& req = std::get<wire::CmReq>(heard.mad->message);
    EXPECT_EQ(req.transport, type().transport);
    EXPECT_EQ(req.extended_transport, type().extended);
    pair.at_b = heard.event.id;
    AcceptRequest reply;
    if (type().transport == kRd) reply.rep.eecn = 4;
    (type().extended == kXrc ? reply.rep.eecn : reply.rep.qpn) = kTarget;
    reply.watched = is_watched();
    ASSERT_TRUE(pair.b.agent.accept(pair.at_b, reply, pair.b.program, nullptr, pair.now));
    rep = pair.b.host.sent.at(0).mad;
  }
  void confirm() {
    ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, {}, pair.now));
    pair.carry();
    EXPECT_EQ(pair.a.program.look(), "reply");
    EXPECT_EQ(pair.b.program.look(), "request established");
  }
  void establish() {
    ask();
    pair.carry();
    accept();
    pair.carry();
    confirm();
  }
  void expect_end() {
    EXPECT_EQ(pair.a.agent.connections() + pair.b.agent.connections(), 0U);
    pair.pass(seconds(3));
    EXPECT_TRUE(pair.is_empty());
  }

  Pair pair;
  wire::CmMad rep;
};

INSTANTIATE_TEST_SUITE_P(All, ServiceTypes,
                         ::testing::Combine(::testing::ValuesIn(kTypes), ::testing::Bool()),
                         [](const auto& each) {
                           const bool watched = std::get<1>(each.param);
                           return std::string(std::get<0>(each.param).name) +
                                  (watched ? "Watched" : "");
                         });

TEST_P(ServiceTypes, EndByADreqOfTheRequester) {
  establish();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  EXPECT_EQ(pair.a.host.sent.at(0).as<wire::CmDreq>().remote_qpn, kTarget);
  pair.carry();
  EXPECT_EQ(pair.b.program.look(), "disconnected");
  expect_end();
}

TEST_P(ServiceTypes, EndByADreqOfTheAcceptor) {
  establish();
  pair.b.agent.disconnect(pair.at_b, {}, pair.now);
  EXPECT_EQ(pair.b.host.sent.at(0).as<wire::CmDreq>().remote_qpn, pair.qpn);
  pair.carry();
  EXPECT_EQ(pair.a.program.look(), "disconnected");
  expect_end();
}

TEST_P(ServiceTypes, AnswerARepeatedReply) {
  establish();
  pair.a.take(pair.b.here, rep, pair.now);
  EXPECT_EQ(pair.a.host.look(), "RTU");
}

// Enhanced connection establishment (ECE) is offered by the vendor fields and the modifier.
TEST_P(ServiceTypes, IgnoreVendorFields) {
  ask();
  wire::CmMad req = pair.a.host.sent.at(0).mad;
  pair.lose();
  std::get<wire::CmReq>(req.message).vendor = 0xFF'FFFF;
  req.modifier = 0xFFFF'FFFF;
  pair.b.take(pair.a.here, req, pair.now);
  accept();
  pair.lose();
  auto& reply = std::get<wire::CmRep>(rep.message);
  EXPECT_EQ(reply.vendor_high | reply.vendor_middle | reply.vendor_low, 0) << "of Weft";
  EXPECT_EQ(rep.modifier, 0U);
  reply.vendor_high = reply.vendor_middle = reply.vendor_low = 0xFF;
  rep.modifier = 0xFFFF'FFFF;
  pair.a.take(pair.b.here, rep, pair.now);
  confirm();
}

}  // namespace
}  // namespace weft::cm
