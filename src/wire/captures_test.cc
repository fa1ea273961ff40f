// SPDX-License-Identifier: BSD-2-Clause
// Do real packets of Linux's rdma_rxe say what they say, and is each written again as it was?
#include <gtest/gtest.h>

#include <string>

#include "captured.h"
#include "wire/cm_message.h"
#include "wire/endian.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::wire {
namespace {

using testing::Bytes;
using testing::Captured;
using testing::packets_of;

struct Capture {
  const char* name;
  int right;  // packets whose CRC is right, and those whose is not, as others counted them
  int wrong;
  int cm_messages;
};

class Captures : public ::testing::TestWithParam<Capture> {};

TEST_P(Captures, HaveAsManyRightCrcsAsOthersCounted) {
  int right = 0;
  int wrong = 0;
  for (const Captured& packet : packets_of(GetParam().name)) {
    const std::span<const std::byte> all(packet.datagram);
    const auto covered = all.first(all.size() - kIcrcBytes);
    const bool same =
        icrc(packet.route, covered, packet.words) == load_icrc(covered.data() + covered.size());
    ++(same ? right : wrong);
  }
  EXPECT_EQ(right, GetParam().right);
  EXPECT_EQ(wrong, GetParam().wrong);
}

// As a socket sees them: the IPv4 header is not known.
TEST_P(Captures, AreCheckedWithoutTheirIpv4Header) {
  for (const Captured& packet : packets_of(GetParam().name)) {
    const std::span<const std::byte> all(packet.datagram);
    const auto covered = all.first(all.size() - kIcrcBytes);
    const bool same =
        icrc(packet.route, covered, packet.words) == load_icrc(covered.data() + covered.size());
    if (!same) continue;
    EXPECT_EQ(check_icrc(packet.route, packet.datagram), packet.words);
  }
}

TEST_P(Captures, AreReadAndWrittenAgainByteForByte) {
  for (const Captured& captured : packets_of(GetParam().name)) {
    Packet packet;
    ASSERT_EQ(parse(captured.datagram, packet), Malformed::kNone);
    Bytes out(header_bytes(packet));
    write_headers(packet, packet.payload.size(), out.data());
    out.insert(out.end(), packet.payload.begin(), packet.payload.end());
    out.resize(out.size() + padding_of(packet.payload.size()) + kIcrcBytes);
    store_icrc(out.data() + out.size() - kIcrcBytes,
               load_icrc(captured.datagram.data() + captured.datagram.size() - kIcrcBytes));
    EXPECT_EQ(out, captured.datagram);
  }
}

// Messages to queue pair 1, byte for byte.
TEST_P(Captures, HoldMessagesOfConnectionManagers) {
  int messages = 0;
  for (const Captured& captured : packets_of(GetParam().name)) {
    Packet packet;
    ASSERT_EQ(parse(captured.datagram, packet), Malformed::kNone);
    if (packet.destination != kCmQpn || packet.queue_key != kCmQueueKey) continue;
    const auto mad = parse_cm(packet.payload);
    ASSERT_TRUE(mad.has_value());
    const auto again = write_cm(*mad);
    EXPECT_EQ(Bytes(again.begin(), again.end()),
              Bytes(packet.payload.begin(), packet.payload.end()))
        << "kind " << mad->message.index();
    ++messages;
  }
  EXPECT_EQ(messages, GetParam().cm_messages);
}

INSTANTIATE_TEST_SUITE_P(
    OfRxe, Captures,
    ::testing::Values(Capture{"rxe61_rc_uc_ud_srq_atomic_cm.pcap", 225, 0, 7},
                      Capture{"rxe612_cm_rc_uc_ud_srq_atomic_v4v6.pcap", 265, 0, 19},
                      Capture{"userspace_peer_vs_rxe612.pcap", 77, 1, 37},
                      Capture{"linux_udp_ipid_matrix_and_gso.pcap", 23, 38, 0}));

}  // namespace
}  // namespace weft::wire
