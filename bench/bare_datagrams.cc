// SPDX-License-Identifier: BSD-2-Clause
// How fast are the system's UDP sockets alone, which every queue pair stands on?
//
// usage: weft_bare_datagrams latency|rate|bandwidth SIZE SECONDS SERVER_CORE,CLIENT_CORE
//
// Two processes exchange datagrams over the loopback, with one system call for each, and spin. A
// larger SIZE is sent in several datagrams. Prints one line of JSON, with the unit of weft_bench's
// metric.
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "failure.h"
#include "process.h"
#include "timed_pieces.h"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLargest = 60'000;  // bytes of a datagram
constexpr int kBufferBytes = 4 << 20;     // of a socket, as far as the system allows
constexpr std::size_t kPiece = 64;        // round trips that are timed together
constexpr std::size_t kMostInFlight = 256;

struct Plan {
  std::string metric;
  std::size_t size;
  double seconds;
};

// A bound socket. Both are connected to each other.
int open_socket(sockaddr_in& own) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  check_system(fd, "socket");
  for (const int option : {SO_RCVBUF, SO_SNDBUF}) {
    check_system(setsockopt(fd, SOL_SOCKET, option, &kBufferBytes, sizeof kBufferBytes),
                 "setsockopt");
  }
  own = {};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof own;
  check_system(bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof own), "bind");
  check_system(getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length), "getsockname");
  return fd;
}

void connect_to(int fd, const sockaddr_in& peer) {
  check_system(connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer), "connect");
}

void send_one(int fd, const std::vector<char>& buffer, std::size_t length) {
  check_system(send(fd, buffer.data(), length, 0), "send");
}

std::size_t receive_one(int fd, std::vector<char>& buffer) {
  ssize_t length = -1;
  while (length < 0) {
    length = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (length < 0 && errno != EAGAIN) check_system(length, "recv");
  }
  return static_cast<std::size_t>(length);
}

// How many datagrams the buffer of the receiver holds; the kernel counts headers and padding, too.
std::size_t window_of(int fd, std::size_t datagram) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  check_system(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length), "getsockopt");
  return std::clamp<std::size_t>(static_cast<std::size_t>(bytes) / (2 * (datagram + 2048)), 2,
                                 kMostInFlight);
}

// Answers each datagram by one of the same length.
[[noreturn]] void echo(int fd) {
  std::vector<char> buffer(kLargest);
  while (true) send_one(fd, buffer, receive_one(fd, buffer));
}

// Answers each half window by an empty datagram.
[[noreturn]] void drain(int fd, std::size_t half) {
  std::vector<char> buffer(kLargest);
  while (true) {
    for (std::size_t i = 0; i < half; ++i) receive_one(fd, buffer);
    send_one(fd, buffer, 0);
  }
}

// Half a round trip, in microseconds.
double latency(int fd, const Plan& plan) {
  std::vector<char> buffer(kLargest);
  const std::size_t length = std::min(plan.size, kLargest);
  return 1e6 / 2 * seconds_of_each(plan.seconds, kPiece, [&] {
           send_one(fd, buffer, length);
           receive_one(fd, buffer);
         });
}

// Datagrams per second.
double stream(int fd, const Plan& plan, std::size_t datagram, std::size_t half) {
  std::vector<char> buffer(kLargest);
  const auto send_half = [&] {
    for (std::size_t i = 0; i < half; ++i) send_one(fd, buffer, datagram);
  };
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(plan.seconds);
  std::uint64_t halves = 0;
  send_half();
  while (Clock::now() < end) {
    send_half();
    receive_one(fd, buffer);
    ++halves;
  }
  receive_one(fd, buffer);
  const std::chrono::duration<double> taken = Clock::now() - begin;
  return static_cast<double>((halves + 1) * half) / taken.count();
}

int run(const Plan& plan, const Cores& cores) {
  sockaddr_in addresses[2];
  const int fds[2] = {open_socket(addresses[0]), open_socket(addresses[1])};
  connect_to(fds[0], addresses[1]);
  connect_to(fds[1], addresses[0]);
  const std::size_t datagram = std::min(plan.size, kLargest);
  const std::size_t half = window_of(fds[0], datagram) / 2;
  const pid_t server = fork();
  check_system(server, "fork");
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin_to(cores.server);
    if (plan.metric == "latency") echo(fds[0]);
    drain(fds[0], half);
  }
  pin_to(cores.client);
  double value = 0;
  if (plan.metric == "latency") {
    value = latency(fds[1], plan);
  } else {
    value = stream(fds[1], plan, datagram, half);
    value *= plan.metric == "rate" ? 1e-6 : static_cast<double>(datagram) * 1e-9;
  }
  kill(server, SIGKILL);
  std::printf("{\"metric\": \"%s\", \"size\": %zu, \"value\": %.6f}\n", plan.metric.c_str(),
              plan.size, value);
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int count, char** words) {
  using namespace weft::bench;
  Cores cores{};
  const bool right =
      count == 5 && std::sscanf(words[4], "%d,%d", &cores.server, &cores.client) == 2;
  if (!right) {
    std::fprintf(stderr, "usage: %s latency|rate|bandwidth SIZE SECONDS SERVER_CORE,CLIENT_CORE\n",
                 words[0]);
    return 2;
  }
  return run({words[1], std::strtoul(words[2], nullptr, 10), std::strtod(words[3], nullptr)},
             cores);
}
