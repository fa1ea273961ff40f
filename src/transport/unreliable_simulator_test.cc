// SPDX-License-Identifier: BSD-2-Clause
// Is what arrives of unreliable services whole, whatever the network does?
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <sstream>

#include "recording_target.h"
#include "simulator_device.h"
#include "simulator_network.h"
#include "transport/unreliable_receiver.h"
#include "transport/unreliable_sender.h"

namespace weft::transport::testing {
namespace {

using work::Work;
using work::WorkKind;

constexpr unsigned kWorks = 60;
constexpr std::size_t kLongest = 6000;
constexpr std::size_t kNumberBytes = 8;
constexpr unsigned kMany = 1000;  // receives

// One run, whose seed draws everything.
struct Drawn {
  std::uint64_t seed = 0;
  Settings settings;
  Weather weather;
  double not_ready = 0;  // that a packet finds no receive, or too short a one
  double refused = 0;    // that the receiver may not do what the work says

  static Drawn draw(std::uint64_t seed) {
    Random random(seed);
    Drawn drawn;
    drawn.seed = seed;
    const auto sometimes = [&](double most) {
      return happens(random, 0.5) ? std::uniform_real_distribution<>(0, most)(random) : 0;
    };
    drawn.weather.loss = sometimes(0.2);
    drawn.weather.burst = sometimes(0.5);
    drawn.weather.duplication = sometimes(0.1);
    drawn.weather.corruption = sometimes(0.05);
    drawn.weather.reordering = sometimes(0.2);
    drawn.not_ready = sometimes(0.1);
    drawn.refused = sometimes(0.2);
    drawn.settings.kind = wire::Transport::kUnreliableConnection;
    drawn.settings.path_mtu = std::size_t{256} << up_to(random, 4);
    drawn.settings.first_sent =
        happens(random, 0.5) ? Psn(0).after(-20) : Psn(static_cast<std::uint32_t>(random()));
    drawn.settings.first_expected = drawn.settings.first_sent;
    return drawn;
  }
  bool calm() const { return weather.loss + weather.corruption + not_ready + refused == 0; }
  bool in_order() const { return weather.reordering == 0; }
  bool once() const { return weather.duplication == 0; }
  std::string text() const {
    std::ostringstream out;
    out << "seed " << seed << ": path MTU " << settings.path_mtu << ", loss " << weather.loss
        << ", burst " << weather.burst << ", duplication " << weather.duplication << ", corruption "
        << weather.corruption << ", reordering " << weather.reordering << ", not ready "
        << not_ready << ", refused " << refused;
    return out.str();
  }
};

// What all runs together saw.
struct Sums {
  std::uint64_t posted = 0;
  std::uint64_t whole = 0;
  std::uint64_t twice = 0;
  std::uint64_t late = 0;
  std::uint64_t broken = 0;
  Drops drops;
};

// A sender and a receiver, which never hear of each other.
class Oneway : public work::WorkSink {
 public:
  Oneway(const Drawn& drawn, Sums& sums)
      : drawn_(drawn),
        sums_(sums),
        network_(drawn.weather, drawn.seed + 1),
        sender_(drawn.settings, *this, memory_) {}

  // Sends everything, then lets arrive what does. Returns the first thing that was not as it must
  // be.
  std::string run() {
    for (std::uint64_t number = 0; number < kWorks; ++number) post(number);
    send();
    if (ended_ != kWorks) blame("work has not ended");
    receive(UnreliableReceiver(drawn_.settings, target_));
    if (!target_.wrong.empty()) blame(target_.wrong);
    judge(target_.messages, WorkKind::kSend);
    judge(target_.writes, WorkKind::kWrite);
    return wrong_;
  }

 private:
  struct Posted {
    Work work;
    Bytes bytes;
    bool refused = false;
    unsigned came = 0;
  };

  void blame(const std::string& what) {
    if (wrong_.empty()) wrong_ = what + " (" + drawn_.text() + ")";
  }

