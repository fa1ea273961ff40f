// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send to, and access the memory of, another process of its host?
#include "link_shm/outbox.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "os/user_memory.h"

namespace weft::shm {

using link::Outcome;
using link::SendRequest;

namespace {

constexpr auto kMaxDrainTime = std::chrono::seconds(2);
constexpr std::size_t kMaxQueued = 65536;

// An SGE of a message that this end copies cannot be read.
Outcome unmapped() { return Outcome::failed(EFAULT); }

}  // namespace

Outbox::Outbox(std::unique_ptr<PeerSlot> slot)
    : slot_(std::move(slot)),
      eager_limit_(
          std::min<std::size_t>(slot_->sender().eager_limit, slot_->geometry().max_eager())),
      ring_(*slot_),
      rendezvous_(*slot_),
      one_sided_(*slot_, ring_) {}

Result<std::unique_ptr<Outbox>> Outbox::open(const Sender& sender, const os::SocketAddress& peer) {
  auto slot = PeerSlot::claim(sender, peer);
  if (!slot) return slot.error();
  return std::unique_ptr<Outbox>(new Outbox(std::move(slot).value()));
}

Outcome Outbox::send(const SendRequest& request) {
  if (ring_.has_room() && request.length <= kInlineBytes && !request.until_delivered &&
      !ring_.gone() && queue_.empty()) [[likely]] {
    return send_inline(request);
  }
  // A request must not become pending here: it could not be sent to a successor any more.
  if (ring_.gone() || slot_->closed_by_owner()) {
    ring_.set_gone();
    return Outcome::failed(ECONNRESET);
  }
  return queue_.empty() ? dispatch(request) : enqueue(request);
}

Outcome Outbox::dispatch(const SendRequest& request) {
  if (!ring_.room_for(1)) return Outcome::again();
  if (request.length <= kInlineBytes && !request.until_delivered) return send_inline(request);
  if (request.length <= eager_limit_ || request.must_copy) return send_bulk(request);
  return send_offer(request);
}

Outcome Outbox::enqueue(const SendRequest& request) {
  if (request.must_copy || queue_.size() >= kMaxQueued) return Outcome::again();
  Queued& queued = queue_.emplace_back();
  queued.request = request;
  std::copy(request.sges.begin(), request.sges.end(), queued.sges);
  queued.request.sges = {queued.sges, request.sges.size()};
  return Outcome::pending();
}

void Outbox::drain_queue(link::FlowSink& sink) {
  while (!queue_.empty() && rendezvous_.obtain()) {
    const SendRequest& request = queue_.front().request;
    const Outcome outcome = dispatch(request);
    if (outcome.state == Outcome::State::kAgain) return;
    if (outcome.state != Outcome::State::kPending) sink.ended(request.cookie, outcome.error, 0);
    queue_.pop_front();
  }
}

Outcome Outbox::send_inline(const SendRequest& request) {
  if (!os::gather(ring_.next_cell().bytes, request.sges, request.length)) return unmapped();
  ring_.publish(request, CellKind::kInline, false, request.length);
  return ring_.gone() ? Outcome::failed(ECONNRESET) : Outcome::done();
}

Outcome Outbox::send_bulk(const SendRequest& request) {
  const bool wants_ack = request.until_delivered;
  if (wants_ack && !rendezvous_.obtain()) return enqueue(request);
  if (!slot_->memory().back_bulk()) return Outcome::failed(ENOSPC);
  std::byte* room = ring_.bulk_room(request.length);
  if (room == nullptr) return Outcome::again();
  if (!os::gather(room, request.sges, request.length)) return unmapped();
  const std::uint32_t rendezvous_id = wants_ack ? rendezvous_.start(request, CellKind::kBulk) : 0;
  ring_.next_cell().bulk = ring_.take_bulk(request.length, rendezvous_id);
  ring_.publish(request, CellKind::kBulk, wants_ack);
  if (wants_ack) return Outcome::pending();
  return ring_.gone() ? Outcome::failed(ECONNRESET) : Outcome::done();
}

Outcome Outbox::send_offer(const SendRequest& request) {
  if (!rendezvous_.obtain()) return enqueue(request);
  ring_.next_cell().offered = {request.length, rendezvous_.start(request, CellKind::kOffered), 0};
  ring_.publish(request, CellKind::kOffered);
  return Outcome::pending();
}

void Outbox::progress(link::FlowSink& sink) {
  rendezvous_.progress(ring_, sink);
  drain_queue(sink);
  if (busy() && slot_->closed_by_owner()) check_peer(sink);
}

bool Outbox::cancel(void* cookie, link::FlowSink& sink) {
  const auto queued = std::find_if(queue_.begin(), queue_.end(), [&](const Queued& each) {
    return each.request.cookie == cookie;
  });
  if (queued == queue_.end()) return rendezvous_.cancel(cookie, ring_, sink);
  queue_.erase(queued);
  sink.ended(cookie, ECANCELED, 0);
  return true;
}

link::PeerState Outbox::check_peer(link::FlowSink& sink) {
  const bool left = slot_->closed_by_owner();
  const bool there = slot_->owner().holds_lock();
  if (!left && there) return link::PeerState::kAlive;
  ring_.set_gone();
  end_all(os::Time{}, sink);  // it copies nothing any more
  if (there) return link::PeerState::kRefuses;
  return left ? link::PeerState::kLeft : link::PeerState::kDied;
}

// The ring has no notification for freed space.
bool Outbox::ready() const {
  return rendezvous_.any_done() || (!queue_.empty() && rendezvous_.has_free()) ||
         slot_->closed_by_owner();
}

void Outbox::set_asleep(bool asleep) {
  slot_->header().sender_asleep.store(asleep ? 1 : 0, std::memory_order_relaxed);
}

void Outbox::end_all(os::Time end, link::FlowSink& sink) {
  rendezvous_.end_all(end, sink);
  for (const Queued& queued : queue_) sink.ended(queued.request.cookie, ECONNRESET, 0);
  queue_.clear();
}

void Outbox::give_up(link::FlowSink& sink) {
  end_all(std::chrono::steady_clock::now() + kMaxDrainTime, sink);
}

Outbox::~Outbox() {
  if (!slot_->file().inherited())
    rendezvous_.drain(std::chrono::steady_clock::now() + kMaxDrainTime);
}

}  // namespace weft::shm
