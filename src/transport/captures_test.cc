// SPDX-License-Identifier: BSD-2-Clause
// Do both halves say what Linux's rdma_rxe said in the same place?
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "captured.h"
#include "test_flow.h"

namespace weft::transport::testing {
namespace {

using work::RequestVerdict;
using work::WorkKind;

using wire::testing::Captured;

constexpr std::size_t kRxeMtu = 1024;

// Packets from one host to a queue pair of another one, in their order among all.
using Way = std::tuple<std::array<std::byte, 16>, std::array<std::byte, 16>, std::uint32_t>;
struct Spoken {
  std::size_t order = 0;
  wire::Packet packet;
};
using Stream = std::vector<Spoken>;

// Requests, and their answers if there are any.
struct Conversation {
  Stream requests;
  Stream answers;
};

// What rxe drops without a word does not come this far.
bool is_proper(const Captured& captured) {
  const std::span<const std::byte> all(captured.datagram);
  const auto covered = all.first(all.size() - wire::kIcrcBytes);
  wire::Packet packet;
  return wire::parse(all, packet) == wire::Malformed::kNone && packet.pkey == wire::kDefaultPkey &&
         wire::icrc(captured.route, covered, captured.words) ==
             wire::load_icrc(covered.data() + covered.size());
}

bool is_request(const wire::Packet& packet) { return wire::layout_of(packet.opcode).request; }

std::uint32_t numbers_of(const wire::Packet& packet) {
  if (wire::operation_of(packet.opcode) != Operation::kReadRequest) return 1;
  return std::max<std::uint32_t>((packet.reth.length + kRxeMtu - 1) / kRxeMtu, 1);
}

// The earliest number: some packet of it may have been repeated.
Psn first_of(const Stream& requests) {
  return std::min_element(
             requests.begin(), requests.end(),
             [](const Spoken& a, const Spoken& b) { return a.packet.psn.before(b.packet.psn); })
      ->packet.psn;
}

// Both ends begin with numbers that they drew: an answer's number tells whose it is.
Stream answers_to(const Stream& requests, const std::map<Way, Stream>& streams, const Way& way) {
  const Psn first = first_of(requests);
  const Psn end = requests.back().packet.psn.after(
      static_cast<std::int32_t>(numbers_of(requests.back().packet)));
  Stream answers;
  for (const auto& [other, spoken] : streams) {
    if (std::get<0>(other) != std::get<1>(way) || std::get<1>(other) != std::get<0>(way)) continue;
    for (const Spoken& each : spoken) {
      const bool about_them =
          !each.packet.psn.before(first.after(-1)) && each.packet.psn.before(end);
      if (!is_request(each.packet) && about_them) answers.push_back(each);
    }
  }
  std::sort(answers.begin(), answers.end(),
            [](const Spoken& a, const Spoken& b) { return a.order < b.order; });
  return answers;
}

std::vector<Conversation> conversations(const std::vector<Captured>& captured) {
  std::map<Way, Stream> streams;
  for (std::size_t i = 0; i < captured.size(); ++i) {
    Spoken spoken{i, {}};
    EXPECT_EQ(wire::parse(captured[i].datagram, spoken.packet), wire::Malformed::kNone);
    const auto transport = wire::transport_of(spoken.packet.opcode);
    if (transport != wire::Transport::kReliableConnection || !is_proper(captured[i])) continue;
    const wire::Route& route = captured[i].route;
    streams[{route.source, route.destination, spoken.packet.destination}].push_back(spoken);
  }
  std::vector<Conversation> all;
  for (const auto& [way, stream] : streams) {
    Conversation conversation;
    for (const Spoken& each : stream) {
      if (is_request(each.packet)) conversation.requests.push_back(each);
    }
    if (conversation.requests.empty()) continue;
    conversation.answers = answers_to(conversation.requests, streams, way);
    if (!conversation.answers.empty()) all.push_back(conversation);
  }
  return all;
}

// Memory that lets everything happen but what rxe did not let happen.
class AsRxe final : public work::Target {
 public:
  explicit AsRxe(const Stream& answers) {
    for (const Spoken& each : answers) {
      const std::uint8_t kind = each.packet.syndrome & kSyndromeKind;
      const auto headers = wire::layout_of(each.packet.opcode).headers;
      if ((headers & wire::kAeth) == 0) continue;
      if (kind == kSyndromeRnr) ++not_ready_[each.packet.psn.value()];
      if (each.packet.syndrome == 0x62) ++refused_[each.packet.psn.value()];
      if ((headers & wire::kAtomicAckEth) != 0)
        originals_[each.packet.psn.value()] = each.packet.original;
    }
  }
  void at(Psn psn) { now_ = psn.value(); }

