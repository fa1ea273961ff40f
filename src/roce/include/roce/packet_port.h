// SPDX-License-Identifier: BSD-2-Clause
// How do the queue pairs of a UDP port share its sockets?
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/stats.h"
#include "os/wake_set.h"
#include "roce/congestion_notifier.h"
#include "roce/packet_check.h"
#include "roce/packet_handler.h"
#include "roce/packet_output.h"
#include "roce/qpn_table.h"
#include "roce/receive_set.h"
#include "roce/relay_set.h"
#include "roce/trains.h"
#include "wire/tap.h"

namespace weft::roce {

class RelayPolls;

// What a port is made of.
struct PacketPortOptions {
  wire::Tap* capture = nullptr;  // hears of all packets, if not null; outlives the port
  // The one at the address of the socket, if foreign peers are to reach the port (RelaySet).
  std::shared_ptr<Port4791Relay> relay = nullptr;
  std::size_t arrivals = 16;           // that one system call reads
  Stats* stats = &Stats::discarded();  // where packets are counted; outlives the port
  bool relays_datagrams = true;        // not messages for a manager of connections alone
};

// A UDP socket for RoCEv2 packets, or one of each address family, and those that hear multicast
// groups for it. Hands each packet
// that came to the owner of its queue pair; packets leave through trains(). One thread at a time.
class PacketPort {
 public:
  // Over a socket that has kReliableSocket if the senders on the port react to ECN marks. Packets
  // wake the threads that sleep on that set, which outlives the port. Errors: those of epoll_ctl(2)
  // and RelayPolls::open().
  static Result<std::unique_ptr<PacketPort>> open(os::UdpSocket socket, os::WakeSet& wake,
                                                  const PacketPortOptions& options);
  // The same number of the other address family is the port's, too: its packets are handed over
  // alike. Once, before the first packet. Errors: those of epoll_ctl(2).
  Status add_family(os::UdpSocket socket);
  ~PacketPort();
  PacketPort(const PacketPort&) = delete;
  PacketPort& operator=(const PacketPort&) = delete;

  // Packets for the QPN that this returns go to that handler, which outlives the port or is
  // detached before it ends. With a relay, a manager of connections is reached by foreign peers,
  // too. Errors: those of QpnTable::take() and of RelayPolls::open_manager().
  Result<std::uint32_t> attach(PacketHandler& handler, QpnUse use, os::Time now);
  // Afterwards no packet for that QPN goes to its handler, also of those that are being handed
  // over: a handler may detach itself and others. The number rests (QpnTable::kRest).
  void detach(std::uint32_t qpn, os::Time now);

  // Hands over up to `most` packets that have come, by at most `reads` system calls, then the ICMP
  // errors behind them; returns how many packets.
  unsigned poll(unsigned most, unsigned reads);
  // Hands over the ICMP errors that a send has met.
  void report_errors();
  // The next calls of poll() read sockets without traffic, too.
  void attend() { receive_set_.attend(); }
  // True when the last poll() found that nothing was left to be read.
  bool emptied() const { return receive_set_.emptied(); }
  // True while packets are here that no descriptor tells of, or more are likely at once.
  bool busy() const;

  // Where packets leave.
  Trains& trains() { return sides_[0]->trains; }
  const Trains& trains() const { return sides_[0]->trains; }
  // The same for packets to peers of that address family; null where the port has no such socket.
  PacketOutput* output(int family);
  // Notifies the sender of a marked packet, a queue pair at path.to, but not too often.
  // `flow_identity`: see CongestionNotifier.
  void send_cnp(const Path& path, std::uint32_t sender, std::uint32_t flow_identity, os::Time now);

  // Hears that socket, too, whose packets are those of the multicast group of that number (not 0).
  // Errors: those of epoll_ctl(2).
  Status listen(os::UdpSocket& socket, std::uint64_t group);
  // Hears it no more; it may end.
  void stop_listening(const os::UdpSocket& socket);
  // What is sent to that group leaves by the interface of the port's address, or the one that leads
  // to the group where that is a wildcard; returns the address it is sent from. With `loops`
  // members on this host hear it. Errors: ENETUNREACH where no interface leads there, those of
  // os::UdpSocket::send_to_group_by().
  Result<os::SocketAddress> send_to_group(const os::SocketAddress& group, bool loops);

  // The socket's.
  const os::SocketAddress& address() const { return sides_[0]->socket.address(); }
  std::size_t receive_buffer() const { return sides_[0]->socket.receive_buffer(); }
  bool inherited() const { return sides_[0]->socket.inherited(); }

  // Packets of the port. Handlers add those that they take or drop.
  Stats& stats() { return stats_; }
  // Counts the packets that the kernel has dropped since the last call, here and at port 4791, for
  // want of room in the sockets: a system call for each socket.
  void count_overflows();

  // Prepares for sleeping on wake_set(), until wake_up(). False when packets are here already, or
  // when they cannot wake a thread for want of memory.
  bool fall_asleep();
  void wake_up() {
    asleep_ = false;
    receive_set_.attend();
  }
  os::WakeSet& wake_set() { return wake_; }
  // Sleeps until a packet waits in the socket or the time is over.
  void await_packet(std::chrono::milliseconds timeout) const {
    os::wait_readable(sides_[0]->socket.fd(), timeout);
  }

 private:
  // A socket and its packets on their way out.
  class FamilySocket final : public PacketOutput {
   public:
    FamilySocket(PacketPort& port, os::UdpSocket of, wire::Tap* capture)
        : socket(std::move(of)), trains(socket, capture), port_(port) {}
    std::span<std::byte> place() override { return trains.place(); }
    void add(const Path& path, std::size_t length) override { trains.add(path, length); }
    void expect(std::size_t packets) override { trains.expect(packets); }
    void flush() override { trains.flush(); }
    bool pending() const override { return !trains.empty(); }
    void send_cnp(const Path& path, std::uint32_t sender, std::uint32_t flow_identity,
                  os::Time now) override {
      port_.send_cnp(path, sender, flow_identity, now);
    }

    os::UdpSocket socket;
    Trains trains;

   private:
    PacketPort& port_;
  };

  PacketPort(os::UdpSocket socket, os::WakeSet& wake, const PacketPortOptions& options);
  Status prepare(const PacketPortOptions& options);
  void count_poll();
  template <class Visit>
  void each_owner(Visit visit);
  void take(const ReceiveSocket& socket, const os::Datagram& datagram);
  void take_foreign(const os::Datagram& datagram, std::uint64_t group);
  void hand_over(const PacketArrival& arrival);

  wire::Tap* const capture_;
  std::vector<std::unique_ptr<FamilySocket>> sides_;  // one of each family
  QpnTable qpns_;
  ReceiveSet receive_set_;
  PacketCheck check_;
  Stats& stats_;
  CongestionNotifier notifier_;
  os::WakeSet& wake_;
  std::unique_ptr<RelayPolls> relay_polls_;  // null: foreign peers do not reach the port
  bool errors_wait_ = false;
  bool asleep_ = false;
  unsigned polls_watched_;  // until the socket leaves the wake set, if they are no sleep; 0: it has
};

}  // namespace weft::roce