  void post(std::uint64_t number) {
    Posted& posted = posted_.emplace_back();
    const std::size_t most = happens(random_, 0.3) ? kLongest : 200;
    posted.bytes = content(drawn_.seed, number, kNumberBytes + up_to(random_, most));
    posted.refused = happens(random_, drawn_.refused);
    Work& work = posted.work;
    work.kind = happens(random_, 0.5) ? WorkKind::kWrite : WorkKind::kSend;
    work.length = posted.bytes.size();
    work.has_immediate = happens(random_, 0.3);
    work.immediate = static_cast<std::uint32_t>(number);
    work.key = RecordingTarget::kKey;
    work.address =
        RecordingTarget::kBase + up_to(random_, RecordingTarget::kAreaBytes - work.length);
    if (work.kind == WorkKind::kSend) posted.refused = false;
    if (posted.refused) ++work.key;
    const work::Segment halves[] = {
        {posted.bytes.data(), work.length / 3},
        {posted.bytes.data() + work.length / 3, work.length - work.length / 3}};
    Work now = work;
    now.sges = halves;
    now.cookie = reinterpret_cast<void*>(number);
    sender_.post(now);
  }

  void ended(const work::Ended& work) override {
    const auto number = reinterpret_cast<std::uint64_t>(work.cookie);
    if (number != ended_++) blame("work ends out of order");
    if (work.status != work::CompletionStatus::kSuccess) blame("wrong status");
  }

  void send() {
    Bytes packet(wire::kMaxHeaderBytes + wire::kMaxPathMtu);
    for (; sender_.busy(); network_.now += std::chrono::microseconds(1)) {
      const std::size_t length = sender_.next(packet);
      const auto end = packet.begin() + static_cast<std::ptrdiff_t>(length);
      network_.carry({}, sealed(route(0, 1), {packet.begin(), end}));
    }
  }

  void receive(UnreliableReceiver receiver) {
    std::uint64_t given = 0;
    while (network_.next() != Time::max()) {
      const Bytes bytes = network_.take().bytes;
      if (!intact(route(0, 1), bytes)) continue;
      wire::Packet packet;
      if (wire::parse(bytes, packet) != wire::Malformed::kNone) blame("a malformed packet");
      target_.receives = happens(random_, drawn_.not_ready) ? 0 : kMany;
      target_.room = happens(random_, drawn_.not_ready) ? 300 : std::size_t{1} << 20;
      receiver.take(packet);
      ++given;
    }
    if (receiver.counts().packets + receiver.drops().total() != given)
      blame("a packet was not counted");
    for (std::size_t i = 0; i < kDropReasons; ++i) {
      const auto reason = static_cast<Drop>(i);
      for (std::uint64_t n = receiver.drops().of(reason); n != 0; --n) sums_.drops.count(reason);
    }
    sums_.broken += receiver.counts().broken;
  }

  // Whole messages that were sent, at most as often as the network made copies, and in the order of
  // the network.
  void judge(const std::vector<RecordingTarget::Came>& all, WorkKind kind) {
    std::uint64_t last = 0;
    for (const RecordingTarget::Came& came : all) {
      std::uint64_t number = kWorks;
      if (came.bytes.size() >= kNumberBytes) {
        std::memcpy(&number, came.bytes.data(), kNumberBytes);
      }
      if (number >= kWorks) return blame("a message came that was not sent");
      Posted& posted = posted_[number];
      const Work& work = posted.work;
      if (came.bytes != posted.bytes || work.kind != kind)
        return blame("something came that was not sent so");
      if (kind == WorkKind::kWrite && came.address != work.address) blame("written elsewhere");
      if (came.immediate.has_value() != work.has_immediate ||
          came.immediate.value_or(0) != (work.has_immediate ? work.immediate : 0)) {
        blame("a wrong immediate value");
      }
      if (posted.refused) blame("what must be refused was done");
      if (++posted.came > (drawn_.once() ? 1 : 2)) blame("repeated, but not by the network");
      if (posted.came == 2) ++sums_.twice;
      if (number < last) {
        ++sums_.late;
        if (drawn_.in_order()) blame("reordered, but not by the network");
      }
      last = number;
      ++sums_.whole;
    }
    for (const Posted& posted : posted_) {
      if (posted.work.kind != kind) continue;
      ++sums_.posted;
      const bool must = drawn_.calm() && drawn_.once() && drawn_.in_order() && !posted.refused;
      if (must && posted.came == 0) blame("lost, but not by the network");
    }
  }