 private:
  RequestVerdict verdict() {
    if (not_ready_[now_] != 0) {
      --not_ready_[now_];
      return {RequestVerdict::Kind::kNotReady, 0};
    }
    return refused_[now_] != 0 ? RequestVerdict{RequestVerdict::Kind::kAccess, 0}
                               : RequestVerdict{};
  }
  RequestVerdict message_begins() override { return verdict(); }
  RequestVerdict message_goes_on(std::span<const std::byte>) override { return {}; }
  void message_ends(const work::MessageEnd&) override {}
  void message_breaks() override {}
  RequestVerdict may_access(Access, const work::RemoteMemory&) override { return verdict(); }
  RequestVerdict write(const work::RemoteMemory&, std::uint64_t,
                       std::span<const std::byte>) override {
    return {};
  }
  RequestVerdict may_report_immediate() override { return verdict(); }
  void written(const work::RemoteMemory&, const work::MessageEnd&) override {}
  RequestVerdict read(const work::RemoteMemory&, std::uint64_t, std::span<std::byte> out) override {
    std::fill(out.begin(), out.end(), std::byte{});
    return {};
  }
  RequestVerdict atomic(bool, const work::AtomicOperands&, std::uint64_t& original) override {
    original = originals_[now_];
    return verdict();
  }

  std::uint32_t now_ = 0;
  std::map<std::uint32_t, int> not_ready_;
  std::map<std::uint32_t, int> refused_;
  std::map<std::uint32_t, std::uint64_t> originals_;
};

Settings rxe(const Conversation& conversation) {
  Settings settings;
  settings.path_mtu = kRxeMtu;
  settings.first_sent = settings.first_expected = first_of(conversation.requests);
  settings.max_reads = settings.max_reads_of_peer = 128;
  return settings;
}

bool is_rnr(const wire::Packet& packet) {
  const bool says = (wire::layout_of(packet.opcode).headers & wire::kAeth) != 0;
  return says && (packet.syndrome & kSyndromeKind) == kSyndromeRnr;
}

// Without the time that a receiver wants.
std::string says(const wire::Packet& packet) {
  wire::Packet same = packet;
  if (is_rnr(packet)) same.syndrome = kSyndromeRnr;
  return text_of(Sent{{}, same});
}

// When nothing is ready, rxe also complains of the packet behind that: the peer knows already.
std::vector<std::string> what_rxe_said(const Stream& answers) {
  std::vector<std::string> said;
  bool after_rnr = false;
  for (const Spoken& each : answers) {
    const bool complains = after_rnr && each.packet.syndrome == kSyndromeNak;
    if (!complains) said.push_back(says(each.packet));
    after_rnr = is_rnr(each.packet);
  }
  return said;
}

std::vector<std::string> what_a_responder_says(const Conversation& conversation) {
  AsRxe target(conversation.answers);
  Responder responder(rxe(conversation), target);
  Bytes out(wire::kMaxHeaderBytes + kRxeMtu);
  std::vector<std::string> said;
  for (const Spoken& each : conversation.requests) {
    target.at(each.packet.psn);
    responder.take(each.packet, {});
    while (const std::size_t length = responder.next(out))
      said.push_back(says(read_packet(std::span<const std::byte>(out).first(length)).packet));
  }
  return said;
}

// The work behind the requests of rxe, piece by piece.
class WorkOfRxe final : public work::WorkSink {
 public:
  explicit WorkOfRxe(const Conversation& conversation)
      : conversation_(conversation),
        requester_(counted(rxe(conversation), stats_), *this, memory_) {}

  void run() {
    std::size_t answer = 0;
    for (const Spoken& request : conversation_.requests) {
      for (; answer < conversation_.answers.size(); ++answer) {
        if (conversation_.answers[answer].order > request.order) break;
        take(conversation_.answers[answer].packet);
      }
      request_comes(request.packet);
    }
    for (; answer < conversation_.answers.size(); ++answer)
      take(conversation_.answers[answer].packet);
    EXPECT_EQ(ended_, posted_);
    EXPECT_FALSE(requester_.busy());
    EXPECT_EQ(stats_.of(Stat::kRetransmissions), 0U);
  }

 private:
  void ended(const work::Ended& work) override {
    EXPECT_EQ(work.status, work::CompletionStatus::kSuccess);
    ++ended_;
  }

  void take(const wire::Packet& packet) { requester_.take(packet, now_ += Duration(1000)); }

