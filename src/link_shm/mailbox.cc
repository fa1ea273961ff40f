// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach the processes of its host, and receive from them?
#include "link_shm/mailbox.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "link_shm/group.h"
#include "link_shm/names.h"
#include "link_shm/outbox.h"
#include "os/barrier.h"
#include "os/runtime_dir.h"

namespace weft::shm {
namespace {

constexpr unsigned kBudget = 64;     // messages of one peer in one poll
constexpr unsigned kNewcomers = 16;  // slots that one poll opens: each takes up to 0.25 ms
constexpr auto kCloseTimeout = std::chrono::seconds(2);

// The hash cannot be compared with that of another mailbox: each has a salt of its own.
void show_authorization(const AuthorizationPtr& key, MailboxHeader& header) {
  if (key == nullptr) return;
  const std::uint64_t salt[] = {os::random_number(), os::random_number()};
  static_assert(sizeof salt == sizeof header.authorization_salt);
  std::memcpy(header.authorization_salt, salt, sizeof salt);
  header.authorization = key->number();
  header.authorization_hash = key->hash(header.authorization_salt);
}

}  // namespace

Mailbox::Mailbox(const MailboxOptions& options, os::SharedFilePtr file, os::Mapping header,
                 os::Waker waker)
    : file_(std::move(file)),
      header_memory_(std::move(header)),
      waker_(std::move(waker)),
      asks_(options.service == link::Service::kQueuePairs),
      sender_(options.sender),
      sources_(file_),
      rendezvous_receiver_(waker_),
      mads_(header_memory_, options.on_mad),
      assisted_(options.regions, options.domain, options.served, options.number,
                number_of(options.authorization)) {
  sender_.directory = options.directory;
  sender_.waker = &waker_;
  sender_.service = options.service;
  sender_.own_regions = options.regions;
  sender_.authorization = options.authorization;
}

Result<std::unique_ptr<Mailbox>> Mailbox::create(const MailboxOptions& options) {
  auto waker = os::Waker::create();
  if (!waker) return waker.error();
  const bool takes_mads = options.on_mad != nullptr;
  const std::uint64_t bytes = takes_mads ? kSlotsAt : kHeaderBytes;
  auto file = os::SharedFile::create(
      mailbox_path(options.directory, options.address, options.service), bytes);
  if (!file) return file.error();
  if (Status ok = file.value()->reserve(0, bytes); !ok) return ok.error();
  auto memory = file.value()->map(0, bytes);
  if (!memory) return memory.error();
  std::unique_ptr<Mailbox> box(
      new Mailbox(options, file.value(), std::move(memory).value(), std::move(waker).value()));
  MailboxHeader& header = box->header();
  header.version = kMailboxVersion;
  header.domain = options.domain.v;
  header.served = options.served;
  header.endpoint = options.number;
  show_authorization(options.authorization, header);
  header.service = options.service;
  header.takes_mads = takes_mads ? 1 : 0;
  header.owner_raises_barriers = os::can_raise_remote_barriers();
  header.counts_access.store(options.counts_access, std::memory_order_relaxed);
  header.probe = own_probe();
  header.waker = box->waker_.name();
  std::strncpy(header.table, options.table.c_str(), sizeof header.table - 1);
  header.magic = kMailboxMagic;
  os::heeds_remote_barriers();
  if (Status ok = box->file_->publish(); !ok) return ok.error();
  return box;
}

Result<std::unique_ptr<link::Flow>> Mailbox::connect(const os::SocketAddress& peer) {
  auto outbox = Outbox::open(sender_, peer);
  if (!outbox) return outbox.error();
  return std::unique_ptr<link::Flow>(std::move(outbox).value());
}

Result<link::Membership> Mailbox::join(const os::SocketAddress& group) {
  return join_group(sender_.directory, group, sender_.address);
}

Result<std::unique_ptr<link::Flow>> Mailbox::connect_group(const os::SocketAddress& group) {
  return std::unique_ptr<link::Flow>(std::make_unique<GroupOutbox>(sender_, group));
}

unsigned Mailbox::poll(link::InboxSink& sink) {
  unsigned taken = 0;
  const std::vector<Source*>& polled = sources_.polled();
  for (std::size_t i = 0; i < polled.size(); ++i) {
    Source& source = *polled[i];
    if (source.ring.has_message()) {
      taken += drain(source, sink, std::min(kBudget, sink.room_for(source.number)));
      source.idle_polls = 0;
    } else {
      sources_.note_idle(source);
    }
  }
  sources_.demote_idle();
  if (header().summary.load(std::memory_order_relaxed) != 0) taken += answer_rings(sink);
  if (rendezvous_receiver_.busy()) rendezvous_receiver_.progress(sink);
  return taken;
}

bool Mailbox::known(link::MessageOperation operation) const {
  if (asks_) return operation == link::MessageOperation::kQueuePair;
  return operation >= link::MessageOperation::kMessage &&
         operation <= link::MessageOperation::kDatagram;
}

unsigned Mailbox::drain(Source& source, link::InboxSink& sink, unsigned budget) {
  unsigned taken = 0;
  source.rests = false;
  if (source.answered != 0 && !resumes(source, sink)) [[unlikely]]
    return 0;
  rendezvous_receiver_.hold();
  for (; taken < budget && !source.broken; ++taken) {
    const std::uint64_t raw = source.ring.word();
    if (!source.ring.is_next(raw)) break;
    if (asks_ && (source.rests || postpones(source, sink))) break;
    if (!deliver(source, source.ring.cell(), raw, sink)) {
      rendezvous_receiver_.flush();
      shut_out(source, sink);
      break;
    }
    source.ring.advance();
  }
  rendezvous_receiver_.release();
  return taken;
}

void Mailbox::drain_all(Source& source, link::InboxSink& sink) {
  // No more than a ring of them: a sender that goes on after it left must not hold us.
  unsigned left = source.memory.geometry().cells;
  do {
    left -= drain(source, sink, left);
  } while (source.rests && left != 0);
}

// The sender asks again for what was postponed, unless it has withdrawn it.
bool Mailbox::resumes(Source& source, link::InboxSink& sink) {
  std::uint64_t expected = source.answered;
  std::atomic<std::uint64_t>& word = source.header->answer;
  if (word.compare_exchange_strong(expected, 0) || expected == 0) {
    source.answered = 0;
    return true;
  }
  shut_out(source, sink);
  return false;
}

// A message between queue pairs may find no receive, or no queue pair.
bool Mailbox::postpones(Source& source, link::InboxSink& sink) {
  const Cell& cell = source.ring.cell();
  const std::uint16_t why =
      sink.postpones(source.number, read_once(cell.tag), read_once(cell.data));
  if (why == 0) return false;
  answer(source, why);
  return true;
}

// Nothing wakes the owner until the sender asks again.
void Mailbox::answer(Source& source, std::uint16_t why) {
  source.answered = answer_word(source.ring.position(), why);
  source.ring.give_back();
  source.header->answer.store(source.answered, std::memory_order_seq_cst);
  sources_.stop_listening(source);
  source.header->attention.store(Attention::kRing, std::memory_order_seq_cst);
  source.wake(waker_);
}

void Mailbox::fail(std::uint32_t number, std::uint16_t why) {
  Source* const source = sources_.find(number);
  if (source == nullptr || source->broken) return;
  answer(*source, why);
  source->broken = true;
}

void Mailbox::leave_rest(std::uint32_t number) {
  Source* const source = sources_.find(number);
  if (source != nullptr) source->rests = true;
}

void Mailbox::acknowledge_all(std::uint32_t number) {
  Source* const source = sources_.find(number);
  if (source == nullptr || source->broken) return;
  source->ring.give_back();
  // The sender looks for this after it has said that it sleeps.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  source->wake(waker_);
}

bool Mailbox::deliver(Source& source, const Cell& cell, std::uint64_t raw, link::InboxSink& sink) {
  const CellWord word = CellWord::unpack(raw);
  if (!known(word.operation)) return false;
  if (word.kind >= CellKind::kAssisted) [[unlikely]]
    return take_note(source, cell, word, sink);
  link::Arrival arrival{word.operation,
                        (word.flags & kHasData) != 0,
                        (word.flags & kWantsAck) != 0,
                        source.number,
                        read_once(cell.tag),
                        read_once(cell.data),
                        word.inline_length,
                        cell.bytes,
                        {}};
  const bool fits = word.inline_length <= kInlineBytes && !arrival.wants_ack;
  source.ring.note_inline(word.inline_length);
  if (word.kind != CellKind::kInline || !fits) [[unlikely]] {
    if (!place_payload(source, cell, word.kind, arrival)) return false;
  }
  sink.arrived(arrival);
  return true;
}

// Of what is no message. False when the sender wrote nonsense.
bool Mailbox::take_note(Source& source, const Cell& cell, const CellWord& word,
                        link::InboxSink& sink) {
  if (word.kind == CellKind::kAccessed) return take_access_report(source, cell, sink);
  if (word.kind == CellKind::kWithdrawn) return take_withdrawal(source, cell, sink);
  if (word.kind == CellKind::kRefused) return assisted_.note_refusal(source, cell, sink), true;
  return assisted_.run(source, word, sink);
}

bool Mailbox::take_withdrawal(Source& source, const Cell& cell, link::InboxSink& sink) {
  const std::uint32_t number = read_once(cell.offered.rendezvous_id);
  if (!SourceTable::back_rendezvous(source, number)) return false;
  sink.withdrawn({source.number, number});
  return rendezvous_receiver_.finish(source, number, RendezvousState::kAbandoned);
}

bool Mailbox::take_access_report(const Source& source, const Cell& cell, link::InboxSink& sink) {
  const std::uint32_t count = read_once(cell.accessed.count);
  if (count > memory::kHazards) return false;
  RegionKey keys[memory::kHazards];
  for (std::uint32_t i = 0; i < count; ++i) keys[i].v = read_once(cell.accessed.keys[i]);
  sink.accessed(source.number, read_once(cell.accessed.access), {keys, count});
  return true;
}

// Says where a payload is that does not lie in the cell; false when it cannot be there.
// Everything that the sender says about the payload is read once, checked, and only then used.
bool Mailbox::place_payload(Source& source, const Cell& cell, CellKind kind,
                            link::Arrival& arrival) {
  if (kind == CellKind::kBulk) return place_bulk(source, cell, arrival);
  if (kind != CellKind::kOffered) return false;
  arrival.payload = nullptr;
  const OfferedPayload offered{read_once(cell.offered.length),
                               read_once(cell.offered.rendezvous_id), 0};
  arrival.length = offered.length;
  arrival.offer = {source.number, offered.rendezvous_id};
  return offered.length != 0 && offered.length >> 47 == 0 &&
         SourceTable::back_rendezvous(source, offered.rendezvous_id);
}

bool Mailbox::place_bulk(Source& source, const Cell& cell, link::Arrival& arrival) {
  const BulkPayload bulk{read_once(cell.bulk.end), read_once(cell.bulk.offset),
                         read_once(cell.bulk.length), read_once(cell.bulk.rendezvous_id), 0};
  if (!source.memory.back_bulk()) return false;
  arrival.payload = source.ring.bulk_payload(bulk);
  arrival.length = bulk.length;
  arrival.offer = {source.number, bulk.rendezvous_id};
  if (arrival.payload == nullptr) return false;
  return !arrival.wants_ack || SourceTable::back_rendezvous(source, bulk.rendezvous_id);
}

// Returns how many management datagrams it has handed over.
unsigned Mailbox::answer_rings(link::InboxSink& sink) {
  std::uint64_t words = header().summary.exchange(0, std::memory_order_acq_rel);
  for (; words != 0; words &= words - 1) {
    const unsigned w = static_cast<unsigned>(std::countr_zero(words));
    std::uint64_t bits = header().woken[w].exchange(0, std::memory_order_acq_rel);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t number = w * 64 + static_cast<unsigned>(std::countr_zero(bits));
      sources_.find(number) != nullptr ? answer_ring(number, sink) : note_newcomer(number);
    }
  }
  take_newcomers(sink);
  return mads_.take(header().mads.exchange(0, std::memory_order_acq_rel));
}

