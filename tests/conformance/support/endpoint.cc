// SPDX-License-Identifier: BSD-2-Clause
// How is an endpoint put together, and how are completions of any format collected?
#include "endpoint.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "channel.h"

namespace weft::conformance {
namespace {

constexpr std::array<std::uint64_t, 6> kCountable{FI_SEND,  FI_RECV,        FI_READ,
                                                  FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
constexpr std::size_t kBatch = 16;
constexpr int kSettlingPolls = 200;

std::size_t entry_size(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_CONTEXT:
      return sizeof(fi_cq_entry);
    case FI_CQ_FORMAT_MSG:
      return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
      return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
      return sizeof(fi_cq_tagged_entry);
    case FI_CQ_FORMAT_UNSPEC:
      break;
  }
  return sizeof(fi_cq_tagged_entry);
}

// Each format is a prefix of the next one, so a zeroed tagged entry can hold any of them.
Completion decode(const std::uint8_t* raw, std::size_t size) {
  fi_cq_tagged_entry entry{};
  std::memcpy(&entry, raw, size);
  return completion_of(entry);
}

// docs/user/reasons.md: which key or descriptor, and why, in words.
void expect_explained(fid_cq* cq, const fi_cq_err_entry& entry, bool old) {
  constexpr int kRefusals = 1 << 16;
  EXPECT_EQ(entry.err_data != nullptr, entry.prov_errno > kRefusals);
  if (entry.err_data == nullptr) return;
  const std::string text = static_cast<const char*>(entry.err_data);
  EXPECT_EQ(entry.err_data_size, old ? 0 : text.size() + 1);
  // An operation whose endpoint may not reach its peer at all is named itself.
  const bool names =
      text.starts_with("key 0x") || text.starts_with("descriptor 0x") || text.starts_with("send: ");
  EXPECT_TRUE(names) << text;
  EXPECT_EQ(text, fi_cq_strerror(cq, entry.prov_errno, entry.err_data, nullptr, 0));
  const char* const rule = fi_cq_strerror(cq, entry.prov_errno, nullptr, nullptr, 0);
  EXPECT_STRNE(rule, "unknown refusal") << entry.prov_errno;
}

}  // namespace

Completion completion_of(const fi_cq_tagged_entry& entry) {
  Completion c;
  c.context = entry.op_context;
  c.flags = entry.flags;
  c.length = entry.len;
  c.data = entry.data;
  c.tag = entry.tag;
  return c;
}

Completion completion_of(const fi_cq_err_entry& entry) {
  Completion c;
  c.context = entry.op_context;
  c.flags = entry.flags;
  c.length = entry.len;
  c.data = entry.data;
  c.tag = entry.tag;
  c.overflow = entry.olen;
  c.err = entry.err;
  c.prov_errno = entry.prov_errno;
  return c;
}

Endpoint::Endpoint(std::shared_ptr<Domain> domain, const Options& options, fid_av* av, fid_cq* cq)
    : options_(options), domain_(std::move(domain)), given_av_(av), given_cq_(cq) {
  if (!domain_->ok() || !open_queues()) return;
  if (options_.type == FI_EP_MSG) {
    if (!open_passive()) pep_.reset();
  } else {
    open_active(info());
  }
}

bool Endpoint::open_active(fi_info* info) {
  ep_ = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_endpoint(domain_->get(), info, out, nullptr); });
  if (ep_ != nullptr && !bind_and_enable()) ep_.reset();
  return ep_ != nullptr;
}

bool Endpoint::open_passive() {
  fid_fabric* fabric = domain_->fabric();
  fi_eq_attr attributes{};
  eq_ =
      open_fid<fid_eq>([&](fid_eq** out) { return fi_eq_open(fabric, &attributes, out, nullptr); });
  pep_ =
      open_fid<fid_pep>([&](fid_pep** out) { return fi_passive_ep(fabric, info(), out, nullptr); });
  if (eq_ == nullptr || pep_ == nullptr) return false;
  int rc = fi_pep_bind(pep_.get(), &eq_->fid, 0);
  if (rc == 0) rc = fi_listen(pep_.get());
  EXPECT_EQ(rc, 0) << "listening: " << fi_strerror(-rc);
  return rc == 0;
}

