// SPDX-License-Identifier: BSD-2-Clause
// How do packets leave, many at a time?
#include "roce/trains.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "wire/packet.h"

namespace weft::roce {
namespace {

constexpr std::size_t kLargest =
    wire::kMaxHeaderBytes + wire::kMaxReliableDatagramMtu + wire::kIcrcBytes;

}  // namespace

Trains::Trains(os::UdpSocket& socket, wire::Tap* capture)
    : socket_(socket),
      capture_(capture),
      bytes_(std::make_unique_for_overwrite<std::byte[]>(os::UdpSocket::kMaxTrain + kLargest)) {}

std::span<std::byte> Trains::place() {
  if (stuck_ && !send()) return {};
  return {bytes_.get() + filled_, kLargest};
}

bool Trains::joins(const Path& path, std::size_t length) const {
  if (count_ == 0) return true;
  return path_ == &path && !ended_ && length + wire::kIcrcBytes <= segment_ && count_ < limit_;
}

// A packet that does not fit the train stands behind it already: the train leaves, and it is the
// first of the next.
void Trains::add(const Path& path, std::size_t length) {
  if (!joins(path, length)) {
    const std::size_t begin = filled_;
    if (!send()) return;  // it is lost: there is no room for it
    std::memmove(bytes_.get(), bytes_.get() + begin, length);
  }
  std::byte* packet = bytes_.get() + filled_;
  const std::size_t whole = length + wire::kIcrcBytes;
  if (count_ == 0) {
    path_ = &path;
    if (!(crc_.route() == path.route)) crc_ = wire::RouteCrc(path.route);
    segment_ = whole;
    const std::size_t most = socket_.segments_per_train(segment_);
    const std::size_t trains = (expected_ + most - 1) / most;
    limit_ = trains > 1 ? (expected_ + trains - 1) / trains : most;
    expected_ = 0;
    ended_ = false;
  }
  wire::Ipv4Words words;
  words.identification = socket_.identification(count_, segment_);
  wire::store_icrc(packet + length, crc_.of({packet, length}, words));
  ended_ = whole < segment_;
  filled_ += whole;
  ++count_;
  if (ended_ || count_ == limit_) send();
}

void Trains::flush() {
  if (count_ != 0) send();
}

std::optional<os::SocketAddress> Trains::narrow_path() {
  if (!has_narrow_.load()) return std::nullopt;
  const std::lock_guard guard(narrow_lock_);
  has_narrow_.store(false);
  return std::exchange(narrow_, std::nullopt);
}

// The first `count` packets of the train have left, each with its place in the train for an
// identification.
void Trains::record(std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * segment_;
    const std::size_t length = std::min(segment_, filled_ - begin);
    wire::Ipv4Words words;
    words.identification = static_cast<std::uint16_t>(i);
    capture_->packet(wire::CaptureDirection::kSent, path_->route, words,
                     {bytes_.get() + begin, length}, {});
  }
}

// True when there is room again.
bool Trains::send() {
  const std::span<const std::byte> packets(bytes_.get(), filled_);
  os::SendOutcome outcome = socket_.send(path_->to, path_->from, packets, segment_);
  if (outcome.error == EMSGSIZE) {
    {
      const std::lock_guard guard(narrow_lock_);
      narrow_ = path_->to;
      has_narrow_.store(true);
    }
    outcome =
        socket_.send_in_fragments(path_->to, path_->from, packets.subspan(outcome.bytes), segment_);
  }
  if (outcome.errors_waiting) errors_seen_.store(true);
  if (capture_ != nullptr) record(outcome.datagrams);
  stuck_ = outcome.error == EAGAIN || outcome.error == ENOBUFS;
  if (stuck_ && outcome.bytes == 0) {
    stuck_path_ = *path_;  // its owner may go before there is room
    path_ = &stuck_path_;
    return false;
  }
  stuck_ = false;
  packets_ += count_;
  filled_ = count_ = 0;
  return true;
}

}  // namespace weft::roce
