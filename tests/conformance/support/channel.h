// SPDX-License-Identifier: BSD-2-Clause
// How do a test and its peer process talk beside the fabric?
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>

namespace weft::conformance {

// How long anything may take before the test fails. Generous: it only bounds a hang.
std::chrono::milliseconds patience();

// Called again and again while waiting, so that this side's endpoints make progress meanwhile.
using Idle = std::function<void()>;

// One end of a record-preserving socket pair; owns the descriptor. One thread at a time.
class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // False when the other side is gone.
  bool send_bytes(const void* record, std::size_t size);
  // Bytes received; 0 when the other side is gone; -1 when `limit` ran out.
  long receive_bytes(void* record, std::size_t size, const Idle& idle,
                     std::chrono::milliseconds limit = patience());
  // A record or the end of the stream can be received without waiting.
  bool ready() const;

  template <class T>
  bool send(const T& record) {
    static_assert(std::is_trivially_copyable_v<T>);
    return send_bytes(&record, sizeof record);
  }
  template <class T>
  bool receive(T* record, const Idle& idle = {}, std::chrono::milliseconds limit = patience()) {
    static_assert(std::is_trivially_copyable_v<T>);
    return receive_bytes(record, sizeof *record, idle, limit) == static_cast<long>(sizeof *record);
  }

 private:
  int fd_;
};

}  // namespace weft::conformance