void Endpoint::connect(const Address& address) {
  if (!open_active(info())) return;
  EXPECT_EQ(fi_connect(ep(), address.bytes.data(), nullptr, 0), 0);
}

bool Endpoint::accept() {
  if (request_ == nullptr) return false;
  const Info request = std::move(request_);
  if (!open_active(request.get())) return true;
  EXPECT_EQ(fi_accept(ep(), nullptr, 0), 0);
  return true;
}

void Endpoint::read_events() {
  fi_eq_cm_entry entry{};
  std::uint32_t event = 0;
  const ssize_t got = fi_eq_read(eq(), &event, &entry, sizeof entry, 0);
  if (got == -FI_EAGAIN) return;
  if (got == -FI_EAVAIL) return tell_of_failed_connection();
  EXPECT_EQ(got, static_cast<ssize_t>(sizeof entry)) << "fi_eq_read";
  if (got < 0) return;
  if (event == FI_CONNREQ) request_.reset(entry.info);
  if (event == FI_CONNECTED) connected_ = true;
}

void Endpoint::tell_of_failed_connection() {
  fi_eq_err_entry entry{};
  const ssize_t got = fi_eq_readerr(eq(), &entry, 0);
  EXPECT_EQ(got, static_cast<ssize_t>(sizeof entry)) << "fi_eq_readerr after -FI_EAVAIL";
  ADD_FAILURE() << "the connection failed: " << fi_strerror(entry.err);
}

bool Endpoint::open_queues() {
  fi_av_attr av{};
  av.type = options_.av_type;
  av_ =
      open_fid<fid_av>([&](fid_av** out) { return fi_av_open(domain_->get(), &av, out, nullptr); });
  if ((options_.caps & FI_MULTICAST) != 0) {
    fi_eq_attr eq{};
    eq_ = open_fid<fid_eq>(
        [&](fid_eq** out) { return fi_eq_open(domain_->fabric(), &eq, out, nullptr); });
    if (eq_ == nullptr) return false;
  }
  if (options_.wait == FI_WAIT_SET || options_.counter_wait == FI_WAIT_SET) {
    set_ = open_wait_set(domain_->fabric());
    if (set_ == nullptr) return false;
  }
  if (!open_completion_queue()) return false;
  fi_cntr_attr cntr{};
  cntr.events = FI_CNTR_EVENTS_COMP;
  cntr.wait_obj = options_.counter_wait;
  cntr.wait_set = set_.get();
  for (const std::uint64_t event : kCountable) {
    if ((options_.counters & event) == 0) continue;
    counters_[event] = open_fid<fid_cntr>(
        [&](fid_cntr** out) { return fi_cntr_open(domain_->get(), &cntr, out, nullptr); });
    if (counters_[event] == nullptr) return false;
  }
  return av_ != nullptr;
}

bool Endpoint::open_completion_queue() {
  if (options_.queueless || given_cq_ != nullptr) return true;
  fi_cq_attr cq{};
  cq.format = options_.format;
  cq.wait_obj = options_.wait;
  cq.wait_set = set_.get();
  cq.wait_cond = options_.threshold ? FI_CQ_COND_THRESHOLD : FI_CQ_COND_NONE;
  cq.size = options_.cq_size;
  cq_ =
      open_fid<fid_cq>([&](fid_cq** out) { return fi_cq_open(domain_->get(), &cq, out, nullptr); });
  return cq_ != nullptr;
}

bool Endpoint::bind_and_enable() {
  int rc = options_.type != FI_EP_MSG ? fi_ep_bind(ep(), &av()->fid, 0) : 0;
  if (rc == 0 && cq() != nullptr) {
    rc = fi_ep_bind(ep(), &cq()->fid, FI_TRANSMIT | FI_RECV | options_.cq_flags);
  }
  if (rc == 0 && eq_ != nullptr) rc = fi_ep_bind(ep(), &eq_->fid, 0);
  fid_stx* const transmit = domain_->shared_transmit();
  if (rc == 0 && transmit != nullptr) rc = fi_ep_bind(ep(), &transmit->fid, 0);
  fid_ep* const receive = domain_->shared_receive();
  if (rc == 0 && receive != nullptr) rc = fi_ep_bind(ep(), &receive->fid, 0);
  for (auto& [event, cntr] : counters_) {
    if (rc == 0) rc = fi_ep_bind(ep(), &cntr->fid, event);
  }
  if (rc == 0) rc = fi_enable(ep());
  EXPECT_EQ(rc, 0) << "binding and enabling an endpoint: " << fi_strerror(-rc);
  return rc == 0;
}

