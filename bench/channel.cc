// SPDX-License-Identifier: BSD-2-Clause
// How the control connection is made and used.
#include "channel.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "failure.h"

namespace weft::bench {
namespace {

constexpr std::uint32_t kLargestBlock = 4096;

std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> resolve(const std::string& host,
                                                           std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (rc != 0) die(host, gai_strerror(rc));
  return {found, &freeaddrinfo};
}

// Every message at once: the other side may be waiting for it alone.
void send_at_once(int socket) {
  const int on = 1;
  check_system(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
}

// The connected socket or -1.
int try_connect(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check_system(socket, "socket");
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) {
    send_at_once(socket);
    return socket;
  }
  ::close(socket);
  return -1;
}

}  // namespace

std::pair<Channel, Channel> Channel::make_pair() {
  int ends[2];
  check_system(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
  return {Channel(ends[0]), Channel(ends[1])};
}

Channel Channel::accept_one(std::uint16_t port) {
  const int listener = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check_system(listener, "socket");
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  check_system(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
  check_system(::listen(listener, 1), "listen");
  const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  check_system(socket, "accept");
  send_at_once(socket);
  ::close(listener);
  return Channel(socket);
}

Channel Channel::connect_to(const std::string& host, std::uint16_t port) {
  const auto addresses = resolve(host, port);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (std::chrono::steady_clock::now() < deadline) {
    for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
      if (const int socket = try_connect(*each); socket >= 0) return Channel(socket);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  die("connect to " + host, "no server listens on port " + std::to_string(port));
}

Channel::~Channel() {
  if (socket_ >= 0) ::close(socket_);
}

void Channel::send_bytes(const void* bytes, std::size_t count) {
  const auto* next = static_cast<const std::byte*>(bytes);
  while (count > 0) {
    const ssize_t sent = ::send(socket_, next, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    check_system(sent, "control connection");
    next += sent;
    count -= static_cast<std::size_t>(sent);
  }
}

void Channel::receive_bytes(void* bytes, std::size_t count) {
  auto* next = static_cast<std::byte*>(bytes);
  while (count > 0) {
    const ssize_t received = ::recv(socket_, next, count, 0);
    if (received < 0 && errno == EINTR) continue;
    check_system(received, "control connection");
    if (received == 0) die("control connection", "the other process has ended");
    next += received;
    count -= static_cast<std::size_t>(received);
  }
}

// Whether there is a byte, looked at with FLAGS: only a blocking look waits for one.
bool Channel::peek(int flags) {
  char byte;
  const ssize_t seen = ::recv(socket_, &byte, 1, MSG_PEEK | flags);
  if (seen == 0) die("control connection", "the other process has ended");
  if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  check_system(seen, "control connection");
  return true;
}

bool Channel::has_input() { return peek(MSG_DONTWAIT); }

void Channel::wait_for_input() {
  while (!peek(0)) {
  }
}

void Channel::send_block(const std::vector<std::byte>& block) {
  send(static_cast<std::uint32_t>(block.size()));
  send_bytes(block.data(), block.size());
}

std::vector<std::byte> Channel::receive_block() {
  const auto count = receive<std::uint32_t>();
  if (count > kLargestBlock) die("control connection", "a block is too long");
  std::vector<std::byte> block(count);
  receive_bytes(block.data(), count);
  return block;
}

}  // namespace weft::bench
