// SPDX-License-Identifier: BSD-2-Clause
// What stands on the wire, and what does the network's answer to it do? A tunnel device in a
// network namespace of the test's own shows every packet and takes any answer. Skipped where that
// may not be.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "os/event.h"
#include "os/loopback_support.h"
#include "os/own_process_support.h"
#include "os/udp_path.h"
#include "os/udp_socket.h"

namespace weft::os {
namespace {

using Bytes = std::vector<std::uint8_t>;
using What = UdpError::What;

constexpr const char* kHere[] = {"10.77.0.1", "fd77::1"};
constexpr const char* kThere[] = {"10.77.0.2", "fd77::2"};
constexpr int kMtu = 1500;

unsigned word_at(const Bytes& bytes, std::size_t offset) {
  return static_cast<unsigned>(bytes.at(offset) << 8 | bytes.at(offset + 1));
}

// The sum of RFC 1071 over whole words, to be put in so that all sums up to zero.
void put_checksum(Bytes& packet, std::size_t from, std::size_t at, unsigned sum) {
  for (std::size_t i = from; i < packet.size(); i += 2) sum += word_at(packet, i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  packet[at] = static_cast<std::uint8_t>(~sum >> 8);
  packet[at + 1] = static_cast<std::uint8_t>(~sum);
}

// A device of this namespace whose other end is a descriptor.
class Tunnel {
 public:
  // IFF_TUN: IP packets; IFF_TAP: Ethernet frames, so that neighbours have to be found first.
  // Not valid() where it may not be had.
  explicit Tunnel(int kind) : file_(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC)) {
    ifreq request = named();
    request.ifr_flags = static_cast<short>(kind | IFF_NO_PI);
    if (!file_.valid() || ::ioctl(file_.get(), TUNSETIFF, &request) != 0) {
      file_.reset();
      return;
    }
    const Fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto address = address_of(kHere[0], 0);
    const auto mask = address_of("255.255.255.0", 0);
    request = named();
    std::memcpy(&request.ifr_addr, address.get(), sizeof(sockaddr_in));
    EXPECT_EQ(::ioctl(control.get(), SIOCSIFADDR, &request), 0);
    std::memcpy(&request.ifr_netmask, mask.get(), sizeof(sockaddr_in));
    EXPECT_EQ(::ioctl(control.get(), SIOCSIFNETMASK, &request), 0);
    request.ifr_mtu = kMtu;
    EXPECT_EQ(::ioctl(control.get(), SIOCSIFMTU, &request), 0);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    EXPECT_EQ(::ioctl(control.get(), SIOCSIFFLAGS, &request), 0);
    if (kind == IFF_TUN) add_ipv6();  // among frames it would take a second
  }
  bool valid() const { return file_.valid(); }
  bool has_ipv6() const { return has_ipv6_; }

  // The next UDP packet that leaves, IP header first; empty when none does.
  Bytes next() { return next_of(IPPROTO_UDP); }
  Bytes next_of(int protocol) {
    Bytes packet(65'536);
    while (wait_readable(file_.get(), std::chrono::seconds(20))) {
      const ssize_t size = ::read(file_.get(), packet.data(), packet.size());
      if (size < 28) continue;
      const bool v4 = packet[0] >> 4 == 4;
      if (packet[v4 ? 9 : 6] != protocol) continue;  // the kernel looks for routers, too
      packet.resize(static_cast<std::size_t>(size));
      return packet;
    }
    ADD_FAILURE() << "no packet left";
    return {};
  }
  void put(const Bytes& packet) {
    EXPECT_EQ(::write(file_.get(), packet.data(), packet.size()),
              static_cast<ssize_t>(packet.size()));
  }
  static void start_loopback() {
    ifreq request{};
    std::memcpy(request.ifr_name, "lo", 3);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    const Fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::ioctl(control.get(), SIOCSIFFLAGS, &request), 0);
  }
  // Makes the peer's link-layer address known.
  static void introduce_peer() {
    arpreq entry{};
    const auto peer = address_of(kThere[0], 0);
    std::memcpy(&entry.arp_pa, peer.get(), sizeof(sockaddr_in));
    entry.arp_ha.sa_family = ARPHRD_ETHER;
    entry.arp_ha.sa_data[0] = 2;
    entry.arp_flags = ATF_COM | ATF_PERM;
    const Fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::ioctl(control.get(), SIOCSARP, &entry), 0);
  }

