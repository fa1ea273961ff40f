// SPDX-License-Identifier: BSD-2-Clause
// Does a datagram of any length harm an endpoint, whatever UDP port it comes to?
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "os/own_process_support.h"
#include "support/endpoint.h"
#include "wire/cm_message.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::hostile {
namespace {

using conformance::Address;
using conformance::Endpoint;
using conformance::Options;
using conformance::Pump;

constexpr std::size_t kLongestDatagram = 65'507;  // of UDP over IPv4
// What waits in a socket before its endpoint looks. A socket holds more than this.
constexpr std::size_t kWaitingBytes = 64 * 1024;
constexpr unsigned kWaitingPackets = 32;
constexpr int kPolls = 6;  // in which endpoints read all of that, and what is relayed
constexpr unsigned kDrainsPerLook = 512;
// RDMA_UDP_QKEY of librdmacm, which every datagram endpoint has.
constexpr std::uint32_t kDatagramQueueKey = 0x0123'4567;
const char* const kGroup = "239.255.7.77";
constexpr std::uint16_t kGroupPort = 40'077;

bool raise_loopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool up = ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  ::close(fd);
  return up;
}

// A UDP socket of this network namespace, as /proc/net/udp lists it.
struct Port {
  in_addr address{};
  std::uint16_t number = 0;
  std::uint64_t queued = 0;   // bytes that wait to be read
  std::uint64_t dropped = 0;  // datagrams that were never read
};

std::vector<Port> open_ports() {
  std::vector<Port> ports;
  std::ifstream list("/proc/net/udp");
  std::string line;
  std::getline(list, line);
  while (std::getline(list, line)) {
    std::istringstream columns(line);
    std::string slot, local, peer, state, queues, skipped;
    columns >> slot >> local >> peer >> state >> queues;
    Port port;
    port.address.s_addr = static_cast<in_addr_t>(std::stoul(local.substr(0, 8), nullptr, 16));
    port.number = static_cast<std::uint16_t>(std::stoul(local.substr(9), nullptr, 16));
    port.queued = std::stoull(queues.substr(9), nullptr, 16);
    for (int i = 0; i < 7; ++i) columns >> skipped;
    columns >> port.dropped;
    if (port.number != 0) ports.push_back(port);
  }
  return ports;
}

std::uint64_t sum_of(std::uint64_t Port::*member) {
  std::uint64_t sum = 0;
  for (const Port& port : open_ports()) sum += port.*member;
  return sum;
}

std::string text_of_ports() {
  std::string text;
  for (const Port& port : open_ports()) {
    text += std::string(::inet_ntoa(port.address)) + ":" + std::to_string(port.number) + " " +
            std::to_string(port.queued) + " bytes queued, " + std::to_string(port.dropped) +
            " datagrams dropped\n";
  }
  return text;
}

std::uint16_t port_of(const Address& address) {
  sockaddr_in name{};
  std::memcpy(&name, address.bytes.data(), sizeof name);
  return ntohs(name.sin_port);
}

Address name_of(fid& endpoint) {
  Address address;
  address.size = address.bytes.size();
  EXPECT_EQ(fi_getname(&endpoint, address.bytes.data(), &address.size), 0);
  return address;
}

