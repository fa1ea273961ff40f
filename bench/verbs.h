// SPDX-License-Identifier: BSD-2-Clause
// Which libfabric call stands behind each operation.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "context.h"

namespace weft::bench {

// Each function posts operation INDEX once and returns what libfabric returned: 0, -FI_EAGAIN or
// an error.
struct MessageVerbs {
  static ssize_t send(Context& c, std::uint64_t index) {
    return fi_send(c.peer.ep, c.buffers.source(index), c.buffers.size(), c.buffers.descriptor(),
                   c.peer.address, c.completions.sent_context());
  }
  static ssize_t inject(Context& c, std::uint64_t index) {
    return fi_inject(c.peer.ep, c.buffers.source(index), c.buffers.size(), c.peer.address);
  }
  static ssize_t receive(Context& c, std::uint64_t index) {
    return fi_recv(c.peer.ep, c.buffers.target(index), c.buffers.size(), c.buffers.descriptor(),
                   FI_ADDR_UNSPEC, c.completions.received_context());
  }
};

// A receive only makes sure that large buffers are posted: they take whatever comes.
struct PooledVerbs : MessageVerbs {
  static ssize_t receive(Context& c, std::uint64_t) { return c.pool->replenish(); }
};

struct TaggedVerbs {
  static constexpr std::uint64_t kTag = 0x77656674;

  static ssize_t send(Context& c, std::uint64_t index) {
    return fi_tsend(c.peer.ep, c.buffers.source(index), c.buffers.size(), c.buffers.descriptor(),
                    c.peer.address, kTag, c.completions.sent_context());
  }
  static ssize_t inject(Context& c, std::uint64_t index) {
    return fi_tinject(c.peer.ep, c.buffers.source(index), c.buffers.size(), c.peer.address, kTag);
  }
  static ssize_t receive(Context& c, std::uint64_t index) {
    return fi_trecv(c.peer.ep, c.buffers.target(index), c.buffers.size(), c.buffers.descriptor(),
                    FI_ADDR_UNSPEC, kTag, 0, c.completions.received_context());
  }
};

struct WriteVerbs {
  static ssize_t start(Context& c, std::uint64_t index) {
    return fi_write(c.peer.ep, c.buffers.source(index), c.buffers.size(), c.buffers.descriptor(),
                    c.peer.address, c.remote.target + c.buffers.offset(index), c.remote.key,
                    c.completions.sent_context());
  }
  static ssize_t inject(Context& c, std::uint64_t index) {
    return fi_inject_write(c.peer.ep, c.buffers.source(index), c.buffers.size(), c.peer.address,
                           c.remote.target + c.buffers.offset(index), c.remote.key);
  }
};

// Complete when the data are at the target, said with each write: not every provider heeds what is
// said once for the endpoint (net 1.17).
struct DeliveredWriteVerbs {
  static ssize_t start(Context& c, std::uint64_t index) {
    const iovec local{c.buffers.source(index), c.buffers.size()};
    void* descriptor = c.buffers.descriptor();
    const fi_rma_iov remote{c.remote.target + c.buffers.offset(index), c.buffers.size(),
                            c.remote.key};
    fi_msg_rma message{};
    message.msg_iov = &local;
    message.desc = &descriptor;
    message.iov_count = 1;
    message.addr = c.peer.address;
    message.rma_iov = &remote;
    message.rma_iov_count = 1;
    message.context = c.completions.sent_context();
    return fi_writemsg(c.peer.ep, &message, FI_DELIVERY_COMPLETE);
  }
};

struct ReadVerbs {
  static ssize_t start(Context& c, std::uint64_t index) {
    return fi_read(c.peer.ep, c.buffers.target(index), c.buffers.size(), c.buffers.descriptor(),
                   c.peer.address, c.remote.source + c.buffers.offset(index), c.remote.key,
                   c.completions.sent_context());
  }
};

// Atomic operations on one number of 8 bytes.
struct FetchAddVerbs {
  static ssize_t start(Context& c, std::uint64_t index) {
    return fi_fetch_atomic(c.peer.ep, c.buffers.source(index), 1, c.buffers.descriptor(),
                           c.buffers.target(index), c.buffers.descriptor(), c.peer.address,
                           c.remote.target + c.buffers.offset(index), c.remote.key, FI_UINT64,
                           FI_SUM, c.completions.sent_context());
  }
};

// Compares with what is never there, so that every one of them swaps, and brings another number
// than the one before.
struct CompareSwapVerbs {
  static ssize_t start(Context& c, std::uint64_t index) {
    static constexpr std::uint64_t kNever = ~std::uint64_t{0};
    if (index != 0) *c.buffers.source(index) ^= std::byte{1};
    return fi_compare_atomic(c.peer.ep, c.buffers.source(index), 1, c.buffers.descriptor(), &kNever,
                             nullptr, c.buffers.target(index), c.buffers.descriptor(),
                             c.peer.address, c.remote.target + c.buffers.offset(index),
                             c.remote.key, FI_UINT64, FI_CSWAP_NE, c.completions.sent_context());
  }
};

// Sends message INDEX, in the way that the measurement asks for, and counts it if no completion
// does.
template <class Verbs>
void send(Context& context, std::uint64_t index) {
  if (context.inject) {
    post(context.completions, "inject", [&] { return Verbs::inject(context, index); });
    context.completions.count_injected();
  } else {
    post(context.completions, "send", [&] { return Verbs::send(context, index); });
  }
}

}  // namespace weft::bench
