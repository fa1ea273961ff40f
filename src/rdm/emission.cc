// SPDX-License-Identifier: BSD-2-Clause
// Which flows have something to send, and when does it leave?
#include "emission.h"

#include <algorithm>
#include <cstring>

#include "wire/packet.h"

namespace weft::rdm {
namespace {

// So much later it is noticed that a flow has nothing to do any more.
constexpr auto kRest = std::chrono::milliseconds(1);

}  // namespace

Emission::Emission(Shared& shared, Contexts& contexts)
    : shared_(shared),
      contexts_(contexts),
      cm_packets_(Psn(static_cast<std::uint32_t>(shared.host.random()))) {}

void Emission::activate(Context& context, os::Time due) {
  shared_.host.wake();
  emit_at_ = std::min({emit_at_, due, shared_.now + kRest});
  if (context.active) return;
  context.active = true;
  active_.push_back(context.number);
  contexts_.note_use(context);
}

void Emission::activate(std::uint32_t context) {
  Context* found = contexts_.find(context);
  if (found != nullptr) activate(*found, found->due());
}

void Emission::send_now(std::uint32_t context, os::Time now) {
  Context* found = contexts_.find(context);
  found->out->emit(now);
  shared_.output.flush();
  activate(*found, found->due());
}

void Emission::send_cm(const roce::Path& path, std::span<const std::byte> message) {
  roce::PacketOutput& output = shared_.output;
  output.flush();
  const std::span<std::byte> place = output.place();
  if (place.empty()) return;  // the message will be repeated
  const LocalRange bytes{const_cast<std::byte*>(message.data()), message.size()};
  const auto length = cm_packets_.write(
      {.source = wire::kCmQpn, .destination = wire::kCmQpn, .queue_key = wire::kCmQueueKey},
      {&bytes, 1}, message.size(), place);
  if (!length) return;
  output.add(path, *length);
  output.flush();
}

// Requests first: acknowledgements are smaller, and may end a train.
void Emission::emit(bool all) {
  emit_at_ = os::Time::max();
  if (active_.empty()) return shared_.output.flush();
  emitting_.clear();
  emitting_.swap(active_);
  for (const bool out : {true, false}) {
    for (const std::uint32_t number : emitting_) {
      Context* context = contexts_.find(number);
      if (context == nullptr) continue;
      if (out && context->out != nullptr) context->out->emit(shared_.now);
      if (!out && context->in != nullptr) context->in->emit(all, shared_.now);
    }
  }
  shared_.output.flush();
  for (const std::uint32_t number : emitting_) {
    Context* context = contexts_.find(number);
    if (context == nullptr) continue;
    const os::Time next = context->due();
    context->active = (context->out != nullptr && !context->out->quiet()) ||
                      (context->in != nullptr && next != os::Time::max());
    if (!context->active) continue;
    active_.push_back(number);
    emit_at_ = std::min(emit_at_, next);
  }
}

}  // namespace weft::rdm
