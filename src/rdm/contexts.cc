// SPDX-License-Identifier: BSD-2-Clause
// By which numbers do packets name the flows of an endpoint?
#include "contexts.h"

#include <algorithm>
#include <utility>

namespace weft::rdm {
namespace {

// A number is an index and a part that differs each time, so that a late packet finds no
// later context.
constexpr std::uint32_t kIndexBits = 16;
constexpr std::uint32_t kMostContexts = (1U << kIndexBits) - 1;

constexpr std::uint32_t index_of(std::uint32_t number) { return (number & kMostContexts) - 1; }

// After such a rest memory is given back.
constexpr auto kTrimDelay = std::chrono::milliseconds(500);

}  // namespace

os::Time Context::due() const {
  const os::Time sends = out != nullptr ? out->due() : os::Time::max();
  return in != nullptr ? std::min(sends, in->due()) : sends;
}

os::Time Context::last_received() const {
  const os::Time received = in != nullptr ? in->last_received() : os::Time{};
  return out != nullptr ? std::max(out->flow().last_received(), received) : received;
}

Context& Contexts::create() {
  if (shared_.options.remote_peer_seen && !shared_.closing) shared_.options.remote_peer_seen();
  auto fresh = std::make_unique<Context>();
  if (free_.empty()) {
    contexts_.emplace_back();
    free_.reserve(contexts_.capacity());  // so that destroy() needs no memory
    free_.push_back(static_cast<std::uint32_t>(contexts_.size() - 1));
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  contexts_[index] = std::move(fresh);
  Context& context = *contexts_[index];
  const auto random = static_cast<std::uint32_t>(shared_.host.random());
  context.number = ((index + 1) | random << kIndexBits) & Psn::kMask;
  return context;
}

bool Contexts::has_room() const { return contexts_.size() + 1 < kMostContexts || free_.size() > 1; }

Context* Contexts::find(std::uint32_t number) const {
  const std::uint32_t index = index_of(number);
  if (index >= contexts_.size() || contexts_[index] == nullptr) return nullptr;
  return contexts_[index]->number == number ? contexts_[index].get() : nullptr;
}

void Contexts::destroy(Context& context) {
  const std::uint32_t index = index_of(context.number);
  contexts_[index].reset();
  free_.push_back(index);
}

void Contexts::note_use(Context& context) {
  context.used = shared_.now;
  if (!std::exchange(context.noted, true))
    noted_.push_back({shared_.now + kTrimDelay, context.number});
}

void Contexts::trim() {
  const os::Time now = shared_.now;
  while (due() <= now) {
    Context* const context = find(noted_.front().number);
    noted_.pop_front();
    if (context == nullptr) continue;
    const bool rests = !context->active && now - context->used >= kTrimDelay;
    if (rests && context->out != nullptr) context->out->trim();
    const bool done = rests && (context->in == nullptr || context->in->trim(now));
    context->noted = !done;
    if (!done) noted_.push_back({now + kTrimDelay, context->number});
  }
}

}  // namespace weft::rdm