void Mailbox::note_newcomer(std::uint32_t number) {
  if (is_newcomer_.test(number)) return;
  is_newcomer_.set(number);
  newcomers_.push_back(number);
}

// Any process may mark all slots. The others wait in the order in which they were seen.
void Mailbox::take_newcomers(link::InboxSink& sink) {
  for (unsigned taken = 0; taken < kNewcomers && !newcomers_.empty(); ++taken) {
    const std::uint32_t number = newcomers_.front();
    newcomers_.pop_front();
    is_newcomer_.reset(number);
    answer_ring(number, sink);
  }
  if (!newcomers_.empty()) mark_woken(header(), newcomers_.front());  // the next poll goes on
}

void Mailbox::answer_ring(std::uint32_t number, link::InboxSink& sink) {
  Source* source = sources_.find(number);
  const bool is_new = source == nullptr;
  if (is_new) source = open_source(number, sink);
  if (source == nullptr) return;
  const bool ended = is_new && !sources_.sender_lives(*source);
  const bool left = source->header->state.load(std::memory_order_acquire) == SlotState::kClosed;
  if (ended || left) {
    drain_all(*source, sink);
    close_source(*source, !left, sink);
    return;
  }
  if (source->broken) return;
  sources_.listen(*source);
  drain(*source, sink, std::min(kBudget, sink.room_for(number)));
}

