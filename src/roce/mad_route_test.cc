// SPDX-License-Identifier: BSD-2-Clause
// Does each message of connection management lead to the port of its process?
#include "mad_route.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::roce {
namespace {

constexpr std::uint32_t kLocal = 0x0BAD'0001;  // the sender's: it says nothing of this host
constexpr std::uint32_t kOurs = 0x9C41'0007;   // port 40001

template <class Message>
wire::CmMessage with_ids() {
  Message message;
  message.local_id = kLocal;
  message.remote_id = kOurs;
  return message;
}

TEST(MadRoute, ServicesOfEveryPortSpaceNameAPort) {
  EXPECT_EQ(port_of_service(wire::service_of(wire::kPortSpaceTcp, 7174)), 7174);
  EXPECT_EQ(port_of_service(wire::service_of(wire::kPortSpaceUdp, 65'535)), 65'535);
  EXPECT_EQ(port_of_service(0x0000'0000'013F'1C06), 0x1C06);
  EXPECT_EQ(port_of_service(0x5765'6674'0002'9C41), 0x9C41);
}

TEST(MadRoute, OtherServicesNameNone) {
  for (const std::uint64_t service :
       {0x0000'0000'0000'1C06ULL, 0x0000'0000'0206'1C06ULL, 0x0000'0001'0106'1C06ULL,
        0x5765'6675'0000'9C41ULL, 0x1000'0000'0106'1C06ULL}) {
    EXPECT_EQ(port_of_service(service), std::nullopt) << service;
  }
}

TEST(MadRoute, RequestsGoByTheirServiceAndOthersByTheIdOfTheReceiver) {
  wire::CmReq req;
  req.local_id = kLocal;
  req.service = wire::service_of(wire::kPortSpaceTcp, 7174);
  EXPECT_EQ(destination_port(req), 7174);
  wire::CmSidrReq resolve;
  resolve.request = kLocal;
  resolve.service = wire::service_of(wire::kPortSpaceUdp, 7174);
  EXPECT_EQ(destination_port(resolve), 7174);
  wire::CmSidrRep resolved;
  resolved.request = kOurs;
  resolved.service = resolve.service;
  EXPECT_EQ(destination_port(resolved), 0x9C41);
  const std::vector<wire::CmMessage> others{with_ids<wire::CmMra>(),  with_ids<wire::CmRej>(),
                                            with_ids<wire::CmRep>(),  with_ids<wire::CmRtu>(),
                                            with_ids<wire::CmDreq>(), with_ids<wire::CmDrep>(),
                                            with_ids<wire::CmLap>(),  with_ids<wire::CmApr>()};
  for (const wire::CmMessage& each : others) {
    EXPECT_EQ(destination_port(each), 0x9C41) << each.index();
    EXPECT_EQ(refusal_of({.message = each}).has_value(),
              std::holds_alternative<wire::CmDreq>(each));
  }
}

TEST(MadRoute, ARequestIsRefusedAsBySystemsWithoutAListener) {
  wire::CmMad asked{.transaction = 0x1122'3344'5566'7788, .message = {}};
  wire::CmReq req;
  req.local_id = kLocal;
  asked.message = req;
  const auto rejected = refusal_of(asked);
  ASSERT_TRUE(rejected);
  EXPECT_EQ(rejected->transaction, asked.transaction);
  const auto& rej = std::get<wire::CmRej>(rejected->message);
  EXPECT_EQ(rej.local_id, 0U);
  EXPECT_EQ(rej.remote_id, kLocal);
  EXPECT_EQ(rej.message, 0) << "the REQ";
  EXPECT_EQ(rej.info_length, 0);
  EXPECT_EQ(rej.reason, wire::CmReason::kInvalidService);
}

TEST(MadRoute, AServiceThatIsNotThereIsNotResolved) {
  wire::CmMad asked{.transaction = 7, .message = {}};
  wire::CmSidrReq resolve;
  resolve.request = kLocal;
  resolve.service = 99;
  asked.message = resolve;
  const auto refused = refusal_of(asked);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->transaction, 7U);
  const auto& rep = std::get<wire::CmSidrRep>(refused->message);
  EXPECT_EQ(rep.request, kLocal);
  EXPECT_EQ(rep.status, 1);
  EXPECT_EQ(rep.service, 99U);
  EXPECT_EQ(rep.qpn, 0U);
}

TEST(MadRoute, TheEndOfAConnectionOfADeadProcessIsConfirmed) {
  wire::CmMad asked{.transaction = 8, .message = {}};
  asked.message = with_ids<wire::CmDreq>();
  const auto answer = refusal_of(asked);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->transaction, 8U);
  const auto& drep = std::get<wire::CmDrep>(answer->message);
  EXPECT_EQ(drep.local_id, kOurs);
  EXPECT_EQ(drep.remote_id, kLocal);
}

TEST(MadRoute, OnlyPacketsForQueuePairOneCarryMessages) {
  const auto bytes = wire::write_cm({.transaction = 9, .message = wire::CmReq{}});
  wire::Packet right;
  right.opcode = wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  right.destination = wire::kCmQpn;
  right.queue_key = wire::kCmQueueKey;
  right.payload = bytes;
  ASSERT_TRUE(read_mad(right));
  EXPECT_EQ(read_mad(right)->transaction, 9U);
  const auto refused = [&](auto change) {
    wire::Packet packet = right;
    change(packet);
    return !read_mad(packet);
  };
  EXPECT_TRUE(refused([](wire::Packet& packet) { packet.queue_key ^= 1; }));
  EXPECT_TRUE(refused([](wire::Packet& packet) { packet.destination = 2; }));
  EXPECT_TRUE(refused([](wire::Packet& packet) { packet.pkey = 0x8001; }));
  EXPECT_TRUE(refused([](wire::Packet& packet) {
    packet.opcode =
        wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnlyImmediate);
  }));
  EXPECT_TRUE(refused([](wire::Packet& packet) { packet.payload = packet.payload.first(255); }));
}

TEST(MadRoute, PrivateDataMayFollowTheMessage) {
  const auto mad = wire::write_cm({.transaction = 9, .message = wire::CmReq{}});
  std::vector<std::byte> bytes(mad.begin(), mad.end());
  bytes.resize(wire::kMadBytes + wire::kMaxBytesBehindMad + 1);
  wire::Packet packet;
  packet.opcode = wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  packet.destination = wire::kCmQpn;
  packet.queue_key = wire::kCmQueueKey;
  for (const std::size_t more : {std::size_t{1}, wire::kMaxBytesBehindMad}) {
    packet.payload = std::span(bytes).first(wire::kMadBytes + more);
    ASSERT_TRUE(read_mad(packet));
    EXPECT_EQ(read_mad(packet)->transaction, 9U);
  }
  packet.payload = bytes;
  EXPECT_FALSE(read_mad(packet));
}

}  // namespace
}  // namespace weft::roce
