// SPDX-License-Identifier: BSD-2-Clause
// Do millions of hostile packets harm anything? Those of strangers, and those of a peer with flows.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "flow_hand.h"
#include "test_support.h"
#include "wire/endian.h"

namespace weft::udp {
namespace {

using namespace testing;
using rdm::testing::answer_of;
using rdm::testing::DreqMad;
using rdm::testing::FlowHand;
using rdm::testing::FlowMad;
using rdm::testing::LapMad;
using rdm::testing::read_message;
using rdm::testing::RejMad;
using rdm::testing::RepMad;
using rdm::testing::ReqMad;
using rdm::testing::RtuMad;
using wire::Operation;

constexpr std::uint64_t kKey = 10;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kPackets = 300'000;
#else
constexpr std::uint64_t kPackets = 10'000'000;
#endif
constexpr auto kLongest = std::chrono::seconds(20);
constexpr std::size_t kPerTrain = os::UdpSocket::kMaxSegments;
constexpr std::uint64_t kUnderWay = 16 * kPerTrain;  // so that the socket loses none
constexpr std::size_t kLargest = 1200;

// Fast, and good enough to draw from.
struct Dice {
  std::uint64_t state;
  std::uint64_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
  bool once_in(std::uint64_t count) { return (*this)() % count == 0; }
  template <class Value, std::size_t kCount>
  Value one_of(const Value (&values)[kCount]) {
    return values[(*this)() % kCount];
  }
};

// Memory between inaccessible pages, of which the middle is used. The rest must stay.
class Guarded {
 public:
  static constexpr std::size_t kBytes = 2000;

