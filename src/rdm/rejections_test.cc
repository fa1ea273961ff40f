// SPDX-License-Identifier: BSD-2-Clause
// With which reason does an endpoint reject requests and replies?
#include <gtest/gtest.h>

#include <algorithm>

#include "rdm/connection_message.h"
#include "simulated_endpoint.h"
#include "simulated_port.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::milliseconds;

// An endpoint that takes flows and listens for connections of programs. Its peer is the test.
struct RejectionsTest : ::testing::Test, link::ListenerUser {
  World world;
  std::unique_ptr<Endpoint> end = std::make_unique<Endpoint>(world);
  Stranger peer{world};
  std::vector<wire::CmMad> heard;
  std::size_t requests = 0;
  PortConnections& connections = *end->host.connections;

  void requested(link::ConnectionNumber, link::ConnectionRequest) override { ++requests; }
  void withdrawn(link::ConnectionNumber) override {}
  void say(std::uint64_t transaction, const wire::CmMessage& message) {
    peer.send(*end, FlowHand::message(payload_of(transaction, message)));
    pass(milliseconds(10));
  }
  void pass(milliseconds time) {
    world.pass(time, {end.get()});
    for (const wire::CmMad& mad : peer.hear_all()) heard.push_back(mad);
  }
  // The last message that the peer has received, if it is of that kind.
  template <class M>
  const M* last() const {
    return heard.empty() ? nullptr : std::get_if<M>(&heard.back().message);
  }
  // "0/8" of the last REJ: what was rejected, and why. Nothing without one.
  std::string rejection() const {
    const auto is_rej = [](const wire::CmMad& mad) {
      return std::holds_alternative<wire::CmRej>(mad.message);
    };
    const auto at = std::find_if(heard.rbegin(), heard.rend(), is_rej);
    if (at == heard.rend()) return "";
    const auto* const rej = std::get_if<wire::CmRej>(&at->message);
    return std::to_string(rej->message) + "/" + std::to_string(static_cast<unsigned>(rej->reason));
  }
  wire::CmReq flow_req() const {
    wire::CmReq req = write_request(peer.req());
    req.local_id = 1;
    return req;
  }
  wire::CmReq program_req() const {
    wire::CmReq req = flow_req();
    req.service = connection_service(end->address.port());
    return req;
  }
  // The peer's answer to a REQ.
  wire::CmRep rep_to(const wire::CmReq& req) const {
    wire::CmRep rep = write_reply(peer.reply_to({}));
    rep.local_id = 1;
    rep.remote_id = req.local_id;
    return rep;
  }
  // A flow that the peer begins by a REQ of that number, and confirms.
  bool establish(std::uint32_t number) {
    wire::CmReq req = flow_req();
    req.local_id = req.eecn = number;
    say(number, req);
    const auto* const rep = last<wire::CmRep>();
    if (rep == nullptr) return false;
    say(number, wire::CmRtu{number, rep->local_id, {}});
    return true;
  }
  template <class M>
  static M with_version(M message, std::uint8_t version) {
    message.data[0] = std::byte{version};
    return message;
  }
};

TEST_F(RejectionsTest, ARequestOfAnotherVersionHasReason5) {
  say(1, with_version(flow_req(), 5));
  EXPECT_EQ(rejection(), "0/5");
  EXPECT_EQ(end->stats.of(Stat::kInvalidMessages), 1U);
  EXPECT_EQ(end->log.opened.size(), 0U);
}

TEST_F(RejectionsTest, ARequestOfAnotherServiceTypeHasReason5) {
  wire::CmReq req = flow_req();
  req.transport = 0;
  say(1, req);
  EXPECT_EQ(rejection(), "0/5");
}

TEST_F(RejectionsTest, ARequestThatNamesNoEndpointHasReason5) {
  wire::CmReq req = flow_req();
  req.ca_guid = 0;
  say(1, req);
  EXPECT_EQ(rejection(), "0/5");
  EXPECT_EQ(end->stats.of(Stat::kMalformedPackets), 1U);
  EXPECT_EQ(end->log.opened.size(), 0U);
}

