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
  std::uint64_t group = 0;  // link::group_number(), or 0
};

// Reads several sockets, each in its turn and many datagrams by one system call, and hands over no
// more at a time than is asked for: the rest stays here, or in its socket. One thread at a time.
class ReceiveSet {
 public:
  // The socket outlives the set, or is removed before it ends.
  void add(const ReceiveSocket& socket) { sockets_.push_back(socket); }
  // What has come to that socket and was not handed over is dropped.
  void remove(const os::UdpSocket& socket);

  // Calls visit(const ReceiveSocket&, const os::Datagram&) for up to `most` datagrams, and returns
  // how many.
  template <class Visit>
  unsigned take(unsigned most, Visit visit) {
    unsigned count = 0;
    for (std::size_t emptied = 0;;) {
      while (count < most && has_more()) {
        ++count;
        const os::Datagram datagram = next();
        skip();
        visit(current_, datagram);
      }
      if (count == most || emptied == sockets_.size()) return count;
      emptied = read() ? emptied + 1 : 0;
    }
  }
  // Reads one socket once, if nothing is here, and calls visit() for what came first, for as long
  // as that returns true. Returns true when something has come here to stay.
  template <class Visit>
  bool skim(Visit visit) {
    if (has_more()) return false;
    read();
    while (has_more() && visit(current_, next())) skip();
    return has_more();
  }
  // True when something is here that no socket tells of.
  bool has_more() const { return arrival_ < batch_.arrivals().size(); }
  // Datagrams that did not fit the sockets.
  std::uint64_t dropped() const;
  // True once after a socket said that errors have come back from the network.
  bool met_errors() { return std::exchange(met_errors_, false); }

 private:
  // Far more than the kernel joins to one.
  static constexpr std::size_t kArrivals = 16;

  bool read();
  os::Datagram next() const { return batch_.arrivals()[arrival_].datagram(index_); }
  void skip();

  std::vector<ReceiveSocket> sockets_;
  std::size_t turn_ = 0;
  os::UdpBatch batch_{kArrivals};
  ReceiveSocket current_;    // whose batch it is
  std::size_t arrival_ = 0;  // the next one of the batch,
  std::size_t index_ = 0;    // and the next datagram of that
  bool met_errors_ = false;
};

}  // namespace weft::roce
