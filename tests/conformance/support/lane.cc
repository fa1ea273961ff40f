// SPDX-License-Identifier: BSD-2-Clause
// What does one endpoint of a program with many threads do, cut into parts that may run in
// parallel?
#include "lane.h"

#include <rdma/fi_eq.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace weft::conformance {
namespace {

// An operation toward the peer. Every message says its number in its first bytes.
struct Transfer {
  Kind kind;
  std::size_t length;
};
// Below and above the limits from which a message is a rendezvous: 8 KiB within a host, 128 KiB
// over the network.
constexpr Transfer kReliable[] = {
    {Kind::kSend, 8},         {Kind::kWrite, 64},         {Kind::kTsend, 64},
    {Kind::kAtomic, 8},       {Kind::kInject, 16},        {Kind::kRead, 64},
    {Kind::kTinject, 40},     {Kind::kFetchAtomic, 8},    {Kind::kSenddata, 3000},
    {Kind::kInjectWrite, 32}, {Kind::kTsenddata, 12'000}, {Kind::kInjectAtomic, 8},
    {Kind::kSend, 20'000},    {Kind::kCompareAtomic, 8},  {Kind::kTsend, 140'000},
    {Kind::kWrite, 20'000},   {Kind::kTinjectdata, 24},   {Kind::kRead, 20'000},
};
constexpr Transfer kDatagrams[] = {{Kind::kSend, 8},
                                   {Kind::kInject, 16},
                                   {Kind::kSenddata, 1000},
                                   {Kind::kInjectdata, 40},
                                   {Kind::kSendv, 1024}};
constexpr std::size_t kRounds = 4;
constexpr std::size_t kDatagramRounds = 20;

constexpr std::size_t kUntaggedReceives = 16;  // at once
constexpr std::size_t kCancelled = 10;
constexpr std::uint64_t kCancelledTag = 1'000'000;  // and above: of receives without a message
constexpr std::size_t kBatch = 8;

// Where the window's words are that the peer adds to, and where the places of its operations begin.
constexpr std::size_t kSum = 0;
constexpr std::size_t kFetched = 8;
constexpr std::size_t kPlaces = 16;
constexpr std::uint64_t kZero = 0;
constexpr std::uint64_t kOne = 1;

bool is_datagram(fi_ep_type type) { return type == FI_EP_DGRAM; }

std::span<const Transfer> round_of(fi_ep_type type) {
  return is_datagram(type) ? std::span<const Transfer>(kDatagrams)
                           : std::span<const Transfer>(kReliable);
}

std::size_t operations_of(fi_ep_type type) {
  return round_of(type).size() * (is_datagram(type) ? kDatagramRounds : kRounds);
}

const Transfer& transfer(fi_ep_type type, std::size_t index) {
  const auto round = round_of(type);
  return round[index % round.size()];
}

bool is_message(Kind kind) { return !traits(kind).rma && !traits(kind).atomic; }

bool is_fetch(Kind kind) { return kind == Kind::kFetchAtomic || kind == Kind::kCompareAtomic; }

// The event of the counter that counts it at its initiator (fi_cntr(3)).
std::uint64_t event_of(Kind kind) {
  if (is_message(kind)) return FI_SEND;
  return traits(kind).read || is_fetch(kind) ? FI_READ : FI_WRITE;
}

// How many operations of a lane fulfil a condition.
template <class Condition>
std::size_t count(fi_ep_type type, Condition holds) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < operations_of(type); ++i) found += holds(transfer(type, i).kind);
  return found;
}

bool reports(Kind kind) { return !traits(kind).inject; }

// Offsets in the window, for each operation; and where the last one ends.
std::vector<std::size_t> places_in(fi_ep_type type) {
  std::vector<std::size_t> places{kPlaces};
  for (std::size_t i = 0; i < operations_of(type); ++i) {
    const Transfer& one = transfer(type, i);
    const std::size_t bytes = is_message(one.kind) ? 0 : (one.length + 7) / 8 * 8;
    places.push_back(places.back() + bytes);
  }
  return places;
}

std::uint64_t word_at(const GuardedBuffer& buffer, std::size_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, buffer.data() + offset, sizeof word);
  return word;
}

Options with_wait(Options options, bool has_wait_set) {
  options.wait = has_wait_set ? FI_WAIT_SET : FI_WAIT_UNSPEC;
  return options;
}

}  // namespace

Options lane_options(fi_ep_type type, fi_threading threading) {
  Options options = is_datagram(type) ? datagrams() : Options();
  options.type = type;
  options.threading = threading;
  options.counters = FI_SEND | FI_RECV;
  if (!is_datagram(type)) {
    options.caps |= FI_ATOMIC;
    options.counters |= FI_READ | FI_WRITE;
  }
  return options;
}

