// SPDX-License-Identifier: BSD-2-Clause
// How do many datagrams leave by one system call, and what does a refusal mean?
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ancillary.h"
#include "direct_calls.h"
#include "os/udp_path.h"
#include "os/udp_socket.h"

namespace weft::os {
namespace {

constexpr std::size_t kMessagesPerCall = 64;
// An error that came back from some peer fails the next call on the socket, whomever that is for.
// So a refusal counts only when it comes again and again.
constexpr int kSendTries = 4;
constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

// Messages to one peer, each of so many bytes, ready for sendmmsg(2).
class Messages {
 public:
  Messages(const SocketAddress& to, Ancillary& ancillary) {
    pattern_.msg_name = const_cast<sockaddr*>(to.get());
    pattern_.msg_namelen = to.length();
    pattern_.msg_iovlen = 1;
    ancillary.put_into(pattern_);
  }
  // How many messages hold the first of these bytes; no bytes at all are one message, too.
  unsigned fill(std::span<const std::byte> bytes, std::size_t per_message) {
    unsigned count = 0;
    do {
      const std::size_t size = std::min(per_message, bytes.size());
      sges_[count] = {const_cast<std::byte*>(bytes.data()), size};
      messages_[count].msg_hdr = pattern_;
      messages_[count].msg_hdr.msg_iov = &sges_[count];
      bytes = bytes.subspan(size);
    } while (++count < kMessagesPerCall && !bytes.empty());
    return count;
  }
  // Returns how many of the first `count` left, or -1.
  int send(int fd, unsigned count) {
    if (count > 1) return direct::sendmmsg(fd, messages_.data(), count, kFlags);
    return direct::sendmsg(fd, &messages_[0].msg_hdr, kFlags) < 0 ? -1 : 1;  // is a little faster
  }
  std::size_t size_of(unsigned index) const { return sges_[index].iov_len; }

 private:
  msghdr pattern_{};
  std::array<iovec, kMessagesPerCall> sges_;
  std::array<mmsghdr, kMessagesPerCall> messages_;
};

// How bytes are cut: into datagrams, and these into messages.
struct Cut {
  std::size_t segment;
  std::size_t per_message;
};

// True for errors that are of this moment and this socket: they came from no peer.
bool is_of_moment(int error) { return error == EAGAIN || error == ENOBUFS || error == EBADF; }

void count_in(SendOutcome& outcome, const Messages& messages, unsigned sent, const Cut& cut) {
  for (unsigned i = 0; i < sent; ++i) {
    const std::size_t size = messages.size_of(i);
    outcome.bytes += size;
    outcome.datagrams +=
        size <= cut.segment || cut.segment == 0 ? 1 : (size + cut.segment - 1) / cut.segment;
  }
}

// Sends until all has left or the refusals of one message are not to be overcome.
SendOutcome send_all(int fd, Messages& messages, std::span<const std::byte> bytes, const Cut& cut) {
  SendOutcome outcome;
  int refusals = 0;
  bool cut_short = false;
  do {
    const unsigned count = messages.fill(bytes.subspan(outcome.bytes), cut.per_message);
    const int sent = messages.send(fd, count);
    if (sent < 0) {
      outcome.error = errno;
      if (is_of_moment(outcome.error)) return outcome;
      outcome.errors_waiting = true;
      if (++refusals < kSendTries) continue;
      // UDP refuses no send itself: errors of other peers arrive faster than they are read.
      if (outcome.error == ECONNREFUSED) outcome.error = EAGAIN;
      return outcome;
    }
    // The kernel does not say what ended a call that had sent something. If the rest goes now, it
    // was an error that came back.
    outcome.errors_waiting |= cut_short;
    cut_short = static_cast<unsigned>(sent) < count;
    outcome.error = 0;
    refusals = 0;
    count_in(outcome, messages, static_cast<unsigned>(sent), cut);
  } while (outcome.error != 0 || outcome.bytes < bytes.size());
  return outcome;
}

bool may_mean_no_trains(int error) {
  return error == EINVAL || error == EIO || error == EOPNOTSUPP || error == ENOPROTOOPT;
}

}  // namespace

std::size_t UdpSocket::segments_per_train(std::size_t segment) const {
  if (!trains_ || segment == 0) return 1;
  return std::clamp<std::size_t>(kMaxTrain / segment, 1, kMaxSegments);
}

SendOutcome UdpSocket::send(const SocketAddress& to, const SocketAddress& from,
                            std::span<const std::byte> bytes, std::size_t segment) {
  SendOutcome outcome;
  if (inherited()) [[unlikely]] {
    outcome.error = EBADF;
    return outcome;
  }
  const bool source = from.family() != AF_UNSPEC;
  if (to.family() != address_.family() || (source && from.family() != address_.family())) {
    outcome.error = EAFNOSUPPORT;
    return outcome;
  }
  if (segment == 0 || segment > bytes.size()) segment = bytes.size();
  const bool names_source = source && !from.is_any() && address_.is_any();
  if (segment == bytes.size() && !names_source) {
    if (direct::sendto(fd(), bytes.data(), segment, kFlags, to.get(), to.length()) >= 0) {
      return {1, segment};
    }
    outcome.errors_waiting = !is_of_moment(errno);
  }
  const std::size_t together = segments_per_train(segment);
  const bool train = bytes.size() > segment && together > 1;

  Ancillary ancillary;
  if (names_source) ancillary.add_source(from);
  if (train) ancillary.add_segment(segment);
  Messages messages(to, ancillary);
  const bool errors_seen = outcome.errors_waiting;
  outcome = send_all(fd(), messages, bytes, {segment, segment * together});
  outcome.errors_waiting |= errors_seen;
  if (outcome.error != 0) explain(to, from, segment, train, outcome);
  return outcome;
}

SendOutcome UdpSocket::send_in_fragments(const SocketAddress& to, const SocketAddress& from,
                                         std::span<const std::byte> bytes, std::size_t segment) {
  const bool v6 = address_.family() == AF_INET6;
  static_assert(IPV6_PMTUDISC_DONT == IP_PMTUDISC_DONT && IPV6_PMTUDISC_DO == IP_PMTUDISC_DO);
  const auto discover = [&](int how) {
    return ::setsockopt(fd(), v6 ? IPPROTO_IPV6 : IPPROTO_IP,
                        v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &how, sizeof how) == 0;
  };
  SendOutcome outcome;
  if (inherited()) {
    outcome.error = EBADF;
    return outcome;
  }
  const bool trains = std::exchange(trains_, false);
  if (!discover(IP_PMTUDISC_DONT)) outcome.error = errno;
  if (outcome.error == 0) outcome = send(to, from, bytes, segment);
  discover(IP_PMTUDISC_DO);
  trains_ = trains;
  return outcome;
}

void UdpSocket::explain(const SocketAddress& to, const SocketAddress& from, std::size_t segment,
                        bool train, SendOutcome& outcome) {
  const bool refused = train && may_mean_no_trains(outcome.error) && to.port() != 0;
  if (outcome.error != EMSGSIZE && !refused) return;
  const Result<UdpPath> path = udp_path_to(to, from);
  if (path) outcome.path_mtu = path.value().mtu;
  if (!refused || !path) return;  // without a way the error is about the addresses
  // Kernels before 6.13 say EINVAL, too, when the segments of a train are too large for the way.
  const bool too_big = segment + udp_header_bytes(to.family()) > outcome.path_mtu;
  outcome.error = too_big ? EMSGSIZE : EOPNOTSUPP;
  if (!too_big) {
    trains_ = false;
    outcome.path_mtu = 0;
  }
}

}  // namespace weft::os
