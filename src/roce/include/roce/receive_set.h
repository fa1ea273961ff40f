// SPDX-License-Identifier: BSD-2-Clause
// What has arrived at the sockets of an endpoint, one datagram after the other?
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "os/udp_socket.h"

namespace weft::roce {

// One socket that is listened to: the endpoint's own, or one that hears a group.
struct ReceiveSocket {
  os::UdpSocket* socket = nullptr;
  std::uint64_t group = 0;    // link::group_number(), or 0
  std::uint64_t dropped = 0;  // datagrams that take_dropped() has counted
  unsigned empty_reads = 0;   // in succession
};

// Reads several sockets, each in its turn and many datagrams by one system call, and hands over no
// more at a time than is asked for: the rest stays here, or in its socket. One thread at a time.
class ReceiveSet {
 public:
  // Gets up to `arrivals` datagrams, or trains that the kernel has joined, by one system call.
  explicit ReceiveSet(std::size_t arrivals) : batch_(arrivals), arrivals_(arrivals) {}

  // The socket outlives the set, or is removed before it ends.
  void add(const ReceiveSocket& socket) { sockets_.push_back(socket); }
  // What has come to that socket and was not handed over is dropped.
  void remove(const os::UdpSocket& socket);

  // From now on a socket that was empty many times in succession is read by some of the calls of
  // take() only: an address family without traffic costs no system call then.
  void skip_quiet() { skips_ = true; }
  // The next call reads all sockets, until it has found something. To be called before and after a
  // sleep.
  void attend() { attends_ = true; }

  // Calls visit(const ReceiveSocket&, const os::Datagram&) for up to `most` datagrams, got by at
  // most `reads` system calls, and returns how many.
  template <class Visit>
  unsigned take(unsigned most, unsigned reads, Visit visit) {
    unsigned count = 0;
    ++takes_;
    for (std::size_t at_end = 0;;) {
      while (count < most && has_more()) {
        ++count;
        const os::Datagram datagram = next();
        skip();
        visit(current_, datagram);
      }
      if (count == most || at_end == sockets_.size() || reads-- == 0) break;
      at_end = read() ? at_end + 1 : 0;
    }
    attends_ = false;
    return count;
  }
  // True when something is here that no socket tells of.
  bool has_more() const { return arrival_ < batch_.arrivals().size(); }
  // True when the last system call found nothing, and no error.
  bool emptied() const { return emptied_; }
  // Datagrams that the kernel has dropped since the last call, as they did not fit the sockets: a
  // system call for each socket.
  std::uint64_t take_dropped();
  // True once after a socket said that errors have come back from the network.
  bool errors_seen() { return std::exchange(errors_seen_, false); }

 private:
  bool read();
  os::Datagram next() const { return batch_.arrivals()[arrival_].datagram(index_); }
  void skip();

  std::vector<ReceiveSocket> sockets_;
  std::size_t turn_ = 0;
  os::UdpBatch batch_;
  const std::size_t arrivals_;
  ReceiveSocket current_;    // whose batch it is
  std::size_t arrival_ = 0;  // the next one of the batch,
  std::size_t index_ = 0;    // and the next datagram of that
  bool errors_seen_ = false;
  bool emptied_ = false;
  bool skips_ = false;
  bool attends_ = false;
  unsigned takes_ = 0;
};

}  // namespace weft::roce
