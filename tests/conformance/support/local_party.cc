// SPDX-License-Identifier: BSD-2-Clause
// How are operations posted, awaited and verified on a side of this process?
#include "local_party.h"

#include <gtest/gtest.h>
#include <rdma/fi_trigger.h>

#include <chrono>
#include <cstring>

#include "channel.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kScribble = 0xDEADBEEF;

Reply with_text(const std::string& text) {
  Reply reply;
  std::strncpy(reply.text.data(), text.c_str(), reply.text.size() - 1);
  return reply;
}

Reply with_value(std::uint64_t value) {
  Reply reply;
  reply.value = value;
  return reply;
}

Reply with_rc(std::int64_t rc) {
  Reply reply;
  reply.rc = rc;
  return reply;
}

bool has_source(Kind kind) { return !traits(kind).receive && !traits(kind).read; }

}  // namespace

LocalParty::LocalParty(std::shared_ptr<Domain> domain, const Options& options, Pump* pump)
    : pump_(pump), endpoint_(std::move(domain), options) {
  if (ok() && !options.left_alone) pump_->add(&endpoint_);
}

LocalParty::~LocalParty() {
  pump_->remove(&endpoint_);
  for (auto& [token, exposed] : regions_) pump_->remove(exposed->counter.get());
}

Reply LocalParty::call(const Request& r) {
  Reply reply;
  switch (r.what) {
    case Request::What::kName:
      reply.address = endpoint_.name();
      return reply;
    case Request::What::kInsert:
      return with_value(endpoint_.insert(r.address));
    case Request::What::kConnect:
      endpoint_.connect(r.address);
      return reply;
    case Request::What::kAccept:
      return do_accept();
    case Request::What::kPost:
      return do_post(r.operation, kNoToken);
    case Request::What::kWait:
      return do_wait(r.token, r.limit_ms == 0 ? patience() : std::chrono::milliseconds(r.limit_ms));
    case Request::What::kCheck:
      return do_check(r);
    case Request::What::kExpose:
      return do_expose(r.region);
    case Request::What::kCheckRegion:
      return do_check_region(r);
    case Request::What::kCloseRegion:
      return with_rc(fi_close(&regions_.at(r.token)->mr.release()->fid));
    case Request::What::kMapKey:
      return do_map_key(r.other_region);
    case Request::What::kUnmapKey:
      return with_rc(fi_mr_unmap_key(endpoint_.domain()->get(), r.key));
    case Request::What::kCounter:
      return with_value(fi_cntr_read(endpoint_.counter(r.token)));
    case Request::What::kCounterError:
      return with_value(fi_cntr_readerr(endpoint_.counter(r.token)));
    case Request::What::kWaitCounter:
      return do_wait_counter(endpoint_.counter(r.token), r.count);
    case Request::What::kWaitRegionCounter:
      return do_wait_counter(regions_.at(r.token)->counter.get(), r.count);
    case Request::What::kCancel:
      return with_rc(fi_cancel(&endpoint_.ep()->fid, context_of(r.token)));
    case Request::What::kLeftovers:
      return do_leftovers();
    case Request::What::kGoodbye:
      return reply;
  }
  return reply;
}

// A listener must be polled, even if its endpoints are left alone later.
Reply LocalParty::do_accept() {
  const bool left_alone = endpoint_.options().left_alone;
  if (left_alone) pump_->add(&endpoint_);
  const bool accepted = pump_->until([&] { return endpoint_.accept(); }) &&
                        pump_->until([&] { return endpoint_.connected(); });
  if (left_alone) pump_->remove(&endpoint_);
  return with_text(accepted ? "" : "no connection came about");
}

Posted LocalParty::post_with_context(const Operation& operation, Token same_context_as) {
  const Reply reply = do_post(operation, same_context_as);
  return {reply.rc, reply.value};
}

Reply LocalParty::do_post(const Operation& operation, Token context) {
  const Token token = next_token_++;
  Slot& slot = *(slots_[token] = std::make_unique<Slot>(operation));
  if (has_source(operation.kind)) slot.buffer.fill(operation.seed, 0, operation.length);
  const auto start = std::chrono::steady_clock::now();
  const auto pause = std::chrono::microseconds(operation.delay_us);
  pump_->until([&] { return std::chrono::steady_clock::now() - start >= pause; });
  void* const ctx = context == kNoToken ? &slot.context : context_of(context);
  if ((operation.flags & FI_TRIGGER) != 0) fill_context(slot);
  Reply reply;
  pump_->until([&] {
    reply.rc = issue(endpoint_.ep(), operation, slot.buffer.data(), ctx);
    return reply.rc != -FI_EAGAIN;
  });
  reply.value = token;
  const bool injected = traits(operation.kind).inject || (operation.flags & FI_INJECT) != 0;
  if (injected) let_source_go(&slot);
  return reply;
}

