// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint speak whose packets go to the file?
#pragma once

#include <functional>
#include <vector>

#include "link/flow.h"
#include "link/inbox.h"
#include "rdm/engine.h"
#include "roce/datagram_writer.h"
#include "wire/tap.h"

namespace weft::capture {

// An engine of reliable datagrams, and its host: each packet is written to the file, then reaches
// the other end, as no packet is lost. No time passes, so nothing is ever late, and the engine
// sends no probe (LAP). The endpoint takes in all messages. One thread at a time.
class End final : public rdm::Host, public link::InboxSink, public link::FlowSink {
 public:
  // The path to a peer, and the end there.
  struct Way {
    os::UdpPath path;
    End* to = nullptr;
  };
  using FindWay = std::function<Way(const os::SocketAddress& peer)>;

  // The tap, and what the options name, outlive it.
  End(wire::Tap& tap, wire::CaptureDirection direction, const rdm::RdmOptions& options,
      FindWay find_way);

  rdm::RdmEngine& engine() { return engine_; }
  // Takes in the packets that have arrived, and sends what there is to send.
  void turn();
  bool has_packets() const { return !arrived_.empty(); }
  // The message that has arrived since the last call; without an operation: none has.
  link::Arrival last_message() { return std::exchange(message_, {}); }
  // Writes an unreliable datagram to the file, of the lower half of `data`, if one packet holds it.
  void write_datagram(const os::SocketAddress& to, std::span<const LocalRange> pieces,
                      bool has_data, std::uint64_t data);
  // Writes a message of the connection manager to the file, of which zeros at the end are missing.
  void write_connection_message(const os::SocketAddress& to, const LocalRange& message);

 private:
  struct ArrivedPacket {
    roce::Path path;
    std::vector<std::byte> bytes;
  };

  void write(const wire::Route& route, std::span<std::byte> packet);
  void write(const os::SocketAddress& to, const roce::DatagramHeader& header,
             std::span<const LocalRange> pieces);

  std::span<std::byte> place() override { return place_; }
  void add(const roce::Path& path, std::size_t length) override;
  void expect(std::size_t) override {}
  void flush() override {}
  bool pending() const override { return false; }
  void send_cnp(const roce::Path&, std::uint32_t, std::uint32_t, os::Time) override {}
  Received receive() override;
  Result<os::UdpPath> path_to(const os::SocketAddress& peer) override;
  void wake() override {}
  os::Time now() override { return os::Time(std::chrono::hours(1)); }
  std::uint64_t random() override;

  void source_opened(std::uint32_t, const os::SocketAddress&) override {}
  void source_closed(std::uint32_t, bool) override {}
  void arrived(const link::Arrival& message) override { message_ = message; }
  void received(void*, int) override {}
  void ended(void*, int, int) override {}

  wire::Tap& tap_;
  const wire::CaptureDirection direction_;
  const FindWay find_way_;
  std::vector<std::byte> place_;
  std::vector<ArrivedPacket> arrived_;
  link::Arrival message_;
  roce::DatagramWriter datagrams_;
  Stats stats_;
  rdm::RdmEngine engine_;
};

}  // namespace weft::capture