// Endpoints of all types that have UDP ports, in one process.
class Targets {
 public:
  Targets() {
    Options reliable;
    for (int i = 0; i < 2; ++i) add(reliable);
    Options unreliable = conformance::datagrams();
    for (int i = 0; i < 2; ++i) add(unreliable);
    Options connected;
    connected.type = FI_EP_MSG;
    for (int i = 0; i < 2; ++i) add(connected);
    sockaddr_in group{};
    group.sin_family = AF_INET;
    group.sin_port = htons(kGroupPort);
    ::inet_pton(AF_INET, kGroup, &group.sin_addr);
    member_ = conformance::open_fid<fid_mc>(
        [&](fid_mc** out) { return fi_join(datagram(0).ep(), &group, 0, out, nullptr); });
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      receives_[i].endpoint = &datagram(i % 2);
      post(receives_[i]);
    }
    Endpoint& asks = *endpoints_[4];
    Endpoint& answers = *endpoints_[5];
    asks.connect(answers.name());
    EXPECT_TRUE(pump.until([&] { return answers.accept(); }));
    EXPECT_TRUE(pump.until([&] { return asks.connected() && answers.connected(); }));
    expect_served();
  }

  // Without giving the processor away, which costs milliseconds on a busy machine.
  void poll() {
    for (const auto& each : endpoints_) each->poll();
    for (Receive& each : receives_) {
      if (each.endpoint->untaken() != 0 && each.endpoint->take(&each.context)) post(each);
    }
  }
  Endpoint& datagram(std::size_t i) { return *endpoints_[2 + i]; }
  // Of two endpoints of a type, and the two listeners, one is enough.
  bool is_twin(std::uint16_t port) const {
    const Address asks = name_of(endpoints_[4]->ep()->fid);
    return port == port_of(endpoints_[1]->name()) || port == port_of(endpoints_[3]->name()) ||
           port == port_of(endpoints_[4]->name()) || port == port_of(asks);
  }

  // Messages between the reliable ones arrive.
  void expect_served() {
    expect_message(*endpoints_[0], *endpoints_[1], endpoints_[0]->insert(endpoints_[1]->name()));
    expect_message(*endpoints_[4], *endpoints_[5], FI_ADDR_UNSPEC);
  }

  Pump pump;

 private:
  // One that a datagram endpoint has posted: without any it does not read its socket.
  struct Receive {
    Endpoint* endpoint = nullptr;
    fi_context2 context{};
    std::array<std::byte, 4096> bytes{};
  };
  static void post(Receive& receive) {
    ASSERT_EQ(fi_recv(receive.endpoint->ep(), receive.bytes.data(), receive.bytes.size(), nullptr,
                      FI_ADDR_UNSPEC, &receive.context),
              0);
  }
  void add(const Options& options) {
    auto domain = std::make_shared<conformance::Domain>(options);
    endpoints_.push_back(std::make_unique<Endpoint>(std::move(domain), options));
    ASSERT_TRUE(endpoints_.back()->ok());
    pump.add(endpoints_.back().get());
  }
  void expect_message(Endpoint& from, Endpoint& to, fi_addr_t address) {
    std::uint64_t sent = 0x1122'3344'5566'7788;
    std::uint64_t received = 0;
    fi_context2 contexts[2];
    ASSERT_EQ(fi_recv(to.ep(), &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &contexts[0]),
              0);
    ssize_t status = -FI_EAGAIN;
    EXPECT_TRUE(pump.until([&] {
      status = fi_send(from.ep(), &sent, sizeof sent, nullptr, address, &contexts[1]);
      return status != -FI_EAGAIN;
    }));
    ASSERT_EQ(status, 0);
    std::optional<conformance::Completion> ends[2];
    EXPECT_TRUE(pump.until([&] {
      if (!ends[0]) ends[0] = to.take(&contexts[0]);
      if (!ends[1]) ends[1] = from.take(&contexts[1]);
      return ends[0] && ends[1];
    }));
    EXPECT_EQ(received, sent);
  }

  std::array<Receive, 128> receives_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  conformance::Fid<fid_mc> member_;
};

// A foreign peer's socket, which sends one packet after the other to one port.
class Attacker {
 public:
  Attacker(Targets& targets, const Port& port) : targets_(targets) {
    to_.sin_family = AF_INET;
    to_.sin_port = htons(port.number);
    to_.sin_addr = port.address;
    if (port.address.s_addr == htonl(INADDR_ANY)) to_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    from_.sin_family = AF_INET;
    from_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int discover = IP_PMTUDISC_DO;  // so that the identification in the ICRC is 0
    ::setsockopt(fd_, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    ::setsockopt(fd_, IPPROTO_IP, IP_MULTICAST_IF, &from_.sin_addr, sizeof from_.sin_addr);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&from_), sizeof from_), 0);
    socklen_t length = sizeof from_;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&from_), &length);
    std::memcpy(route_.source.data(), &from_.sin_addr, sizeof from_.sin_addr);
    std::memcpy(route_.destination.data(), &to_.sin_addr, sizeof to_.sin_addr);
    route_.source_port = ntohs(from_.sin_port);
    route_.destination_port = port.number;
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(i * 7 + 1);
  }
  ~Attacker() { ::close(fd_); }
  Attacker(const Attacker&) = delete;
  Attacker& operator=(const Attacker&) = delete;

  // Whether a packet of so many bytes with these headers is well formed; it is written then.
  bool write(const wire::Packet& headers, std::size_t length) {
    const std::size_t before = wire::header_bytes(headers);
    if (length < before + wire::kIcrcBytes || length % 4 != 0) return false;
    wire::write_headers(headers, length - before - wire::kIcrcBytes, bytes_.data());
    wire::Packet parsed;
    return wire::parse(std::span(bytes_).first(length), parsed) == wire::Malformed::kNone;
  }
  // Makes the ICRC of what stands there right.
  void close(std::size_t length) {
    if (length < wire::kBthBytes + wire::kIcrcBytes) return;
    const std::size_t covered = length - wire::kIcrcBytes;
    wire::store_icrc(bytes_.data() + covered, wire::icrc(route_, std::span(bytes_).first(covered)));
  }
  void send(std::size_t length) {
    const ssize_t sent = ::sendto(fd_, bytes_.data(), length, 0,
                                  reinterpret_cast<const sockaddr*>(&to_), sizeof to_);
    // An ICMP error that an earlier datagram met fails the next call.
    EXPECT_TRUE(sent == static_cast<ssize_t>(length) || errno == ECONNREFUSED)
        << length << ": " << std::strerror(errno);
    ++sent_;
    waiting_bytes_ += length;
    if (++waiting_packets_ >= kWaitingPackets || waiting_bytes_ >= kWaitingBytes) drain();
  }
  std::uint64_t sent() const { return sent_; }
  // The endpoints take in what has been sent, and their answers are thrown away. /proc is slow:
  // only now and then it is asked whether anything is left.
  void drain() {
    for (int i = 0; i < kPolls; ++i) targets_.poll();
    if (drained_++ % kDrainsPerLook == 0) expect_read();
    waiting_bytes_ = 0;
    waiting_packets_ = 0;
  }
  // All that was sent has been read by an endpoint.
  void expect_read() {
    const bool read = targets_.pump.until([this] {
      char answer = 0;
      while (::recv(fd_, &answer, 1, MSG_DONTWAIT) >= 0 || errno == ECONNREFUSED) continue;
      return sum_of(&Port::queued) == 0;
    });
    ASSERT_TRUE(read) << text_of_ports();
  }

 private:
  Targets& targets_;
  const int fd_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in from_{};
  sockaddr_in to_{};
  wire::Route route_;
  std::array<std::byte, kLongestDatagram + 4> bytes_;
  std::size_t waiting_bytes_ = 0;
  unsigned waiting_packets_ = 0;
  unsigned drained_ = 0;
  std::uint64_t sent_ = 0;
};

