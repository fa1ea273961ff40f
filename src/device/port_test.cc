// SPDX-License-Identifier: BSD-2-Clause
// Does an endpoint reach its peers by the link that leads to them, and by both at once?
#include "device/port.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/heard_warnings_support.h"
#include "device/device.h"
#include "joint_inbox.h"
#include "link/place.h"
#include "link_shm/layout.h"
#include "link_shm/names.h"
#include "memory/own_memory.h"
#include "memory/table_layout.h"
#include "os/descriptor_count_support.h"
#include "os/interfaces.h"
#include "os/loopback_support.h"
#include "os/own_process_support.h"
#include "os/shared_file.h"
#include "os/udp_batch.h"
#include "os/udp_socket.h"
#include "port_support.h"

namespace weft::device {
namespace {

using namespace port_testing;

// Whether that peer, which `one` sends to by `way`, ends with status 0.
bool ends_well(pid_t peer, End& one, link::Flow& way) {
  int status = -1;
  const bool ended = poll_until({&one}, [&] {
    way.progress(one);
    return ::waitpid(peer, &status, WNOHANG) == peer;
  });
  return ended && status == 0;
}

TEST_F(PortTest, PeersOfTheSameHostMeetInSharedMemory) {
  End one(device_, kBoth);
  End two(device_, kBoth);
  one.send(two, "hello");
  ASSERT_TRUE(poll_until({&one, &two}, [&] { return heard_from(two, one).size() == 1; }));
  EXPECT_NE(one.to(two).process(), 0);
  EXPECT_LT(two.sources[one.socket.address().port()], kFirstRemoteSource);
}

TEST_F(PortTest, APeerWithoutSharedMemoryIsReachedOverTheNetwork) {
  End one(device_, kBoth);
  End two(device_, kUdp);
  one.send(two, "hello");
  ASSERT_TRUE(poll_until({&one, &two}, [&] { return heard_from(two, one).size() == 1; }));
  two.send(one, "and back");
  ASSERT_TRUE(poll_until({&one, &two}, [&] { return heard_from(one, two).size() == 1; }));
  EXPECT_EQ(one.to(two).process(), 0);
  EXPECT_GE(one.sources[two.socket.address().port()], kFirstRemoteSource);
}

TEST_F(PortTest, BothLinksCarryMessagesAtOnceInOrder) {
  End middle(device_, kBoth);
  End near(device_, kShm);
  End far(device_, kUdp);
  std::vector<std::string> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(i % 10 == 9 ? std::string(kLarge, static_cast<char>('a' + i % 26))
                              : std::to_string(i));
  }
  for (const std::string& text : all) {
    for (End* sender : {&near, &far}) {
      ASSERT_TRUE(poll_until({&near, &far, &middle}, [&] {
        return sender->send(middle, text).state != link::Outcome::State::kAgain;
      }));
    }
  }
  ASSERT_TRUE(poll_until({&middle, &near, &far}, [&] {
    return heard_from(middle, near).size() == 100 && heard_from(middle, far).size() == 100;
  }));
  for (const std::string& text : all) {
    ASSERT_TRUE(poll_until({&near, &far, &middle}, [&] {
      return middle.send(near, text).state != link::Outcome::State::kAgain;
    }));
  }
  // Offers are in place some time after they came: what was small may overtake them here.
  for (const End* sender : {&near, &far}) {
    auto got = heard_from(middle, *sender);
    auto small = [](const std::string& text) { return text.size() < kLarge; };
    std::erase_if(got, std::not_fn(small));
    auto sent = all;
    std::erase_if(sent, std::not_fn(small));
    EXPECT_EQ(got, sent);
  }
  ASSERT_TRUE(
      poll_until({&middle, &near, &far}, [&] { return heard_from(near, middle).size() == 100; }));
  for (End* end : {&middle, &near, &far}) {
    for (const int error : end->errors) EXPECT_EQ(error, 0);
  }
}

TEST_F(PortTest, ASleeperHearsOfBoth) {
  End sleeper(device_, kBoth);
  for (const Links links : {kShm, kUdp}) {
    End sender(device_, links);
    const auto readable = [&] {
      return os::wait_readable(sleeper.port->wake_set().fd(), std::chrono::milliseconds(0));
    };
    const std::size_t before = sleeper.heard.size();
    sender.send(sleeper, "wake up");
    ASSERT_TRUE(poll_until({&sender}, [&] {
      while (!sleeper.port->fall_asleep()) sleeper.poll();
      const bool woken = readable();
      sleeper.port->inbox().wake_up();
      if (woken) sleeper.poll();
      return sleeper.heard.size() == before + 1;
    })) << links.udp;
  }
}

TEST_F(PortTest, ARingWakesASleeperAndGoingToSleepUndoesIt) {
  for (const auto service : {link::Service::kReliableDatagram, link::Service::kDatagram}) {
    for (const Links links : {kShm, kUdp, kBoth}) {
      End sleeper(device_, links, service);
      const auto readable = [&](int ms) {
        return os::wait_readable(sleeper.port->wake_set().fd(), std::chrono::milliseconds(ms));
      };
      ASSERT_TRUE(sleeper.port->fall_asleep());
      EXPECT_FALSE(readable(0));
      sleeper.port->wake_set().ring();
      EXPECT_TRUE(readable(20'000));
      EXPECT_TRUE(sleeper.port->fall_asleep());
      EXPECT_FALSE(readable(0));
      sleeper.port->inbox().wake_up();
    }
  }
}

// Of datagrams there is a name, too, by which the relay of port 4791 finds the port.
TEST_F(PortTest, APortOfReliableDatagramsHasFiveDescriptorsAndOneOfDatagramsSix) {
  constexpr std::size_t kPorts = 20;
  for (const auto service : {link::Service::kReliableDatagram, link::Service::kDatagram}) {
    const End first(device_, kBoth, service);  // what is opened once and kept
    const auto before = os::count_descriptors();
    std::list<End> ports;
    for (std::size_t i = 0; i < kPorts; ++i) ports.emplace_back(device_, kBoth, service);
    EXPECT_LE(os::count_descriptors() - before,
              kPorts * (service == link::Service::kDatagram ? 6 : 5));
  }
}

TEST_F(PortTest, AWokenEndpointFindsAtOnceMessagesOfTheNetwork) {
  End sleeper(device_, kBoth);
  End sender(device_, kUdp);
  sender.send(sleeper, "here I am");
  ASSERT_TRUE(poll_until({&sender, &sleeper}, [&] { return messages_at(sleeper) == 1; }));
  const auto readable = [&] {
    return os::wait_readable(sleeper.port->wake_set().fd(), std::chrono::milliseconds(0));
  };
  // Until polls have become rare, and nothing comes any more that would wake it.
  for (int i = 0; i < 10'000; ++i) sleeper.poll();
  const auto quiet = [&] {
    sleeper.poll();
    sleeper.poll();
    return sleeper.port->fall_asleep() && !readable();
  };
  ASSERT_TRUE(poll_until({&sender}, quiet));
  sender.send(sleeper, "wake up");
  for (int i = 0; i < 3; ++i) sender.poll();
  ASSERT_TRUE(poll_until({&sender}, readable));
  sleeper.port->inbox().wake_up();
  sleeper.poll();
  EXPECT_EQ(messages_at(sleeper), 2U);
}

// A peer may depend on this end's progress over the network only.
TEST_F(PortTest, OnlyPeersReachedOverTheNetworkAreMetThere) {
  End one(device_, kBoth);
  End near(device_, kBoth);
  End far(device_, kUdp);
  one.send(near, "hello");
  ASSERT_TRUE(poll_until({&one, &near}, [&] { return messages_at(near) == 1; }));
  EXPECT_EQ(one.met + near.met, 0);
  one.send(far, "hello");
  EXPECT_EQ(one.met, 1);
}

// Two builds of Weft on one host.
TEST_F(PortTest, APeerWithAMailboxOfAnotherVersionIsReachedOverTheNetwork) {
  const HeardWarnings warnings;
  End one(device_, kBoth);
  End other(device_, kBoth);
  const auto path = shm::mailbox_path(device_->directory(), other.socket.address());
  auto file = os::SharedFile::open(path);
  ASSERT_TRUE(file.ok());
  auto memory = file.value()->map(0, 4096);
  ++memory.value().at<shm::MailboxHeader>(0)->version;
  one.send(other, "hello");
  one.send(other, "again");
  ASSERT_TRUE(poll_until({&one, &other}, [&] { return messages_at(other) == 2; }));
  EXPECT_EQ(one.met, 1) << "over the network";
  ASSERT_EQ(HeardWarnings::lines.size(), 1U);
  const std::string& line = HeardWarnings::lines[0];
  EXPECT_NE(line.find("another version"), std::string::npos) << line;
}

TEST_F(PortTest, ARejectedSourceIsNotifiedOverEitherLink) {
  End middle(device_, kBoth);
  End near(device_, kShm);
  End far(device_, kUdp);
  middle.turns_away = true;
  near.send(middle, "let me in");
  far.send(middle, "me, too");
  ASSERT_TRUE(poll_until({&middle, &near, &far}, [&] {
    return near.to(middle).check_peer(near) == link::PeerState::kRefuses &&
           far.to(middle).check_peer(far) == link::PeerState::kRefuses;
  }));
  EXPECT_EQ(middle.closed.size(), 2U);
}

TEST_F(PortTest, DatagramsTakeTheLinkThatLeadsToTheirPeer) {
  constexpr auto kDatagrams = link::Service::kDatagram;
  End middle(device_, kBoth, kDatagrams);
  End near(device_, kBoth, kDatagrams);
  End far(device_, kUdp, kDatagrams);
  for (End* each : {&near, &far}) {
    middle.send(*each, "there");
    each->send(middle, "and back");
    const std::size_t expected = messages_at(middle) + 1;
    ASSERT_TRUE(poll_until({&middle, &near, &far}, [&] {
      return messages_at(*each) == 1 && messages_at(middle) == expected;
    }));
  }
  EXPECT_LT(middle.sources[near.socket.address().port()], kFirstRemoteSource);
  EXPECT_GE(middle.sources[far.socket.address().port()], kFirstRemoteSource);
  EXPECT_EQ(middle.port->connect(os::loopback(1)).error().code, ENOENT);
}

// On the loopback all members use shared memory; elsewhere no member may receive twice either.
// RFC 3168, section 5: ECT(0) is for packets whose sender reacts to marks; others are Not-ECT.
TEST_F(PortTest, OnlyPacketsOfReliableServicesAreEctAndAllHaveTheirDscp) {
  constexpr std::uint8_t kDscp = 46 << 2;
  for (const auto& [service, ecn] :
       {std::pair(link::Service::kReliableDatagram, 2), std::pair(link::Service::kDatagram, 0)}) {
    End end(device_, {false, false}, service);
    end.traffic_class = kDscp;
    end.open(kUdp);
    const auto witness = std::move(os::UdpSocket::bind(os::loopback(0), {})).value();
    const auto flow = std::move(end.port->connect(witness.address())).value();
    end.send(*flow, "x");
    end.poll();
    ASSERT_TRUE(os::wait_readable(witness.fd(), std::chrono::seconds(20)));
    os::UdpBatch batch(1);
    ASSERT_EQ(witness.receive(batch), 0);
    batch.for_each([&, ecn = ecn](const os::Datagram& datagram) {
      EXPECT_EQ(datagram.traffic_class, kDscp | ecn);
    });
    flow->give_up(end);  // the witness never answers
  }
}

TEST_F(PortTest, MembersOfGroupsHearOnceByWhicheverLink) {
  constexpr auto kDatagrams = link::Service::kDatagram;
  const auto interfaces = os::usable_interfaces();
  for (const os::Interface& interface : interfaces.value()) {
    if (!interface.multicast) continue;
    const os::SocketAddress at = interface.addresses[0].address;
    if (at.family() != AF_INET) continue;
    End member(device_, kBoth, kDatagrams, at);
    End near(device_, kBoth, kDatagrams, at);
    End far(device_, kUdp, kDatagrams, at);
    const auto group = os::address_of("239.255.7.8", member.socket.address().port());
    const auto joined = member.port->join(group);
    ASSERT_TRUE(joined.ok()) << joined.error().message;
    for (End* each : {&near, &far}) {
      if (interface.loopback && each == &far) continue;
      const auto flow = each->port->connect_group(group);
      ASSERT_TRUE(flow.ok()) << flow.error().message;
      const std::size_t before = messages_at(member);
      for (int i = 0; i < 10; ++i) each->send(*flow.value(), "to all");
      ASSERT_TRUE(poll_until({&member}, [&] { return messages_at(member) >= before + 10; }));
      each->send(member, "to you");
      ASSERT_TRUE(poll_until({&member}, [&] { return messages_at(member) >= before + 11; }));
      member.poll();
      EXPECT_EQ(messages_at(member), before + 11) << interface.name;
    }
  }
}

// Datagrams are sent without asking whether the host exists.
TEST_F(PortTest, TheNetworkLeadsToOtherHosts) {
  const auto interfaces = os::usable_interfaces();
  for (const os::Interface& interface : interfaces.value()) {
    const os::InterfaceAddress& own = interface.addresses[0];
    if (interface.loopback || own.address.family() != AF_INET || own.prefix_length > 30) continue;
    sockaddr_in raw = *reinterpret_cast<const sockaddr_in*>(own.address.get());
    raw.sin_addr.s_addr ^= htonl(2);
    raw.sin_port = htons(9);
    const auto neighbour = os::SocketAddress::parse(&raw, sizeof raw).value();
    End one(device_, kBoth, link::Service::kDatagram, own.address);
    const auto way = one.port->connect(neighbour);
    EXPECT_TRUE(way.ok()) << way.error().message;
    return;
  }
  GTEST_SKIP() << "no interface but the loopback has IPv4";
}

TEST_F(PortTest, AClosedPortOfThisHostHasNoEndpoint) {
  End one(device_, kBoth);
  const End bound(device_, {false, false});
  const auto way = one.port->connect(bound.socket.address());
  ASSERT_FALSE(way.ok());
  EXPECT_EQ(way.error().code, ENOENT);
  const auto free = one.port->connect(os::loopback(1));
  ASSERT_FALSE(free.ok());
  EXPECT_EQ(free.error().code, ENOENT);
}

// The other side of a conversation: a process that has a number of its own only where this one has
// none. Returns its exit status.
int converse_with(const os::SocketAddress& peer, const std::string& base) {
  const auto device = Device::get(base);
  if (!device.ok()) return 2;
  End two(device.value(), kBoth);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  auto way = two.port->connect(peer);
  while (!way.ok() &&
         std::chrono::steady_clock::now() < end) {  // a peer is looked for now and then
    two.poll();
    way = two.port->connect(peer);
  }
  if (!way.ok()) return way.error().code;
  const std::string large(kLarge, 'x');
  two.send(*way.value(), "hello");
  two.send(*way.value(), large);
  while (two.heard.empty() || two.heard.begin()->second.size() < 2) {
    two.poll();
    way.value()->progress(two);
    if (std::chrono::steady_clock::now() > end) return 3;
  }
  return two.heard.begin()->second[1] == large ? 0 : 4;
}

// Containers may share a network and files, and not the numbers of processes.
TEST_F(PortTest, PeersOfAnotherNamespaceOfProcessesMeetOverTheNetwork) {
  os::in_own_process("a namespace of processes", [&] {
    if (!os::enter_namespaces(CLONE_NEWPID)) return false;
    auto device = Device::get(base_).value();
    End one(device, kBoth);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(converse_with(one.socket.address(), base_));
    const bool heard = poll_until(
        {&one}, [&] { return messages_at(one) == 2 || ::waitpid(child, nullptr, WNOHANG) != 0; });
    EXPECT_TRUE(heard && messages_at(one) == 2);
    if (messages_at(one) != 2) return true;
    const auto way = one.port->connect(os::loopback(one.sources.begin()->first));
    EXPECT_TRUE(way.ok()) << way.error().message;
    if (!way.ok()) return true;
    one.send(*way.value(), "and back");
    const std::string large(kLarge, 'x');
    one.send(*way.value(), large);
    EXPECT_TRUE(ends_well(child, one, *way.value()));
    return true;
  });
}

TEST_F(PortTest, APeerWhoseMemoryMayNotBeAccessedIsMetOverTheNetwork) {
  os::in_own_process("a process without capabilities", [&] {
    if (!os::give_up_capabilities()) return false;
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      End closed(Device::get(base_).value(), kBoth);
      ::prctl(PR_SET_DUMPABLE, 0);
      const std::uint16_t port = closed.socket.address().port();
      const bool told = ::write(ends[1], &port, sizeof port) == sizeof port;
      ::_exit(told && poll_until({&closed}, [&] { return messages_at(closed) == 1; }) ? 0 : 1);
    }
    std::uint16_t port = 0;
    EXPECT_EQ(::read(ends[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    End one(Device::get(base_).value(), kBoth);
    const auto way = one.port->connect(os::loopback(port));
    EXPECT_TRUE(way.ok()) << way.error().message;
    if (!way.ok()) return true;
    one.send(*way.value(), "hello");
    EXPECT_TRUE(ends_well(child, one, *way.value()));
    return true;
  });
}

// Another user can take the name of the default directory first.
TEST_F(PortTest, WithoutADirectoryPeersMeetOverTheNetwork) {
  os::in_own_process("an empty /dev/shm", [&] {
    if (!os::enter_empty_directories()) return false;
    ::unsetenv("WEFT_RUNTIME_DIR");
    const std::string taken = "/dev/shm/weft-" + std::to_string(::geteuid());
    EXPECT_EQ(::mkdir(taken.c_str(), 0755), 0);
    auto device = Device::get("");
    EXPECT_TRUE(device.ok()) << device.error().message;
    if (!device.ok()) return true;
    for (const Links links : {kBoth, kUdp}) {
      End one(device.value(), links);
      End two(device.value(), links);
      one.send(two, "hello");
      EXPECT_TRUE(poll_until({&one, &two}, [&] { return messages_at(two) == 1; }));
      EXPECT_EQ(one.to(two).process(), 0);
    }
    const auto socket = std::move(os::UdpPort::bind(os::loopback(0))).value();
    PortSetup options;
    options.name = socket.address();
    const auto alone = Port::open(device.value(), {socket, kShm}, options);
    EXPECT_FALSE(alone.ok());
    EXPECT_NE(alone.error().message.find(taken), std::string::npos);
    return true;
  });
}

// Peers can write into the file of the table: one of them changes where a region lies.
class MisledOwnerTest : public PortTest {
 protected:
  static constexpr std::uint64_t kValue = 0x1122334455667788;

  memory::Registration expose(DomainId domain) {
    memory::RegionAttributes attributes;
    attributes.domain = domain;
    attributes.access = Access::kRemoteRead | Access::kRemoteWrite;
    attributes.base = reinterpret_cast<std::uint64_t>(region_.data());
    attributes.length = sizeof region_;
    attributes.choose_key = true;
    const auto registration = device_->regions().add(attributes).value();
    const auto file =
        os::SharedFile::open(device_->directory() + "/" + device_->regions().name()).value();
    const auto table = std::move(file->map(0, memory::kTableSize)).value();
    auto& slot = table.at<memory::RegionSlot>(memory::kSlotsAt)[registration.slot];
    slot.base = reinterpret_cast<std::uint64_t>(elsewhere_.data());
    slot.access = static_cast<std::uint32_t>(Access::kRemoteRead);
    return registration;
  }
  void expect_written_in_place() const {
    EXPECT_EQ(region_[1], kValue);
    EXPECT_EQ(elsewhere_[1], 0U);
  }

  std::array<std::uint64_t, 4> region_{};
  std::array<std::uint64_t, 4> elsewhere_{};
};

TEST_F(MisledOwnerTest, AnEndpointsAccessToItselfGoesWhereItsRegionIs) {
  for (const Links links : {kShm, kUdp}) {
    region_ = {};
    End one(device_, links);
    const auto registration = expose(one.domain);
    std::uint64_t value = kValue;
    const LocalRange local{&value, sizeof value};
    const RemoteRange remote{8, sizeof value, registration.key};
    link::Outcome outcome;
    ASSERT_TRUE(poll_until({&one}, [&] {
      outcome = one.to(one).access({true, false, 0, {&local, 1}, {&remote, 1}, sizeof value});
      return outcome.state != link::Outcome::State::kAgain;
    }));
    ASSERT_NE(outcome.state, link::Outcome::State::kFailed) << outcome.error;
    ASSERT_TRUE(poll_until({&one}, [&] { return !one.to(one).busy(); }));
    for (const int error : one.errors) EXPECT_EQ(error, 0);
    expect_written_in_place();
    EXPECT_TRUE(device_->regions().remove(registration).ok());
  }
}

// What carries assisted accesses out, and what answers the packets of the network.
TEST_F(MisledOwnerTest, AnAccessForAPeerGoesWhereTheRegionIs) {
  const DomainId domain = device_->new_domain();
  const auto registration = expose(domain);
  memory::OwnMemory mine(device_->regions_of_users(), domain);
  const std::uint64_t value = kValue;
  const auto done =
      mine.write({8, sizeof value, registration.key}, std::as_bytes(std::span(&value, 1)));
  EXPECT_TRUE(done.ok());
  expect_written_in_place();
}

TEST_F(PortTest, APeerThatOpensLaterIsFoundInSharedMemory) {
  End one(device_, kBoth);
  End late(device_, {false, false});
  EXPECT_FALSE(one.port->connect(late.socket.address()).ok());
  late.open(kBoth);
  const auto way = one.port->connect(late.socket.address());
  ASSERT_TRUE(way.ok());
  EXPECT_NE(way.value()->process(), 0);
}

}  // namespace
}  // namespace weft::device
