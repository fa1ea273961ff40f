// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send to, and access the memory of, another process of its host?
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "link/flow.h"
#include "link_shm/adaptive_choice.h"
#include "link_shm/layout.h"
#include "link_shm/paired_copy.h"
#include "link_shm/peer_process.h"
#include "memory/access_guard.h"
#include "os/clock.h"
#include "os/shared_file.h"
#include "os/socket_address.h"
#include "os/waker.h"

namespace weft::shm {

// The endpoint that opens an outbox. Outlives the outbox.
struct Sender {
  std::string directory;      // of the shared files
  os::SocketAddress address;  // of the sending endpoint
  const os::Waker* waker = nullptr;
  std::size_t eager_limit = 8192;  // larger messages are not copied twice; at most kMaxEager
  link::Service service = link::Service::kReliableDatagram;
  // The region table of this process, for an endpoint that accesses its own process.
  std::shared_ptr<memory::RegionTableView> own_regions = nullptr;
};

// The Flow of the shared-memory link.
class Outbox final : public link::Flow {
 public:
  // Claims a slot in the mailbox of the endpoint at `peer`. Errors: ENOENT when no living endpoint
  // of this user and of the sender's service has that address (it may come yet), EPERM when its
  // process may not be reached, EUSERS when kSlots peers send to it already, ENOSPC, EPROTO for
  // another version.
  static Result<std::unique_ptr<Outbox>> open(const Sender& sender, const os::SocketAddress& peer);
  ~Outbox() override;

  link::Outcome send(const link::SendRequest& request) override;
  link::Outcome access(const link::AccessRequest& request) override;
  link::Outcome atomic(const link::AtomicRequest& request) override;
  bool busy() const override { return !active_.empty() || !queue_.empty(); }
  void progress(link::FlowSink& sink) override;
  link::PeerState check_peer(link::FlowSink& sink) override;
  bool ready() const override;
  bool cancel(void* cookie, link::FlowSink& sink) override;
  void give_up(link::FlowSink& sink) override;
  int process() const override { return peer_.pid(); }
  void set_asleep(bool asleep) override;

 private:
  // The private side of an exchange.
  struct Pending {
    void* cookie = nullptr;
    std::uint64_t length = 0;
    std::uint32_t count = 0;
    bool reported = false;
    bool offered = false;      // its bytes are in these pieces only
    bool tells_of_it = false;  // the peer is to be told that it was withdrawn
    LocalRange pieces[link::kMaxPieces];
  };

  // A send that waits for a free exchange: more of them may be pending than there are exchanges.
  struct Queued {
    link::SendRequest request;
    LocalRange pieces[link::kMaxPieces];
  };

  Outbox(const Sender& sender, os::SharedFilePtr file, os::Mapping header, pid_t pid);
  static Result<os::SharedFilePtr> find_mailbox(const Sender& sender,
                                                const os::SocketAddress& peer);
  Status claim_slot();
  Status set_up_slot(std::uint32_t number);
  void introduce();
  MailboxHeader& header() const { return *header_memory_.at<MailboxHeader>(0); }

  bool room_for_cells(std::uint64_t count);
  bool room_for_cell() { return room_for_cells(1); }
  bool room_in_bulk(std::uint64_t length);
  bool back_bulk();
  link::Outcome dispatch(const link::SendRequest& request);
  link::Outcome enqueue(const link::SendRequest& request);
  void drain_queue(link::FlowSink& sink);
  bool have_exchange();
  link::Outcome send_inline(const link::SendRequest& request);
  link::Outcome send_bulk(const link::SendRequest& request);
  link::Outcome send_offer(const link::SendRequest& request);
  std::uint32_t start_exchange(const link::SendRequest& request, Kind kind);
  bool withdraw(std::uint32_t number, link::FlowSink& sink);
  void tell_of_withdrawal(std::uint32_t number);
  Cell& next_cell();
  void publish(Cell& cell, const link::SendRequest& request, Kind kind, bool wants_ack,
               std::size_t inline_length) {
    cell.tag = request.tag;
    cell.data = request.data;
    const auto flags =
        static_cast<std::uint8_t>((request.has_data ? kHasData : 0) | (wants_ack ? kWantsAck : 0));
    const CellWord word{lap_of(next_), request.operation, kind, flags,
                        static_cast<std::uint8_t>(inline_length)};
    cell.word.store(word.pack(), std::memory_order_release);
    ++next_;
    attract_attention();
  }