// Packets of that length to a queue pair with its key: of every eighth opcode in turn, and of those
// that can be no longer.
bool send_sound_packets(Attacker& attacker, std::uint32_t queue_pair, std::size_t length) {
  bool any = false;
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    if (!wire::layout_of(static_cast<std::uint8_t>(opcode)).known) continue;
    wire::Packet headers;
    headers.opcode = static_cast<std::uint8_t>(opcode);
    headers.destination = queue_pair;
    headers.source = 0x11;  // of a foreign peer
    headers.queue_key = queue_pair == wire::kCmQpn ? wire::kCmQueueKey : kDatagramQueueKey;
    headers.end_to_end_context = 1;
    if (!attacker.write(headers, length)) continue;
    any = true;
    if ((opcode + length / 4) % 8 != 0 && attacker.write(headers, length + 4)) continue;
    attacker.write(headers, length);
    attacker.close(length);
    attacker.send(length);
  }
  return any;
}

// Each up to the largest buffer for packets; beyond it, which all share their fate, one of eleven.
constexpr std::size_t next_length(std::size_t length) {
  constexpr std::size_t kAllBuffers = 17'000;
  constexpr std::size_t kStep = 11;
  return length < kAllBuffers ? length + 1 : length + kStep;
}

// Sends datagrams of many lengths to one port: packets of every opcode where there are such, for
// the queue pairs that are named; else bytes with a right ICRC. Returns how many.
std::uint64_t attack(Targets& targets, const Port& port,
                     const std::vector<std::uint32_t>& queue_pairs) {
  const auto attacker = std::make_unique<Attacker>(targets, port);
  std::size_t longest_sound = 0;
  for (std::size_t length = 0; length <= kLongestDatagram; length = next_length(length)) {
    for (const std::uint32_t queue_pair : queue_pairs) {
      if (longest_sound + 1024 < length) break;  // no packet is as long
      if (::testing::Test::HasFatalFailure()) return 0;
      if (send_sound_packets(*attacker, queue_pair, length)) longest_sound = length;
    }
    attacker->close(length);
    attacker->send(length);
  }
  attacker->expect_read();
  EXPECT_EQ(longest_sound, 8'944U) << "a reliable datagram with 8,896 bytes of payload";
  return attacker->sent();
}

// In a network of their own, where all ports are theirs.
TEST(Lengths, DatagramsOfAnyLengthHarmNoEndpoint) {
  os::in_own_process("a network namespace", [] {
    if (!os::enter_empty_network() || !raise_loopback()) return false;
    Targets targets;
    const std::vector<Port> ports = open_ports();
    std::set<std::uint16_t> numbers;
    std::uint64_t sent = 0;
    for (const Port& port : ports) {
      if (targets.is_twin(port.number) || !numbers.insert(port.number).second) continue;
      std::vector<std::uint32_t> queue_pairs{std::uint32_t{port.number} << 8 | 1, wire::kCmQpn};
      if (port.number == wire::kUdpPort) {
        queue_pairs = {std::uint32_t{port_of(targets.datagram(0).name())} << 8 | 1,
                       std::uint32_t{port_of(targets.datagram(1).name())} << 8 | 1};
      }
      if (port.number == kGroupPort) queue_pairs = {wire::kMulticastQpn};
      sent += attack(targets, port, queue_pairs);
      if (::testing::Test::HasFatalFailure()) return true;
    }
    EXPECT_TRUE(numbers.contains(wire::kUdpPort) && numbers.contains(kGroupPort));
    EXPECT_EQ(numbers.size(), 6U) << "RDM, DGRAM, a listener, MSG, a group, 4791";
    EXPECT_LT(sum_of(&Port::dropped), sent / 4) << "read by no endpoint:\n" << text_of_ports();
    targets.expect_served();
    return true;
  });
}

}  // namespace
}  // namespace weft::hostile
