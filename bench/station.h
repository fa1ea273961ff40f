// SPDX-License-Identifier: BSD-2-Clause
// What one process opens before it meets anybody.
#pragma once

#include <memory>
#include <optional>

#include "channel.h"
#include "context.h"

namespace weft::bench {

// Endpoint, buffers and what counts completions, as OPTIONS ask for them. Outlives its contexts.
class Station {
 public:
  explicit Station(const Options& options) : Station(options, open_domain(options)) {}
  // In a domain that is shared with others.
  Station(const Options& options, std::shared_ptr<AccessDomain> domain);

  // Exchanges names and keys with the process at the other end of CHANNEL, and connects to it. Of
  // two that connect one asks.
  Context meet(Channel& channel, bool asks);
  // Its own peer.
  Context meet_itself();

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  Context context(Peer peer, RemoteBuffers remote);
  bool uses_inject() const;

  const Options& options_;
  Endpoint endpoint_;
  Buffers buffers_;
  std::optional<ReceivePool> pool_;
  std::unique_ptr<Completions> completions_;
  std::uint64_t spare_receives_ = 0;
};

}  // namespace weft::bench