  const Drawn& drawn_;
  Sums& sums_;
  struct OneWay {};  // all packets go it
  SimulatedNetwork<OneWay> network_;
  Random& random_ = network_.random();
  PlainMemory memory_;
  UnreliableSender sender_;
  RecordingTarget target_;
  std::deque<Posted> posted_;
  std::uint64_t ended_ = 0;
  std::string wrong_;
};

constexpr std::uint64_t kRuns = 400;

Sums all_weathers() {
  Sums sums;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    const Drawn drawn = Drawn::draw(seed);
    EXPECT_EQ(Oneway(drawn, sums).run(), "");
  }
  return sums;
}

// What the specification allows: each beginning is taken, whatever its number; so a message may
// come late or twice when all its packets do, but never with those of another one.
TEST(UnreliableSimulator, ConnectionsDeliverWholeMessagesOnlyAndWriteWhereTheyMayOnly) {
  const Sums sums = all_weathers();
  EXPECT_GT(sums.whole, sums.posted / 2);
  EXPECT_GT(sums.twice, 0U);
  EXPECT_GT(sums.late, 0U);
  EXPECT_GT(sums.broken, 0U);
  for (const Drop reason :
       {Drop::kSequence, Drop::kRest, Drop::kLength, Drop::kNoReceive, Drop::kAccess}) {
    EXPECT_GT(sums.drops.of(reason), 0U) << static_cast<unsigned>(reason);
  }
}

// A well-formed packet that says anything.
wire::Packet nonsense(Random& random, const Bytes& bytes) {
  wire::Packet packet;
  const bool connection = happens(random, 0.9);
  packet.opcode = static_cast<std::uint8_t>(connection ? 0x20 + up_to(random, 11) : random());
  if (happens(random, 0.1)) packet.opcode = 0x64;
  packet.pkey = happens(random, 0.95) ? wire::kDefaultPkey : static_cast<std::uint16_t>(random());
  packet.psn = Psn(static_cast<std::uint32_t>(happens(random, 0.9) ? up_to(random, 3) : random()));
  const std::size_t lengths[] = {0, 1, 255, 256, 256, 256, 257};
  packet.payload = std::span(bytes).first(lengths[up_to(random, 6)]);
  packet.reth.key = RecordingTarget::kKey + (happens(random, 0.1) ? 1 : 0);
  packet.reth.address = RecordingTarget::kBase - 1000 + up_to(random, 40'000);
  packet.reth.length =
      static_cast<std::uint32_t>(happens(random, 0.9) ? up_to(random, 4) * 256 : random());
  if (happens(random, 0.01)) packet.reth.address = ~std::uint64_t{0} - up_to(random, 300);
  return packet;
}

TEST(UnreliableSimulator, PacketsThatSayNonsenseNeitherBreakTheContractNorPassUncounted) {
  Settings settings;
  settings.path_mtu = 256;
  settings.kind = wire::Transport::kUnreliableConnection;
  RecordingTarget target;
  UnreliableReceiver connection(settings, target);
  Random random(1);
  const Bytes bytes(300, std::byte{0xAB});
  constexpr std::uint64_t kPackets = 50'000;
  for (std::uint64_t i = 0; i < kPackets; ++i) {
    const wire::Packet packet = nonsense(random, bytes);
    target.receives = happens(random, 0.1) ? 0 : kMany;
    target.room = 100 * up_to(random, 10);
    connection.take(packet);
    target.messages.clear();
    target.writes.clear();
  }
  EXPECT_EQ(target.wrong, "");
  EXPECT_EQ(connection.counts().packets + connection.drops().total(), kPackets);
  EXPECT_GT(connection.counts().messages, kPackets / 100);
}

}  // namespace
}  // namespace weft::transport::testing
