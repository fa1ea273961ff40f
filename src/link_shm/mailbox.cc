// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint receive from the processes of its host?
#include "link_shm/mailbox.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "link_shm/names.h"
#include "link_shm/slot_memory.h"
#include "os/barrier.h"

namespace weft::shm {
namespace {

constexpr unsigned kBudget = 64;  // messages of one peer in one poll
constexpr unsigned kIdlePolls =
    20000;  // empty looks after which a ring is only looked at on demand

bool has_message(const Source& source) {
  const Cell& cell = source.cells[source.next % kCells];
  const std::uint64_t word = cell.word.load(std::memory_order_acquire);
  // The second line is on its way while the first one is looked at.
  if (source.fills_cells)
    __builtin_prefetch(reinterpret_cast<const std::byte*>(&cell) + kCacheLine);
  return static_cast<std::uint32_t>(word) == lap_of(source.next);
}

bool known(link::Operation operation) {
  return operation >= link::Operation::kMessage && operation <= link::Operation::kDatagram;
}

}  // namespace

Mailbox::Mailbox(MailboxOptions options, os::SharedFilePtr file, os::Mapping header,
                 os::Waker waker)
    : options_(std::move(options)),
      file_(std::move(file)),
      header_memory_(std::move(header)),
      waker_(std::move(waker)),
      own_memory_(options_.regions, options_.domain, options_.served) {}

Result<std::unique_ptr<Mailbox>> Mailbox::create(const MailboxOptions& options) {
  auto waker = os::Waker::create();
  if (!waker) return waker.error();
  auto file = os::SharedFile::create(mailbox_path(options.directory, options.address), 4096);
  if (!file) return file.error();
  if (Status ok = file.value()->reserve(0, 4096); !ok) return ok.error();
  auto memory = file.value()->map(0, 4096);
  if (!memory) return memory.error();
  std::unique_ptr<Mailbox> box(
      new Mailbox(options, file.value(), std::move(memory).value(), std::move(waker).value()));
  MailboxHeader& header = box->header();
  header.version = kMailboxVersion;
  header.domain = options.domain.v;
  header.served = options.served;
  header.service = options.service;
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

unsigned Mailbox::poll(link::InboxSink& sink) {
  unsigned taken = 0;
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    Source& source = *polled_[i];
    if (has_message(source)) {
      taken += drain(source, sink, std::min(kBudget, sink.room()));
      source.idle_polls = 0;
    } else if (++source.idle_polls > kIdlePolls && polled_.size() > 1) {
      demote_idle(source);
    }
  }
  if (header().summary.load(std::memory_order_relaxed) != 0) answer_rings(sink);
  if (!pulls_.empty()) finish_pulls(sink);
  return taken;
}

unsigned Mailbox::drain(Source& source, link::InboxSink& sink, unsigned budget) {
  unsigned taken = 0;
  draining_ = true;
  for (; taken < budget && !source.broken; ++taken) {
    const Cell& cell = source.cells[source.next % kCells];
    const std::uint64_t raw = cell.word.load(std::memory_order_acquire);
    if (static_cast<std::uint32_t>(raw) != lap_of(source.next)) break;
    if (!deliver(source, cell, raw, sink)) {
      copier_.flush();
      shut_out(source, sink);
      break;
    }
    ++source.next;
    if (source.next - source.published >= kCells / 4 ||
        source.bulk_end - source.bulk_published >= kBulkBytes / 4) {
      give_back(source);
    }
  }
  draining_ = false;
  copier_.flush();
  return taken;
}

void Mailbox::drain_all(Source& source, link::InboxSink& sink) {
  // No more than a ring of them: a sender that goes on after it left must not hold us.
  drain(source, sink, kCells);
}

bool Mailbox::deliver(Source& source, const Cell& cell, std::uint64_t raw, link::InboxSink& sink) {
  const CellWord word = CellWord::unpack(raw);
  if (!known(word.operation)) return false;
  if (word.kind >= Kind::kAssisted) [[unlikely]]
    return take_note(source, cell, word, sink);
  link::Arrival arrival{word.operation,
                        (word.flags & kHasData) != 0,
                        (word.flags & kWantsAck) != 0,
                        source.number,
                        cell.tag,
                        cell.data,
                        word.inline_length,
                        cell.bytes,
                        {}};
  const bool fits = word.inline_length <= kInlineBytes && !arrival.wants_ack;
  source.fills_cells = word.inline_length > kCacheLine - offsetof(Cell, bytes);
  if (word.kind != Kind::kInline || !fits) [[unlikely]] {
    if (!place_payload(source, cell, word.kind, arrival)) return false;
  }
  sink.arrived(arrival);
  return true;
}

// Of what is no message. False when the sender wrote nonsense.
bool Mailbox::take_note(Source& source, const Cell& cell, const CellWord& word,
                        link::InboxSink& sink) {
  if (word.kind == Kind::kAccessed) return hear_of_access(source, cell, sink);
  if (word.kind == Kind::kWithdrawn) return hear_of_withdrawal(source, cell, sink);
  return run_assisted(source, cell, word, sink);
}

bool Mailbox::hear_of_withdrawal(Source& source, const Cell& cell, link::InboxSink& sink) {
  const std::uint32_t number = read_once(cell.offered.exchange);
  if (!exchange_exists(source, number)) return false;
  sink.withdrawn({source.number, number});
  return finish(source, source.exchanges[number], RendezvousState::kAbandoned);
}

bool Mailbox::hear_of_access(const Source& source, const Cell& cell, link::InboxSink& sink) {
  const std::uint32_t count = read_once(cell.accessed.count);
  if (count > memory::kHazards) return false;
  RegionKey keys[memory::kHazards];
  for (std::uint32_t i = 0; i < count; ++i) keys[i].v = read_once(cell.accessed.keys[i]);
  sink.accessed(source.number, read_once(cell.accessed.access), {keys, count});
  return true;
}

// Says where a payload is that does not lie in the cell; false when it cannot be there.
// Everything that the sender says about the payload is read once, checked, and only then used.
bool Mailbox::place_payload(Source& source, const Cell& cell, Kind kind, link::Arrival& arrival) {
  if (kind == Kind::kBulk) return place_bulk(source, cell, arrival);
  if (kind != Kind::kOffered) return false;
  arrival.payload = nullptr;
  const OfferedPayload offered{read_once(cell.offered.length), read_once(cell.offered.exchange)};
  arrival.length = offered.length;
  arrival.offer = {source.number, offered.exchange};
  return offered.length != 0 && offered.length >> 47 == 0 &&
         exchange_exists(source, offered.exchange);
}

// True when that is the number of an exchange, which is backed then.
bool Mailbox::exchange_exists(Source& source, std::uint32_t number) {
  if (number >= kExchanges) return false;
  const std::size_t block = number / kExchangeBlock;
  if (!source.exchanges_backed[block]) {
    source.exchanges_backed[block] = back_exchanges(*file_, source.number, number).ok();
  }
  return source.exchanges_backed[block];
}

bool Mailbox::place_bulk(Source& source, const Cell& cell, link::Arrival& arrival) {
  const BulkPayload bulk{read_once(cell.bulk.end), read_once(cell.bulk.offset),
                         read_once(cell.bulk.length), read_once(cell.bulk.exchange)};
  if (bulk.length > kMaxEager || bulk.offset > kBulkBytes - bulk.length) return false;
  if (arrival.wants_ack && !exchange_exists(source, bulk.exchange)) return false;
  if (!source.bulk_backed) {
    // The sender has reserved this memory already; a sender that has not must not be able to make
    // us touch what does not exist.
    if (!back_bulk(*file_, source.number)) return false;
    source.bulk_backed = true;
  }
  arrival.payload = source.bulk + bulk.offset;
  arrival.length = bulk.length;
  arrival.offer = {source.number, bulk.exchange};
  source.bulk_end = bulk.end;
  return true;
}

void Mailbox::give_back(Source& source) {
  source.published = source.next;
  source.bulk_published = source.bulk_end;
  source.header->bulk_consumed.store(source.bulk_end, std::memory_order_release);
  source.header->cells_consumed.store(source.next, std::memory_order_release);
}

void Mailbox::answer_rings(link::InboxSink& sink) {
  std::uint64_t words = header().summary.exchange(0, std::memory_order_acq_rel);
  for (; words != 0; words &= words - 1) {
    const unsigned w = static_cast<unsigned>(std::countr_zero(words));
    std::uint64_t bits = header().rung[w].exchange(0, std::memory_order_acq_rel);
    for (; bits != 0; bits &= bits - 1) {
      answer_ring(w * 64 + static_cast<unsigned>(std::countr_zero(bits)), sink);
    }
  }
}

void Mailbox::answer_ring(std::uint32_t number, link::InboxSink& sink) {
  Source* source = find(number);
  if (source == nullptr) {
    open_source(number, sink);
    source = find(number);
  }
  if (source == nullptr || source->broken) return;
  if (source->header->state.load(std::memory_order_acquire) == SlotState::kClosed) {
    drain_all(*source, sink);
    close_source(*source, false, sink);
    return;
  }
  listen(*source);
  drain(*source, sink, std::min(kBudget, sink.room()));
}

void Mailbox::open_source(std::uint32_t number, link::InboxSink& sink) {
  auto source = map_source(number);
  if (source == nullptr) {
    // Shared memory has run out, or the slot has no sender yet: the mark is set again.
    if (errno != 0) ring_again(number);
    return;
  }
  unsigned char bytes[sizeof source->header->address];
  std::memcpy(bytes, source->header->address, sizeof bytes);
  const auto address = os::SocketAddress::parse(bytes, sizeof bytes);
  if (sources_.size() <= number) sources_.resize(number + 1);
  sources_[number] = std::move(source);
  sink.source_opened(number, address ? address.value() : os::SocketAddress());
}

// The open slot `number`; null with errno 0 when it is free, else with the reason.
std::unique_ptr<Source> Mailbox::map_source(std::uint32_t number) {
  auto memory = file_->map(slot_at(number), kSlotBytes);
  if (!memory || !back_header(*file_, number)) {
    errno = memory ? ENOSPC : memory.error().code;
    return nullptr;
  }
  auto source = std::make_unique<Source>();
  source->number = number;
  source->memory = std::move(memory).value();
  source->header = source->memory.at<SlotHeader>(0);
  source->exchanges = source->memory.at<Rendezvous>(kExchangesAt);
  source->cells = source->memory.at<Cell>(kCellsAt);
  source->bulk = source->memory.base() + kBulkAt;
  errno = 0;
  if (source->header->state.load(std::memory_order_acquire) == SlotState::kFree) return nullptr;
  if (!back_basics(*file_, number)) {
    errno = ENOSPC;
    return nullptr;
  }
  // Only now: the holder of a slot that was free a moment ago would be the wrong one.
  const auto pid = file_->holder(kSlotLock + number);
  source->must_fence =
      !os::heeds_remote_barriers() || read_once(source->header->sender_raises_barriers) == 0;
  const Probe probe = source->header->probe;
  source->process = PeerProcess(file_, kSlotLock + number, pid && reaches(*pid, probe) ? *pid : 0);
  return source;
}

void Mailbox::ring_again(std::uint32_t number) {
  header().rung[number / 64].fetch_or(std::uint64_t{1} << (number % 64));
  header().summary.fetch_or(std::uint64_t{1} << (number / 64));
}

void Mailbox::listen(Source& source) {
  source.idle_polls = 0;
  if (source.polled) return;
  source.polled = true;
  polled_.push_back(&source);
  source.header->attention.store(asleep_ ? Attention::kRing : Attention::kPolled,
                                 std::memory_order_release);
}

void Mailbox::stop_listening(Source& source) {
  if (!source.polled) return;
  source.polled = false;
  std::erase(polled_, &source);
}

// Rings that say nothing for a while would make every poll longer.
void Mailbox::demote_idle(Source& source) {
  if (source.broken || asleep_) return;
  source.header->attention.store(Attention::kRing, std::memory_order_relaxed);
  os::remote_barrier();
  if (has_message(source)) {
    source.header->attention.store(Attention::kPolled, std::memory_order_relaxed);
    source.idle_polls = 0;
  } else {
    stop_listening(source);
  }
}

void Mailbox::shut_out(Source& source, link::InboxSink& sink) {
  source.broken = true;
  stop_listening(source);
  source.header->attention.store(Attention::kGone, std::memory_order_release);
  for (RendezvousCopy& pull : pulls_) {
    if (pull.source == &source) revoke(pull, ECONNRESET);
  }
  sink.source_closed(source.number, true);
}

void Mailbox::refuse(link::InboxSink& sink, std::uint32_t number) {
  Source* source = find(number);
  if (source == nullptr || source->broken) return;
  copier_.flush();
  shut_out(*source, sink);
}

void Mailbox::close_source(Source& source, bool died, link::InboxSink& sink) {
  stop_listening(source);
  finish_pulls(sink);
  fail_pulls(source, sink);
  if (!source.broken) sink.source_closed(source.number, died);
  const std::uint32_t number = source.number;
  // The next sender in this slot finds zeros; it may come as soon as the state says so.
  release_slot(*file_, number);
  source.header->attention.store(Attention::kPolled, std::memory_order_relaxed);
  source.header->state.store(SlotState::kFree, std::memory_order_release);
  sources_[number].reset();
}

void Mailbox::check_sources(link::InboxSink& sink) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source* source = sources_[i].get();
    if (source == nullptr || file_->holder(kSlotLock + source->number)) continue;
    const bool left = source->header->state.load(std::memory_order_acquire) == SlotState::kClosed;
    drain_all(*source, sink);
    close_source(*source, !left, sink);
  }
}

