// SPDX-License-Identifier: BSD-2-Clause
// How is the one object of a process made without a lock?
#pragma once

#include <atomic>
#include <memory>

namespace weft {

// The object that `place` points to: made by the first call, or by several at a time, the first of
// which counts: none waits for another thread, which a forked child might lack. Never destroyed.
template <class Object, class Make>
Object& first_made(std::atomic<Object*>& place, const Make& make) {
  if (Object* const present = place) return *present;
  std::unique_ptr<Object> made = make();
  Object* none = nullptr;
  return place.compare_exchange_strong(none, made.get()) ? *made.release() : *none;
}

}  // namespace weft