Lane::Lane(std::shared_ptr<Domain> domain, const Options& options, std::uint64_t number,
           bool has_wait_set, fid_av* av)
    : options_(with_wait(options, has_wait_set)),
      number_(number),
      reporting_(count(options.type, reports)),
      endpoint_(std::move(domain), options_, av),
      places_(places_in(options.type)),
      window_(places_.back()),
      arrivals_(operations_of(options.type)),
      fetched_(operations_of(options.type)),
      messages_(expected(FI_RECV)) {
  if (!endpoint_.ok()) return;
  make_jobs();
  open_poll_set();
  open_window();
}

Lane::~Lane() {
  for (fid* const member : members_) EXPECT_EQ(fi_poll_del(poll_set_.get(), member, 0), 0);
}

void Lane::open_poll_set() {
  fi_poll_attr attributes{};
  poll_set_ = open_fid<fid_poll>(
      [&](fid_poll** out) { return fi_poll_open(endpoint_.domain()->get(), &attributes, out); });
  if (poll_set_ == nullptr) return;
  members_.push_back(&endpoint_.cq()->fid);
  for (const std::uint64_t event : {FI_SEND, FI_RECV, FI_READ, FI_WRITE}) {
    if ((options_.counters & event) != 0) members_.push_back(&endpoint_.counter(event)->fid);
  }
  for (fid* const member : members_) EXPECT_EQ(fi_poll_add(poll_set_.get(), member, 0), 0);
  ok_ = true;
}

void Lane::open_window() {
  if (is_datagram(options_.type)) return;
  std::memset(window_.data(), 0, window_.length());
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Transfer& one = transfer(options_.type, i);
    if (one.kind == Kind::kRead) window_.fill(seed(i), places_[i], one.length);
  }
  region_ = open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(endpoint_.domain()->get(), window_.data(), window_.length(),
                     FI_REMOTE_READ | FI_REMOTE_WRITE, 0, Endpoint::next_key(), 0, out, nullptr);
  });
  ok_ = ok_ && region_ != nullptr;
}

void Lane::make_jobs() {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < operations_of(options_.type); ++i) {
    const Transfer& one = transfer(options_.type, i);
    Job& job = operations_.emplace_back(Role::kOperation, i, one.length);
    if (!traits(one.kind).read) job.buffer.fill(seed(i), 0, one.length);
    if (!is_message(one.kind)) continue;
    std::memcpy(job.buffer.data(), &i, sizeof i);
    if (traits(one.kind).tagged) {
      tagged_.emplace_back(Role::kTagged, i, one.length);
    } else {
      ++untagged_messages_;
      longest = std::max(longest, one.length);
    }
  }
  for (std::size_t i = 0; i < kUntaggedReceives; ++i) {
    untagged_.emplace_back(Role::kUntagged, i, longest);
  }
  if (is_datagram(options_.type)) return;
  for (std::size_t i = 0; i < kCancelled; ++i) {
    tagged_.emplace_back(Role::kCancelled, kCancelledTag + i, 64);
  }
}

void Lane::join(Lane& a, Lane& b) {
  if (a.options_.type != FI_EP_MSG) {
    a.meet(b, a.endpoint_.insert(b.endpoint_.name()));
    b.meet(a, b.endpoint_.insert(a.endpoint_.name()));
    return;
  }
  Pump pump;
  pump.add(&a.endpoint_);
  pump.add(&b.endpoint_);
  b.endpoint_.connect(a.endpoint_.name());
  EXPECT_TRUE(pump.until([&] { return a.endpoint_.accept(); }));
  EXPECT_TRUE(pump.until([&] { return a.endpoint_.connected() && b.endpoint_.connected(); }));
  a.meet(b, FI_ADDR_UNSPEC);
  b.meet(a, FI_ADDR_UNSPEC);
}

void Lane::meet(Lane& peer, fi_addr_t address) {
  peer_ = &peer;
  address_ = address;
}

std::vector<LanePart> Lane::parts() const {
  std::vector<LanePart> parts{LanePart::kTransmit, LanePart::kReceive,  LanePart::kQueue,
                              LanePart::kSends,    LanePart::kReceives, LanePart::kPollSet};
  if (!is_datagram(options_.type)) {
    parts.push_back(LanePart::kReads);
    parts.push_back(LanePart::kWrites);
  }
  if (endpoint_.wait_set() != nullptr) parts.push_back(LanePart::kWaitSet);
  return parts;
}