Source* Mailbox::find(std::uint32_t number) const {
  return number < sources_.size() ? sources_[number].get() : nullptr;
}

bool Mailbox::finish(Source& source, Rendezvous& exchange, RendezvousState from) {
  if (!exchange.state.compare_exchange_strong(from, RendezvousState::kDone)) return false;
  if (source.header->sender_asleep.load(std::memory_order_seq_cst) != 0) {
    const os::WakerName waker = source.header->waker;
    waker_.ring(waker);
  }
  return true;
}

void Mailbox::acknowledge(const link::Offer& offer) {
  Source* source = find(offer.source);
  if (source == nullptr) return;
  finish(*source, source->exchanges[offer.exchange], RendezvousState::kOffered);
}

bool Mailbox::anything_waiting() const {
  if (header().summary.load(std::memory_order_acquire) != 0 || !pulls_.empty()) return true;
  return std::any_of(polled_.begin(), polled_.end(),
                     [](const Source* source) { return has_message(*source); });
}

bool Mailbox::fall_asleep() {
  waker_.silence();
  asleep_ = true;
  for (Source* source : polled_) {
    source->header->attention.store(Attention::kRing, std::memory_order_relaxed);
  }
  if (++sleeps_ == 0) ++sleeps_;
  header().asleep.store(sleeps_, std::memory_order_relaxed);
  // From here on every sender either sees that it has to ring, or its message is visible below.
  os::remote_barrier();
  return !anything_waiting();
}

void Mailbox::wake_up() {
  if (!asleep_) return;
  asleep_ = false;
  header().asleep.store(0, std::memory_order_relaxed);
  for (Source* source : polled_) {
    source->header->attention.store(Attention::kPolled, std::memory_order_relaxed);
  }
}

std::vector<pid_t> Mailbox::source_processes() const {
  std::vector<pid_t> processes;
  for (const auto& source : sources_) {
    if (source != nullptr && source->process.pid() != 0) {
      processes.push_back(source->process.pid());
    }
  }
  return processes;
}

}  // namespace weft::shm