void LocalParty::fill_context(Slot& slot) {
  fi_triggered_context triggered{};
  triggered.event_type = FI_TRIGGER_THRESHOLD;
  triggered.trigger.threshold.cntr = endpoint_.counter(slot.operation.trigger);
  triggered.trigger.threshold.threshold = slot.operation.threshold;
  static_assert(sizeof triggered <= sizeof slot.context);
  std::memcpy(&slot.context, &triggered, sizeof triggered);
}

// From here on the application may reuse the source buffer, so what it writes must not be sent.
void LocalParty::let_source_go(Slot* slot) {
  if (has_source(slot->operation.kind)) slot->buffer.fill(kScribble, 0, slot->operation.length);
}

Reply LocalParty::do_wait(Token token, std::chrono::milliseconds limit) {
  Reply reply;
  const void* context = token == kNoToken ? nullptr : context_of(token);
  const bool left_alone = endpoint_.options().left_alone;
  if (left_alone) pump_->add(&endpoint_);
  std::optional<Completion> c;
  reply.arrived = pump_->until([&] { return (c = endpoint_.take(context)).has_value(); }, limit);
  if (left_alone) pump_->remove(&endpoint_);
  if (!reply.arrived) {
    return with_text("Completions with other contexts: " + std::to_string(endpoint_.untaken()));
  }
  reply.completion = *c;
  if (token != kNoToken) let_source_go(slots_.at(token).get());
  return reply;
}

Reply LocalParty::do_check(const Request& r) {
  const GuardedBuffer& buffer = slots_.at(r.token)->buffer;
  std::string bad = buffer.check_pattern(r.seed, 0, r.count, r.offset);
  if (bad.empty()) bad = buffer.check_blank(r.count, buffer.length() - r.count);
  if (bad.empty()) bad = buffer.check_guards();
  return with_text(bad);
}

Reply LocalParty::do_expose(const RegionSpec& spec) {
  Reply reply;
  Region& region = reply.region;
  region.token = next_token_++;
  Exposed& exposed = *(regions_[region.token] = std::make_unique<Exposed>(spec));
  if (spec.seed != 0) exposed.buffer.fill(spec.seed, 0, spec.length);
  fid_mr* mr = nullptr;
  std::vector<iovec> segments;
  const std::size_t part = spec.length / spec.segments;
  for (std::uint32_t i = spec.segments; i-- != 0;) {
    segments.push_back({exposed.buffer.data() + i * part, part});
  }
  region.rc = fi_mr_regv(endpoint_.domain()->get(), segments.data(), segments.size(), spec.access,
                         0, Endpoint::next_key(), 0, &mr, nullptr);
  if (region.rc != 0) return reply;
  exposed.mr.reset(mr);
  if (spec.counts != 0) region.rc = bind_counter(exposed, spec.counts);
  region.key = fi_mr_key(mr);
  region.length = spec.length;
  const int mode = endpoint_.info()->domain_attr->mr_mode;
  const bool by_address = mode == FI_MR_BASIC || (mode & FI_MR_VIRT_ADDR) != 0;
  region.base = by_address ? reinterpret_cast<std::uintptr_t>(segments[0].iov_base) : 0;
  region.raw_size = region.raw_key.size();
  if (fi_mr_raw_attr(mr, &region.raw_base, region.raw_key.data(), &region.raw_size, 0) != 0)
    region.raw_size = 0;
  return reply;
}

Reply LocalParty::do_map_key(Region region) {
  Reply reply;
  reply.rc = fi_mr_map_raw(endpoint_.domain()->get(), region.raw_base, region.raw_key.data(),
                           region.raw_size, &reply.value, 0);
  return reply;
}

int LocalParty::bind_counter(Exposed& exposed, std::uint64_t events) {
  fi_cntr_attr attributes{};
  exposed.counter = open_fid<fid_cntr>([&](fid_cntr** out) {
    return fi_cntr_open(endpoint_.domain()->get(), &attributes, out, nullptr);
  });
  pump_->add(exposed.counter.get());
  return fi_mr_bind(exposed.mr.get(), &exposed.counter->fid, events);
}

Reply LocalParty::do_check_region(const Request& r) {
  const GuardedBuffer& buffer = regions_.at(r.token)->buffer;
  std::string bad = r.seed == 0 ? buffer.check_blank(r.offset, r.count)
                                : buffer.check_pattern(r.seed, r.offset, r.count);
  if (bad.empty()) bad = buffer.check_guards();
  return with_text(bad);
}

Reply LocalParty::do_wait_counter(fid_cntr* cntr, std::uint64_t value) {
  pump_->until([&] { return fi_cntr_read(cntr) >= value; });
  return with_value(fi_cntr_read(cntr));
}

Reply LocalParty::do_leftovers() {
  pump_->settle();
  return with_value(endpoint_.untaken());
}

}  // namespace weft::conformance