  explicit Guarded(std::byte fill) : fill_(fill) {
    all_ = static_cast<std::byte*>(
        ::mmap(nullptr, 3 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::mprotect(all_ + kPage, kPage, PROT_READ | PROT_WRITE), 0);
    std::fill_n(all_ + kPage, kPage, fill);
  }
  ~Guarded() { ::munmap(all_, 3 * kPage); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::span<std::byte> bytes() { return {all_ + kPage + kBefore, kBytes}; }
  bool is_whole() const { return is_filled(0, kBefore) && is_filled(kBefore + kBytes, kPage); }
  bool is_untouched() const { return is_filled(0, kPage); }

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kBefore = 1048;
  bool is_filled(std::size_t begin, std::size_t end) const {
    return std::all_of(all_ + kPage + begin, all_ + kPage + end,
                       [this](std::byte byte) { return byte == fill_; });
  }

  std::byte* all_;
  const std::byte fill_;
};

// A peer whose packets are made by hand.
struct Stranger : FlowHand {
  os::UdpSocket socket;
  os::UdpBatch batch{8};

  Stranger() : socket(std::move(os::UdpSocket::bind(os::loopback(0), {.trains = true})).value()) {
    address = socket.address();
  }
  void send(const Peer& to, Bytes bytes) {
    bytes = sealed(std::move(bytes), address, to.address);
    socket.send(to.address, {}, bytes, bytes.size());
  }
  // The messages that the endpoint sends to this one.
  std::vector<FlowMad> hear() {
    std::vector<FlowMad> heard;
    while (socket.receive(batch) == 0 && !batch.arrivals().empty()) {
      batch.for_each([&](const os::Datagram& datagram) {
        wire::Packet packet;
        if (wire::parse(datagram.bytes, packet) != wire::Malformed::kNone) return;
        if (packet.destination != wire::kCmQpn) return;
        if (const auto said = read_message(packet.payload)) heard.push_back(*said);
      });
    }
    return heard;
  }
};

// Invalid packets, a train of one size at a time.
class Flood {
 public:
  explicit Flood(const Peer& victim, std::uint64_t seed) : victim_(victim), dice_{seed} {}

  std::uint64_t sent() const { return sent_; }
  const os::SocketAddress& address() const { return insider_.address; }

  // Agrees upon a flow, anew now and then, and upon one in the other direction when asked.
  void open_flow() {
    if (local_id_ != 0) {
      DreqMad dreq = insider_.goodbye();
      dreq.local_id = local_id_;
      count(insider_, Stranger::message(dreq));
    }
    ReqMad req = insider_.req();
    req.local_id = req.me.context = ++local_id_;
    count(insider_, Stranger::message(req));
  }
  void listen() {
    for (const FlowMad& said : insider_.hear()) {
      if (const auto* rep = std::get_if<RepMad>(&said)) {
        insider_.rep = thief_.rep = *rep;
        next_ = 0;
        count(insider_, Stranger::message(RtuMad{rep->remote_id, rep->local_id, rep->transaction}));
      } else if (const auto* req = std::get_if<ReqMad>(&said)) {
        asked_ = *req;
        count(insider_, Stranger::message(insider_.reply_to(*req, Psn(0xFF'FFF0))));
      } else if (const auto* probe = std::get_if<LapMad>(&said)) {
        count(insider_, Stranger::message(answer_of(*probe)));
      }
    }
  }
  void train() {
    Stranger& from = dice_.once_in(4) ? thief_ : insider_;
    const Kind kind = dice_.once_in(64) ? Kind::kConnectionManager : dice_.one_of(kKinds);
    shape(kind);
    const std::size_t segment = length_ + wire::kIcrcBytes;
    const wire::Route route = roce::route_between(from.address, victim_.address);
    bytes_.resize(kPerTrain * segment);
    const std::size_t together = from.socket.segments_per_train(segment);
    for (std::size_t i = 0; i < together; ++i) {
      std::byte* at = bytes_.data() + i * segment;
      write(kind, at);
      const bool changed = dice_.once_in(4);
      if (changed) flip({at, length_});
      wire::Ipv4Words words;
      words.identification = from.socket.identification(i, segment);
      const bool covers = length_ >= wire::kBthBytes;
      wire::store_icrc(at + length_, covers ? wire::icrc(route, {at, length_}, words) : 0);
      if (dice_.once_in(8)) flip({at, segment});
    }
    const os::SendOutcome outcome =
        from.socket.send(victim_.address, {}, {bytes_.data(), together * segment}, segment);
    sent_ += outcome.datagrams;
  }

 private:
  enum class Kind { kNoise, kConnectionManager, kRequest, kAnswer, kCnp };
  static constexpr Kind kKinds[] = {Kind::kNoise,   Kind::kRequest, Kind::kRequest, Kind::kRequest,
                                    Kind::kRequest, Kind::kAnswer,  Kind::kAnswer,  Kind::kCnp};
  static constexpr Operation kRequests[] = {
      Operation::kSendOnly,   Operation::kSendOnly,    Operation::kSendFirst,
      Operation::kSendMiddle, Operation::kSendLast,    Operation::kWriteOnly,
      Operation::kWriteOnly,  Operation::kWriteFirst,  Operation::kWriteMiddle,
      Operation::kWriteLast,  Operation::kReadRequest, Operation::kCompareSwap,
      Operation::kFetchAdd,   Operation::kResync,      Operation::kWriteOnlyImmediate};
  static constexpr Operation kAnswers[] = {
      Operation::kReadResponseFirst, Operation::kReadResponseMiddle, Operation::kReadResponseLast,
      Operation::kReadResponseOnly,  Operation::kAcknowledge,        Operation::kAtomicAcknowledge};

  void count(Stranger& from, Bytes bytes) {
    from.send(victim_, std::move(bytes));
    ++sent_;
  }
  // What the packets of a train have in common: their kind and length.
  void shape(Kind kind) {
    wire::Packet packet;
    payload_ = dice_() % 300;
    switch (kind) {
      case Kind::kNoise:
        length_ = 1 + dice_() % 300;
        return;
      case Kind::kConnectionManager:
        length_ = Stranger::message(insider_.req()).size();
        return;
      case Kind::kCnp:
        opcode_ = wire::kCongestionNotification;
        payload_ = 16;
        break;
      case Kind::kAnswer:
        operation_ = dice_.one_of(kAnswers);
        payload_ = operation_ <= Operation::kReadResponseOnly ? payload_ : 0;
        break;
      case Kind::kRequest:
        operation_ = dice_.one_of(kRequests);
        if (operation_ > Operation::kWriteOnlyImmediate) payload_ = 0;
        break;
    }
    const bool full =
        operation_ == Operation::kSendFirst || operation_ == Operation::kSendMiddle ||
        operation_ == Operation::kWriteFirst || operation_ == Operation::kWriteMiddle ||
        operation_ == Operation::kReadResponseFirst || operation_ == Operation::kReadResponseMiddle;
    if (kind != Kind::kCnp) {
      opcode_ = opcode_of(wire::Transport::kReliableDatagram, operation_);
      if (full && !dice_.once_in(8)) payload_ = 1024;
    }
    packet.opcode = opcode_;
    length_ = wire::header_bytes(packet) + payload_ + wire::padding_of(payload_);
    if (dice_.once_in(16)) length_ = 1 + dice_() % length_;
  }
  void write(Kind kind, std::byte* out) {
    if (kind == Kind::kNoise) return noise({out, length_});
    const Bytes bytes =
        kind == Kind::kConnectionManager ? message() : of_flow(kind == Kind::kAnswer);
    std::copy_n(bytes.begin(), length_, out);
  }
  void noise(std::span<std::byte> out) {
    for (std::byte& byte : out) byte = static_cast<std::byte>(dice_());
  }
  void flip(std::span<std::byte> bytes) {
    for (auto changes = 1 + dice_() % 3; changes > 0; --changes) {
      bytes[dice_() % bytes.size()] ^= static_cast<std::byte>(1 + dice_() % 255);
    }
  }
  Bytes message() {
    const std::uint32_t local_id =
        dice_.one_of({local_id_, std::uint32_t(dice_()), asked_.local_id});
    const std::uint64_t transaction =
        dice_.one_of({insider_.req().transaction, asked_.transaction, dice_()});
    switch (dice_() % 6) {
      case 0:
        return Stranger::message(insider_.rep);
      case 1:
        return Stranger::message(RejMad{wire::CmReason::kStale, 0, 0, {}});
      case 2:
        return Stranger::message(RejMad{wire::CmReason::kConsumer, local_id, transaction, {}});
      case 3:
        return Stranger::message(
            DreqMad{local_id, insider_.rep.local_id, transaction, insider_.rep.me.queue_pair, {}});
      default:
        ReqMad req = insider_.req();
        req.local_id = local_id;
        req.transaction = transaction;
        req.me.path_mtu = dice_.one_of({256UL, 512UL, 1024UL, 2048UL, 4096UL});
        if (dice_.once_in(4)) req.continued = {transaction, insider_.rep.local_id};
        return Stranger::message(req);
    }
  }
  Bytes of_flow(bool answer) {
    const Introduction& me = answer ? asked_.me : insider_.rep.me;
    wire::Packet packet;
    packet.opcode = opcode_;
    packet.destination = me.queue_pair;
    packet.end_to_end_context = me.context;
    packet.queue_key = me.queue_key;
    packet.source = roce::queue_pair_at(address().port());
    packet.psn = answer ? Psn(0xFF'FFF0).after(static_cast<std::int32_t>(dice_() % 64))
                        : insider_.rep.first.after(static_cast<std::int32_t>(next_));
    if (!answer && dice_.once_in(2)) ++next_;
    packet.ack_request = dice_.once_in(8);
    packet.syndrome = dice_.one_of({0x1F, 0x1F, 0x60, 0x62, 0x63, 0x2E, 0x72});
    packet.message_number = static_cast<std::uint32_t>(dice_() % 70);
    packet.immediate = static_cast<std::uint32_t>(dice_());
    packet.reth = memory();
    packet.atomic = {packet.reth.address, packet.reth.key, dice_(), dice_()};
    if (dice_.once_in(4)) spoil(packet);
    message_.resize(payload_);
    if (payload_ >= kMessageHeader && !answer) write_header(header(), message_.data());
    if (opcode_ == wire::kCongestionNotification && dice_.once_in(2)) {
      wire::store<std::uint32_t>(message_.data(), static_cast<std::uint32_t>(asked_.transaction));
    }
    return Stranger::packet(packet, message_);
  }
  // Of the right key and of others, within the region and beyond.
  wire::Reth memory() {
    constexpr std::uint64_t kEnd = Guarded::kBytes;
    constexpr std::uint64_t kAddresses[] = {0, 8, kEnd - 8, kEnd, ~0ULL, 1ULL << 40, kEnd - 300};
    constexpr std::uint32_t kKeys[] = {10, 10, 10, 11, 12, 13, 0, 14, kAliasBit, kReceiveBits};
    const std::uint32_t lengths[] = {
        static_cast<std::uint32_t>(payload_), 0, 8, 1024, 2000, 2001, ~0U};
    const std::uint64_t address = dice_.once_in(16) ? dice_() : dice_.one_of(kAddresses);
    const std::uint32_t key = dice_.one_of(kKeys) + (dice_.once_in(8) ? dice_() % 64 : 0);
    const std::uint32_t length = dice_.once_in(2) ? lengths[0] : dice_.one_of(lengths);
    return {address, key, length};
  }
  MessageHeader header() {
    MessageHeader header;
    header.kind = static_cast<MessageKind>(dice_() % 11);
    header.operation = static_cast<link::MessageOperation>(dice_() % 8);
    header.wants_ack = dice_.once_in(4);
    header.has_data = dice_.once_in(4);
    header.action = {static_cast<AtomicForm>(dice_() % 4), static_cast<AtomicOp>(dice_() % 16),
                     static_cast<AtomicType>(dice_() % 16)};
    header.rendezvous_id = static_cast<std::uint32_t>(dice_.once_in(2) ? dice_() % 64 : dice_());
    header.tag = dice_() % 4;
    header.data = dice_();
    header.length = dice_.once_in(4) ? dice_() : payload_ - kMessageHeader;
    return header;
  }
  void spoil(wire::Packet& packet) {
    const auto word = static_cast<std::uint32_t>(dice_());
    switch (dice_() % 7) {
      case 0:
        packet.pkey = static_cast<std::uint16_t>(word);
        return;
      case 1:
        packet.destination = word & Psn::kMask;
        return;
      case 2:
        packet.end_to_end_context += word % 3;
        return;
      case 3:
        packet.queue_key = word;
        return;
      case 4:
        packet.psn = packet.psn.after(static_cast<std::int32_t>(word % 4096) - 2048);
        return;
      case 5:
        packet.psn = Psn(word);
        return;
      default:
        packet.source = word & Psn::kMask;
    }
  }

  const Peer& victim_;
  Dice dice_;
  Stranger insider_;
  Stranger thief_;
  ReqMad asked_;  // of the victim, for a flow to the insider
  std::uint32_t local_id_ = 0;
  std::uint32_t next_ = 0;
  std::uint64_t sent_ = 0;
  std::size_t length_ = 0;  // of the packets of a train
  std::size_t payload_ = 0;
  std::uint8_t opcode_ = 0;
  Operation operation_ = Operation::kSendOnly;
  Bytes bytes_;
  Bytes message_;
};

// Checks what the honest peer sends, and takes what others offer.
struct Keeper final : link::InboxSink {
  RdEndpoint* endpoint = nullptr;
  Guarded buffer{std::byte{0x33}};
  std::uint64_t honest = 0;
  std::uint64_t wrong = 0;
  std::uint64_t others = 0;

  void source_opened(std::uint32_t, const os::SocketAddress&) override {}
  void source_closed(std::uint32_t source, bool) override {
    if (source == 0) ++wrong;
  }
  void arrived(const link::Arrival& arrival) override {
    if (arrival.source != 0) {
      ++others;
      if (arrival.wants_ack && arrival.payload != nullptr) endpoint->acknowledge(arrival.offer);
      if (arrival.payload != nullptr || arrival.length == 0) return;
      const LocalRange sge{buffer.bytes().data(), buffer.bytes().size()};
      const auto length = std::min<std::uint64_t>(arrival.length, sge.length);
      if (others % 64 == 0) endpoint->accept(*this, arrival.offer, {&sge, 1}, length, this);
      return;
    }
    const Bytes expected = pattern(100, arrival.tag);
    const bool right = arrival.tag == ++honest && arrival.length == expected.size() &&
                       std::equal(expected.begin(), expected.end(), arrival.payload);
    if (!right) ++wrong;
  }
  void received(void*, int) override {}
};

std::uint64_t arrived_at(const Peer& peer) {
  const Stats& stats = peer.stats;
  return stats.dropped() + stats.of(Stat::kConnectionMessages) + stats.of(Stat::kRequests) +
         stats.of(Stat::kResponses) + stats.of(Stat::kCnpsHandled) +
         stats.of(Stat::kRequestsHeldBack);
}

// What the socket at that port has lost for want of room, by proc(5): joined datagrams count once.
std::uint64_t lost_by_socket(std::uint16_t port) {
  std::ifstream file("/proc/self/net/udp");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string slot, local;
    fields >> slot >> local;
    const std::size_t colon = local.find(':');
    if (colon == std::string::npos || std::stoul(local.substr(colon + 1), nullptr, 16) != port)
      continue;
    return std::stoull(line.substr(line.find_last_of(" ", line.find_last_not_of(' ')) + 1));
  }
  return 0;
}

struct FloodTest : ::testing::Test {
  Regions regions;
  Guarded open{std::byte{0x11}};
  Guarded closed{std::byte{0x22}};    // no remote right
  Guarded foreign{std::byte{0x44}};   // of another domain
  Guarded constant{std::byte{0x55}};  // may be read only
  Guarded answers{std::byte{0x66}};   // where the victim reads to
  Peer a;
  Peer b{[this] {
    RdmOptions options;
    options.regions = regions.open();
    options.counts_reads = options.counts_writes = true;
    return options;
  }()};
  Keeper keeper;
  link::Flow* honest = nullptr;
  std::uint64_t told = 0;  // to the victim by the honest peer

  void SetUp() override {
    regions.add(kKey, open.bytes(), Access::kRemoteRead | Access::kRemoteWrite);
    regions.add(11, closed.bytes(), Access::kRead);
    regions.add(13, constant.bytes(), Access::kRemoteRead);
    const std::span<std::byte> other = foreign.bytes();
    const auto added = regions.table().add({DomainId{6}, Access::kRemoteRead | Access::kRemoteWrite,
                                            reinterpret_cast<std::uint64_t>(other.data()),
                                            other.size(), 0, false, RegionKey{12}});
    ASSERT_TRUE(added.ok());
    keeper.endpoint = b.endpoint.get();
    auto flow = a.endpoint->connect(b.address);
    ASSERT_TRUE(flow.ok());
    honest = flow.value().get();
    a.flows.push_back(std::move(flow).value());
    while (!honest->reached()) {
      a.poll();
      b.endpoint->poll(keeper);
    }
  }
  ~FloodTest() override {
    a.flows.clear();
    b.flows.clear();
    for (int i = 0; i < 1000; ++i) poll();
    a.close();
  }
  void poll() {
    b.endpoint->poll(keeper);
    for (const auto& flow : b.flows) flow->progress(b.ends);
    a.poll();
  }
  void say_something() {
    Bytes bytes = pattern(100, told + 1);
    const LocalRange sge{bytes.data(), bytes.size()};
    link::SendRequest request;
    request.operation = link::MessageOperation::kTagged;
    request.tag = told + 1;
    request.must_copy = true;
    request.sges = {&sge, 1};
    request.length = bytes.size();
    if (honest->send(request).state == link::Outcome::State::kDone) ++told;
  }
  // The victim asks the hostile peer for something, as one that it trusts.
  void ask(const os::SocketAddress& target) {
    b.ends.ended_ones.clear();
    if (!b.flows.empty() && b.flows[0]->check_peer(b.ends) != link::PeerState::kAlive) {
      b.flows.clear();
      b.endpoint->check_sources(keeper);
    }
    if (b.flows.empty()) {
      auto flow = b.endpoint->connect(target);
      if (flow) b.flows.push_back(std::move(flow).value());
      return;
    }
    const LocalRange sge{answers.bytes().data(), answers.bytes().size()};
    const RemoteRange remote{0, sge.length, RegionKey{1}};
    link::AccessRequest request;
    request.local = {&sge, 1};
    request.remote = {&remote, 1};
    request.length = sge.length;
    if (!b.flows[0]->busy()) b.flows[0]->access(request);
  }
};

TEST_F(FloodTest, DisturbsNoOtherPeerAndIsCounted) {
  Flood flood(b, 7);
  flood.open_flow();
  const auto end = std::chrono::steady_clock::now() + kLongest;
  const auto all = [&] { return flood.sent() + a.sent(); };
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> room{kUnderWay};
  std::atomic<std::uint64_t> sent{flood.sent()};
  std::thread attacker([&] {
    for (std::uint64_t round = 1; !over && flood.sent() < kPackets; ++round) {
      if (round % 16 == 0) flood.listen();
      if (round % 32 == 0) flood.open_flow();
      while (!over && flood.sent() + kPerTrain > room) std::this_thread::yield();
      flood.train();
      sent = flood.sent();
    }
    over = true;
  });
  for (std::uint64_t round = 0; !over; ++round) {
    poll();
    room = arrived_at(b) - std::min(arrived_at(b), a.sent()) + kUnderWay;
    if (round % 16 == 0) say_something();
    if (round % 64 == 0) ask(flood.address());
    if (std::chrono::steady_clock::now() > end) over = true;
  }
  attacker.join();
  std::uint64_t lost = 0;
  const auto settled = [&] {
    poll();
    lost = lost_by_socket(b.address.port());
    return arrived_at(b) >= all() - std::min(all(), kPerTrain * lost) && keeper.honest == told;
  };
  while (!settled() && std::chrono::steady_clock::now() < end + kLongest) {
  }
  RecordProperty("packets", static_cast<int>(flood.sent()));
  RecordProperty("counters", text_of(b.stats));
  EXPECT_LE(arrived_at(b), all());
  EXPECT_GE(arrived_at(b) + kPerTrain * lost, all());

  EXPECT_EQ(keeper.honest, told) << "an honest peer's messages go on";
  EXPECT_EQ(keeper.wrong, 0U);
  EXPECT_EQ(honest->check_peer(a.ends), link::PeerState::kAlive);
  EXPECT_TRUE(open.is_whole() && answers.is_whole() && keeper.buffer.is_whole());
  EXPECT_TRUE(closed.is_untouched() && foreign.is_untouched() && constant.is_untouched());

  if (flood.sent() < kPackets) return;  // cut short, it need not have met everything
  const Stats& stats = b.port->stats();
  for (const std::uint64_t count :
       {stats.of(Stat::kMalformedPackets), stats.of(Stat::kIcrcErrors),
        stats.of(Stat::kPkeyViolations), stats.of(Stat::kUnknownQp),
        stats.of(Stat::kQkeyViolations), stats.of(Stat::kUnknownFlow), stats.of(Stat::kWrongPeer),
        stats.of(Stat::kConnectionMessages), stats.of(Stat::kRequests), stats.of(Stat::kResponses),
        stats.of(Stat::kCnpsHandled), stats.of(Stat::kDuplicateRequests),
        stats.of(Stat::kOutOfSequence), stats.of(Stat::kRefusedRequests),
        stats.of(Stat::kUnexpectedResponses), stats.of(Stat::kInvalidMessages), keeper.others}) {
    EXPECT_GT(count, 0U) << text_of(stats);
  }
  // Of some hundred thousand packets it may be that none is allowed.
  if (kPackets < 1'000'000) return;
  EXPECT_FALSE(open.is_untouched()) << "what is allowed is carried out";
}

}  // namespace
}  // namespace weft::udp
