// SPDX-License-Identifier: BSD-2-Clause
// What can a hostile peer do to the two halves of a reliable flow? Input: how the flow is set up,
// then a script of work, time, packets that arrive, get lost or come twice, and forged ones.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "input.h"
#include "transport/requester.h"
#include "transport/responder.h"

namespace {

using namespace weft;
using namespace weft::transport;
using fuzz::Input;
using fuzz::require;
using weft::work::kMaxMessage;
using weft::work::RequestVerdict;
using weft::work::Segment;
using weft::work::WorkKind;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kKey = 7;
constexpr std::uint64_t kAddress = 0x10000;
constexpr std::size_t kArea = 32 * 1024;
constexpr std::size_t kInFlight = 64;
constexpr std::size_t kPending = 32;

// Memory that is asked only for what it has allowed, in the order of its contract.
class Memory final : public work::Target {
 public:
  explicit Memory(Input& input) : input_(input), area_(kArea) {}
  ~Memory() override { require(!receiving_, "a message neither ended nor broke"); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

 private:
  // Mostly yes.
  RequestVerdict verdict() {
    const std::uint8_t choice = input_.byte();
    if (choice < 0xF0) return {};
    return {static_cast<RequestVerdict::Kind>(1 + choice % 4),
            static_cast<std::uint8_t>(choice & 15)};
  }
  RequestVerdict but_not_ready(RequestVerdict verdict) {
    return verdict.kind == RequestVerdict::Kind::kNotReady ? RequestVerdict{} : verdict;
  }

  RequestVerdict may_use(std::uint32_t) override {
    require(!receiving_, "a message begins within another");
    return but_not_ready(verdict());
  }
  RequestVerdict may_invalidate(std::uint32_t) override {
    require(receiving_, "the end of no message");
    return but_not_ready(verdict());
  }
  RequestVerdict message_begins() override {
    require(!receiving_, "a message begins within another");
    const RequestVerdict made = verdict();
    receiving_ = made.ok();
    return made;
  }
  RequestVerdict message_goes_on(std::span<const std::byte> bytes) override {
    require(receiving_, "bytes of no message");
    require(bytes.size() <= wire::kMaxReliableDatagramMtu, "more than a packet holds");
    const RequestVerdict made = verdict();
    const bool gives_up = made.kind == RequestVerdict::Kind::kNotReady;
    return gives_up ? RequestVerdict{RequestVerdict::Kind::kGivenUp, 0} : made;
  }
  void message_ends(const work::MessageEnd&) override {
    require(receiving_, "the end of no message");
    receiving_ = false;
  }
  void message_breaks() override {
    require(receiving_, "no message was there to break");
    receiving_ = false;
  }

  RequestVerdict may_access(Access need, const work::RemoteMemory& memory) override {
    require(memory.length <= kMaxMessage, "a length that is none");
    const bool within = memory.key == kKey && memory.address >= kAddress &&
                        memory.address - kAddress <= kArea &&
                        memory.length <= kArea - (memory.address - kAddress);
    if (!within) return {RequestVerdict::Kind::kAccess, 1};
    const RequestVerdict made = but_not_ready(verdict());
    if (!made.ok()) return made;
    if (need == Access::kRemoteWrite) {
      writable_ = memory;
    } else {
      readable_.push_back(memory);
    }
    return made;
  }
  RequestVerdict write(const work::RemoteMemory& memory, std::uint64_t offset,
                       std::span<const std::byte> bytes) override {
    const bool same = memory.key == writable_.key && memory.address == writable_.address &&
                      memory.length == writable_.length;
    require(same, "a write that was not allowed");
    require(offset + bytes.size() <= memory.length, "a write behind what was allowed");
    std::memcpy(area_.data() + (memory.address - kAddress) + offset, bytes.data(), bytes.size());
    return but_not_ready(verdict());
  }
  RequestVerdict may_report_immediate() override { return verdict(); }
  void written(const work::RemoteMemory&, const work::MessageEnd&) override {}
  RequestVerdict read(const work::RemoteMemory& memory, std::uint64_t offset,
                      std::span<std::byte> out) override {
    require(offset + out.size() <= memory.length, "a read behind what was allowed");
    const auto allowed = [&](const work::RemoteMemory& once) {
      return memory.key == once.key && memory.address >= once.address &&
             memory.address - once.address + memory.length <= once.length;
    };
    require(std::any_of(readable_.begin(), readable_.end(), allowed),
            "a read that was not allowed");
    std::memcpy(out.data(), area_.data() + (memory.address - kAddress) + offset, out.size());
    return but_not_ready(verdict());
  }
  RequestVerdict atomic(bool, const work::AtomicOperands&, std::uint64_t& original) override {
    original = ++atomics_;
    return but_not_ready(verdict());
  }

  Input& input_;
  Bytes area_;
  bool receiving_ = false;
  work::RemoteMemory writable_;
  std::vector<work::RemoteMemory> readable_;
  std::uint64_t atomics_ = 0;
};

constexpr std::uint32_t kGone = 1;  // the key of buffers that are unmapped

// The buffers of works.
class Buffers final : public work::LocalMemory {
 public:
  bool gather(std::span<const Segment> segments, std::uint64_t offset,
              std::span<std::byte> out) override {
    return copy(segments, offset, out.size(), [&](std::size_t done, const Segment& part) {
      std::memcpy(out.data() + done, part.base, part.length);
    });
  }
  bool scatter(std::span<const Segment> segments, std::uint64_t offset,
               std::span<const std::byte> bytes) override {
    return copy(segments, offset, bytes.size(), [&](std::size_t done, const Segment& part) {
      std::memcpy(part.base, bytes.data() + done, part.length);
    });
  }

