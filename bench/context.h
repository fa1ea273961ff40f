// SPDX-License-Identifier: BSD-2-Clause
// What every workload works with, and how its two sides keep in step.
#pragma once

#include <rdma/fi_errno.h>

#include <chrono>
#include <string_view>

#include "buffers.h"
#include "channel.h"
#include "completions.h"
#include "endpoint.h"
#include "failure.h"
#include "receive_pool.h"

namespace weft::bench {

struct Context {
  Endpoint& endpoint;
  Buffers& buffers;
  Completions& completions;
  ReceivePool* pool;  // where receives take many messages each; else nullptr
  Peer peer;
  RemoteBuffers remote;
  bool inject;  // operations that fit go through the inject call
  // For datagrams, of which neither side knows whether the other's will arrive.
  std::uint64_t& spare_receives;  // posted to the endpoint, left over when the last phase ended
  std::uint64_t phase = 0;        // counted by both sides
  std::uint64_t lost = 0;         // what did not arrive, in all phases

  // Where the last message lies, whatever it was received into.
  const std::byte* arrival() const {
    return pool != nullptr ? pool->last_message() : buffers.target(0);
  }
};

// Calls POST until the provider takes the operation, polling while it answers -FI_EAGAIN.
template <class Post>
void post(Completions& completions, std::string_view what, Post&& attempt) {
  for (;;) {
    const auto rc = attempt();
    if (rc == 0) return;
    if (rc != -FI_EAGAIN) check_fabric(rc, what);
    completions.poll();
  }
}

// Receives VALUE over the control connection; meanwhile the provider makes progress, for the
// peer's operations may need this process.
template <class Value>
Value await(Channel& channel, Completions& completions) {
  constexpr int kPollsPerLook = 256;  // a look is a system call; the peer may be waiting for us
  while (!channel.has_input()) {
    for (int i = 0; i < kPollsPerLook; ++i) completions.poll();
  }
  return channel.receive<Value>();
}

// What the sides of a workload say to each other.
enum class Signal : char {
  kReady,  // server: whatever must be in place before the client starts is
  kOver,   // client: all my operations have completed
  kDone,   // server: I have seen all operations, or your kOver
  kLost,   // client of datagrams: no answer came; say kReady when nothing is under way any more
};

inline void await_signal(Channel& channel, Completions& completions, Signal expected) {
  if (await<Signal>(channel, completions) != expected) die("control connection", "out of step");
}

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace weft::bench