std::function<void()> Lane::steps(LanePart part, int timeout_ms) {
  switch (part) {
    case LanePart::kTransmit:
      return [this, held = static_cast<Job*>(nullptr)]() mutable { transmit(held); };
    case LanePart::kReceive:
      return [this, held = static_cast<Job*>(nullptr)]() mutable { receive(held); };
    case LanePart::kQueue:
      return [this, timeout_ms] { read_queue(timeout_ms); };
    case LanePart::kSends:
      return [this, timeout_ms] { wait_counter(FI_SEND, timeout_ms); };
    case LanePart::kReceives:
      return [this, timeout_ms] { wait_counter(FI_RECV, timeout_ms); };
    case LanePart::kReads:
      return [this, timeout_ms] { wait_counter(FI_READ, timeout_ms); };
    case LanePart::kWrites:
      return [this, timeout_ms] { wait_counter(FI_WRITE, timeout_ms); };
    case LanePart::kPollSet:
      return [this] { poll_set(); };
    case LanePart::kWaitSet:
      return [this, timeout_ms] { wait_set(timeout_ms); };
  }
  return {};
}

// `held` is what this thread has taken on and could not post yet.
void Lane::transmit(Job*& held) {
  if (held == nullptr) {
    const std::size_t next = next_operation_.load(std::memory_order_relaxed) < operations_.size()
                                 ? next_operation_.fetch_add(1, std::memory_order_relaxed)
                                 : operations_.size();
    if (next >= operations_.size()) return;
    held = &operations_[next];
  }
  if (!may_transmit(*held)) return;
  const Kind kind = transfer(options_.type, held->index).kind;
  const ssize_t posted = post(*held);
  if (posted == -FI_EAGAIN) return;
  if (posted != 0) {
    check(false, std::string(traits(kind).name) + ": " + fi_strerror(static_cast<int>(-posted)));
  }
  if (!reports(kind)) end_operation(*held);
  held = nullptr;
}

// Datagrams are not lost where a receive waits for each.
bool Lane::may_transmit(const Job& job) const {
  return !is_datagram(options_.type) || job.index < peer_->posted_.load(std::memory_order_relaxed);
}

ssize_t Lane::post(Job& job) {
  const Transfer& one = transfer(options_.type, job.index);
  if (traits(one.kind).atomic) return post_atomic(job, one.kind);
  Operation operation{.kind = one.kind,
                      .length = one.length,
                      .peer = address_,
                      .tag = job.index,
                      .data = job.index};
  if (traits(one.kind).rma) {
    operation.remote_address = peer_base() + places_[job.index];
    operation.key = fi_mr_key(peer_->region_.get());
  }
  return issue(endpoint_.ep(), operation, job.buffer.data(), &job.context);
}

ssize_t Lane::post_atomic(Job& job, Kind kind) {
  fid_ep* const ep = endpoint_.ep();
  void* const result = job.buffer.data();
  const std::uint64_t key = fi_mr_key(peer_->region_.get());
  const std::uint64_t base = peer_base();
  if (kind == Kind::kAtomic) {
    return fi_atomic(ep, &kOne, 1, nullptr, address_, base + kSum, key, FI_UINT64, FI_SUM,
                     &job.context);
  }
  if (kind == Kind::kInjectAtomic) {
    return fi_inject_atomic(ep, &kOne, 1, address_, base + kSum, key, FI_UINT64, FI_SUM);
  }
  if (kind == Kind::kFetchAtomic) {
    return fi_fetch_atomic(ep, &kOne, 1, nullptr, result, nullptr, address_, base + kFetched, key,
                           FI_UINT64, FI_SUM, &job.context);
  }
  return fi_compare_atomic(ep, &kOne, 1, nullptr, &kZero, nullptr, result, nullptr, address_,
                           base + places_[job.index], key, FI_UINT64, FI_CSWAP, &job.context);
}

