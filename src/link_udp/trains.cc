// SPDX-License-Identifier: BSD-2-Clause
// How do packets leave, many at a time?
#include "trains.h"

#include <cerrno>
#include <cstring>

#include "wire/packet.h"

namespace weft::udp {
namespace {

constexpr std::size_t kLargest = wire::kMaxHeaderBytes + wire::kMaxPathMtu + wire::kIcrcBytes;

}  // namespace

Trains::Trains(os::UdpSocket& socket)
    : socket_(socket), bytes_(os::UdpSocket::kMaxTrain + kLargest) {}

std::span<std::byte> Trains::place() {
  if (stuck_ && !send()) return {};
  return std::span(bytes_).subspan(filled_, kLargest);
}

bool Trains::joins(const Way& way, std::size_t length) const {
  if (count_ == 0) return true;
  return way_ == &way && !ended_ && length + wire::kIcrcBytes <= segment_ &&
         count_ < socket_.segments_per_train(segment_);
}

// A packet that does not fit the train stands behind it already: the train leaves, and it is the
// first of the next.
void Trains::add(const Way& way, std::size_t length) {
  if (!joins(way, length)) {
    const std::size_t begin = filled_;
    if (!send()) return;  // it is lost: there is no room for it
    std::memmove(bytes_.data(), bytes_.data() + begin, length);
  }
  std::byte* packet = bytes_.data() + filled_;
  const std::size_t whole = length + wire::kIcrcBytes;
  if (count_ == 0) {
    way_ = &way;
    segment_ = whole;
    ended_ = false;
  }
  wire::Ipv4Words words;
  words.identification = socket_.identification(count_, segment_);
  wire::store_icrc(packet + length, wire::icrc(way.route, {packet, length}, words));
  ended_ = whole < segment_;
  filled_ += whole;
  ++count_;
  if (ended_ || count_ == socket_.segments_per_train(segment_)) send();
}

void Trains::flush() {
  if (count_ != 0) send();
}

// True when there is room again.
bool Trains::send() {
  const os::SendOutcome outcome =
      socket_.send(way_->to, way_->from, {bytes_.data(), filled_}, segment_);
  met_errors_ = met_errors_ || outcome.errors_waiting;
  stuck_ = outcome.error == EAGAIN || outcome.error == ENOBUFS;
  if (stuck_ && outcome.bytes == 0) return false;
  stuck_ = false;
  filled_ = count_ = 0;
  return true;
}

}  // namespace weft::udp
