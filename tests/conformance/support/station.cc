// SPDX-License-Identifier: BSD-2-Clause
// How are the objects of one side opened, and which call blocks for which wait object?
#include "station.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "channel.h"
#include "native_wait.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kCounted[] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE};
constexpr std::size_t kLeastRoom = 64;  // of buffers that take several messages
constexpr std::size_t kBatch = 16;

fi_wait_obj object_of(Wait wait) {
  switch (wait) {
    case Wait::kNone:
      return FI_WAIT_NONE;
    case Wait::kUnspec:
    case Wait::kCounter:
      return FI_WAIT_UNSPEC;
    case Wait::kFd:
      return FI_WAIT_FD;
    case Wait::kMutexCond:
      return FI_WAIT_MUTEX_COND;
    case Wait::kYield:
      return FI_WAIT_YIELD;
    case Wait::kSet:
      return FI_WAIT_SET;
  }
  return FI_WAIT_NONE;
}

bool is_native(Wait wait) { return wait == Wait::kFd || wait == Wait::kMutexCond; }

int patience_ms() { return static_cast<int>(patience().count()); }

}  // namespace

Station::Station(std::shared_ptr<Domain> domain, const Point& point, std::size_t partners)
    : domain_(std::move(domain)), point_(point), lines_(partners) {
  if (!domain_->ok() || !open_reports()) return;
  if (point_.type == FI_EP_MSG) {
    ok_ = open_listener();
    return;
  }
  fi_av_attr attributes{};
  addresses_ = open_fid<fid_av>(
      [&](fid_av** out) { return fi_av_open(domain_->get(), &attributes, out, nullptr); });
  endpoint_ = addresses_ != nullptr ? open_endpoint(domain_->info()) : nullptr;
  for (Line& line : lines_) line.endpoint = endpoint_.get();
  ok_ = endpoint_ != nullptr;
}

bool Station::open_reports() {
  const fi_wait_obj object = object_of(point_.wait);
  if (object == FI_WAIT_SET) {
    fi_wait_attr attributes{FI_WAIT_UNSPEC, 0};
    set_ = open_fid<fid_wait>(
        [&](fid_wait** out) { return fi_wait_open(domain_->fabric(), &attributes, out); });
    if (set_ == nullptr) return false;
  }
  fi_cq_attr queue{};
  queue.format = FI_CQ_FORMAT_TAGGED;
  queue.wait_obj = point_.wait == Wait::kCounter ? FI_WAIT_NONE : object;
  queue.wait_set = set_.get();
  queue_ = open_fid<fid_cq>(
      [&](fid_cq** out) { return fi_cq_open(domain_->get(), &queue, out, nullptr); });
  fi_cntr_attr counter{};
  counter.events = FI_CNTR_EVENTS_COMP;
  counter.wait_obj = object;
  counter.wait_set = set_.get();
  for (const std::uint64_t event : kCounted) {
    counters_[event] = open_fid<fid_cntr>(
        [&](fid_cntr** out) { return fi_cntr_open(domain_->get(), &counter, out, nullptr); });
    if (counters_[event] == nullptr) return false;
  }
  return queue_ != nullptr;
}

bool Station::open_listener() {
  fid_fabric* const fabric = domain_->fabric();
  fi_eq_attr attributes{};
  events_ =
      open_fid<fid_eq>([&](fid_eq** out) { return fi_eq_open(fabric, &attributes, out, nullptr); });
  listener_ = open_fid<fid_pep>(
      [&](fid_pep** out) { return fi_passive_ep(fabric, domain_->info(), out, nullptr); });
  if (events_ == nullptr || listener_ == nullptr) return false;
  int rc = fi_pep_bind(listener_.get(), &events_->fid, 0);
  if (rc == 0) rc = fi_listen(listener_.get());
  EXPECT_EQ(rc, 0) << "listening: " << fi_strerror(-rc);
  return rc == 0;
}

Fid<fid_ep> Station::open_endpoint(fi_info* info) {
  const std::uint64_t selective =
      point_.report == Report::kSelected || point_.report == Report::kSilent
          ? FI_SELECTIVE_COMPLETION
          : 0;
  Fid<fid_ep> opened = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_endpoint(domain_->get(), info, out, nullptr); });
  if (opened == nullptr) return opened;
  int rc = fi_ep_bind(opened.get(), &queue_->fid, FI_TRANSMIT | FI_RECV | selective);
  if (rc == 0 && addresses_ != nullptr) rc = fi_ep_bind(opened.get(), &addresses_->fid, 0);
  if (rc == 0 && events_ != nullptr) rc = fi_ep_bind(opened.get(), &events_->fid, 0);
  for (const auto& [event, counter] : counters_) {
    if (rc == 0) rc = fi_ep_bind(opened.get(), &counter->fid, event);
  }
  if (rc == 0) rc = fi_enable(opened.get());
  if (rc == 0) {
    rc = fi_setopt(&opened->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &kLeastRoom,
                   sizeof kLeastRoom);
  }
  EXPECT_EQ(rc, 0) << "opening an endpoint: " << fi_strerror(-rc);
  return rc == 0 ? std::move(opened) : nullptr;
}

Address Station::name() const {
  Address address;
  address.size = address.bytes.size();
  fid* const named = listener_ != nullptr ? &listener_->fid : &endpoint_->fid;
  EXPECT_EQ(fi_getname(named, address.bytes.data(), &address.size), 0);
  return address;
}

