// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint receive from the processes of its host?
#pragma once

#include <bitset>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "link/inbox.h"
#include "link_shm/layout.h"
#include "link_shm/paired_copy.h"
#include "link_shm/peer_process.h"
#include "memory/own_memory.h"
#include "os/shared_file.h"
#include "os/waker.h"

namespace weft::shm {

// What a mailbox tells its peers.
struct MailboxOptions {
  std::string directory;            // of the shared files
  os::SocketAddress address;        // of the endpoint, with its port
  DomainId domain;                  // in which peers' keys are looked up
  std::string table;                // name of the region table
  std::uint32_t counts_access = 0;  // kCountsReads | kCountsWrites: announce such accesses
  // The region table once more, as its users see it; without it no assisted access is carried out.
  std::shared_ptr<memory::RegionTableView> regions = nullptr;
  link::Service service = link::Service::kReliableDatagram;
  ServedAccess served = {};  // what peers may do to regions through this endpoint
};

// One peer that sends to a mailbox.
struct Source {
  std::uint32_t number = 0;
  os::Mapping memory;
  SlotHeader* header = nullptr;
  Rendezvous* exchanges = nullptr;
  Cell* cells = nullptr;
  std::byte* bulk = nullptr;
  std::uint64_t next = 0;       // position of the cell to come
  std::uint64_t published = 0;  // positions given back to the sender
  std::uint64_t bulk_end = 0;   // the same two for the bulk ring
  std::uint64_t bulk_published = 0;
  PeerProcess process{nullptr, 0, 0};  // of id 0: its memory cannot be reached
  unsigned idle_polls = 0;
  bool fills_cells = false;  // its last message had a part in a cell's second line
  bool polled = false;       // in the list of rings that every poll looks at
  std::bitset<kExchanges / kExchangeBlock> exchanges_backed;
  bool bulk_backed = false;
  bool must_fence = true;  // the sender raises no barriers that this process heeds
  bool helps = false;      // it was seen copying its share of a large message
  unsigned helped_at = 0;  // the look since which it is waited for
  bool broken = false;     // it wrote nonsense: not listened to any more
};

// The Inbox of the shared-memory link.
class Mailbox final : public link::Inbox {
 public:
  // Makes the mailbox and lets peers find it. Errors: EADDRINUSE when a living endpoint has the
  // address, ENOSPC, EMFILE, others of SharedFile and Waker.
  static Result<std::unique_ptr<Mailbox>> create(const MailboxOptions& options);
  ~Mailbox() override;

  unsigned poll(link::InboxSink& sink) override;
  bool accept(link::InboxSink& sink, const link::Offer& offer, std::span<const LocalRange> pieces,
              std::uint64_t length, void* cookie) override;
  void acknowledge(const link::Offer& offer) override;
  void refuse(link::InboxSink& sink, std::uint32_t source) override;
  void check_sources(link::InboxSink& sink) override;
  bool reclaim_buffers() override;
  bool fall_asleep() override;
  void wake_up() override;

  // Readable when something arrives while asleep.
  int wake_fd() const { return waker_.fd(); }
  // The bell that peers ring; outboxes of the same endpoint name it to their peers.
  const os::Waker& waker() const { return waker_; }
  // The processes that send to this mailbox (0 where unknown), to be watched while asleep.
  std::vector<pid_t> source_processes() const;

 private:
  // A message that both sides are copying. The lists are private: the sender cannot change them.
  struct RendezvousCopy {
    Source* source = nullptr;
    std::uint32_t exchange = 0;
    std::uint64_t length = 0;
    void* cookie = nullptr;
    int error = 0;  // why it was revoked: reported when the sender has ceased to copy
    std::size_t target_count = 0;
    std::size_t origin_count = 0;
    LocalRange target[link::kMaxPieces];  // in this process
    LocalRange origin[link::kMaxPieces];  // in the sender
  };

  Mailbox(MailboxOptions options, os::SharedFilePtr file, os::Mapping header, os::Waker waker);
  MailboxHeader& header() const { return *header_memory_.at<MailboxHeader>(0); }
  unsigned drain(Source& source, link::InboxSink& sink, unsigned budget);
  void drain_all(Source& source, link::InboxSink& sink);
  bool deliver(Source& source, const Cell& cell, std::uint64_t raw, link::InboxSink& sink);
  bool take_note(Source& source, const Cell& cell, const CellWord& word, link::InboxSink& sink);
  bool hear_of_withdrawal(Source& source, const Cell& cell, link::InboxSink& sink);
  static bool hear_of_access(const Source& source, const Cell& cell, link::InboxSink& sink);
  bool run_assisted(Source& source, const Cell& cell, const CellWord& word, link::InboxSink& sink);
  bool carry_out(const Source& source, const Cell& cell, bool write, link::InboxSink& sink);
  bool carry_out_atomic(const Source& source, const Cell& cell, link::InboxSink& sink);
  void tell(const Source& source, Access access, link::InboxSink& sink) const;
  bool place_payload(Source& source, const Cell& cell, Kind kind, link::Arrival& arrival);
  bool place_bulk(Source& source, const Cell& cell, link::Arrival& arrival);
  bool exchange_exists(Source& source, std::uint32_t number);
  void give_back(Source& source);
  void answer_rings(link::InboxSink& sink);
  void answer_ring(std::uint32_t number, link::InboxSink& sink);
  void open_source(std::uint32_t number, link::InboxSink& sink);
  std::unique_ptr<Source> map_source(std::uint32_t number);
  void ring_again(std::uint32_t number);
  void listen(Source& source);
  void stop_listening(Source& source);
  void demote_idle(Source& source);
  void shut_out(Source& source, link::InboxSink& sink);
  void close_source(Source& source, bool died, link::InboxSink& sink);
  void fail_pulls(const Source& source, link::InboxSink& sink);
  void finish_pulls(link::InboxSink& sink);
  void take_over();
  static CopyJob job(const RendezvousCopy& pull);
  RendezvousCopy take(std::size_t i);
  static bool read_from_sender(Source& source);
  static void revoke(RendezvousCopy& pull, int error);
  static bool being_written(const RendezvousCopy& pull);
  // False when the sender has taken back what was in state `from`.
  bool finish(Source& source, Rendezvous& exchange, RendezvousState from);
  Source* find(std::uint32_t number) const;
  bool anything_waiting() const;
  void disconnect_source(Source& source);

  const MailboxOptions options_;
  const os::SharedFilePtr file_;
  const os::Mapping header_memory_;
  os::Waker waker_;
  std::vector<std::unique_ptr<Source>> sources_;  // by slot number
  std::vector<Source*> polled_;
  std::vector<RendezvousCopy> pulls_;
  ChunkCopier copier_{Side::kReceiver};
  bool draining_ = false;         // finish_pulls() follows
  unsigned look_ = 0;             // at what senders copy
  memory::OwnMemory own_memory_;  // for assisted accesses
  bool asleep_ = false;
  std::uint32_t sleeps_ = 0;  // numbers them; never 0 while asleep
};

}  // namespace weft::shm
