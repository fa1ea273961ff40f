// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach the processes of its host, and receive from them?
#pragma once

#include <bitset>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "link/inbox.h"
#include "link/port_link.h"
#include "link_shm/assisted_server.h"
#include "link_shm/layout.h"
#include "link_shm/mad_reader.h"
#include "link_shm/peer_mailbox.h"
#include "link_shm/rendezvous_receiver.h"
#include "link_shm/source_table.h"
#include "os/shared_file.h"
#include "os/waker.h"

namespace weft::shm {

// Properties of a mailbox that its peers read.
struct MailboxOptions {
  std::string directory;            // of the shared files
  os::SocketAddress address;        // of the endpoint, with its port
  DomainId domain;                  // in which peers' keys are looked up
  std::string table;                // name of the region table
  std::uint32_t counts_access = 0;  // kCountsReads | kCountsWrites: announce such accesses
  // The region table once more, as its users see it; without it no assisted access is carried out.
  std::shared_ptr<memory::RegionTableView> regions = nullptr;
  link::Service service = link::Service::kReliableDatagram;
  ServedAccess served = {};                  // what peers may do to regions through this endpoint
  std::uint32_t number = 0;                  // of this endpoint (memory::Through)
  AuthorizationPtr authorization = nullptr;  // its key
  // Called for each management datagram, within poll(); without it none is taken.
  MadSink on_mad = {};
  // Properties of flows: the address by which peers know the endpoint, the eager limit and the
  // geometry. The mailbox fills in the rest.
  Sender sender = {};
};

// The shared-memory link: its flows are those of Outbox and GroupOutbox.
class Mailbox final : public link::Inbox, public link::PortLink {
 public:
  // Makes the mailbox and lets peers find it. Errors: EADDRINUSE when a living endpoint has the
  // address, ENOSPC, EMFILE, others of SharedFile and Waker.
  static Result<std::unique_ptr<Mailbox>> create(const MailboxOptions& options);
  ~Mailbox() override;

  link::Inbox& inbox() override { return *this; }
  // As Outbox::open().
  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer) override;
  // As join_group().
  Result<link::Membership> join(const os::SocketAddress& group) override;
  Result<std::unique_ptr<link::Flow>> connect_group(const os::SocketAddress& group) override;
  // For what else is sent in the name of this endpoint.
  const Sender& sender() const { return sender_; }

  unsigned poll(link::InboxSink& sink) override;
  // poll() would do nothing. False wherever that takes more than a look or two.
  bool is_quiet() const {
    const std::vector<Source*>& polled = sources_.polled();
    return header().summary.load(std::memory_order_relaxed) == 0 && polled.size() <= 1 &&
           !rendezvous_receiver_.busy() && (polled.empty() || !polled[0]->ring.has_message());
  }
  // The polls so far have left new senders to the next one.
  bool has_newcomers() const { return !newcomers_.empty(); }
  bool accept(link::InboxSink& sink, const link::Offer& offer, std::span<const LocalRange> sges,
              std::uint64_t length, void* cookie) override;
  void acknowledge(const link::Offer& offer) override;
  void refuse(link::InboxSink& sink, std::uint32_t source) override;
  void check_sources(link::InboxSink& sink) override;
  bool reclaim_buffers() override;
  bool fall_asleep() override;
  void wake_up() override;

  // Between queue pairs, from within poll(): the message of that source which arrives just now has
  // failed, and none behind it arrives.
  void fail(std::uint32_t source, std::uint16_t why);
  // The same of a message that has taken long: those behind it arrive with the next poll.
  void leave_rest(std::uint32_t source);
  // Tells the source that what has arrived so far was executed.
  void acknowledge_all(std::uint32_t source);

  // Readable when something arrives while asleep.
  int wake_fd() const { return waker_.fd(); }
  // The processes that send to this mailbox (0 where unknown), to be watched while asleep.
  std::vector<pid_t> source_processes() const;

 private:
  Mailbox(const MailboxOptions& options, os::SharedFilePtr file, os::Mapping header,
          os::Waker waker);
  MailboxHeader& header() const { return *header_memory_.at<MailboxHeader>(0); }
  unsigned drain(Source& source, link::InboxSink& sink, unsigned budget);
  void drain_all(Source& source, link::InboxSink& sink);
  bool known(link::MessageOperation operation) const;
  bool deliver(Source& source, const Cell& cell, std::uint64_t raw, link::InboxSink& sink);
  bool resumes(Source& source, link::InboxSink& sink);
  bool postpones(Source& source, link::InboxSink& sink);
  void answer(Source& source, std::uint16_t why);
  bool take_note(Source& source, const Cell& cell, const CellWord& word, link::InboxSink& sink);
  bool take_withdrawal(Source& source, const Cell& cell, link::InboxSink& sink);
  static bool take_access_report(const Source& source, const Cell& cell, link::InboxSink& sink);
  bool place_payload(Source& source, const Cell& cell, CellKind kind, link::Arrival& arrival);
  bool place_bulk(Source& source, const Cell& cell, link::Arrival& arrival);
  unsigned answer_rings(link::InboxSink& sink);
  void note_newcomer(std::uint32_t number);
  void take_newcomers(link::InboxSink& sink);
  void answer_ring(std::uint32_t number, link::InboxSink& sink);
  Source* open_source(std::uint32_t number, link::InboxSink& sink);
  void shut_out(Source& source, link::InboxSink& sink);
  void close_source(Source& source, bool died, link::InboxSink& sink);
  bool anything_waiting() const;

  const os::SharedFilePtr file_;
  const os::Mapping header_memory_;
  os::Waker waker_;
  const bool asks_;  // of queue pairs: the next message may stay in its ring
  Sender sender_;
  SourceTable sources_;
  RendezvousReceiver rendezvous_receiver_;
  MadReader mads_;
  AssistedServer assisted_;
  std::deque<std::uint32_t> newcomers_;  // marked slots that are not open
  std::bitset<kSlots> is_newcomer_;
  std::uint32_t sleeps_ = 0;  // numbers them; never 0 while asleep
};

}  // namespace weft::shm
