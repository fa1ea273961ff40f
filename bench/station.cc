// SPDX-License-Identifier: BSD-2-Clause
// How a process is set up, and how two of them get to know each other.
#include "station.h"

#include <utility>

#include "counter_completions.h"
#include "queue_completions.h"

namespace weft::bench {
namespace {

std::unique_ptr<Completions> make_completions(const Options& options, const Endpoint& endpoint,
                                              std::optional<ReceivePool>& pool) {
  if (options.count_by == CountBy::kCounters) return std::make_unique<CounterCompletions>(endpoint);
  if (pool) return std::make_unique<PoolCompletions>(endpoint.queue(), *pool);
  return std::make_unique<QueueCompletions>(endpoint.queue());
}

}  // namespace

Station::Station(const Options& options, std::shared_ptr<AccessDomain> domain)
    : options_(options),
      endpoint_(options, std::move(domain)),
      buffers_(endpoint_, options.size, options.buffers) {
  if (options.receive == Receive::kMulti) pool_.emplace(endpoint_);
  completions_ = make_completions(options, endpoint_, pool_);
}

bool Station::uses_inject() const {
  const bool streams = options_.metric == Metric::kRate || options_.metric == Metric::kBandwidth;
  const bool wanted =
      options_.inject == Inject::kAlways || (options_.inject == Inject::kAuto && !streams);
  return wanted && options_.size <= endpoint_.info().tx_attr->inject_size;
}

Context Station::context(Peer peer, RemoteBuffers remote) {
  ReceivePool* const pool = pool_ ? &*pool_ : nullptr;
  if (pool != nullptr) pool->serve(peer.ep);
  return {endpoint_, buffers_, *completions_, pool, peer, remote, uses_inject(), spare_receives_};
}

Context Station::meet(Channel& channel, bool asks) {
  channel.send_block(endpoint_.name());
  channel.send(buffers_.remote());
  const auto name = channel.receive_block();
  const auto remote = channel.receive<RemoteBuffers>();
  return context(endpoint_.meet(name, asks), remote);
}

Context Station::meet_itself() {
  return context(endpoint_.meet(endpoint_.name(), true), buffers_.remote());
}

}  // namespace weft::bench
