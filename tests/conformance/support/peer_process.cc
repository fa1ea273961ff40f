// SPDX-License-Identifier: BSD-2-Clause
// How are peer processes forked from a process without libfabric state, watched and reaped?
#include "peer_process.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace weft::conformance {
namespace {

// Requests to the fork server: start a script (two descriptors travel along) or reap a peer.
struct Order {
  PeerScript script;  // The fork server has the same image, so the address means the same there.
  pid_t reap;
  bool kill_first;
};

struct Failure {
  std::array<char, 120> file;
  int line;
  std::array<char, 800> message;
};

int fork_server_fd = -1;  // Written once by main() before any test runs.

template <std::size_t N>
void copy_text(std::array<char, N>* to, const char* from) {
  std::strncpy(to->data(), from == nullptr ? "" : from, N - 1);
  to->back() = '\0';
}

void send_failures(const testing::TestPartResultArray& results, Channel* report) {
  for (int i = 0; i < results.size(); ++i) {
    const auto& result = results.GetTestPartResult(i);
    if (!result.failed()) continue;
    Failure failure{};
    copy_text(&failure.file, result.file_name());
    copy_text(&failure.message, result.message());
    failure.line = result.line_number();
    report->send(failure);
  }
}

[[noreturn]] void run_peer(PeerScript script, int channel_fd, int report_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Never closed here: the test takes the end of this stream for the end of the whole process, so
  // that a hang in the provider's clean-up at exit is noticed too.
  static Channel* const report = new Channel(report_fd);
  {
    Channel channel(channel_fd);
    testing::TestPartResultArray results;
    {
      testing::ScopedFakeTestPartResultReporter capture(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
      script(channel);
    }
    send_failures(results, report);
  }
  std::exit(0);  // Not _exit: the provider's clean-up at exit is part of what is tested.
}

// Receives an order and, if it starts a peer, the two descriptors. False at the end of the test.
bool receive_order(int fd, Order* order, std::array<int, 2>* fds) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  iovec part{order, sizeof *order};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(fd, &message, 0) != static_cast<ssize_t>(sizeof *order)) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr) std::memcpy(fds->data(), CMSG_DATA(header), 2 * sizeof(int));
  return true;
}

void send_order(const Order& order, const int* fds) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  Order copy = order;
  iovec part{&copy, sizeof copy};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fds != nullptr) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(2 * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds, 2 * sizeof(int));
  }
  sendmsg(fork_server_fd, &message, MSG_NOSIGNAL);
}

int answer_start(int fd, const Order& order, const std::array<int, 2>& fds) {
  const pid_t child = fork();
  if (child == 0) {
    close(fd);
    run_peer(order.script, fds[0], fds[1]);
  }
  for (const int passed : fds) close(passed);
  return child;
}

int answer_reap(const Order& order) {
  if (order.kill_first) kill(order.reap, SIGKILL);
  int status = 0;
  return waitpid(order.reap, &status, 0) == order.reap ? status : -1;
}

[[noreturn]] void serve_fork_server(int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Order order{};
  std::array<int, 2> fds{-1, -1};
  while (receive_order(fd, &order, &fds)) {
    const int answer = order.reap > 0 ? answer_reap(order) : answer_start(fd, order, fds);
    if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) < 0) break;
  }
  _exit(0);
}

int ask_fork_server(const Order& order, const int* fds) {
  send_order(order, fds);
  int answer = -1;
  if (recv(fork_server_fd, &answer, sizeof answer, 0) != sizeof answer) return -1;
  return answer;
}

}  // namespace

void start_peer_fork_server() {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) std::abort();
  fflush(nullptr);
  const pid_t fork_server = fork();
  if (fork_server < 0) std::abort();
  if (fork_server == 0) {
    close(pair[0]);
    serve_fork_server(pair[1]);
  }
  close(pair[1]);
  fork_server_fd = pair[0];
}

void run_to_death(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    _exit(1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
}

PeerProcess::PeerProcess(PeerScript script) {
  std::array<int, 2> control{};
  std::array<int, 2> report{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control.data()) != 0 ||
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report.data()) != 0) {
    std::abort();
  }
  const std::array<int, 2> theirs{control[1], report[1]};
  pid_ = ask_fork_server(Order{script, 0, false}, theirs.data());
  close(control[1]);
  close(report[1]);
  channel_ = std::make_unique<Channel>(control[0]);
  report_ = std::make_unique<Channel>(report[0]);
  EXPECT_GT(pid_, 0) << "cannot start a peer process";
}

PeerProcess::~PeerProcess() { finish(); }

void PeerProcess::report_failures(const Idle& idle) {
  Failure failure{};
  long got = 0;
  while ((got = report_->receive_bytes(&failure, sizeof failure, idle)) == sizeof failure) {
    ADD_FAILURE_AT(failure.file.data(), failure.line) << "in the peer: " << failure.message.data();
  }
  const bool hung = got < 0;
  if (hung) ADD_FAILURE() << "peer process " << pid_ << " hung and was ended";
  const int status = ask_fork_server(Order{nullptr, pid_, hung}, nullptr);
  if (hung) return;
  EXPECT_EQ(status, 0) << "peer process " << pid_ << " ended with this wait status";
}

void PeerProcess::finish(const Idle& idle) {
  if (pid_ <= 0) return;
  channel_.reset();  // A peer that waits for orders sees the end of the conversation.
  report_failures(idle);
  pid_ = -1;
}

}  // namespace weft::conformance