// The address of the peer's window, as accesses name it.
std::uint64_t Lane::peer_base() const {
  const bool is_virtual = (endpoint_.info()->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  return is_virtual ? reinterpret_cast<std::uint64_t>(peer_->window_.data()) : 0;
}

void Lane::receive(Job*& held) {
  if (held == nullptr) held = next_receive();
  if (held == nullptr) return;
  const ssize_t posted = post_receive(*held);
  if (posted == -FI_EAGAIN) return;
  check(posted == 0, "a receive is posted");
  if (held->role == Role::kCancelled) {
    check(fi_cancel(&endpoint_.ep()->fid, &held->context) == 0, "a receive is cancelled");
  }
  held = nullptr;
}

// Tagged and untagged ones in turn.
Lane::Job* Lane::next_receive() {
  const std::size_t tagged = next_tagged_.load(std::memory_order_relaxed);
  if (tagged < tagged_.size() && tagged % 2 == 0) {
    if (Job* const job = next_untagged()) return job;
  }
  if (tagged >= tagged_.size()) return next_untagged();
  const std::size_t next = next_tagged_.fetch_add(1, std::memory_order_relaxed);
  return next < tagged_.size() ? &tagged_[next] : nullptr;
}

Lane::Job* Lane::next_untagged() {
  if (claimed_.load(std::memory_order_relaxed) >= untagged_messages_) return nullptr;
  for (Job& job : untagged_) {
    if (!job.is_free.exchange(false, std::memory_order_acquire)) continue;
    if (claimed_.fetch_add(1, std::memory_order_relaxed) < untagged_messages_) return &job;
    job.is_free.store(true, std::memory_order_release);
    return nullptr;
  }
  return nullptr;
}

ssize_t Lane::post_receive(Job& job) {
  fid_ep* const ep = endpoint_.ep();
  std::uint8_t* const bytes = job.buffer.data();
  const std::size_t length = job.buffer.length();
  if (job.role != Role::kUntagged) {
    return fi_trecv(ep, bytes, length, nullptr, FI_ADDR_UNSPEC, job.index, 0, &job.context);
  }
  const ssize_t posted = fi_recv(ep, bytes, length, nullptr, FI_ADDR_UNSPEC, &job.context);
  if (posted == 0) posted_.fetch_add(1, std::memory_order_relaxed);
  return posted;
}

void Lane::read_queue(int timeout_ms) {
  std::array<fi_cq_tagged_entry, kBatch> entries{};
  fid_cq* const queue = endpoint_.cq();
  const bool may_block = endpoint_.wait_set() == nullptr && timeout_ms > 0;
  const ssize_t got = may_block ? fi_cq_sread(queue, entries.data(), kBatch, nullptr, timeout_ms)
                                : fi_cq_read(queue, entries.data(), kBatch);
  if (got == -FI_EAVAIL) return take_error();
  if (got == -FI_EAGAIN) return;
  check(got > 0, "the queue is read");
  for (ssize_t i = 0; i < got; ++i) take(entries[static_cast<std::size_t>(i)]);
}

void Lane::take(const fi_cq_tagged_entry& entry) {
  if (entry.op_context == nullptr) return check(false, "a completion has a context");
  Job& job = *reinterpret_cast<Job*>(entry.op_context);
  if (job.role == Role::kOperation) {
    end_operation(job);
    ended_.fetch_add(1, std::memory_order_relaxed);
  } else {
    check(job.role != Role::kCancelled, "a receive that was cancelled ends with an error");
    end_receive(job, entry);
  }
}

void Lane::take_error() {
  fi_cq_err_entry error{};
  const ssize_t got = fi_cq_readerr(endpoint_.cq(), &error, 0);
  if (got == -FI_EAGAIN) return;  // Another thread was faster.
  check(got == 1, "an error is read");
  if (got != 1) return;
  Job& job = *reinterpret_cast<Job*>(error.op_context);
  check(error.err == FI_ECANCELED && job.role == Role::kCancelled, fi_strerror(error.err));
  check(job.ends.fetch_add(1, std::memory_order_relaxed) == 0, "a receive ends once");
  cancelled_.fetch_add(1, std::memory_order_relaxed);
}

// From here on the buffer may change.
void Lane::end_operation(Job& job) {
  check(job.ends.fetch_add(1, std::memory_order_relaxed) == 0, "an operation ends once");
  const Transfer& one = transfer(options_.type, job.index);
  if (one.kind == Kind::kRead) {
    check(job.buffer.check_pattern(peer_->seed(job.index), 0, one.length));
  } else if (one.kind == Kind::kFetchAtomic) {
    const std::uint64_t before = word_at(job.buffer, 0);
    const bool is_new =
        before < fetched_.size() && fetched_[before].fetch_add(1, std::memory_order_relaxed) == 0;
    check(is_new, "each fetching operation finds another value");
  } else if (one.kind == Kind::kCompareAtomic) {
    check(word_at(job.buffer, 0) == kZero, "a comparing operation finds the value that was there");
  } else {
    std::memset(job.buffer.data(), 0xee, one.length);
  }
}

void Lane::end_receive(Job& job, const fi_cq_tagged_entry& entry) {
  arrived(job, entry);
  if (job.role == Role::kTagged) {
    check(job.ends.fetch_add(1, std::memory_order_relaxed) == 0, "a receive ends once");
  } else {
    job.is_free.store(true, std::memory_order_release);
  }
  received_.fetch_add(1, std::memory_order_relaxed);
}

void Lane::arrived(const Job& job, const fi_cq_tagged_entry& entry) {
  const std::uint64_t index = word_at(job.buffer, 0);
  check(index < arrivals_.size(), "a message says its number");
  if (index >= arrivals_.size()) return;
  const Transfer& one = transfer(options_.type, index);
  check(arrivals_[index].fetch_add(1, std::memory_order_relaxed) == 0, "a message arrives once");
  check(entry.len == one.length, "a message has its length");
  check(traits(one.kind).tagged == (job.role == Role::kTagged), "a message is tagged or not");
  check(!traits(one.kind).tagged || job.index == index, "a tagged message finds its receive");
  check(!traits(one.kind).data || entry.data == index, "a message carries its data");
  check(job.buffer.check_pattern(peer_->seed(index), sizeof index, one.length - sizeof index,
                                 sizeof index));
}

std::uint64_t Lane::expected(std::uint64_t event) const {
  return count(options_.type, [&](Kind kind) {
    return event == FI_RECV ? is_message(kind) : event_of(kind) == event;
  });
}

void Lane::wait_counter(std::uint64_t event, int timeout_ms) {
  fid_cntr* const counter = endpoint_.counter(event);
  if ((counted_.load(std::memory_order_relaxed) & event) != 0) {
    fi_cntr_read(counter);
    return;
  }
  const int waited = fi_cntr_wait(counter, expected(event), timeout_ms);
  // A receive that was cancelled is an error.
  check(waited == 0 || waited == -FI_ETIMEDOUT || waited == -FI_EAVAIL, "a counter is waited for");
  if (waited == 0) counted_.fetch_or(event, std::memory_order_relaxed);
}

void Lane::poll_set() {
  std::array<void*, kBatch> contexts{};
  const int got = fi_poll(poll_set_.get(), contexts.data(), kBatch);
  check(got >= 0 && got <= static_cast<int>(members_.size()), "a set is polled");
}

void Lane::wait_set(int timeout_ms) {
  const int waited = fi_wait(endpoint_.wait_set(), timeout_ms);
  check(waited == 0 || waited == -FI_ETIMEDOUT, "a set is waited for");
}

bool Lane::is_done() const {
  const std::size_t cancelled = is_datagram(options_.type) ? 0 : kCancelled;
  return ended_.load(std::memory_order_relaxed) == reporting_ &&
         received_.load(std::memory_order_relaxed) == messages_ &&
         cancelled_.load(std::memory_order_relaxed) == cancelled &&
         counted_.load(std::memory_order_relaxed) == options_.counters;
}

void Lane::verify() {
  EXPECT_TRUE(is_done()) << "operations ended: " << ended_ << ", messages received: " << received_
                         << " of " << expected(FI_RECV) << ", receives cancelled: " << cancelled_
                         << ", counters: " << counted_;
  if (!is_done()) return;
  for (const std::uint64_t event : {FI_SEND, FI_RECV, FI_READ, FI_WRITE}) {
    if ((options_.counters & event) == 0) continue;
    EXPECT_EQ(fi_cntr_read(endpoint_.counter(event)), expected(event)) << "event " << event;
  }
  for (const Job& job : operations_) EXPECT_EQ(job.ends, 1u) << "operation " << job.index;
  if (is_datagram(options_.type)) return;
  EXPECT_EQ(fi_cntr_readerr(endpoint_.counter(FI_RECV)), kCancelled);
  EXPECT_EQ(word_at(window_, kSum), count(options_.type, [](Kind kind) {
              return kind == Kind::kAtomic || kind == Kind::kInjectAtomic;
            }));
  for (std::size_t i = 0; i < operations_.size(); ++i) verify_place(i);
}

void Lane::verify_place(std::size_t index) {
  const Transfer& one = transfer(options_.type, index);
  const std::size_t place = places_[index];
  if (one.kind == Kind::kWrite || one.kind == Kind::kInjectWrite) {
    EXPECT_EQ(window_.check_pattern(peer_->seed(index), place, one.length), "");
  } else if (one.kind == Kind::kCompareAtomic) {
    EXPECT_EQ(word_at(window_, place), kOne);
  }
}

void Lane::check(bool holds, std::string_view rule) {
  if (holds) return;
  failed_.store(true, std::memory_order_relaxed);
  ADD_FAILURE() << "lane " << number_ << ": " << rule;
}

}  // namespace weft::conformance
