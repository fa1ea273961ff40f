// SPDX-License-Identifier: BSD-2-Clause
// Which packet of the posted work leaves next?
#pragma once

#include <optional>

#include "transport/black_hole.h"
#include "transport/in_flight.h"
#include "transport/send_queue.h"
#include "transport/window.h"

namespace weft::transport {

// Cuts work requests into packets, first or again, and decides which of them ask for an
// acknowledgement. One thread at a time.
class Packetizer {
 public:
  // All of them outlive it; `settings.path_mtu` may change before restart().
  Packetizer(const Settings& settings, work::LocalMemory& memory, const Window& window,
             SendQueue& queue, InFlight& in_flight, BlackHole& black_hole)
      : settings_(settings),
        memory_(memory),
        window_(window),
        queue_(queue),
        in_flight_(in_flight),
        black_hole_(black_hole),
        asked_(settings.first_sent) {}
  Packetizer(const Packetizer&) = delete;
  Packetizer& operator=(const Packetizer&) = delete;

  // True when next() would have a packet, if the SGE that it needs may be read.
  bool ready() const {
    return queue_.asks_again() ||
           (!paused_ && (in_flight_.may_repair(window_.size()) || may_cut()));
  }
  // Writes the next packet as Requester::next() does. Nothing when its work cannot be sent, whose
  // status says why: that of its post, or kLocalProtection when an SGE may not be read.
  std::optional<std::size_t> next(Time now, std::span<std::byte> out);
  // Packets of the request whose turn it is that may leave now.
  std::uint32_t at_hand() const;

  // Only answers are requested once more until restart(), after SendQueue::restart().
  void pause() {
    paused_ = true;
    timed_.reset();
  }
  bool paused() const { return paused_; }
  // No more packets leave for the first time.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  void restart();

  // The peer owes an acknowledgement or a value.
  bool is_answer_due() const {
    return in_flight_.acknowledged().before(asked_) || queue_.awaited() != 0;
  }
  // All packets before `end` have arrived. Returns the round trip that this measures.
  std::optional<Duration> acknowledged(Psn end, Time now);
  // The next packet is a RESYNC, which must be acknowledged before any other leaves.
  void resynchronise();

 private:
  using Written = std::optional<std::size_t>;

  std::uint32_t part_of_read() const;
  bool may_cut() const;
  bool may_begin(const QueuedWork& work) const;
  bool wants_answer(const QueuedWork& work);
  Written cut_next(Time now, std::span<std::byte> out);
  Written send_missing(Time now, std::span<std::byte> out);
  Written ask_again(Time now, std::span<std::byte> out);
  Written write(QueuedWork& work, std::uint32_t index, std::uint32_t count, bool ask,
                std::span<std::byte> out);
  void tried_again(Time now);
  void sent_again(Psn psn);

  const Settings& settings_;
  work::LocalMemory& memory_;
  const Window& window_;
  SendQueue& queue_;
  InFlight& in_flight_;
  BlackHole& black_hole_;
  unsigned unasked_ = 0;  // packets since an answer was asked for
  bool prompt_ = false;   // a completion waits for one of them
  Psn asked_;             // behind the last packet that asked for an answer
  std::optional<Psn> resync_;
  bool paused_ = false;
  bool stopped_ = false;
  std::optional<Psn> timed_;  // the packet whose round trip is measured
  Time timed_at_{};
};

}  // namespace weft::transport
