// SPDX-License-Identifier: BSD-2-Clause
// How does time pass between endpoints in the simulator, and what do their peers say?
#include "simulated_endpoint.h"

#include <algorithm>

namespace weft::rdm::testing {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// While there is something to do, endpoints are polled every few microseconds. Otherwise they sleep
// until a packet arrives or the time is over for something.
void World::go_on(std::initializer_list<Endpoint*> polled, os::Time end) {
  constexpr auto kRound = microseconds(2);
  bool busy = false;
  for (Endpoint* each : polled) busy = each->poll() != 0 || each->host.has_news() || busy;
  os::Time next = network.now + kRound;
  if (!busy) {
    os::Time due = network.next();
    for (Endpoint* each : polled) {
      if (each->engine != nullptr) due = std::min(due, each->engine->fall_asleep());
    }
    next = std::max(next, due);
  }
  network.now = std::min(next, end);
  while (network.next() <= network.now) deliver(network.take());
}

void World::deliver(Network::Parcel parcel) {
  const auto to = places_.find(parcel.path.to);
  if (to != places_.end()) return to->second->arrive(std::move(parcel));
  ++strays[parcel.path.to.text()];
  const auto from = places_.find(parcel.path.from);
  if (!reports || from == places_.end()) return;
  os::UdpError error;
  error.peer = parcel.path.to;
  error.what = os::UdpError::What::kPortUnreachable;
  from->second->report(error);
}

Endpoint::Endpoint(World& in, std::uint8_t number, const RdmOptions& options)
    : world(in), host(in.network, number, kMtu, 0) {
  RdmOptions wanted = options;
  wanted.name = address;
  wanted.domain = kDomain;
  if (wanted.regions == nullptr) wanted.regions = world.regions.open();
  engine = host.make_engine(wanted);
  log.endpoint = engine.get();
  world.enter(address, *this);
}

unsigned Endpoint::poll() {
  if (engine == nullptr) return 0;
  const unsigned packets = engine->poll(*inbox);
  for (const auto& flow : flows) flow->progress(ends);
  return packets;
}

void Endpoint::kill() {
  flows.clear();
  if (engine != nullptr) world.leave(address);
  engine.reset();
}

void Endpoint::leave(Endpoint* other) {
  struct Deaf final : link::InboxSink {
    void source_opened(std::uint32_t, const os::SocketAddress&) override {}
    void source_closed(std::uint32_t, bool) override {}
    unsigned room() const override { return 0; }
    void arrived(const link::Arrival&) override {}
    void received(void*, int) override {}
  } deaf;
  flows.clear();
  engine->begin_closing();
  inbox = &deaf;
  const auto quiet = [this] { return engine->quiet(); };
  constexpr auto kPatience = std::chrono::seconds(2);
  if (other == nullptr) {
    until({this}, quiet, kPatience);
  } else {
    until({this, other}, quiet, kPatience);
  }
  engine->disconnect_all(deaf);
  inbox = &log;
  kill();
}

Stranger::Stranger(World& in)
    : Stranger(in, os::address_of("10.1.0." + std::to_string(in.next_number() + 1), 50'000)) {}

Stranger::Stranger(World& in, const os::SocketAddress& at) : world_(in) {
  address = at;
  come();
}

Bytes Stranger::of_flow(wire::Operation operation, std::uint32_t number,
                        std::span<const std::byte> payload) const {
  wire::Packet packet = headers(operation, number);
  packet.ack_request = true;
  packet.reth = {0, static_cast<std::uint32_t>(kKey), 100};
  packet.atomic = {0, static_cast<std::uint32_t>(kKey), 1, 0};
  return FlowHand::packet(packet, payload);
}

Bytes Stranger::message(std::uint32_t number, MessageHeader header, std::size_t length) const {
  Bytes bytes(kMessageHeader + length);
  header.length = length;
  write_header(header, bytes.data());
  return of_flow(wire::Operation::kSendOnly, number, bytes);
}

Bytes Stranger::fetch_sum(std::uint32_t rendezvous_id, std::size_t length) {
  const RemoteRange range{0, length, RegionKey{kKey}};
  MessageHeader header;
  header.kind = MessageKind::kAtomic;
  header.action = {AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint64};
  header.rendezvous_id = rendezvous_id;
  header.tag = 1;
  header.length = length;
  Bytes bytes(kMessageHeader + kRange + length);
  write_header(header, bytes.data());
  write_ranges({&range, 1}, bytes.data() + kMessageHeader);
  return bytes;
}

std::vector<wire::CmMad> Stranger::hear_all() {
  std::vector<wire::CmMad> last_received;
  for (const Bytes& bytes : std::exchange(arrived_, {})) {
    wire::Packet packet;
    if (wire::parse(bytes, packet) != wire::Malformed::kNone) continue;
    if (packet.destination != wire::kCmQpn || packet.payload.size() < wire::kMadBytes) continue;
    if (const auto mad = wire::parse_cm(packet.payload.first(wire::kMadBytes))) {
      last_received.push_back(*mad);
    }
  }
  return last_received;
}

std::vector<FlowMad> Stranger::hear() {
  std::vector<FlowMad> last_received;
  for (const wire::CmMad& mad : hear_all()) {
    if (const auto said = read_message(mad)) last_received.push_back(*said);
  }
  return last_received;
}

bool Stranger::agree(Endpoint& with) {
  os::Time next = world_.network.now;
  return world_.until({&with}, [&] {
    if (world_.network.now >= next) {
      say(with, req());
      next += milliseconds(50);
    }
    const auto answer = last<RepMad>(hear());
    if (!answer) return false;
    rep = *answer;
    say(with, RtuMad{answer->remote_id, answer->local_id, answer->transaction});
    world_.pass(microseconds(50), {&with});
    return true;
  });
}

link::Flow* Stranger::accept(Endpoint& from) {
  from.flows.push_back(std::move(from.open(address)).value());
  link::Flow* const flow = from.flows.back().get();
  const auto asked = await<ReqMad>(from);
  if (!asked) return nullptr;
  say(from, reply_to(*asked));
  return world_.until({&from}, [&] { return flow->reached(); }) ? flow : nullptr;
}

void Stranger::refuse(const Endpoint& from) {
  for (const FlowMad& said : hear()) {
    const auto* asked = std::get_if<ReqMad>(&said);
    if (asked == nullptr) continue;
    say(from, RejMad{wire::CmReason::kConsumer, asked->local_id, asked->transaction, {{}, true}});
  }
}

}  // namespace weft::rdm::testing
