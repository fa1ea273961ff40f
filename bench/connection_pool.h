// SPDX-License-Identifier: BSD-2-Clause
// How does one process make and accept many connections at once?
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "buffers.h"
#include "context.h"
#include "endpoint.h"
#include "options.h"

namespace weft::bench {

// The connections (FI_EP_MSG) of one process: those that it asks for, and those that it accepts,
// which are all that come. Over each of them the side that asked sends a message of 8 bytes, and
// the other side answers it. A connection is made when the right answer has arrived; a wrong one is
// fatal. One thread.
class ConnectionPool {
 public:
  // For at most `most` connections, accepted ones included. Fatal on any error, here and below.
  ConnectionPool(const Options& options, std::size_t most);

  const Endpoint& endpoint() const { return endpoint_; }

  // Opens an endpoint and asks the process of that name for a connection.
  void start(const std::vector<std::byte>& name);
  // Makes a connection to each of `names`, `under_way` of them at once.
  void make(const std::vector<std::vector<std::byte>>& names, std::size_t under_way);
  // Takes the events and completions that are there. False when there were none.
  bool progress();

  struct Made {
    Clock::time_point start;    // before fi_endpoint(3)
    Clock::time_point connect;  // before fi_connect(3)
    Clock::time_point end;      // the answer has arrived
  };
  // Those that this process asked for, in the order of their ends.
  const std::vector<Made>& made() const { return made_; }
  // How many of those that it accepted it has answered.
  std::size_t answered() const { return answered_; }

 private:
  struct Connection {
    fid_ep* ep;
    std::size_t number;  // of its buffers
    bool asked;          // by this process
    Made times;
  };

  Connection& open(fi_info* request);
  bool take_event();
  void take_error();
  void accept(fi_info* request);
  bool take_completions();
  void received(Connection& connection);
  void send_waiting();

  Endpoint endpoint_;
  Buffers buffers_;
  std::size_t most_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::deque<Connection*> to_send_;
  std::vector<Made> made_;
  std::size_t started_ = 0;
  std::size_t answered_ = 0;
};

}  // namespace weft::bench