TEST_F(RejectionsTest, ARequestOfAProgramOfAnotherVersionHasReason5) {
  ASSERT_TRUE(connections.listen(16, *this));
  say(1, with_version(program_req(), 5));
  EXPECT_EQ(rejection(), "0/5");
  EXPECT_EQ(requests, 0U);
  say(2, program_req());
  EXPECT_EQ(requests, 1U);
}

TEST_F(RejectionsTest, AReplyOfAnotherVersionHasReason5) {
  end->flows.push_back(std::move(end->open(peer.address)).value());
  pass(milliseconds(10));
  ASSERT_NE(last<wire::CmReq>(), nullptr);
  say(heard.back().transaction, with_version(rep_to(*last<wire::CmReq>()), 5));
  EXPECT_EQ(rejection(), "1/5");
  EXPECT_EQ(end->stats.of(Stat::kInvalidMessages), 1U);
  EXPECT_FALSE(end->flows[0]->reached());
  EXPECT_TRUE(last<wire::CmReq>()) << "another process may bind the address later";
}

TEST_F(RejectionsTest, AReplyToAProgramOfAnotherVersionHasReason5) {
  ConnectionEnd program;
  ASSERT_TRUE(connections.request(peer.address, {}, program));
  pass(milliseconds(10));
  ASSERT_NE(last<wire::CmReq>(), nullptr);
  say(heard.back().transaction, with_version(rep_to(*last<wire::CmReq>()), 5));
  EXPECT_EQ(rejection(), "1/5");
  EXPECT_EQ(program.failures, 1U);
  EXPECT_EQ(program.connects, 0U);
}

TEST_F(RejectionsTest, ARequestWithAnotherAuthorizationKeyHasReason28AndSaysSo) {
  Authorizations keys;
  FlowRequest keyed = peer.req();
  const AuthorizationPtr key = keys.take(std::as_bytes(std::span("a job"))).value();
  keyed.proof = prove(key, 1, keyed.me, end->address.port());
  wire::CmReq req = write_request(keyed);
  req.local_id = 1;
  say(1, req);
  EXPECT_EQ(rejection(), "0/28");
  const FlowEnd said = read_end(last<wire::CmRej>()->data);
  EXPECT_TRUE(said.refuses);
  EXPECT_TRUE(said.other_key);
  EXPECT_EQ(end->log.opened.size(), 0U);
}

// Neither end of an attempt knows the other one by these numbers.
TEST_F(RejectionsTest, AReplyOrAnRtuOfAnUnknownConnectionHasReason6) {
  const std::uint32_t id = std::uint32_t{end->address.port()} << 16 | 7;
  wire::CmRep rep = rep_to(flow_req());
  rep.remote_id = id;
  say(1, rep);
  EXPECT_EQ(rejection(), "1/6");
  say(2, wire::CmRtu{1, id, {}});
  EXPECT_EQ(rejection(), "2/6");
}

TEST_F(RejectionsTest, ARequestBeyond16FlowsOfOnePeerHasReason3) {
  for (std::uint32_t number = 1; number <= 16; ++number) ASSERT_TRUE(establish(number)) << number;
  EXPECT_FALSE(establish(17));
  EXPECT_EQ(rejection(), "0/3");
  EXPECT_EQ(end->log.opened.size(), 16U);
}

TEST_F(RejectionsTest, ARequestForAnAbsentServiceHasReason8) {
  say(1, program_req());
  EXPECT_EQ(rejection(), "0/8") << "no listener";
}

TEST_F(RejectionsTest, ARequestToContinueAnUnknownFlowHasReason10) {
  wire::CmReq req = flow_req();
  req.data[39] = std::byte{1};  // the identity of the flow
  say(1, req);
  EXPECT_EQ(rejection(), "0/10");
}

TEST_F(RejectionsTest, ARequestAtAnEndpointThatTakesNoFlowsHasReason28) {
  RdmOptions options;
  options.takes_flows = false;
  end = std::make_unique<Endpoint>(world, options);
  say(1, flow_req());
  EXPECT_EQ(rejection(), "0/28");
  EXPECT_TRUE(read_end(last<wire::CmRej>()->data).refuses);
}

}  // namespace
}  // namespace weft::rdm::testing