 private:
  template <class Each>
  static bool copy(std::span<const Segment> segments, std::uint64_t offset, std::size_t length,
                   const Each& each) {
    Segment parts[work::kMaxWorkSges];
    const std::size_t count = slice(segments, offset, length, parts);
    std::size_t done = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (parts[i].key == kGone) return false;
      each(done, parts[i]);
      done += parts[i].length;
    }
    require(done == length, "bytes that no buffer has");
    return true;
  }
};

// A user whose buffers live until their work has ended.
class User final : public work::WorkSink {
 public:
  void post(Requester& requester, Input& input, std::size_t path_mtu) {
    if (pending_.size() >= kPending) return;
    auto mine = std::make_unique<Pending>();
    work::Work work;
    work.kind = static_cast<WorkKind>(input.below(5));
    const std::uint8_t flags = input.byte();
    work.has_immediate = (flags & 1) != 0;
    work.solicited = (flags & 2) != 0;
    work.fence = (flags & 4) != 0;
    const bool long_one = (flags & 0x30) == 0;
    work.length = input.below(static_cast<std::uint32_t>(long_one ? 140 * path_mtu : 600));
    work.address = kAddress + input.below(1024);
    work.key = (flags & 0xC0) == 0 ? kKey + 1 : kKey;
    mine->bytes.resize(work.length);
    const std::uint32_t gone = (flags & 0xC9) == 0x49 ? kGone : 0;
    mine->sges[0] = {mine->bytes.data(), work.length / 2};
    mine->sges[1] = {mine->bytes.data() + work.length / 2, work.length - work.length / 2, gone};
    if (work.kind >= WorkKind::kCompareSwap) {
      work.length = 8;
      work.original = &mine->original;
    } else {
      work.sges = mine->sges;
    }
    work.cookie = mine.get();
    again_ = (flags & 8) != 0 ? &requester : nullptr;
    pending_.push_back(std::move(mine));
    requester.post(work);
  }

  bool idle() const { return pending_.empty(); }

 private:
  struct Pending {
    Bytes bytes;
    Segment sges[2];
    std::uint64_t original = 0;
  };