  // Posts work with its last packet, and compares what is sent with what rxe sent.
  void request_comes(const wire::Packet& packet) {
    const wire::Layout& layout = wire::layout_of(packet.opcode);
    if (layout.starts) first_ = packet;
    requests_.push_back(packet);
    bytes_.insert(bytes_.end(), packet.payload.begin(), packet.payload.end());
    if (!layout.ends) return;
    post(packet);
    Bytes out(wire::kMaxHeaderBytes + kRxeMtu);
    for (const wire::Packet& of_rxe : requests_) {
      const std::size_t length = requester_.next(now_, out);
      ASSERT_NE(length, 0U);
      const Sent sent = read_packet(std::span<const std::byte>(out).first(length));
      compare(sent.packet, of_rxe);
    }
    EXPECT_EQ(requester_.next(now_, out), 0U);
    requests_.clear();
    bytes_.clear();
  }

  void post(const wire::Packet& last) {
    work::Work work;
    const Operation operation = wire::operation_of(first_.opcode);
    work.kind = WorkKind::kSend;
    if (operation >= Operation::kWriteFirst) work.kind = WorkKind::kWrite;
    if (operation == Operation::kReadRequest) work.kind = WorkKind::kRead;
    if (operation == Operation::kCompareSwap) work.kind = WorkKind::kCompareSwap;
    if (operation == Operation::kFetchAdd) work.kind = WorkKind::kFetchAdd;
    const bool atomic = work.kind >= WorkKind::kCompareSwap;
    work.has_immediate = (wire::layout_of(last.opcode).headers & wire::kImmediate) != 0;
    work.immediate = last.immediate;
    work.solicited = last.solicited;
    work.address = atomic ? first_.atomic.address : first_.reth.address;
    work.key = atomic ? first_.atomic.key : first_.reth.key;
    work.compare = first_.atomic.compare;
    work.swap_or_add = first_.atomic.swap_or_add;
    work.length = work.kind == WorkKind::kRead ? first_.reth.length : bytes_.size();
    buffers_.push_back(bytes_);
    buffers_.back().resize(work.length);
    const work::Segment sge{buffers_.back().data(), work.length};
    if (!atomic) work.sges = {&sge, 1};
    requester_.post(work);
    ++posted_;
  }

  // But for whether it asks for an answer.
  static void compare(wire::Packet ours, const wire::Packet& of_rxe) {
    ours.ack_request = of_rxe.ack_request;
    EXPECT_EQ(says(ours), says(of_rxe));
    EXPECT_TRUE(std::equal(ours.payload.begin(), ours.payload.end(), of_rxe.payload.begin(),
                           of_rxe.payload.end()));
    EXPECT_EQ(ours.solicited, of_rxe.solicited);
    EXPECT_EQ(ours.immediate, of_rxe.immediate);
    EXPECT_EQ(ours.reth.key, of_rxe.reth.key);
    EXPECT_EQ(ours.atomic.address, of_rxe.atomic.address);
    EXPECT_EQ(ours.atomic.key, of_rxe.atomic.key);
    EXPECT_EQ(ours.atomic.swap_or_add, of_rxe.atomic.swap_or_add);
    EXPECT_EQ(ours.atomic.compare, of_rxe.atomic.compare);
  }

  const Conversation& conversation_;
  PlainMemory memory_;
  Stats stats_;
  Requester requester_;
  Time now_{std::chrono::seconds(1)};
  wire::Packet first_;
  std::vector<wire::Packet> requests_;
  Bytes bytes_;
  std::deque<Bytes> buffers_;
  int posted_ = 0;
  int ended_ = 0;
};

struct Capture {
  const char* name;
  std::size_t conversations;  // in which there are answers
};

class Captures : public ::testing::TestWithParam<Capture> {};

TEST_P(Captures, GetTheAnswersOfRxeFromAResponder) {
  const auto captured = wire::testing::packets_of(GetParam().name);
  const auto all = conversations(captured);
  EXPECT_EQ(all.size(), GetParam().conversations);
  for (const Conversation& conversation : all)
    EXPECT_EQ(what_a_responder_says(conversation), what_rxe_said(conversation.answers));
}

INSTANTIATE_TEST_SUITE_P(OfRxe, Captures,
                         ::testing::Values(Capture{"rxe61_rc_uc_ud_srq_atomic_cm.pcap", 13},
                                           Capture{"rxe612_cm_rc_uc_ud_srq_atomic_v4v6.pcap", 16},
                                           Capture{"userspace_peer_vs_rxe612.pcap", 3}));

class QuietCaptures : public Captures {};

TEST_P(QuietCaptures, HaveTheRequestsThatARequesterMakesAndEndThem) {
  const auto captured = wire::testing::packets_of(GetParam().name);
  for (const Conversation& conversation : conversations(captured)) WorkOfRxe(conversation).run();
}

INSTANTIATE_TEST_SUITE_P(OfRxe, QuietCaptures,
                         ::testing::Values(Capture{"rxe61_rc_uc_ud_srq_atomic_cm.pcap", 13},
                                           Capture{"rxe612_cm_rc_uc_ud_srq_atomic_v4v6.pcap", 16}));

}  // namespace
}  // namespace weft::transport::testing
