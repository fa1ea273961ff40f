// SPDX-License-Identifier: BSD-2-Clause
// How many packets may be in flight?
#include "transport/window.h"

#include <algorithm>
#include <utility>

#include "wire/packet.h"

namespace weft::transport {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr double kFirst = 64;
constexpr double kLeastWindow = 8;
// In each round trip it grows by so many bytes, however small the packets are, but by one packet at
// least, and by no more than that part of it.
constexpr double kGrowthBytes = wire::kMaxReliableDatagramMtu;
constexpr double kGentle = 4;
// Loss without a queue says little about congestion; with one, it says that there was no more room.
constexpr double kAfterLoss = 0.7;
constexpr double kShrinkAfterMark = 0.7;
constexpr double kAfterDelay = 0.85;
// So long a mark says where the queue of the way begins. As long as there is such a queue there are
// marks in each round trip; a forged one must not hold a flow back any longer.
constexpr Duration kMarkHolds = std::chrono::seconds(1);
// What is polled by programs is answered late now and then.
constexpr Duration kMuchDelay = milliseconds(2);
constexpr Duration kMinRto = milliseconds(1);
constexpr Duration kFirstRto = milliseconds(20);

}  // namespace

Window::Window(const Settings& settings)
    : most_(settings.max_window),
      size_(std::min<double>(kFirst, settings.max_window)),
      growth_ends_(settings.max_window),
      rto_(std::min(std::max<Duration>(kFirstRto, 3 * settings.first_round_trip),
                    settings.ack_timeout)),
      max_rto_(settings.ack_timeout) {
  carries(settings.path_mtu);
}

void Window::acknowledged(unsigned count, bool full) {
  if (!full) return;
  const double growth = std::clamp(size_ / kGentle, 1.0, growth_);
  size_ += size_ < growth_ends_ ? count : count * growth / size_;
  size_ = std::min(size_, most_);
}

void Window::carries(std::size_t path_mtu) {
  growth_ = std::max(1.0, kGrowthBytes / static_cast<double>(path_mtu));
}

void Window::timed(Duration round_trip, Time now) {
  least_round_trip_ = std::min(least_round_trip_, round_trip);
  if (smooth_ == Duration::zero()) {
    smooth_ = round_trip;
    deviation_ = round_trip / 2;
  } else {
    const Duration off = round_trip > smooth_ ? round_trip - smooth_ : smooth_ - round_trip;
    deviation_ += (off - deviation_) / 4;
    smooth_ += (round_trip - smooth_) / 8;
  }
  rto_ = std::min(std::max(smooth_ + 4 * deviation_, kMinRto), max_rto_);
  if (smooth_ > least_round_trip_ + kMuchDelay) shrink(kAfterDelay, now);
  if (by_mark_ && now - shrunk_ >= kMarkHolds) {
    by_mark_ = false;
    growth_ends_ = most_;
  }
}

void Window::lost(Time now) {
  before_silence_ = 0;
  shrink(kAfterLoss, now);
}

void Window::marked(Time now) {
  if (shrink(kShrinkAfterMark, now)) by_mark_ = true;
}

void Window::note_answer() {
  if (before_silence_ == 0) return;
  size_ = std::max(size_, std::exchange(before_silence_, 0));
}

void Window::silent() {
  before_silence_ = std::max(before_silence_, size_);
  by_mark_ = false;
  growth_ends_ = std::max(kLeastWindow, size_ / 2);
  size_ = std::min(most_, kLeastWindow);
}

// False when it has shrunk in this round trip before.
bool Window::shrink(double factor, Time now) {
  if (now - shrunk_ < std::max<Duration>(smooth_, microseconds(10)) && shrunk_ != Time{}) {
    return false;
  }
  shrunk_ = now;
  by_mark_ = false;
  size_ = std::min(most_, std::max(kLeastWindow, size_ * factor));
  growth_ends_ = size_;
  return true;
}

}  // namespace weft::transport
