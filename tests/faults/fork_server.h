// SPDX-License-Identifier: BSD-2-Clause
// Where do victims come from, and how is each one's death noticed?
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "action.h"

namespace weft::faults {

// Loading libfabric takes hundreds of milliseconds; so one process loads it once, opens nothing,
// and makes all others by fork: each victim starts with the library at hand and no state of it.

// One end of a connected pair of local sockets; a message is sent and received whole.
class Channel {
 public:
  static void make_pair(Channel& one, Channel& other);
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  ~Channel();

  int fd() const { return fd_; }
  void send(const void* message, std::size_t bytes) const;
  // Waits for a message; false if the other end is closed.
  bool receive(void* message, std::size_t bytes) const;
  // True if there was a message.
  bool try_receive(void* message, std::size_t bytes) const;
  void close();

 private:
  int fd_ = -1;
};

// What a victim says of itself over its slot's channel, and what it is told to go on.
struct Ready {
  std::uint64_t id = 0;
  sockaddr_in address{};
};
struct Go {
  std::uint64_t id = 0;
};

// The survivor's side: asks for victims and for their ends.
class ForkServer {
 public:
  explicit ForkServer(Channel channel) : channel_(std::move(channel)) {}
  pid_t spawn(const Order& order);
  // Reaps a dead victim; returns waitpid's status.
  int reap(pid_t victim);

 private:
  Channel channel_;
};

// A process's end can be waited for without being its parent, and before the parent has reaped it.
class Lifeline {
 public:
  explicit Lifeline(pid_t process);
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;
  ~Lifeline();
  bool dead() const;
  // True from the moment the process can run no more instruction of its own, which others may
  // notice (its memory is gone, its locks are) before it is dead().
  bool dying() const;

 private:
  pid_t process_;
  int fd_;
};

// Serves one ForkServer until its channel closes: forks `live(order, channel of its slot)` for each
// victim.
using Life = void (*)(const Order& order, const Channel& channel);
void serve_fork_server(const Channel& requests, const std::vector<Channel>& slots, Life live);

}  // namespace weft::faults