Source* Mailbox::open_source(std::uint32_t number, link::InboxSink& sink) {
  const Result<Source*> source = sources_.open(number);
  if (!source) mark_woken(header(), number);  // shared memory has run out: looked at again later
  if (!source || source.value() == nullptr) return nullptr;
  header().first_free.store(sources_.first_free(), std::memory_order_relaxed);
  const SlotHeader& slot = *source.value()->header;
  unsigned char bytes[sizeof slot.address];
  std::memcpy(bytes, slot.address, sizeof bytes);
  const auto address = os::SocketAddress::parse(bytes, sizeof bytes);
  sink.source_opened(number, address ? address.value() : os::SocketAddress());
  if (source.value()->broken) shut_out(*source.value(), sink);
  return sources_.find(number);
}

void Mailbox::shut_out(Source& source, link::InboxSink& sink) {
  source.broken = true;
  sources_.stop_listening(source);
  source.header->attention.store(Attention::kGone, std::memory_order_release);
  rendezvous_receiver_.revoke(source, ECONNRESET);
  sink.source_closed(source.number, true);
}

void Mailbox::refuse(link::InboxSink& sink, std::uint32_t number) {
  Source* source = sources_.find(number);
  if (source == nullptr || source->broken) return;
  rendezvous_receiver_.flush();
  shut_out(*source, sink);
}

