// SPDX-License-Identifier: BSD-2-Clause
// How are processes made, heard of and reaped?
#include "fork_server.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "failure.h"

namespace weft::faults {

namespace {

struct Request {
  pid_t reap = 0;  // 0: spawn
  Order order;
};

[[noreturn]] void become_victim(const Order& order, const Channel& channel, Life live,
                                pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailed);  // it had ended before
  live(order, channel);
  fail("a victim outlived its life");
}

int reap_one(pid_t victim) {
  int status = 0;
  while (waitpid(victim, &status, 0) < 0)
    require(errno == EINTR, std::string("waitpid: ") + std::strerror(errno));
  return status;
}

}  // namespace

void Channel::make_pair(Channel& one, Channel& other) {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  one.close();
  other.close();
  one.fd_ = ends[0];
  other.fd_ = ends[1];
}

Channel::Channel(Channel&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  close();
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

Channel::~Channel() { close(); }

void Channel::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Channel::send(const void* message, std::size_t bytes) const {
  const ssize_t sent = ::send(fd_, message, bytes, MSG_NOSIGNAL);
  require(sent == static_cast<ssize_t>(bytes),
          std::string("sending to a process of the test: ") + std::strerror(errno));
}

bool Channel::receive(void* message, std::size_t bytes) const {
  ssize_t got = -1;
  do {
    got = recv(fd_, message, bytes, 0);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(bytes);
}

bool Channel::try_receive(void* message, std::size_t bytes) const {
  return recv(fd_, message, bytes, MSG_DONTWAIT) == static_cast<ssize_t>(bytes);
}

pid_t ForkServer::spawn(const Order& order) {
  const Request request{0, order};
  channel_.send(&request, sizeof request);
  pid_t victim = 0;
  require(channel_.receive(&victim, sizeof victim), "the fork_server ended");
  return victim;
}

int ForkServer::reap(pid_t victim) {
  const Request request{victim, {}};
  channel_.send(&request, sizeof request);
  int status = 0;
  require(channel_.receive(&status, sizeof status), "the fork_server ended");
  return status;
}

Lifeline::Lifeline(pid_t process)
    : process_(process), fd_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {
  require(fd_ >= 0, std::string("pidfd_open: ") + std::strerror(errno));
}

Lifeline::~Lifeline() { close(fd_); }

bool Lifeline::dead() const {
  pollfd wanted{fd_, POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 1;
}

// proc(5): the flags are the seventh field after the name, which is in parentheses and may hold
// anything.
bool Lifeline::dying() const {
  constexpr unsigned long kExiting = 0x4;  // PF_EXITING
  if (dead()) return true;
  std::ifstream file("/proc/" + std::to_string(process_) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string skipped;
  for (int i = 0; i < 6; ++i) fields >> skipped;
  unsigned long flags = 0;
  fields >> flags;
  return !fields || (flags & kExiting) != 0 || dead();
}

void serve_fork_server(const Channel& requests, const std::vector<Channel>& slots, Life live) {
  Request request;
  while (requests.receive(&request, sizeof request)) {
    if (request.reap != 0) {
      const int status = reap_one(request.reap);
      requests.send(&status, sizeof status);
      continue;
    }
    std::fflush(nullptr);
    const pid_t parent = getpid();
    const pid_t victim = fork();
    require(victim >= 0, std::string("fork: ") + std::strerror(errno));
    if (victim == 0) become_victim(request.order, slots.at(request.order.slot), live, parent);
    requests.send(&victim, sizeof victim);
  }
}

}  // namespace weft::faults
