// SPDX-License-Identifier: BSD-2-Clause
// Does libpcap, the common reader of captures, find what was written down?
#include "wire/pcapng.h"

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <cstdio>
#include <memory>

#include "test_support.h"
#include "wire/endian.h"
#include "wire/packet.h"

namespace weft::wire {
namespace {

using testing::Bytes;
using testing::from_hex;

using PcapFile = std::unique_ptr<pcap_t, decltype(&pcap_close)>;

// libpcap reads what lies in this memory.
PcapFile open_capture(Bytes& bytes) {
  std::FILE* file = fmemopen(bytes.data(), bytes.size(), "rb");
  char error[PCAP_ERRBUF_SIZE] = "";
  PcapFile opened(pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, error),
                  &pcap_close);
  EXPECT_TRUE(opened != nullptr) << error;
  return opened;
}

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

Route route(bool v6) {
  Route made;
  made.v6 = v6;
  for (std::size_t i = 0; i < (v6 ? 16u : 4u); ++i) {
    made.source[i] = static_cast<std::byte>(10 + i);
    made.destination[i] = static_cast<std::byte>(100 + i);
  }
  made.source_port = 50000;
  made.destination_port = kUdpPort;
  return made;
}

TEST(Pcapng, IsReadByLibpcapWithTimesAndBytes) {
  Bytes file = capture_header("weft");
  append(file, capture_interface("weft0"));
  std::vector<Bytes> datagrams;
  constexpr std::uint64_t kTime = 1'700'000'000'123'456'789;
  for (const bool v6 : {false, true}) {
    for (const std::size_t length : {std::size_t{16}, std::size_t{17}, std::size_t{4116}}) {
      Bytes datagram(length, std::byte{0x5A});
      append(file, capture_packet(0, kTime + datagrams.size(), CaptureDirection::kSent, route(v6),
                                  {7, 0x4000}, datagram, "a remark"));
      datagrams.push_back(datagram);
    }
  }
  const PcapFile opened = open_capture(file);
  ASSERT_TRUE(opened != nullptr);
  EXPECT_EQ(pcap_datalink(opened.get()), DLT_RAW);
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  for (std::size_t i = 0; i < datagrams.size(); ++i) {
    ASSERT_EQ(pcap_next_ex(opened.get(), &header, &bytes), 1) << i;
    const std::size_t headers = i < 3 ? 28 : 48;
    ASSERT_EQ(header->caplen, headers + datagrams[i].size());
    EXPECT_EQ(header->len, header->caplen);
    EXPECT_EQ(static_cast<std::uint64_t>(header->ts.tv_sec), kTime / 1'000'000'000);
    EXPECT_EQ(static_cast<std::uint64_t>(header->ts.tv_usec), kTime % 1'000'000'000 + i);
    const auto* ip = reinterpret_cast<const std::byte*>(bytes);
    EXPECT_EQ(load<std::uint8_t>(ip), i < 3 ? 0x45 : 0x60);
    EXPECT_EQ(load<std::uint16_t>(ip + headers - 8), 50000);
    EXPECT_EQ(load<std::uint16_t>(ip + headers - 6), kUdpPort);
    EXPECT_EQ(load<std::uint16_t>(ip + headers - 4), 8 + datagrams[i].size());
    EXPECT_EQ(Bytes(ip + headers, ip + header->caplen), datagrams[i]);
  }
  EXPECT_EQ(pcap_next_ex(opened.get(), &header, &bytes), PCAP_ERROR_BREAK);
}

TEST(Pcapng, HasAnIpv4HeaderWhoseSumIsRight) {
  const Bytes datagram(20);
  const Bytes block =
      capture_packet(0, 0, CaptureDirection::kReceived, route(false), {0x718C, 0x4000}, datagram);
  const std::byte* ip = block.data() + 28;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += load<std::uint16_t>(ip + i);
  EXPECT_EQ((sum & 0xFFFF) + (sum >> 16), 0xFFFFu);
  EXPECT_EQ(load<std::uint16_t>(ip + 4), 0x718C);
}

// Sums up in another way than the writer: the whole pseudo header lies before the datagram.
TEST(Pcapng, HasAUdpHeaderWhoseSumIsRight) {
  for (const bool v6 : {false, true}) {
    for (const std::size_t length : {std::size_t{16}, std::size_t{17}, std::size_t{4116}}) {
      const Bytes block = capture_packet(0, 0, CaptureDirection::kSent, route(v6), {},
                                         Bytes(length, std::byte{0xC3}));
      const std::byte* udp = block.data() + 28 + (v6 ? 40 : 20);
      const std::size_t addresses = v6 ? 32 : 8;
      Bytes summed(udp - addresses, udp + 8 + length);
      if (length % 2 != 0) summed.push_back(std::byte{0});
      std::uint32_t sum = 17 + 8 + static_cast<std::uint32_t>(length);
      for (std::size_t i = 0; i < summed.size(); i += 2) {
        sum += load<std::uint16_t>(summed.data() + i);
        if (sum > 0xFFFF) sum -= 0xFFFF;
      }
      EXPECT_EQ(sum, 0xFFFFu) << v6 << ' ' << length;
      EXPECT_NE(load<std::uint16_t>(udp + 6), 0);
    }
  }
}

TEST(Pcapng, SurvivesARemarkThatIsTooLong) {
  Bytes file = capture_header("weft");
  append(file, capture_interface("weft0"));
  append(file, capture_packet(0, 0, CaptureDirection::kReceived, route(true), {}, Bytes(16),
                              std::string(100'000, 'x')));
  const PcapFile opened = open_capture(file);
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  EXPECT_EQ(pcap_next_ex(opened.get(), &header, &bytes), 1);
}

}  // namespace
}  // namespace weft::wire