  void ended(const work::Ended& work) override {
    require(!pending_.empty() && pending_.front().get() == work.cookie, "ends out of order");
    pending_.pop_front();
    if (again_ == nullptr || pending_.size() >= kPending) return;
    Requester& requester = *again_;
    again_ = nullptr;
    Input nothing(nullptr, 0);
    post(requester, nothing, 256);
  }

  std::deque<std::unique_ptr<Pending>> pending_;
  Requester* again_ = nullptr;
};

Settings draw(Input& input) {
  constexpr wire::Transport kKinds[] = {wire::Transport::kReliableConnection,
                                        wire::Transport::kReliableDatagram,
                                        wire::Transport::kExtendedReliable};
  Settings settings;
  settings.kind = kKinds[input.below(3)];
  settings.selective = input.byte() % 2 != 0;
  settings.path_mtu = std::size_t{256} << input.below(5);
  if (settings.kind == wire::Transport::kReliableDatagram && input.byte() % 2 != 0) {
    settings.path_mtu = wire::kReliableDatagramMtuUnit * (4 + input.below(136));
  }
  settings.max_reads = input.below(5);
  settings.max_reads_of_peer = input.below(5);
  settings.max_window = 1U << input.below(11);
  settings.rnr_retries = input.below(8);
  settings.retries = input.below(8);
  settings.ack_timeout = ack_timeout(static_cast<std::uint8_t>(input.below(32)));
  settings.first_sent = settings.first_expected = Psn(0).after(-static_cast<int>(input.below(9)));
  return settings;
}

class Flow {
 public:
  explicit Flow(Input& input)
      : input_(input),
        settings_(draw(input)),
        memory_(input),
        requester_(settings_, user_, buffers_),
        responder_(settings_, memory_) {}

  void run() {
    while (!input_.empty()) step();
    drain();
    requester_.fail(work::CompletionStatus::kFlushed);
    require(user_.idle() && !requester_.busy(), "work that never ended");
  }

 private:
  using Packets = std::deque<Bytes>;

  void step() {
    switch (input_.byte() % 12) {
      case 0:
      case 1:
        return user_.post(requester_, input_, settings_.path_mtu);
      case 2:
        return pass();
      case 3:
      case 4:
        for (unsigned i = input_.below(16) + 1; i != 0 && send(); --i) {
        }
        return;
      case 5:
        for (unsigned i = input_.below(16) + 1; i != 0 && answer(); --i) {
        }
        return;
      case 6:
      case 7:
        return arrive(requests_);
      case 8:
        return arrive(answers_);
      case 9:
      case 10:
        return forge();
      default:
        return requester_.marked(now_);
    }
  }

  void pass() {
    now_ += Duration(std::int64_t{1} << input_.below(32));
    if (requester_.deadline() <= now_) requester_.tick(now_);
  }

  // The packet in `out_`, with room for an ICRC, must be one.
  bool keep(std::size_t length, Packets& on_the_way, bool request) {
    if (length == 0) return false;
    require(length <= wire::kMaxHeaderBytes + settings_.path_mtu, "longer than there is room");
    Bytes packet(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(length));
    packet.resize(length + wire::kIcrcBytes);
    wire::Packet parsed;
    require(wire::parse(packet, parsed) == wire::Malformed::kNone, "a malformed packet is sent");
    require(wire::layout_of(parsed.opcode).request == request, "a packet of the other direction");
    last_ = parsed.psn;
    on_the_way.push_back(std::move(packet));
    if (on_the_way.size() > kInFlight) on_the_way.pop_front();
    return true;
  }

  bool send() {
    const bool ready = requester_.ready(now_);
    const bool sent = keep(requester_.next(now_, out_), requests_, true);
    // Work that cannot be sent stops it.
    require(ready == sent || (ready && !requester_.ready(now_)),
            "a packet and readiness are not the same");
    return sent;
  }

