// SPDX-License-Identifier: BSD-2-Clause
// How does a process send and receive UDP datagrams by the train, with few system calls?
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "os/fd.h"
#include "os/origin.h"
#include "os/udp_batch.h"
#include "os/udp_port.h"

namespace weft::os {

// What became of a call of UdpSocket::send().
struct SendOutcome {
  std::size_t datagrams = 0;  // that left, in order from the first
  std::size_t bytes = 0;      // that they have together
  // 0 when all left; otherwise why the one after them did not:
  //   EAGAIN        the socket's buffer is full; the rest may be sent later
  //   ENOBUFS       the interface's queue is full; some of the next may have left
  //   EMSGSIZE      larger than the way to that peer carries: see path_mtu
  //   EOPNOTSUPP    the interface takes no trains. trains() is false from now on, and with it the
  //                 identifications are others: sum up the rest anew, then send it
  //   EAFNOSUPPORT  an address of the other family
  //   EBADF         the socket is inherited: it is the parent's
  //   ENETUNREACH, EHOSTUNREACH, EPERM (a firewall), EINVAL (no such port or source) and others
  //   of sendmsg(2) and ip(7)
  int error = 0;
  std::size_t path_mtu = 0;  // after EMSGSIZE: bytes of a packet, IP header included; 0: not known
  bool errors_waiting = false;  // call next_error() until it has no more
};

// An error that the network, or the host of a peer, reported about a datagram (ICMP). It can be
// forged by guessing ports: a reason to probe the peer, and no proof.
struct UdpError {
  enum class What : std::uint8_t {
    kPortUnreachable,  // the host is there, and the port is closed
    kHostUnreachable,
    kNetUnreachable,
    kTooBig,  // see path_mtu
    kOther,   // see code
  };
  SocketAddress peer;  // the destination of the datagram
  What what = What::kOther;
  std::size_t path_mtu = 0;  // after kTooBig: bytes of a packet, IP header included; 0: not told
  int code = 0;              // the errno that ip(7), ipv6(7) give for it
};

// A non-blocking, unconnected UDP socket of one family, fit for a checksum that covers the IP
// header (the ICRC of RoCEv2): but by send_in_fragments() packets are never fragmented, and the
// IPv4 identification of each is known before it leaves. That holds for unconnected sockets with
// IP_PMTUDISC_DO only.
//
// A train is several datagrams of one size, the last may be shorter, that go through the kernel as
// one (UDP_SEGMENT, udp(7)).
//
// In a forked child an inherited socket is good for nothing but its destructor, which leaves the
// parent's alone: sends fail (EBADF), and nothing arrives, so that the child neither speaks in its
// parent's name nor takes what is for it.
//
// Sending and trains() are for one thread at a time, and so is receive(); the one thread may be
// sending while the other is in receive(). Everything else: any thread.
class UdpSocket {
 public:
  struct SocketOptions {
    bool trains = true;   // send trains where the kernel can
    bool merging = true;  // receive datagrams that the kernel has joined (UDP_GRO)
    // Of every packet that leaves; bits 0 and 1: ECN (2: this transport understands it, ECT(0)).
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 0;  // 0: the system's
  };
  static constexpr std::size_t kMaxDatagram = 65'507;  // bytes, of IPv4 (IPv6 and MTU: maybe fewer)
  static constexpr std::size_t kMaxTrain = 65'507;     // bytes
  static constexpr std::size_t kMaxSegments = 64;      // datagrams of a train

  // Binds `wanted` (port 0: any free one; the unspecified address: all of this family). With IPv6,
  // packets without a UDP checksum are accepted, too. The buffers are as large as the system lets
  // anybody have. Errors: EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, others of socket(2) and bind(2);
  // ENOPROTOOPT when the kernel lacks what is said above of packets and identifications.
  static Result<UdpSocket> bind(const SocketAddress& wanted, const SocketOptions& options);

  // The same over a port that was bound before, with its descriptor. Errors besides: EMFILE.
  static Result<UdpSocket> over(const UdpPort& port, const SocketOptions& options);

