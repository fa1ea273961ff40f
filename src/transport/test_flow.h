// SPDX-License-Identifier: BSD-2-Clause
// How do tests hand packets to one half of a flow, and read what it says?
//
// Packet numbers count from the flow's first one, which lies just before the wrap. What is said is
// text, a packet after the other: `ack 3 #2` is an acknowledgement of packet 3 with message number
// 2; see text_of().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plain_memory.h"
#include "transport/requester.h"
#include "transport/responder.h"

namespace weft::transport::testing {

using Bytes = std::vector<std::byte>;
using wire::Operation;

inline constexpr std::size_t kMtu = 256;
inline const Psn kFirstPsn(0xFF'FFFD);
inline Psn psn(std::int32_t number) { return kFirstPsn.after(number); }

// Bytes that tell where they stand.
Bytes pattern(std::size_t length, unsigned begin = 0);

Settings connection();  // to a peer that is not Weft
Settings selective();   // to one that is
Settings datagrams();   // reliable ones, between Weft's
// The same settings of an end that counts there.
Settings counted(Settings settings, Stats& stats);

// A packet as it went out. The payload lies in `bytes`.
struct Sent {
  Bytes bytes;
  wire::Packet packet;

  Operation operation() const { return wire::operation_of(packet.opcode); }
};
// Reads what next() wrote; a malformed one fails the test.
Sent read_packet(std::span<const std::byte> written);
// `only 3 #2 [100]`: what it is, its number, what it says, and in brackets the length of its
// payload. A request that asks to be answered ends with `?`.
std::string text_of(const Sent& sent);
std::string text_of(const std::vector<Sent>& all);

// Memory and receives that do as they are told.
class Memory final : public work::Target {
 public:
  static constexpr std::uint32_t kKey = 0x77;
  static constexpr std::uint64_t kAddress = 0x10'0000;
  static constexpr std::size_t kBytes = 64 * 1024;

  // What is answered from now on.
  work::RequestVerdict begins, goes_on, access, writes, immediates, reads, atomics, invalidates;

  static constexpr std::uint32_t kSharedReceive = 0x55;  // the only one that there is

  Bytes bytes = pattern(kBytes);
  bool vast = false;                     // whatever is read may be read
  bool lenient = false;                  // no bytes need no key
  std::vector<Bytes> messages;           // received
  std::vector<work::MessageEnd> ends;    // of each
  std::vector<std::uint64_t> writes_of;  // the length of each write
  unsigned broken = 0;
  std::uint64_t sum = 0;  // what atomic operations change
  unsigned changed = 0;   // by so many

 private:
  work::RequestVerdict may_use(std::uint32_t shared_receive) override;
  work::RequestVerdict may_invalidate(std::uint32_t) override { return invalidates; }
  work::RequestVerdict message_begins() override;
  work::RequestVerdict message_goes_on(std::span<const std::byte> more) override;
  void message_ends(const work::MessageEnd& end) override;
  void message_breaks() override;
  work::RequestVerdict may_access(Access need, const work::RemoteMemory& memory) override;
  work::RequestVerdict write(const work::RemoteMemory& memory, std::uint64_t offset,
                             std::span<const std::byte> more) override;
  work::RequestVerdict may_report_immediate() override { return immediates; }
  void written(const work::RemoteMemory& memory, const work::MessageEnd& end) override;
  work::RequestVerdict read(const work::RemoteMemory& memory, std::uint64_t offset,
                            std::span<std::byte> out) override;
  work::RequestVerdict atomic(bool compares, const work::AtomicOperands& what,
                              std::uint64_t& original) override;

  Bytes message_;
  bool receiving_ = false;
};

// A responder, whose peer is the test.
class Receiver {
 public:
  explicit Receiver(const Settings& settings);

  // Requests; those of a message have the payload that pattern() makes, and RETHs of Memory.
  wire::Packet request(Operation operation, std::int32_t number, std::size_t length = 0);
  wire::Packet read(std::int32_t number, std::uint32_t length, std::uint64_t offset = 0);
  wire::Packet add(std::int32_t number);

  void take(const wire::Packet& request);
  void take(Operation operation, std::int32_t number, std::size_t length = 0);
  void pass(Duration time) { now_ += time; }
  // All that it has to say now.
  std::vector<Sent> answers();
  std::string says() { return text_of(answers()); }
  // Takes one in and says what it says.
  std::string hears(const wire::Packet& request);
  std::string hears(Operation operation, std::int32_t number, std::size_t length = 0);

  Memory memory;
  Stats stats;
  const Settings settings;
  Responder responder;

 private:
  Bytes payload_;
  Time now_{std::chrono::seconds(1)};
};

// A requester, whose peer is the test.
class Sender final : public work::WorkSink {
 public:
  explicit Sender(const Settings& settings);

  work::Work work(work::WorkKind kind, std::size_t length);
  void post(work::WorkKind kind, std::size_t length) { requester.post(work(kind, length)); }
  // All that it has to send now, at most so many.
  std::vector<Sent> packets(std::size_t most = 5000);
  std::string sends(std::size_t most = 5000) { return text_of(packets(most)); }

  void take(const wire::Packet& response) { requester.take(response, now); }
  void acknowledge(std::int32_t number, std::uint8_t syndrome = kNoCredits,
                   std::uint32_t message_number = 0);
  void nak(Nak code, std::int32_t number, std::uint32_t count = 0);
  // The peer answers the work of that number by a message of its own.
  void arrived(std::uintptr_t work) {
    requester.arrived(reinterpret_cast<const void*>(work), now);  // as work() numbers them
  }
  // One answer of a read, of that length.
  void answer(Operation operation, std::int32_t number, std::size_t length);
  void value(std::int32_t number, std::uint64_t original);
  // Lets time pass up to the deadline and a tick.
  void wait();
  void pass(Duration time);

  // What ended since it was asked last, by number of the work: `0 ok, 1 access/5`.
  std::string ended_now();

  Stats stats;
  Settings settings;
  PlainMemory memory;
  Requester requester;
  Bytes buffer = pattern(1 << 20);
  std::uint64_t original = 0;
  Time now{std::chrono::seconds(1)};
  std::function<void(const work::Ended&)> on_end;

 private:
  void ended(const work::Ended& work) override;

  std::vector<work::Segment> sges_ = std::vector<work::Segment>(2);
  std::uintptr_t posted_ = 0;
  std::string ended_;
};

}  // namespace weft::transport::testing