 private:
  static ifreq named() {
    ifreq request{};
    std::memcpy(request.ifr_name, "weft77", 7);
    return request;
  }
  void add_ipv6() {
    const Fd control(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    in6_ifreq request{};
    const auto address = address_of(kHere[1], 0);
    request.ifr6_addr = reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr;
    request.ifr6_prefixlen = 64;
    request.ifr6_ifindex = static_cast<int>(::if_nametoindex("weft77"));
    if (!control.valid() || ::ioctl(control.get(), SIOCSIFADDR, &request) != 0) return;
    // The kernel makes the address usable in a thread of its own.
    for (int i = 0; i < 5'000 && !has_ipv6_; ++i) {
      has_ipv6_ = UdpPort::bind(address).ok();
      if (!has_ipv6_) ::usleep(1'000);
    }
    EXPECT_TRUE(has_ipv6_);
  }

  Fd file_;
  bool has_ipv6_ = false;
};

// What a router answers to a packet: `type` and `code` of ICMP or ICMPv6, and a word of its own.
Bytes answer_to(const Bytes& packet, std::uint8_t type, std::uint8_t code, std::uint16_t word) {
  const bool v4 = packet[0] >> 4 == 4;
  const std::size_t header = v4 ? 20 : 40;
  const std::size_t quoted = header + 8;
  const auto low = static_cast<std::uint8_t>(word);
  const auto high = static_cast<std::uint8_t>(word >> 8);
  Bytes answer(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(header));
  const std::size_t address = v4 ? 4 : 16;
  const std::size_t source = v4 ? 12 : 8;
  std::swap_ranges(answer.begin() + static_cast<std::ptrdiff_t>(source),
                   answer.begin() + static_cast<std::ptrdiff_t>(source + address),
                   answer.begin() + static_cast<std::ptrdiff_t>(source + address));
  answer.insert(answer.end(), {type, code, 0, 0, 0, 0, high, low});
  answer.insert(answer.end(), packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(quoted));
  if (v4) {
    answer[2] = 0;
    answer[3] = static_cast<std::uint8_t>(answer.size());
    answer[9] = IPPROTO_ICMP;
    answer[10] = answer[11] = 0;
    Bytes first(answer.begin(), answer.begin() + 20);
    put_checksum(first, 0, 10, 0);
    std::copy(first.begin(), first.end(), answer.begin());
    put_checksum(answer, header, header + 2, 0);
  } else {
    answer[4] = 0;
    answer[5] = static_cast<std::uint8_t>(8 + quoted);
    answer[6] = IPPROTO_ICMPV6;
    unsigned pseudo_header = static_cast<unsigned>(8 + quoted) + IPPROTO_ICMPV6;
    for (std::size_t i = source; i < header; i += 2) pseudo_header += word_at(answer, i);
    put_checksum(answer, header, header + 2, pseudo_header);
  }
  return answer;
}

// A process of its own in an empty network, where `body` runs; skips where there may be none.
void in_own_network(int kind, const std::function<void(Tunnel&)>& body) {
  in_own_process("a network namespace with a tunnel device", [&] {
    if (!enter_empty_network()) return false;
    Tunnel tunnel(kind);
    if (!tunnel.valid()) return false;
    body(tunnel);
    return true;
  });
}

void with_both_families(const std::function<void(Tunnel&, int family)>& body) {
  in_own_network(IFF_TUN, [&](Tunnel& tunnel) {
    body(tunnel, AF_INET);
    if (tunnel.has_ipv6()) body(tunnel, AF_INET6);
  });
}

UdpSocket bound(int family, const UdpSocket::SocketOptions& options = {}) {
  const char* host = kHere[family == AF_INET6 ? 1 : 0];
  auto socket = UdpSocket::bind(address_of(host, 0), options);
  EXPECT_TRUE(socket.ok()) << socket.error().message;
  return std::move(socket).value();
}

SocketAddress peer(int family, std::uint16_t port = 4791) {
  return address_of(kThere[family == AF_INET6 ? 1 : 0], port);
}

std::span<const std::byte> zeros(std::size_t size) {
  static const std::vector<std::byte> bytes(100'000);
  return {bytes.data(), size};
}

std::optional<UdpError> awaited_error(const UdpSocket& socket) {
  pollfd ready{.fd = socket.fd(), .events = 0, .revents = 0};
  EXPECT_EQ(::poll(&ready, 1, 20'000), 1);
  return socket.next_error();
}

TEST(UdpOnTheWire, TheIdentificationIsThePlaceInTheTrainAndNothingMayFragment) {
  for (const bool trains : {true, false}) {
    in_own_network(IFF_TUN, [&](Tunnel& tunnel) {
      UdpSocket socket = bound(AF_INET, {.trains = trains});
      // Twice, as a counter would go on.
      for (const std::size_t total : {100, 950, 7'000, 100, 950}) {
        ASSERT_EQ(socket.send(peer(AF_INET), {}, zeros(total), 100).error, 0);
        const std::size_t datagrams = (total + 99) / 100;
        for (std::size_t i = 0; i < datagrams; ++i) {
          const Bytes packet = tunnel.next();
          const std::size_t size = std::min<std::size_t>(100, total - i * 100);
          ASSERT_EQ(packet.size(), 28 + size);
          EXPECT_EQ(word_at(packet, 4), socket.identification(i, 100)) << i << " of " << datagrams;
          EXPECT_EQ(word_at(packet, 4), socket.trains() ? i % 64 : 0);
          EXPECT_EQ(word_at(packet, 6), 0x4000U) << "flags and offset";
          EXPECT_EQ(word_at(packet, 20), socket.address().port());
          EXPECT_EQ(word_at(packet, 22), 4791U);
        }
      }
    });
  }
}

TEST(UdpOnTheWire, TrafficClassAndHopLimitStandInEveryPacket) {
  with_both_families([](Tunnel& tunnel, int family) {
    UdpSocket socket = bound(family, {.traffic_class = 26 << 2 | 2, .hop_limit = 9});
    ASSERT_EQ(socket.send(peer(family), {}, zeros(300), 100).error, 0);
    for (int i = 0; i < 3; ++i) {
      const Bytes packet = tunnel.next();
      if (family == AF_INET) {
        EXPECT_EQ(packet.at(1), 26 << 2 | 2);
        EXPECT_EQ(packet.at(8), 9);
      } else {
        EXPECT_EQ(word_at(packet, 0) >> 4 & 0xff, 26U << 2 | 2);
        EXPECT_EQ(packet.at(7), 9);
      }
    }
  });
}

TEST(UdpOnTheWire, PacketsAboveTheMtuOfTheInterfaceAreRefusedWithIt) {
  with_both_families([](Tunnel& tunnel, int family) {
    UdpSocket socket = bound(family);
    const bool trains = socket.trains();
    const std::size_t largest = kMtu - udp_header_bytes(family);
    for (const std::size_t segment : {std::size_t{0}, largest + 1}) {
      const SendOutcome outcome = socket.send(peer(family), {}, zeros(2 * largest + 2), segment);
      EXPECT_EQ(outcome.error, EMSGSIZE);
      EXPECT_EQ(outcome.path_mtu, std::size_t{kMtu});
      EXPECT_EQ(outcome.datagrams, 0U);
    }
    EXPECT_EQ(socket.trains(), trains);
    EXPECT_EQ(socket.send(peer(family), {}, zeros(2 * largest), largest).error, 0);
    EXPECT_EQ(tunnel.next().size(), std::size_t{kMtu});
    EXPECT_EQ(tunnel.next().size(), std::size_t{kMtu});
  });
}

TEST(UdpOnTheWire, ARouterThatCarriesLessIsHeardAndBelieved) {
  with_both_families([](Tunnel& tunnel, int family) {
    UdpSocket socket = bound(family);
    ASSERT_EQ(socket.send(peer(family), {}, zeros(1'400), 0).error, 0);
    const Bytes packet = tunnel.next();
    tunnel.put(family == AF_INET ? answer_to(packet, 3, 4, 1'300) : answer_to(packet, 2, 0, 1'300));
    const auto error = awaited_error(socket);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->what, What::kTooBig);
    EXPECT_EQ(error->peer, peer(family));
    EXPECT_EQ(error->path_mtu, 1'300U);
    EXPECT_EQ(udp_path_to(peer(family)).value().mtu, 1'300U);
    const SendOutcome again = socket.send(peer(family), {}, zeros(1'400), 0);
    EXPECT_EQ(again.error, EMSGSIZE);
    EXPECT_EQ(again.path_mtu, 1'300U);
    EXPECT_EQ(socket.send(peer(family), {}, zeros(1'200), 0).error, 0);
    EXPECT_EQ(tunnel.next().size(), 1'200 + udp_header_bytes(family));
  });
}

TEST(UdpOnTheWire, LargePacketsLeaveInFragmentsOnRequestOnly) {
  with_both_families([](Tunnel& tunnel, int family) {
    UdpSocket socket = bound(family);
    const bool trains = socket.trains();
    const SendOutcome outcome = socket.send_in_fragments(peer(family), {}, zeros(4'000), 2'000);
    EXPECT_EQ(outcome.error, 0);
    EXPECT_EQ(outcome.datagrams, 2U);
    EXPECT_EQ(outcome.bytes, 4'000U);
    std::size_t bytes = 0;
    for (int i = 0; i < 4; ++i) {
      const int protocol = family == AF_INET ? int{IPPROTO_UDP} : int{IPPROTO_FRAGMENT};
      const Bytes packet = tunnel.next_of(protocol);
      EXPECT_LE(packet.size(), std::size_t{kMtu});
      const bool whole = family == AF_INET && (word_at(packet, 6) & 0x4000) != 0;
      EXPECT_FALSE(whole) << "routers may cut, too";
      bytes += packet.size() - (family == AF_INET ? 20 : 48);
    }
    EXPECT_EQ(bytes, 2 * (8 + 2'000U));
    EXPECT_EQ(socket.trains(), trains);
    EXPECT_EQ(socket.send(peer(family), {}, zeros(2'000), 0).error, EMSGSIZE) << "as before";
  });
}

TEST(UdpOnTheWire, HostsAndNetsThatAreNotReachedAreTold) {
  struct Case {
    std::uint8_t type[2], code[2];  // of ICMP, of ICMPv6
    What what;
  };
  with_both_families([](Tunnel& tunnel, int family) {
    const std::size_t v6 = family == AF_INET6 ? 1 : 0;
    UdpSocket socket = bound(family);
    for (const Case& one :
         {Case{{3, 1}, {0, 0}, What::kNetUnreachable}, Case{{3, 1}, {1, 3}, What::kHostUnreachable},
          Case{{3, 1}, {3, 4}, What::kPortUnreachable}, Case{{3, 1}, {2, 1}, What::kOther}}) {
      const auto port = static_cast<std::uint16_t>(5'000 + one.code[v6]);
      ASSERT_EQ(socket.send(peer(family, port), {}, zeros(10), 0).error, 0);
      tunnel.put(answer_to(tunnel.next(), one.type[v6], one.code[v6], 0));
      const auto error = awaited_error(socket);
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->what, one.what);
      EXPECT_EQ(error->peer, peer(family, port));
      EXPECT_NE(error->code, 0);
    }
    EXPECT_FALSE(socket.next_error().has_value());
  });
}

TEST(UdpOnTheWire, WithoutARouteNothingLeavesAndTrainsGoOn) {
  in_own_network(IFF_TUN, [](Tunnel& tunnel) {
    UdpSocket socket = bound(AF_INET);
    const bool trains = socket.trains();
    const SocketAddress far = address_of("192.0.2.1", 4791);
    for (const std::size_t segment : {0, 10}) {
      EXPECT_EQ(socket.send(far, {}, zeros(100), segment).error, ENETUNREACH);
    }
    EXPECT_EQ(udp_path_to(far).error().code, ENETUNREACH);
    EXPECT_EQ(socket.trains(), trains);
    EXPECT_EQ(socket.send(peer(AF_INET), {}, zeros(100), 10).error, 0);
    EXPECT_EQ(tunnel.next().size(), 38U);
  });
}

// The packet that a peer sends back, of the same bytes: sums stay what they are.
Bytes reflection_of(Bytes packet) {
  const bool v4 = packet[0] >> 4 == 4;
  const auto begin = packet.begin() + (v4 ? 12 : 8);
  const int address = v4 ? 4 : 16;
  std::swap_ranges(begin, begin + address, begin + address);
  std::swap_ranges(begin + 2 * address, begin + 2 * address + 2, begin + 2 * address + 2);
  return packet;
}

// Until then it is connected to itself: kernels do not forget that for IPv6.
TEST(UdpOnTheWire, ASocketOverAPortHearsOtherHosts) {
  with_both_families([](Tunnel& tunnel, int family) {
    Tunnel::start_loopback();
    auto port = UdpPort::bind(address_of(kHere[family == AF_INET6 ? 1 : 0], 0));
    ASSERT_TRUE(port.ok());
    EXPECT_FALSE(has_listener(port.value().address()));
    auto socket = UdpSocket::over(port.value(), {});
    ASSERT_TRUE(socket.ok());
    EXPECT_TRUE(has_listener(port.value().address()));
    ASSERT_EQ(socket.value().send(peer(family), {}, zeros(100), 0).error, 0);
    tunnel.put(reflection_of(tunnel.next()));
    ASSERT_TRUE(wait_readable(socket.value().fd(), std::chrono::seconds(10)));
    UdpBatch batch(1);
    ASSERT_EQ(socket.value().receive(batch), 0);
    ASSERT_EQ(batch.arrivals().size(), 1U);
    EXPECT_EQ(batch.arrivals()[0].from, peer(family));
    // And itself.
    ASSERT_EQ(socket.value().send(socket.value().address(), {}, zeros(100), 0).error, 0);
    EXPECT_TRUE(wait_readable(socket.value().fd(), std::chrono::seconds(10)));
  });
}

// Datagrams to a neighbour that does not answer yet stay in the socket's buffer.
TEST(UdpOnTheWire, AFullBufferTakesNoMoreUntilItHasDrained) {
  for (const bool trains : {true, false}) {
    in_own_network(IFF_TAP, [&](Tunnel&) {
      UdpSocket socket = bound(AF_INET, {.trains = trains});
      const int small = 20'000;
      ASSERT_EQ(::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
      const SendOutcome full = socket.send(peer(AF_INET), {}, zeros(100'000), 100);
      EXPECT_EQ(full.error, EAGAIN);
      EXPECT_GT(full.datagrams, 0U);
      EXPECT_LT(full.datagrams, 1'000U);
      EXPECT_EQ(full.bytes, full.datagrams * 100);
      EXPECT_EQ(full.datagrams % socket.segments_per_train(100), 0U) << "no train is cut";
      EXPECT_EQ(socket.send(peer(AF_INET), {}, zeros(1), 0).error, EAGAIN);
      Tunnel::introduce_peer();
      pollfd ready{.fd = socket.fd(), .events = POLLOUT, .revents = 0};
      EXPECT_EQ(::poll(&ready, 1, 20'000), 1);
      EXPECT_EQ(ready.revents, POLLOUT);
      EXPECT_EQ(socket.send(peer(AF_INET), {}, zeros(1), 0).error, 0);
    });
  }
}

}  // namespace
}  // namespace weft::os
