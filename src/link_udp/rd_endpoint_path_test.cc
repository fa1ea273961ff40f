// SPDX-License-Identifier: BSD-2-Clause
// Does a flow hear what the kernel knows of the way between two hosts? The test is the router
// between them. What follows from that is judged in the simulator, by path_change_test.cc of the
// module rdm.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/own_process_support.h"
#include "test_support.h"

namespace weft::udp {
namespace {

using namespace testing;
using Octets = std::vector<std::uint8_t>;

constexpr int kWide = 9000;
constexpr int kNarrow = 1400;
constexpr std::uint64_t kKey = 10;

os::SocketAddress address_of(int family, int host) {
  return os::address_of((family == AF_INET6 ? "fd77::" : "10.77.0.") + std::to_string(host));
}

unsigned word_at(const Octets& bytes, std::size_t offset) {
  return static_cast<unsigned>(bytes.at(offset) << 8 | bytes.at(offset + 1));
}

// The sum of RFC 1071, put in so that all from there on sums up to zero.
void put_checksum(Octets& packet, std::size_t from, std::size_t end, std::size_t at, unsigned sum) {
  packet[at] = packet[at + 1] = 0;
  for (std::size_t i = from; i < end; i += 2) sum += word_at(packet, i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  packet[at] = static_cast<std::uint8_t>(~sum >> 8);
  packet[at + 1] = static_cast<std::uint8_t>(~sum);
}

// What a router answers to a packet that it cannot hand on.
Octets too_big(const Octets& packet, int mtu) {
  const bool v4 = packet[0] >> 4 == 4;
  const std::size_t header = v4 ? 20 : 40;
  const std::size_t length = v4 ? 4 : 16;
  const auto source = static_cast<std::ptrdiff_t>(v4 ? 12 : 8);
  const auto quoted = static_cast<std::ptrdiff_t>(header + 8);
  Octets answer(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(header));
  std::swap_ranges(answer.begin() + source,
                   answer.begin() + source + static_cast<std::ptrdiff_t>(length),
                   answer.begin() + source + static_cast<std::ptrdiff_t>(length));
  const std::uint8_t type = v4 ? 3 : 2;
  const std::uint8_t code = v4 ? 4 : 0;
  answer.insert(answer.end(), {type, code, 0, 0, 0, 0, static_cast<std::uint8_t>(mtu >> 8),
                               static_cast<std::uint8_t>(mtu)});
  answer.insert(answer.end(), packet.begin(), packet.begin() + quoted);
  unsigned pseudo_header = 0;
  if (v4) {
    answer[2] = 0;
    answer[3] = static_cast<std::uint8_t>(answer.size());
    answer[9] = IPPROTO_ICMP;
    put_checksum(answer, 0, header, 10, 0);
  } else {
    answer[4] = 0;
    answer[5] = static_cast<std::uint8_t>(answer.size() - header);
    answer[6] = IPPROTO_ICMPV6;
    pseudo_header = answer[5] + unsigned{IPPROTO_ICMPV6};
    for (std::size_t i = 8; i < header; i += 2) pseudo_header += word_at(answer, i);
  }
  put_checksum(answer, header, answer.size(), header + 2, pseudo_header);
  return answer;
}

// A host: a namespace with one interface, whose other end the test holds.
class Host {
 public:
  explicit Host(int number) : number_(number) {
    if (::unshare(CLONE_NEWNET) != 0) return;
    space_.reset(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    file_.reset(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    control_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    control6_.reset(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request = named();
    request.ifr_flags = static_cast<short>(IFF_TUN | IFF_NO_PI);
    if (!file_.valid() || ::ioctl(file_.get(), TUNSETIFF, &request) != 0) {
      file_.reset();
      return;
    }
    set(SIOCSIFADDR, address_of(AF_INET, number));
    sockaddr_in mask{};
    mask.sin_family = AF_INET;
    mask.sin_addr.s_addr = htonl(0xFFFF'FF00);
    set(SIOCSIFNETMASK, os::SocketAddress::parse(&mask, sizeof mask).value());
    set_mtu(kWide);
    request = named();
    request.ifr_qlen = 10'000;
    EXPECT_EQ(::ioctl(control_.get(), SIOCSIFTXQLEN, &request), 0);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    EXPECT_EQ(::ioctl(control_.get(), SIOCSIFFLAGS, &request), 0);
    add_ipv6();
  }
  bool valid() const { return file_.valid(); }
  bool has_ipv6() const { return has_ipv6_; }
  void enter() const { EXPECT_EQ(::setns(space_.get(), CLONE_NEWNET), 0); }
  void set_mtu(int mtu) {
    ifreq request = named();
    request.ifr_mtu = mtu;
    EXPECT_EQ(::ioctl(control_.get(), SIOCSIFMTU, &request), 0);
  }
  // The next packet that left it; empty when there is none.
  Octets next() {
    const ssize_t size = ::read(file_.get(), buffer_.data(), buffer_.size());
    return {buffer_.begin(), buffer_.begin() + std::max<ssize_t>(size, 0)};
  }
  void put(const Octets& packet) {
    EXPECT_EQ(::write(file_.get(), packet.data(), packet.size()),
              static_cast<ssize_t>(packet.size()));
  }

 private:
  static ifreq named() {
    ifreq request{};
    std::memcpy(request.ifr_name, "weft77", 7);
    return request;
  }
  void set(unsigned long what, const os::SocketAddress& address) {
    ifreq request = named();
    std::memcpy(&request.ifr_addr, address.get(), sizeof(sockaddr_in));
    EXPECT_EQ(::ioctl(control_.get(), what, &request), 0);
  }
  void add_ipv6() {
    const os::SocketAddress address = address_of(AF_INET6, number_);
    ifreq named_one = named();
    in6_ifreq request{};
    request.ifr6_addr = reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr;
    request.ifr6_prefixlen = 64;
    if (!control6_.valid() || ::ioctl(control_.get(), SIOCGIFINDEX, &named_one) != 0) return;
    request.ifr6_ifindex = named_one.ifr_ifindex;
    if (::ioctl(control6_.get(), SIOCSIFADDR, &request) != 0) return;
    // The kernel makes the address usable in a thread of its own.
    for (int i = 0; i < 5'000 && !has_ipv6_; ++i) {
      has_ipv6_ = os::UdpPort::bind(address).ok();
      if (!has_ipv6_) ::usleep(1'000);
    }
  }

  const int number_;
  os::Fd space_;
  os::Fd file_;
  os::Fd control_;
  os::Fd control6_;
  bool has_ipv6_ = false;
  Octets buffer_ = Octets(65'536);
};

// Says that the packet met a queue (RFC 3168), if its sender understands that.
void mark(Octets& packet) {
  const bool v4 = packet[0] >> 4 == 4;
  const unsigned bits = v4 ? packet[1] & 3U : packet[1] >> 4 & 3U;
  if (bits != 1 && bits != 2) return;
  packet[1] |= v4 ? 0x03 : 0x30;
  if (v4) put_checksum(packet, 0, 20, 10, 0);
}

// Two hosts and the router between them.
struct Network {
  Host hosts[2] = {Host(1), Host(2)};
  int mtu = kWide;
  bool marks = false;  // packets that allow it
  // What it has seen.
  unsigned refused = 0;
  unsigned fragments = 0;
  std::size_t largest = 0;

  bool valid() const { return hosts[0].valid() && hosts[1].valid(); }
  void forget() { refused = fragments = 0, largest = 0; }
  void hand_on() {
    for (Host& host : hosts) {
      Host& other = &host == hosts ? hosts[1] : hosts[0];
      for (Octets packet = host.next(); !packet.empty(); packet = host.next()) {
        const bool v4 = packet[0] >> 4 == 4;
        const bool fragment =
            v4 ? (word_at(packet, 6) & 0x3FFF) != 0 : packet[6] == IPPROTO_FRAGMENT;
        if (packet[v4 ? 9 : 6] != IPPROTO_UDP && !fragment) continue;
        largest = std::max(largest, packet.size());
        if (fragment) ++fragments;
        if (marks) mark(packet);
        if (packet.size() <= static_cast<std::size_t>(mtu)) {
          other.put(packet);
        } else {
          ++refused;
          host.put(too_big(packet, mtu));
        }
      }
    }
  }
};

// An endpoint on each host.
struct Fixture {
  Network& network;
  int family;
  Regions regions;
  Bytes region = Bytes(1 << 20);
  memory::Registration registration =
      regions.add(kKey, region, Access::kRemoteRead | Access::kRemoteWrite);
  std::unique_ptr<Peer> peers[2];
  link::Flow* flow = nullptr;
  std::vector<Bytes> sent;  // buffers of what is in flight

  Fixture(Network& between, int of) : network(between), family(of) {
    for (int i = 0; i < 2; ++i) {
      network.hosts[i].enter();
      RdmOptions options;
      options.regions = regions.open();
      peers[i] = std::make_unique<Peer>(options, address_of(family, i + 1));
    }
    auto made = (network.hosts[0].enter(), a().open(b().address));
    if (!made) return;
    a().flows.push_back(std::move(made).value());
    flow = a().flows.back().get();
  }
  ~Fixture() {
    a().flows.clear();
    for (int i = 0; i < 20; ++i) poll();
  }
  Peer& a() { return *peers[0]; }
  Peer& b() { return *peers[1]; }
  void poll() {
    for (int i = 0; i < 2; ++i) {
      network.hosts[i].enter();
      peers[i]->poll();
      network.hand_on();
    }
  }
  bool until(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      poll();
    }
    return true;
  }
  // The requests that were made end well.
  bool all_ended() {
    return until([&] { return a().ends.ended_ones.size() == sent.size(); });
  }
  // Smaller packets come, at both ends.
  bool agrees() { return access(false, 8), all_ended(); }

  void message(std::size_t length) {
    sent.push_back(pattern(length, sent.size() + 1));
    const LocalRange sge{sent.back().data(), length};
    link::SendRequest request = rdm::testing::tagged(sent.size(), {&sge, 1}, length);
    request.until_delivered = true;
    EXPECT_EQ(flow->send(request).state, link::Outcome::State::kPending);
  }
  void access(bool write, std::size_t length) {
    sent.push_back(pattern(length, sent.size() + 1));
    const LocalRange sge{sent.back().data(), length};
    const RemoteRange remote{0, length, RegionKey{kKey}};
    const auto request = rdm::testing::access_of(write, sge, remote, sent.size());
    EXPECT_EQ(flow->access(request).state, link::Outcome::State::kPending);
  }
};

// A process of its own, where `body` runs for IPv4 and IPv6; skips where it may have no networks.
void between_hosts(const std::function<void(Network&, int family)>& body) {
  os::in_own_process("network namespaces with tunnel devices", [&] {
    if (::geteuid() != 0 && ::unshare(CLONE_NEWUSER) != 0) return false;
    for (const int family : {AF_INET, AF_INET6}) {
      Network network;
      if (!network.valid()) return false;
      const bool v6 = network.hosts[0].has_ipv6() && network.hosts[1].has_ipv6();
      if (family == AF_INET || v6) body(network, family);
    }
    return true;
  });
}

constexpr std::size_t kLarge = 200'000;

// The flow goes on while something changes the way, where the router may refuse packets.
void change_while_sending(Fixture& pair, bool refuses, const std::function<void()>& change) {
  ASSERT_NE(pair.flow, nullptr);
  const auto send_some = [&] {
    for (int i = 0; i < 10; ++i) {
      pair.message(kLarge);
      pair.access(true, kLarge);
      pair.access(false, kLarge);
    }
  };
  const auto expect_done = [&] {
    ASSERT_TRUE(pair.all_ended());
    for (const auto& [number, end] : pair.a().ends.ended_ones) EXPECT_EQ(end.error, 0) << number;
  };
  send_some();
  for (int i = 0; i < 5; ++i) pair.poll();
  EXPECT_GT(pair.network.largest, 4096U);
  change();
  expect_done();
  EXPECT_EQ(pair.network.refused != 0, refuses);

  ASSERT_TRUE(pair.agrees());
  pair.network.forget();
  send_some();
  expect_done();
  EXPECT_EQ(pair.network.refused + pair.network.fragments, 0U) << "smaller packets are agreed upon";
  EXPECT_LE(pair.network.largest, std::size_t{kNarrow});
  EXPECT_GT(pair.network.largest, 1024U);
}

TEST(RdEndpointPath, WorkGoesOnWhereARouterRefusesLargePacketsAndMarksOthers) {
  between_hosts([](Network& network, int family) {
    Fixture pair(network, family);
    change_while_sending(pair, true, [&] { network.mtu = kNarrow; });
    EXPECT_EQ(pair.b().stats.of(Stat::kEcnMarked), 0U);
    network.marks = true;
    pair.access(true, kLarge);
    ASSERT_TRUE(pair.all_ended());
    EXPECT_GT(pair.b().stats.of(Stat::kEcnMarked), 0U) << "packets allow routers to mark them";
    EXPECT_GT(pair.a().stats.of(Stat::kCnpsHandled), 0U);
  });
}

// The interface of the host itself: nothing has to be lost to find that out.
TEST(RdEndpointPath, WorkGoesOnWhenTheInterfaceCarriesLess) {
  between_hosts([](Network& network, int family) {
    Fixture pair(network, family);
    change_while_sending(pair, false, [&] { network.hosts[0].set_mtu(kNarrow); });
  });
}

}  // namespace
}  // namespace weft::udp
