// SPDX-License-Identifier: BSD-2-Clause
// How does a test write a work request?
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

namespace weft::verbs_conformance {

// Memory of a peer that a request names.
struct RemotePlace {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};

// A send request that owns its list of entries.
struct SendRequest {
  SendRequest(ibv_wr_opcode opcode, std::vector<ibv_sge> entries, std::uint64_t id = 0)
      : sges(std::move(entries)) {
    wr.opcode = opcode;
    wr.wr_id = id;
  }
  bool is_atomic() const {
    return wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
  SendRequest& flagged(unsigned flags) {
    wr.send_flags |= flags;
    return *this;
  }
  SendRequest& at(const RemotePlace& place) {
    if (is_atomic()) {
      wr.wr.atomic.remote_addr = place.address;
      wr.wr.atomic.rkey = place.key;
    } else {
      wr.wr.rdma.remote_addr = place.address;
      wr.wr.rdma.rkey = place.key;
    }
    return *this;
  }
  // For atomic operations; others have none.
  SendRequest& operands(std::uint64_t compare_or_add, std::uint64_t swap = 0) {
    if (!is_atomic()) return *this;
    wr.wr.atomic.compare_add = compare_or_add;
    wr.wr.atomic.swap = swap;
    return *this;
  }
  // The request for ibv_post_send(3), in front of `next`.
  ibv_send_wr* get(ibv_send_wr* next = nullptr) {
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    wr.next = next;
    return &wr;
  }

  ibv_send_wr wr{};
  std::vector<ibv_sge> sges;
};

// The same of a receive.
struct ReceiveRequest {
  explicit ReceiveRequest(std::vector<ibv_sge> entries, std::uint64_t id = 0)
      : sges(std::move(entries)) {
    wr.wr_id = id;
  }
  ibv_recv_wr* get(ibv_recv_wr* next = nullptr) {
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    wr.next = next;
    return &wr;
  }

  ibv_recv_wr wr{};
  std::vector<ibv_sge> sges;
};

}  // namespace weft::verbs_conformance