void Station::insert(std::size_t partner, const Address& address) {
  EXPECT_EQ(
      fi_av_insert(addresses_.get(), address.bytes.data(), 1, &lines_[partner].address, 0, nullptr),
      1);
  lines_[partner].connected = true;
}

void Station::connect(std::size_t own_number, const Address& address) {
  Line& line = lines_[0];
  line.own = open_endpoint(domain_->info());
  line.endpoint = line.own.get();
  if (line.endpoint == nullptr) return;
  const std::uint64_t number = own_number;
  EXPECT_EQ(fi_connect(line.endpoint, address.bytes.data(), &number, sizeof number), 0);
}

bool Station::met() const {
  return std::all_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.connected; });
}

void Station::read_events() {
  alignas(fi_eq_cm_entry) std::array<std::uint8_t, sizeof(fi_eq_cm_entry) + 64> raw{};
  std::uint32_t what = 0;
  const ssize_t got = fi_eq_read(events_.get(), &what, raw.data(), raw.size(), 0);
  if (got == -FI_EAGAIN) return;
  EXPECT_GE(got, static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) << "fi_eq_read";
  if (got < 0) return;
  fi_eq_cm_entry entry{};
  std::memcpy(&entry, raw.data(), sizeof entry);
  std::uint64_t number = 0;
  std::memcpy(&number, raw.data() + sizeof entry, sizeof number);
  heed(what, entry, number);
}

void Station::heed(std::uint32_t what, const fi_eq_cm_entry& entry, std::uint64_t number) {
  if (what == FI_CONNREQ) {
    const Info info(entry.info);
    ASSERT_LT(number, lines_.size());
    Line& line = lines_[number];
    line.own = open_endpoint(info.get());
    line.endpoint = line.own.get();
    ASSERT_NE(line.endpoint, nullptr);
    EXPECT_EQ(fi_accept(line.endpoint, nullptr, 0), 0);
    return;
  }
  for (Line& line : lines_) {
    if (line.own != nullptr && entry.fid == &line.own->fid) line.connected = what == FI_CONNECTED;
  }
}

bool Station::take(ssize_t got, const fi_cq_tagged_entry* entries) {
  if (got == -FI_EAGAIN || got == -FI_EINTR) return false;
  if (got == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    EXPECT_EQ(fi_cq_readerr(queue_.get(), &error, 0), 1);
    Completion completion;
    completion.context = error.op_context;
    completion.flags = error.flags;
    completion.err = error.err;
    ++completions_;
    handler_(completion);
    return true;
  }
  EXPECT_GT(got, 0) << "reading the queue: " << fi_strerror(static_cast<int>(-got));
  for (ssize_t i = 0; i < got; ++i) {
    ++completions_;
    handler_(completion_of(entries[i]));
  }
  return got > 0;
}

bool Station::read_queue() {
  std::array<fi_cq_tagged_entry, kBatch> entries{};
  return take(fi_cq_read(queue_.get(), entries.data(), kBatch), entries.data());
}

void Station::progress() {
  if (events_ != nullptr) read_events();
  if (!read_queue()) sched_yield();
}

// False when nothing came in time.
bool Station::block_on_queue() {
  std::array<fi_cq_tagged_entry, kBatch> entries{};
  switch (point_.wait) {
    case Wait::kNone:
    case Wait::kCounter:
      sched_yield();
      return true;
    case Wait::kUnspec:
    case Wait::kYield:
      return take(fi_cq_sread(queue_.get(), entries.data(), kBatch, nullptr, patience_ms()),
                  entries.data());
    case Wait::kFd:
    case Wait::kMutexCond: {
      const int rc =
          block_on(domain_->fabric(), &queue_->fid, object_of(point_.wait), patience_ms());
      return rc == 0 || rc == -FI_EAGAIN;
    }
    case Wait::kSet: {
      // What is news of a counter must be read, too, or the set has always some.
      for (const auto& entry : counters_) fi_cntr_read(entry.second.get());
      return fi_wait(set_.get(), patience_ms()) == 0;
    }
  }
  return false;
}

bool Station::block_on_counter(fid_cntr* counter, std::uint64_t value) {
  if (is_native(point_.wait)) {
    const int rc =
        block_on(domain_->fabric(), &counter->fid, object_of(point_.wait), patience_ms());
    return rc == 0 || rc == -FI_EAGAIN;
  }
  if (point_.wait == Wait::kNone) return true;
  if (point_.wait != Wait::kSet) return fi_cntr_wait(counter, value, patience_ms()) == 0;
  read_queue();
  for (const auto& entry : counters_) fi_cntr_read(entry.second.get());
  return fi_cntr_read(counter) >= value || fi_wait(set_.get(), patience_ms()) == 0;
}

bool Station::wait_completions(std::size_t count) {
  const auto end = std::chrono::steady_clock::now() + patience();
  while (completions_ < count) {
    if (read_queue()) continue;
    if (completions_ < count && !block_on_queue()) return completions_ >= count;
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

bool Station::wait_counter(std::uint64_t event, std::uint64_t value) {
  fid_cntr* const counter = counters_.at(event).get();
  const auto end = std::chrono::steady_clock::now() + patience();
  while (fi_cntr_read(counter) < value) {
    if (!block_on_counter(counter, value) || std::chrono::steady_clock::now() > end) return false;
    if (point_.wait == Wait::kNone) sched_yield();
  }
  return true;
}

}  // namespace weft::conformance