  bool answer() {
    const bool ready = responder_.ready();
    const bool sent = keep(responder_.next(out_), answers_, false);
    require(ready == sent, "an answer and readiness are not the same");
    return sent;
  }

  // One of those on the way; it may come once more.
  void arrive(Packets& on_the_way) {
    if (on_the_way.empty()) return;
    const std::uint8_t choice = input_.byte();
    const auto which = on_the_way.begin() + (choice & 0x3F) % static_cast<int>(on_the_way.size());
    const Bytes packet = *which;
    if ((choice & 0xC0) != 0) on_the_way.erase(which);
    take(packet);
  }

  void take(const Bytes& datagram) {
    wire::Packet packet;
    if (wire::parse(datagram, packet) != wire::Malformed::kNone) return;
    responder_.take(packet, now_);
    requester_.take(packet, now_);
  }

  void forge() {
    wire::Packet packet;
    const std::uint8_t operation = input_.byte();
    packet.opcode = (operation & 0xE0) == 0xE0
                        ? operation
                        : wire::opcode_of(settings_.kind, wire::operation_of(operation));
    const wire::Layout& layout = wire::layout_of(packet.opcode);
    packet.psn = number();
    packet.ack_request = input_.byte() % 2 != 0;
    packet.reth = {kAddress + input_.below(2048), kKey, length()};
    packet.atomic = {kAddress, kKey, 1, 2};
    packet.syndrome = input_.byte();
    packet.message_number = length();
    const std::size_t size = payload(layout.payload);
    Bytes datagram(wire::header_bytes(packet));
    wire::write_headers(packet, size, datagram.data());
    datagram.resize(datagram.size() + size + wire::padding_of(size) + wire::kIcrcBytes);
    const unsigned times = input_.byte() == 0xFF ? 300 : 1;
    for (unsigned i = 0; i < times; ++i) take(datagram);
  }

  Psn number() {
    const std::uint8_t choice = input_.byte();
    if (choice < 0xC0) return last_.after(static_cast<int>(choice % 32) - 12);
    if (choice < 0xE0) return last_.after(static_cast<int>(input_.below(0xFFFF)) - 0x8000);
    return Psn(static_cast<std::uint32_t>(input_.word() >> 8));
  }

  std::uint32_t length() {
    return static_cast<std::uint32_t>(
        input_.number({0, settings_.path_mtu, 2 * settings_.path_mtu, kArea, kMaxMessage}));
  }

  std::size_t payload(wire::Payload kind) {
    if (kind == wire::Payload::kNone) return 0;
    if (kind == wire::Payload::kEight) return 8;
    if (kind == wire::Payload::kCnp) return 16;
    if (kind == wire::Payload::kFull) return settings_.path_mtu << (input_.byte() == 0xFF ? 1 : 0);
    return std::min<std::size_t>(length(), wire::max_payload(settings_.kind, kind));
  }

  // All that both have to say comes to an end, and is not much.
  void drain() {
    std::size_t values = 0;
    std::size_t packets = 0;
    while (answer()) {
      const auto operation =
          wire::operation_of(std::to_integer<std::uint8_t>(answers_.back().front()));
      const bool begins = operation == wire::Operation::kReadResponseFirst ||
                          operation == wire::Operation::kReadResponseOnly ||
                          operation == wire::Operation::kAtomicAcknowledge;
      if (begins) ++values;
      require(++packets < 20'000, "answers without end");
    }
    require(values <= 64 + settings_.max_reads_of_peer, "more answers than were agreed on");
    packets = 0;
    while (send()) require(++packets < 20'000, "packets without end");
  }

  Input& input_;
  const Settings settings_;
  User user_;
  Memory memory_;
  Buffers buffers_;
  Requester requester_;
  Responder responder_;
  Time now_{std::chrono::seconds(1)};
  Bytes out_ = Bytes(wire::kMaxHeaderBytes + settings_.path_mtu);
  Packets requests_;
  Packets answers_;
  Psn last_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  Input input(data, size);
  Flow(input).run();
  return 0;
}
