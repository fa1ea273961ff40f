// SPDX-License-Identifier: BSD-2-Clause
// What arrives at an endpoint that peers reach without packets?
#pragma once

#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "link/inbox.h"
#include "peer.h"

namespace weft::capture {

// An inbox that writes down what comes out of it.
class RecordedInbox final : public link::Inbox, link::InboxSink {
 public:
  RecordedInbox(link::Inbox& inbox, Peers& peers) : inbox_(inbox), peers_(peers) {}

  unsigned poll(link::InboxSink& sink) override;
  bool accept(link::InboxSink& sink, const link::Offer& offer, std::span<const LocalRange> pieces,
              std::uint64_t length, void* cookie) override;
  void acknowledge(const link::Offer& offer) override;
  void refuse(link::InboxSink& sink, std::uint32_t source) override;
  bool reclaim_buffers() override { return inbox_.reclaim_buffers(); }
  void check_sources(link::InboxSink& sink) override;
  bool fall_asleep() override { return inbox_.fall_asleep(); }
  void wake_up() override { inbox_.wake_up(); }

 private:
  // A message that is being taken.
  struct Pull {
    link::Offer offer;
    std::uint64_t length = 0;
    std::size_t count = 0;
    std::array<LocalRange, link::kMaxPieces> pieces{};
  };

  void source_opened(std::uint32_t source, const os::SocketAddress& address) override;
  void source_closed(std::uint32_t source, bool died) override;
  unsigned room() const override { return sink_->room(); }
  unsigned room_for(std::uint32_t source) const override { return sink_->room_for(source); }
  bool takes_more_urgently(std::uint32_t source) const override {
    return sink_->takes_more_urgently(source);
  }
  void arrived(const link::Arrival& arrival) override;
  void accessed(std::uint32_t source, Access access, std::span<const RegionKey> regions) override {
    sink_->accessed(source, access, regions);
  }
  void received(void* cookie, int error) override;
  void withdrawn(const link::Offer& offer) override;

  RecordedPeer* peer(std::uint32_t source);
  void record(const link::Arrival& arrival, RecordedPeer& from);
  void record_message(const link::Arrival& arrival, RecordedPeer& from);
  void record_notice(const link::Arrival& arrival, RecordedPeer& from);
  // How the engine knows the message of an offer, which is not taken yet. Forgets it.
  std::optional<link::Offer> take_offer(const link::Offer& offer);

  using OfferName = std::pair<std::uint32_t, std::uint32_t>;  // source, exchange

  link::Inbox& inbox_;
  Peers& peers_;
  std::unordered_map<std::uint32_t, RecordedPeer*> sources_;
  std::map<OfferName, link::Offer> offers_;
  std::unordered_map<const void*, Pull> pulls_;  // by cookie
  link::InboxSink* sink_ = nullptr;
};

}  // namespace weft::capture