Address Endpoint::name() const {
  Address address;
  address.size = address.bytes.size();
  fid* const named = pep_ != nullptr ? &pep_->fid : &ep_->fid;
  EXPECT_EQ(fi_getname(named, address.bytes.data(), &address.size), 0);
  return address;
}

fi_addr_t Endpoint::insert(const Address& address) {
  fi_addr_t result = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insert(av(), address.bytes.data(), 1, &result, 0, nullptr), 1);
  return result;
}

ssize_t Endpoint::read_queue(void* entries, std::size_t count, fi_addr_t* sources) {
  if ((options_.caps & FI_SOURCE) != 0) return fi_cq_readfrom(cq(), entries, count, sources);
  return fi_cq_read(cq(), entries, count);
}

void Endpoint::poll() {
  if (options_.type == FI_EP_MSG) read_events();
  for (const auto& [event, cntr] : counters_) {
    if (cq() == nullptr) fi_cntr_read(cntr.get());
  }
  read_completions();
}

void Endpoint::read_completions() {
  if (cq() == nullptr) return;
  alignas(fi_cq_tagged_entry) std::array<std::uint8_t, kBatch * sizeof(fi_cq_tagged_entry)> raw;
  std::array<fi_addr_t, kBatch> sources;
  sources.fill(FI_ADDR_NOTAVAIL);
  const ssize_t got = read_queue(raw.data(), kBatch, sources.data());
  if (got == -FI_EAVAIL) return keep_error();
  if (got == -FI_EAGAIN) return;
  EXPECT_GT(got, 0) << "fi_cq_read: " << fi_strerror(static_cast<int>(-got));
  const std::size_t size = entry_size(options_.format);
  for (ssize_t i = 0; i < got; ++i) {
    arrived_.push_back(decode(raw.data() + static_cast<std::size_t>(i) * size, size));
    arrived_.back().source = sources[static_cast<std::size_t>(i)];
  }
}

void Endpoint::keep_error() {
  fi_cq_err_entry entry{};
  const ssize_t got = fi_cq_readerr(cq(), &entry, 0);
  EXPECT_EQ(got, 1) << "fi_cq_readerr after -FI_EAVAIL";
  if (got != 1) return;
  EXPECT_GT(entry.err, 0) << "an error entry carries a positive error code";
  if (provider_name() == "weft") expect_explained(cq(), entry, options_.api < FI_VERSION(1, 5));
  arrived_.push_back(completion_of(entry));
}

std::optional<Completion> Endpoint::take(const void* context) {
  const auto found = std::find_if(arrived_.begin(), arrived_.end(),
                                  [&](const Completion& c) { return c.context == context; });
  if (found == arrived_.end()) return std::nullopt;
  const Completion c = *found;
  arrived_.erase(found);
  return c;
}

std::optional<Completion> Endpoint::take_error() {
  const auto found = std::find_if(arrived_.begin(), arrived_.end(),
                                  [](const Completion& c) { return c.err != 0; });
  if (found == arrived_.end()) return std::nullopt;
  const Completion c = *found;
  arrived_.erase(found);
  return c;
}

std::uint64_t Endpoint::next_key() {
  static std::atomic<std::uint64_t> key{0x1000};
  return key++;
}

void Pump::once() const {
  if (instead_ != nullptr) {
    instead_();
  } else {
    for (Endpoint* endpoint : endpoints_) endpoint->poll();
    for (fid_cntr* counter : counters_) fi_cntr_read(counter);
  }
  sched_yield();
}

void Pump::settle() const {
  for (int i = 0; i < kSettlingPolls; ++i) once();
}

bool Pump::until(const std::function<bool()>& done, std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    once();
  }
  return true;
}

}  // namespace weft::conformance
