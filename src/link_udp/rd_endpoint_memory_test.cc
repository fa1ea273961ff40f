// SPDX-License-Identifier: BSD-2-Clause
// How much memory do hostile flows make an endpoint keep?
#include <gtest/gtest.h>
#include <malloc.h>

#include <map>

#include "hostile_test_support.h"
#include "own_network.h"

#if defined(__SANITIZE_ADDRESS__)
// sanitizer/allocator_interface.h, which not every installation of gcc has.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace weft::udp {
namespace {

using namespace testing;
using namespace roce::testing;
using wire::Operation;

// Bytes of the heap that are in use.
std::size_t heap() {
#if defined(__SANITIZE_ADDRESS__)
  return __sanitizer_get_current_allocated_bytes();
#else
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

constexpr std::uint32_t kFlows = 1000;
constexpr std::size_t kMemory = std::size_t{8} << 20;  // for packets, and as much for messages
// What a flow costs whatever it does: contexts, channels, and the ways back to their peers.
constexpr std::size_t kPerFlow =
    (std::size_t{4} << 10) + kPacketMemory.minimum + kMessageMemory.minimum;

// A thousand peers at as many addresses of 127.0.0.0/8, behind one socket.
class Crowd {
 public:
  explicit Crowd(const Peer& victim) : victim_(victim) {
    os::UdpSocket::SocketOptions options;
    socket_.emplace(std::move(os::UdpSocket::bind(os::address_of("0.0.0.0"), options)).value());
    for (std::uint32_t i = 0; i < kFlows; ++i) {
      const std::uint32_t host = 0x7F01'0000 + i + 1;
      const std::uint8_t bytes[] = {0x7F, 0x01, static_cast<std::uint8_t>(host >> 8),
                                    static_cast<std::uint8_t>(host)};
      addresses_.push_back(os::SocketAddress::of_host(
          AF_INET, reinterpret_cast<const std::byte*>(bytes), socket_->address().port(), 0));
      numbers_[addresses_.back().text()] = i;
    }
    replies_.resize(kFlows);
  }

  // Agrees upon a flow from each address.
  bool agree(Peer& victim) {
    std::uint32_t agreed = 0;
    for (std::uint32_t i = 0; i < kFlows; ++i) {
      ReqMad req;
      req.me = {1000 + i, roce::queue_pair_at(socket_->address().port()), i + 1, 4, 1024, 1000};
      req.name = addresses_[i];
      req.local_id = i + 1;
      req.transaction = i + 1;
      send(i, Stranger::message(req));
      if (i % 16 != 0) continue;
      victim.poll();
      agreed += confirm();
    }
    return until({&victim}, [&] {
      agreed += confirm();
      return agreed == kFlows;
    });
  }
  Bytes of_flow(std::uint32_t i, Operation operation, std::uint32_t number,
                std::span<const std::byte> payload) const {
    const std::uint16_t port = socket_->address().port();
    return Stranger::packet(Stranger::headers_of(replies_[i], port, operation, number), payload);
  }
  const Introduction& end(std::uint32_t i) const { return replies_[i].me; }
  void send(std::uint32_t i, Bytes bytes) {
    bytes = Stranger::sealed(std::move(bytes), addresses_[i], victim_.address);
    socket_->send(victim_.address, addresses_[i], bytes, bytes.size());
  }

 private:
  // Answers REPs; returns how many flows they are of.
  std::uint32_t confirm() {
    std::uint32_t agreed = 0;
    do {
      socket_->receive(batch_);
      batch_.for_each([&](const os::Datagram& datagram) {
        wire::Packet packet;
        if (wire::parse(datagram.bytes, packet) != wire::Malformed::kNone) return;
        const auto said = read_message(packet.payload);
        const auto* rep = said ? std::get_if<RepMad>(&*said) : nullptr;
        if (rep == nullptr) return;
        const std::uint32_t number = numbers_.at(datagram.to.text());
        if (replies_[number].me.queue_pair == 0) ++agreed;
        replies_[number] = *rep;
        send(number, Stranger::message(RtuMad{rep->remote_id, rep->local_id, rep->transaction}));
      });
    } while (!batch_.arrivals().empty());
    return agreed;
  }

  const Peer& victim_;
  std::optional<os::UdpSocket> socket_;
  os::UdpBatch batch_{8};
  std::vector<os::SocketAddress> addresses_;
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<RepMad> replies_;
};

struct Attack {
  Peer& victim;
  Crowd& crowd;

  void send(std::uint32_t flow, Bytes bytes) {
    crowd.send(flow, std::move(bytes));
    if (++sent % 16 == 0) victim.poll();
  }
  Bytes message(MessageHeader header, std::size_t room) const {
    Bytes bytes(kMessageHeader + room);
    write_header(header, bytes.data());
    return bytes;
  }
  // Behind a gap that is never filled.
  void packets_behind_a_gap(std::uint32_t flow) {
    for (std::uint32_t i = 1; i < 200; ++i) {
      send(flow, crowd.of_flow(flow, Operation::kSendOnly, i, Bytes(1024)));
    }
  }
  // Of 120 KiB, which never end.
  void partial_message(std::uint32_t flow) {
    MessageHeader header;
    header.length = 120 * 1024;
    send(flow, crowd.of_flow(flow, Operation::kSendFirst, 0, message(header, 992)));
    for (std::uint32_t i = 1; i < 100; ++i) {
      send(flow, crowd.of_flow(flow, Operation::kSendMiddle, i, Bytes(1024)));
    }
  }
  // To atomic operations of 512 bytes, which are not acknowledged.
  void answers(std::uint32_t flow) {
    for (std::uint32_t i = 0; i < 64; ++i) {
      send(flow, crowd.of_flow(flow, Operation::kSendOnly, i, Stranger::fetch_sum(i, 512)));
    }
  }
  // Of keys: a number far away, then as many as there may be.
  void aliases(std::uint32_t flow) {
    MessageHeader header;
    header.kind = MessageKind::kAlias;
    header.exchange = (1U << 20) - 1;
    send(flow, crowd.of_flow(flow, Operation::kSendOnly, 0, message(header, 0)));
    for (std::uint32_t i = 0; i < 100; ++i) {
      header.exchange = i;
      send(flow, crowd.of_flow(flow, Operation::kSendOnly, i + 1, message(header, 0)));
    }
  }

  std::uint64_t sent = 0;
};

void attack(const OwnHost& host) {
  if (host.address.family() != AF_INET) return;  // of IPv6 there is one address
  Regions regions;
  Bytes region(4096);
  regions.add(kKey, region, Access::kRemoteRead | Access::kRemoteWrite);
  RdmOptions options;
  options.regions = regions.open();
  options.device = &patient();
  options.packet_memory.total = options.message_memory.total = kMemory;
  Peer a({}, host.address);
  Peer b(options, host.address);
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  b.log.accepts = false;
  {
    Crowd crowd(b);
    const std::size_t before = heap();
    ASSERT_TRUE(crowd.agree(b));
    Attack attack{b, crowd};
    for (std::uint32_t i = 0; i < kFlows; i += 4) {
      attack.packets_behind_a_gap(i);
      attack.partial_message(i + 1);
      attack.answers(i + 2);
      if (i < kFlows / 10) attack.aliases(i + 3);
    }
    for (int i = 0; i < 100; ++i) b.poll();
    const std::size_t after = heap();
    EXPECT_LT(after - before, 2 * kMemory + kFlows * kPerFlow)
        << "after " << attack.sent << " packets: " << (after - before) / kFlows << " B a flow";
    EXPECT_GT(b.port->stats().of(Stat::kRequests), attack.sent / 2) << "they came";
    // The others go on.
    Bytes bytes = pattern(700, 1);
    udp::testing::send(a, b, *flow, 1, bytes);
    ASSERT_TRUE(until({&a, &b}, [&] { return !b.log.messages.empty(); }));
    EXPECT_TRUE(b.log.messages[0].bytes == bytes);
  }
  part(a, b);
}

TEST(RdEndpointMemory, AThousandHostileFlowsStayBelowTheSumOfTheLimits) { on_own_host(attack); }

}  // namespace
}  // namespace weft::udp
