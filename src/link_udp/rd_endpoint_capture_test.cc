// SPDX-License-Identifier: BSD-2-Clause
// Does a capture get every packet of an endpoint as it was on the wire?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "test_support.h"
#include "wire/packet.h"
#include "wire/tap.h"

namespace weft::udp {
namespace {

using namespace testing;

// Writes down what it hears.
struct Record final : wire::Tap {
  struct Entry {
    bool sent;
    wire::Route route;
    wire::Ipv4Words words;
    Bytes bytes;
    std::string remark;
  };
  std::vector<Entry> entries;
  bool takes() const override { return true; }
  void packet(wire::CaptureDirection direction, const wire::Route& route, wire::Ipv4Words words,
              std::span<const std::byte> datagram, std::string_view remark) override {
    entries.push_back({direction == wire::CaptureDirection::kSent, route, words,
                       Bytes(datagram.begin(), datagram.end()), std::string(remark)});
  }
  std::vector<Bytes> all(bool sent) const {
    std::vector<Bytes> found;
    for (const Entry& each : entries) {
      if (each.sent == sent) found.push_back(each.bytes);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
};

TEST(RdEndpointCapture, HasEachPacketOfATrainWithItsIcrc) {
  Record of_a;
  Record of_b;
  {
    Peer a({}, os::loopback(0), &of_a);
    Peer b({}, os::loopback(0), &of_b);
    link::Flow* const flow = connect(a, b);
    ASSERT_NE(flow, nullptr);
    Bytes bytes = pattern(120'000, 1);
    send(a, b, *flow, 1, bytes);
    EXPECT_TRUE(until({&a, &b}, [&] { return a.ends.ended_ones.size() == 1; }));
    part(a, b);
  }
  // What it sends at the end, when the other has gone, is not received.
  const auto heard = of_b.all(false);
  const auto said = of_a.all(true);
  EXPECT_GT(said.size(), 15u);
  EXPECT_TRUE(std::includes(said.begin(), said.end(), heard.begin(), heard.end()));
  EXPECT_GE(heard.size() + 3, said.size());
  for (const Record* record : {&of_a, &of_b}) {
    for (const Record::Entry& each : record->entries) {
      EXPECT_EQ(wire::check_icrc(each.route, each.bytes, each.words), each.words);
      EXPECT_EQ(each.remark, "");
    }
  }
}

TEST(RdEndpointCapture, HasWhatWasDroppedToo) {
  Record record;
  Peer a({}, os::loopback(0), &record);
  auto socket = std::move(os::UdpSocket::bind(os::loopback(0), {})).value();
  const Bytes nonsense = pattern(40, 7);
  socket.send(a.address, {}, nonsense, nonsense.size());
  ASSERT_TRUE(until({&a}, [&] { return !record.entries.empty(); }));
  EXPECT_TRUE(record.entries[0].bytes == nonsense);
  EXPECT_EQ(record.entries[0].route.source_port, socket.address().port());
  EXPECT_NE(record.entries[0].remark.find("dropped"), std::string::npos);
  EXPECT_EQ(a.port->stats().of(Stat::kIcrcErrors), 1u);
}

}  // namespace
}  // namespace weft::udp