void Mailbox::close_source(Source& source, bool died, link::InboxSink& sink) {
  sources_.stop_listening(source);
  rendezvous_receiver_.progress(sink);
  rendezvous_receiver_.fail(source, sink);
  if (!source.broken) sink.source_closed(source.number, died);
  sources_.close(source);
  header().first_free.store(sources_.first_free(), std::memory_order_relaxed);
}

void Mailbox::check_sources(link::InboxSink& sink) {
  for (std::size_t i = 0; i < sources_.all().size(); ++i) {
    Source* source = sources_.all()[i].get();
    if (source == nullptr) continue;
    source->ring.give_back();  // a sender that has left may wait for that (link::Flow::settled)
    if (sources_.sender_lives(*source)) continue;
    const bool left = source->header->state.load(std::memory_order_acquire) == SlotState::kClosed;
    drain_all(*source, sink);
    close_source(*source, !left, sink);
  }
}

bool Mailbox::accept(link::InboxSink& sink, const link::Offer& offer,
                     std::span<const LocalRange> sges, std::uint64_t length, void* cookie) {
  Source* source = sources_.find(offer.source);
  if (source != nullptr) {
    return rendezvous_receiver_.accept(*source, sink, offer.rendezvous_id, sges, length, cookie);
  }
  sink.received(cookie, ECONNRESET);
  return true;
}

void Mailbox::acknowledge(const link::Offer& offer) {
  Source* source = sources_.find(offer.source);
  if (source != nullptr)
    rendezvous_receiver_.finish(*source, offer.rendezvous_id, RendezvousState::kOffered);
}

bool Mailbox::reclaim_buffers() {
  return file_->inherited() || rendezvous_receiver_.reclaim_buffers();
}

bool Mailbox::anything_waiting() const {
  if (header().summary.load(std::memory_order_acquire) != 0 || rendezvous_receiver_.busy())
    return true;
  return std::any_of(sources_.polled().begin(), sources_.polled().end(),
                     [](const Source* source) { return source->ring.has_message(); });
}

bool Mailbox::fall_asleep() {
  waker_.silence();
  sources_.set_asleep(true);
  if (++sleeps_ == 0) ++sleeps_;
  header().asleep.store(sleeps_, std::memory_order_relaxed);
  // From here on every sender either sees that it has to ring, or its message is visible below.
  os::remote_barrier();
  return !anything_waiting();
}

void Mailbox::wake_up() {
  if (!sources_.asleep()) return;
  header().asleep.store(0, std::memory_order_relaxed);
  sources_.set_asleep(false);
}

std::vector<pid_t> Mailbox::source_processes() const {
  std::vector<pid_t> processes;
  for (const auto& source : sources_.all()) {
    if (source != nullptr && source->process.pid() != 0) {
      processes.push_back(source->process.pid());
    }
  }
  return processes;
}

Mailbox::~Mailbox() {
  if (file_->inherited()) return;
  file_->unlink();
  const auto end = std::chrono::steady_clock::now() + kCloseTimeout;
  while (!reclaim_buffers() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  rendezvous_receiver_.finish_all();
  for (const auto& source : sources_.all()) {
    if (source == nullptr) continue;
    source->header->attention.store(Attention::kGone, std::memory_order_seq_cst);
    source->wake(waker_);
  }
  header().closed.store(1, std::memory_order_release);
  // Every user of the file, in this process too, sees that the owner has gone.
  file_->disclaim(0);
}

}  // namespace weft::shm
