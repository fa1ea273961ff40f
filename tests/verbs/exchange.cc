// SPDX-License-Identifier: BSD-2-Clause
// How do the two processes of a verbs test tell each other what they have?
#include "exchange.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

void fail(const std::string& what) {
  std::fprintf(stderr, "%s (%s)\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

Exchange Exchange::serve(unsigned short port) {
  const int listener = ::socket(AF_INET6, SOCK_STREAM, 0);
  const int yes = 1;
  const int no = 0;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  ::setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 1) != 0) {
    fail("cannot listen");
  }
  const int fd = ::accept(listener, nullptr, nullptr);
  if (fd < 0) fail("cannot accept");
  ::close(listener);
  return Exchange(fd);
}

Exchange Exchange::reach(const std::string& host, unsigned short port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    fail("unknown host " + host);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end) {
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
      const int fd = ::socket(each->ai_family, SOCK_STREAM, 0);
      if (::connect(fd, each->ai_addr, each->ai_addrlen) == 0) {
        ::freeaddrinfo(found);
        return Exchange(fd);
      }
      ::close(fd);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  fail("no server at " + host);
}

Exchange::Exchange(Exchange&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Exchange::~Exchange() {
  if (fd_ >= 0) ::close(fd_);
}

void Exchange::send(const void* bytes, std::size_t length) const {
  if (::send(fd_, bytes, length, MSG_NOSIGNAL) != static_cast<ssize_t>(length)) {
    fail("the other process has ended");
  }
}

void Exchange::receive(void* bytes, std::size_t length) const {
  if (::recv(fd_, bytes, length, MSG_WAITALL) != static_cast<ssize_t>(length)) {
    fail("the other process has ended");
  }
}