  // One-sided operations by this process itself (outbox_access.cc, outbox_atomic.cc).
  int unusable();
  bool counted(std::uint32_t kind) const {
    return (header().counts_access.load(std::memory_order_relaxed) & kind) != 0;
  }
  link::Outcome pin(Access served, Access need, std::span<const RemoteRange> ranges,
                    std::span<const LocalRange>& targets, std::string* explanation,
                    std::size_t element = 1);
  link::Outcome end_access(int error, Access access);
  link::Outcome access_directly(const link::AccessRequest& request);
  link::Outcome atomic_directly(const link::AtomicRequest& request);
  int change(const link::AtomicRequest& request, std::size_t offset, const LocalRange& target);
  void tell(Access access);
  void announce(link::Operation operation, bool has_data, std::uint64_t data, std::size_t length);

  // The same by asking the owner (outbox_assisted.cc).
  bool fits_assisted(std::span<const RemoteRange> ranges, std::size_t most, bool counts);
  enum class Answer : std::uint8_t {
    kDone,
    kNotDone,  // and the owner will not do it any more, or has ended
    kUnknown,  // the owner has stopped in the middle; it may still do it
    kFault,    // a local buffer is not mapped; an atomic operation may have been done
  };
  Answer ask_owner(const link::AccessRequest& request);
  Answer ask_owner(const link::AtomicRequest& request);
  bool publish_assisted(const link::AccessRequest& request);
  bool publish_assisted(const link::AtomicRequest& request);
  std::optional<Answer> answer_to(std::uint64_t position) const;
  Answer await_assisted(std::uint64_t position);
  bool assisted_unanswered();
  bool take_back(std::uint64_t position);
  template <class Request>
  link::Outcome by_faster_method(AdaptiveChoice& ways, const Request& request,
                                 link::Outcome (Outbox::*directly)(const Request&));

  void attract_attention();
  void mark_rung(std::uint32_t number);
  bool is_there() { return peer_.holds_lock(); }
  Result<std::shared_ptr<memory::RegionTableView>> open_table() const;
  Status attach_to_table();
  bool progress_one(std::uint32_t number, link::FlowSink& sink);
  void help_copying(std::uint32_t number);
  void report(std::uint32_t number, int error, link::FlowSink& sink);
  void part_from(std::uint32_t number, os::Time end);
  void end_all(os::Time end, link::FlowSink& sink);

  const Sender& sender_;
  const os::SharedFilePtr file_;
  const os::Mapping header_memory_;
  PeerProcess peer_;      // the owner, by its lock of the mailbox
  const bool to_itself_;  // the owner is this process
  const DomainId domain_;
  const ServedAccess served_;  // by the peer's endpoint
  const bool must_fence_;
  std::uint32_t number_ = 0;
  bool claimed_ = false;
  bool gone_ = false;
  bool bulk_backed_ = false;
  os::Mapping memory_;
  SlotHeader* slot_ = nullptr;
  Rendezvous* exchanges_ = nullptr;
  Cell* cells_ = nullptr;
  std::byte* bulk_ = nullptr;
  std::uint64_t next_ = 0;        // position of the cell to write
  std::uint64_t limit_ = kCells;  // the first position that may not be written yet
  std::uint64_t bulk_next_ = 0;
  std::uint64_t bulk_limit_ = kBulkBytes;
  std::vector<Pending> pending_;       // by number of exchange, as far as they have memory
  std::vector<std::uint32_t> active_;  // numbers of those in use
  std::vector<std::uint32_t> free_;
  ChunkCopier copier_{Side::kSender};
  std::list<Queued> queue_;  // in order; while it is not empty nothing overtakes it
  std::unique_ptr<memory::AccessGuard> table_;
  std::optional<std::uint64_t>
      unanswered_;                // position of an assisted access whose outcome is unknown
  AdaptiveChoice choice_;         // of small accesses: directly, or by asking the owner
  AdaptiveChoice atomic_choice_;  // the same for atomic operations
};

template <class Request>
link::Outcome Outbox::by_faster_method(AdaptiveChoice& ways, const Request& request,
                                       link::Outcome (Outbox::*directly)(const Request&)) {
  const bool asks = ways.choose() == AdaptiveChoice::Method::kSecond;
  const bool timed = ways.timed();
  const auto begin = timed ? std::chrono::steady_clock::now() : os::Time{};
  const Answer answer = asks ? ask_owner(request) : Answer::kNotDone;
  if (answer == Answer::kUnknown) return link::Outcome::failed(ETIMEDOUT);
  if (answer == Answer::kFault) return link::Outcome::failed(EFAULT);
  const bool done = answer == Answer::kDone;
  const link::Outcome outcome = done ? link::Outcome::done() : (this->*directly)(request);
  if (asks && !done) {
    ways.second_failed();
  } else if (timed) {
    ways.took(std::chrono::steady_clock::now() - begin);
  }
  return outcome;
}

}  // namespace weft::shm
