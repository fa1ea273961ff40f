// SPDX-License-Identifier: BSD-2-Clause
// What does one end of a connection consist of?
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "attributes.h"
#include "device.h"
#include "reasons.h"
#include "request.h"

namespace weft::verbs_conformance {

// How an end differs from the usual one.
struct EndSetup {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_cap capacities{64, 64, 4, 4, 64};
  bool all_signaled = true;
  int entries = 256;  // of each of its completion queues
  unsigned region_rights = kAllRights;
  std::uint32_t shared_receives = 0;  // not 0: a shared receive queue of that size
  ibv_context* context = nullptr;     // null: one of its own
};

// A context, a protection domain, a region, two completion queues and a queue pair. Polls of one
// end drive its partner, too.
class End {
 public:
  static constexpr std::size_t kBytes = std::size_t{2} << 20;

  explicit End(const EndSetup& setup = {});

  ibv_context* context() const { return context_; }
  ibv_pd* pd() const { return pd_.get(); }
  ibv_mr* mr() const { return mr_.get(); }
  ibv_qp* qp() const { return qp_.get(); }
  ibv_srq* srq() const { return srq_.get(); }
  ibv_cq* sends() const { return sends_.get(); }
  ibv_cq* receives() const { return receives_.get(); }
  std::byte* memory() { return memory_.data(); }
  // A region in place of the first one, which is deregistered.
  void register_again(unsigned rights);
  void deregister() { mr_.reset(); }
  void destroy_qp() { qp_.reset(); }

  // Part of the region, as a scatter-gather entry, and as a request of the peer names it.
  ibv_sge part(std::size_t at, std::size_t length) const;
  RemotePlace place(std::size_t at) const;

  // State changes: an errno, or 0.
  int to_init(const ibv_qp_attr& with) { return move_to(qp_.get(), IBV_QPS_INIT, with); }
  int to_rtr(std::uint32_t peer, const ibv_qp_attr& with);
  int to_rts(const ibv_qp_attr& with) { return move_to(qp_.get(), IBV_QPS_RTS, with); }
  int to_error() { return move_to(qp_.get(), IBV_QPS_ERR); }
  int to_reset() { return move_to(qp_.get(), IBV_QPS_RESET); }
  // RESET to RTS.
  void connect(std::uint32_t peer, const ibv_qp_attr& with);
  void connect(std::uint32_t peer) { connect(peer, usual()); }
  ibv_qp_attr usual() const { return usual_attributes(gid_of(context_)); }
  ibv_qp_attr query() const;
  ibv_qp_state state() const { return query().qp_state; }

  // Posts: an errno, or 0.
  int post(SendRequest request);
  int send(std::size_t length, std::uint64_t id = 0) {
    return post({IBV_WR_SEND, {part(0, length)}, id});
  }
  int write(const RemotePlace& to, std::size_t length, std::uint64_t id = 0) {
    return post(SendRequest(IBV_WR_RDMA_WRITE, {part(0, length)}, id).at(to));
  }
  int read(const RemotePlace& from, std::size_t length, std::uint64_t id = 0) {
    return post(SendRequest(IBV_WR_RDMA_READ, {part(0, length)}, id).at(from));
  }
  int receive(ReceiveRequest request);
  int receive(std::size_t length, std::uint64_t id = 0) {
    return receive(ReceiveRequest({part(0, length)}, id));
  }

  // The next completion, which must come.
  ibv_wc sent() { return next(sends_.get()); }
  ibv_wc received() { return next(receives_.get()); }
  // True while both queues stay empty for some time.
  bool is_quiet();
  // Drives this end and its partner.
  void drive();
  void partner_with(End& partner) { partner_ = &partner; }

 private:
  ibv_wc next(ibv_cq* queue);

  Owned<ibv_context> own_context_;
  ibv_context* context_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes);
  Owned<ibv_pd> pd_;
  Owned<ibv_mr> mr_;
  Owned<ibv_cq> sends_;
  Owned<ibv_cq> receives_;
  Owned<ibv_srq> srq_;
  Owned<ibv_qp> qp_;
  End* partner_ = nullptr;
};

// Two ends, `a` connected to `b`.
struct Pair {
  explicit Pair(const EndSetup& setup = {}) : Pair(setup, setup) {}
  Pair(const EndSetup& of_a, const EndSetup& of_b);
  // The same with other attributes: of both ends, or of each.
  Pair(const EndSetup& setup, const ibv_qp_attr& with_a, const ibv_qp_attr& with_b);

  End a;
  End b;
};

// The attributes of Pair's ends, for those that need others.
ibv_qp_attr usual_pair_attributes();

}  // namespace weft::verbs_conformance
