// SPDX-License-Identifier: BSD-2-Clause
// How does a mailbox take large messages, and how does it part from those under way?
#pragma once

#include <span>
#include <vector>

#include "link/inbox.h"
#include "link_shm/layout.h"
#include "link_shm/paired_copy.h"
#include "link_shm/source_table.h"
#include "os/waker.h"

namespace weft::shm {

// The rendezvous of all sources, from the receiver's side. Sources of messages under way, and the
// waker by which senders are woken, outlive it. One thread.
class RendezvousReceiver {
 public:
  explicit RendezvousReceiver(const os::Waker& waker) : waker_(waker) {}

  // True while messages are being copied.
  bool busy() const { return !copies_.empty(); }
  // Takes an offered message of that source, as link::Inbox::accept() says.
  bool accept(Source& source, link::InboxSink& sink, std::uint32_t rendezvous_id,
              std::span<const LocalRange> sges, std::uint64_t length, void* cookie);
  // Ends a rendezvous that is in state `from`. False when the sender has taken back what was in it.
  bool finish(Source& source, std::uint32_t rendezvous_id, RendezvousState from);
  // Between hold() and release() small messages are copied together; progress() follows.
  void hold() { held_ = true; }
  void release() {
    held_ = false;
    flush();
  }
  // Copies what accept() has put off.
  void flush() { copier_.flush(); }
  // Copies what senders leave undone, and reports messages that are in place.
  void progress(link::InboxSink& sink);
  // Has the messages of a source fail with that error, when the sender has ceased to copy.
  void revoke(const Source& source, int error);
  // Reports the messages of a source that has ended, or left, as failed.
  void fail(const Source& source, link::InboxSink& sink);
  // As link::Inbox::reclaim_buffers().
  bool reclaim_buffers();
  // Ends all rendezvous, without a report.
  void finish_all();

 private:
  // A message that both sides are copying. The lists are private: the sender cannot change them.
  struct RendezvousCopy {
    Source* source = nullptr;
    std::uint32_t rendezvous_id = 0;
    std::uint64_t length = 0;
    void* cookie = nullptr;
    int error = 0;  // why it was revoked: reported when the sender has ceased to copy
    std::size_t target_count = 0;
    std::size_t origin_count = 0;
    LocalRange target[link::kMaxLinkSges];  // in this process
    LocalRange origin[link::kMaxLinkSges];  // in the sender

    Rendezvous& shared() const { return source->memory.rendezvous_records()[rendezvous_id]; }
    CopyJob job() const;
    void revoke(int why);
    bool being_written() const;
  };

  void take_over();
  RendezvousCopy take(std::size_t i);
  static bool read_from_sender(Source& source);

  const os::Waker& waker_;
  std::vector<RendezvousCopy> copies_;
  ChunkCopier copier_{Side::kReceiver};
  bool held_ = false;
  unsigned look_ = 0;  // at what senders copy
};

}  // namespace weft::shm
