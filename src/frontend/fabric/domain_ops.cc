// SPDX-License-Identifier: BSD-2-Clause
// Which interfaces of its own does a domain offer, and which of its operations may be replaced?
#include <rdma/fi_ext_weft.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "av.h"
#include "cq.h"
#include "domain.h"
#include "ep.h"
#include "operations.h"

namespace weft::fabric {
namespace {

// A structure of a program, which may be of another version.
template <class Stats>
void copy_out(const Stats& stats, void* to, std::size_t size) {
  std::memcpy(to, &stats, std::min(size, sizeof stats));
  if (size > sizeof stats)
    std::memset(static_cast<char*>(to) + sizeof stats, 0, size - sizeof stats);
}

// A list of a program, with room for so many entries of that size.
class List {
 public:
  List(void* entries, std::size_t size, std::size_t* count)
      : next_(static_cast<char*>(entries)), size_(size), count_(count) {}

  bool valid() const {
    return size_ != 0 && count_ != nullptr && (next_ != nullptr || *count_ == 0);
  }
  template <class Entry>
  void add(const Entry& entry) {
    if (found_++ >= *count_) return;
    copy_out(entry, next_, size_);
    next_ += size_;
  }
  // The result of the call.
  int end() {
    const bool fits = found_ <= *count_;
    *count_ = found_;
    return fits ? 0 : -FI_ETOOSMALL;
  }

 private:
  char* next_;
  const std::size_t size_;
  std::size_t* const count_;
  std::size_t found_ = 0;
};

int read(fid_domain* fid, fi_weft_domain_stats* out, std::size_t size) {
  if (fid == nullptr || out == nullptr || size == 0) return -FI_EINVAL;
  Domain& domain = Domain::from(fid);
  Stats sum;
  domain.port_totals()->add_to(sum);
  fi_weft_domain_stats stats{};
  const DomainPlaces& places = domain.places();
  stats.regions = places.regions.taken();
  stats.endpoints = places.endpoints.taken();
  stats.completion_queues = places.queues.taken();
  stats.counters = places.counters.taken();
  stats.address_vectors = domain.address_vectors().count();
  stats.packets_sent = sum.of(Stat::kPacketsSent);
  stats.packets_received = sum.sum(Stat::kConnectionMessages, Stat::kCnpsHandled);
  stats.retransmissions = sum.of(Stat::kRetransmissions);
  stats.ack_timeouts = sum.of(Stat::kAckTimeouts);
  stats.packets_dropped = sum.dropped() + sum.of(Stat::kSocketOverflows);
  stats.datagrams_dropped = sum.sum(Stat::kDatagramsNoPeer, Stat::kDatagramsNoMemory);
  stats.refused_operations = sum.refused();
  stats.refused_requests = sum.of(Stat::kRefusedRequests);
  copy_out(stats, out, size);
  return 0;
}

int list_counters(const Stats& stats, List list) {
  for (std::size_t i = 0; i < kStats; ++i) {
    const auto stat = static_cast<Stat>(i);
    list.add(fi_weft_counter{name_of(stat).data(), stats.of(stat)});
  }
  return list.end();
}

int counters(fid_domain* fid, fi_weft_counter* entries, std::size_t* count) {
  const List list(entries, sizeof *entries, count);
  if (fid == nullptr || !list.valid()) return -FI_EINVAL;
  Stats sum;
  Domain::from(fid).port_totals()->add_to(sum);
  return list_counters(sum, list);
}

int process_counters(fid_domain* fid, fi_weft_counter* entries, std::size_t* count) {
  const List list(entries, sizeof *entries, count);
  if (fid == nullptr || !list.valid()) return -FI_EINVAL;
  return list_counters(Domain::from(fid).device()->stats().of_process(), list);
}

int endpoint_counters(fid_ep* fid, fi_weft_counter* entries, std::size_t* count) {
  const List list(entries, sizeof *entries, count);
  if (!list.valid() || fid == nullptr || fid->fid.fclass != FI_CLASS_EP) return -FI_EINVAL;
  return Ep::from(fid).inspect([&](messaging::Endpoint* core) {
    return core != nullptr ? list_counters(core->stats(), list) : list_counters(Stats(), list);
  });
}

int queues(fid_domain* fid, fi_weft_cq_stats* entries, std::size_t size, std::size_t* count) {
  List list(entries, size, count);
  if (fid == nullptr || !list.valid()) return -FI_EINVAL;
  Domain::from(fid).queues().each([&](Cq& cq) {
    const device::CompletionQueue::Fill fill = cq.queue().fill();
    list.add(
        fi_weft_cq_stats{&cq, cq.queue().limit(), fill.queued, fill.added, cq.queue().errors()});
  });
  return list.end();
}

fi_weft_ep_stats stats_of(Ep& ep) {
  fi_weft_ep_stats stats{};
  stats.ep = &ep;
  stats.type = static_cast<std::uint32_t>(ep.offer()->type);
  ep.inspect([&](messaging::Endpoint* core) {
    if (core == nullptr) return;
    const messaging::Endpoint::Load load = core->load();
    stats.enabled = 1;
    stats.destinations = load.destinations;
    stats.sources = load.sources;
    stats.receives = load.receives;
    stats.kept_bytes = load.kept_bytes;
  });
  return stats;
}

int endpoints(fid_domain* fid, fi_weft_ep_stats* entries, std::size_t size, std::size_t* count) {
  List list(entries, size, count);
  if (fid == nullptr || !list.valid()) return -FI_EINVAL;
  Domain::from(fid).endpoints().each([&](Ep& ep) { list.add(stats_of(ep)); });
  return list.end();
}

OperationTable<fi_weft_ops_domain> table({sizeof(fi_weft_ops_domain), read, counters,
                                          process_counters, endpoint_counters, queues, endpoints});

}  // namespace

int open_domain_ops(fid*, const char* name, std::uint64_t version, void** operations, void*) {
  if (name == nullptr || operations == nullptr) return -FI_EINVAL;
  if (std::string_view(name) != FI_WEFT_DOMAIN_OPS) return -FI_ENOSYS;
  if (version == 0 || version > FI_WEFT_DOMAIN_VERSION) return -FI_ENOSYS;
  *operations = table.get();
  return 0;
}

int set_domain_ops(fid* fid, const char* name, std::uint64_t flags, void* operations, void*) {
  if (name == nullptr) return -FI_EINVAL;
  Domain& domain = Domain::from(fid);
  if (std::string_view(name) != FI_SET_OPS_HMEM_OVERRIDE || domain.memory() == nullptr) {
    return -FI_ENOSYS;
  }
  if (flags != 0) return -FI_EBADFLAGS;
  if (operations == nullptr) return -FI_EINVAL;
  return domain.memory()->override(*static_cast<const fi_hmem_override_ops*>(operations));
}

}  // namespace weft::fabric