  // A socket that hears what is sent to a multicast group (an address and a port) on the interface
  // of that number (os::Interface), from this host or another one. Any number of sockets of this
  // host may join the same one. Errors: EINVAL for an address that is no such group, EADDRINUSE
  // when another socket has its port alone, ENODEV, ENOBUFS and others of ip(7) and ipv6(7).
  static Result<UdpSocket> join(const SocketAddress& group, unsigned interface,
                                const SocketOptions& options);
  // What this socket sends to that group, and to any other one, leaves by that interface from now
  // on and goes no further than its subnet; with `loops` members on this host hear it, too. Errors:
  // ENETUNREACH where no route leads there (IPv6 over the loopback), ENODEV, others of ip(7).
  Status send_to_group_by(const SocketAddress& group, unsigned interface, bool loops);

  // Sends `bytes` cut into datagrams of `segment` bytes, the last may be shorter; a segment of 0 or
  // of all bytes is one datagram. They leave as trains of segments_per_train() datagrams, at most
  // 64 trains to a system call. `from`: the local address to send from (its port is ignored);
  // empty: the one bound, or the kernel's choice. An error that came back from another peer fails
  // no send. Nothing of the arguments is kept.
  SendOutcome send(const SocketAddress& to, const SocketAddress& from,
                   std::span<const std::byte> bytes, std::size_t segment);

  // The same for datagrams that the way does not carry whole (EMSGSIZE): each leaves alone, and may
  // be cut into fragments, here and by routers. That is slow, and the IPv4 identification on the
  // wire is any: not for peers whose checksum covers it.
  SendOutcome send_in_fragments(const SocketAddress& to, const SocketAddress& from,
                                std::span<const std::byte> bytes, std::size_t segment);

  // Whether datagrams leave as trains. Turns false at most once.
  bool trains() const { return trains_; }
  // How many datagrams of that size (at least 1 byte) leave together: 1 without trains.
  std::size_t segments_per_train(std::size_t segment) const;
  // The IPv4 identification that datagram number `index` of one send() will have on the wire. A
  // call that sent a part only ends with a whole train, so that the next one starts with 0 again.
  std::uint16_t identification(std::size_t index, std::size_t segment) const {
    return static_cast<std::uint16_t>(index % segments_per_train(segment));
  }

  // Fills the batch with what has arrived, and does not wait: while calls find something, they get
  // as much as fits, but the first ones less. What was in it
  // before is gone. Returns 0, also when there was nothing to read, or the errno of recvmmsg(2).
  int receive(UdpBatch& batch) const;

  // The oldest error that came back from the network and was not asked for yet, if any. Those that
  // wait take up room of the receive buffer, and keep fd() ready.
  std::optional<UdpError> next_error() const;

  // For poll(2): readable when datagrams or errors wait, writable when the send buffer has room.
  int fd() const { return socket_->get(); }
  // True in a forked child of the process that has bound it.
  bool inherited() const { return origin_.inherited(); }
  // What was bound, with the port that was chosen.
  const SocketAddress& address() const { return address_; }
  // Bytes that wait unread before the kernel drops; it counts its own overhead in, 768 bytes or
  // more for each packet.
  std::size_t receive_buffer() const { return receive_buffer_; }
  // How often the kernel has dropped what arrived, a datagram or a train of them, because the
  // buffer was full; 0 where it does not say.
  std::uint64_t dropped() const;

 private:
  UdpSocket() = default;
  Status open(int family);
  Status bind_to(const SocketAddress& wanted);
  Status receive_only(const SocketAddress& group, unsigned interface);
  Status set_options(const SocketAddress& address, const SocketOptions& options);
  // Looks into a refusal of a message that had one datagram or was a train.
  void explain(const SocketAddress& to, const SocketAddress& from, std::size_t segment, bool train,
               SendOutcome& outcome);

  std::shared_ptr<const Fd> socket_;  // shared with the UdpPort, if it came from one
  Origin origin_;
  SocketAddress address_;
  std::size_t receive_buffer_ = 0;
  bool trains_ = false;
};

}  // namespace weft::os
