// SPDX-License-Identifier: BSD-2-Clause
// What does one end of a connection consist of?
#include "end.h"

namespace weft::verbs_conformance {
namespace {

// Completions that were caused already come much earlier.
constexpr std::chrono::milliseconds kQuiet(50);

}  // namespace

End::End(const EndSetup& setup) {
  if (setup.context == nullptr) own_context_ = open_device();
  context_ = setup.context != nullptr ? setup.context : own_context_.get();
  pd_.reset(ibv_alloc_pd(context_));
  EXPECT_NE(pd_, nullptr);
  register_again(setup.region_rights);
  sends_.reset(ibv_create_cq(context_, setup.entries, nullptr, nullptr, 0));
  receives_.reset(ibv_create_cq(context_, setup.entries, nullptr, nullptr, 0));
  EXPECT_NE(sends_, nullptr);
  EXPECT_NE(receives_, nullptr);
  if (setup.shared_receives != 0) {
    ibv_srq_init_attr shared{nullptr, {setup.shared_receives, 4, 0}};
    srq_.reset(ibv_create_srq(pd_.get(), &shared));
    EXPECT_NE(srq_, nullptr);
  }
  ibv_qp_init_attr wanted{};
  wanted.send_cq = sends_.get();
  wanted.recv_cq = receives_.get();
  wanted.srq = srq_.get();
  wanted.cap = setup.capacities;
  wanted.qp_type = setup.type;
  wanted.sq_sig_all = setup.all_signaled ? 1 : 0;
  qp_.reset(ibv_create_qp(pd_.get(), &wanted));
  EXPECT_NE(qp_, nullptr);
}

void End::register_again(unsigned rights) {
  mr_.reset();
  mr_.reset(ibv_reg_mr(pd_.get(), memory_.data(), memory_.size(), static_cast<int>(rights)));
  EXPECT_NE(mr_, nullptr);
}

ibv_sge End::part(std::size_t at, std::size_t length) const {
  return {reinterpret_cast<std::uint64_t>(memory_.data()) + at, static_cast<std::uint32_t>(length),
          mr_ != nullptr ? mr_->lkey : 0};
}

RemotePlace End::place(std::size_t at) const {
  return {reinterpret_cast<std::uint64_t>(memory_.data()) + at, mr_ != nullptr ? mr_->rkey : 0};
}

int End::to_rtr(std::uint32_t peer, const ibv_qp_attr& with) {
  ibv_qp_attr attributes = with;
  attributes.dest_qp_num = peer;
  return move_to(qp_.get(), IBV_QPS_RTR, attributes);
}

void End::connect(std::uint32_t peer, const ibv_qp_attr& with) {
  EXPECT_EQ(to_init(with), 0);
  EXPECT_EQ(to_rtr(peer, with), 0);
  EXPECT_EQ(to_rts(with), 0);
}

ibv_qp_attr End::query() const {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  EXPECT_EQ(ibv_query_qp(qp_.get(), &attributes, IBV_QP_STATE, &initial), 0);
  return attributes;
}

int End::post(SendRequest request) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp_.get(), request.get(), &bad);
}

int End::receive(ReceiveRequest request) {
  ibv_recv_wr* bad = nullptr;
  return srq_ != nullptr ? ibv_post_srq_recv(srq_.get(), request.get(), &bad)
                         : ibv_post_recv(qp_.get(), request.get(), &bad);
}

void End::drive() {
  for (End* const end : {this, partner_}) {
    if (end == nullptr) continue;
    ibv_poll_cq(end->receives_.get(), 0, nullptr);
    ibv_poll_cq(end->sends_.get(), 0, nullptr);
  }
}

ibv_wc End::next(ibv_cq* queue) {
  ibv_wc wc{};
  const bool found = holds_in_time([&] {
    drive();
    return ibv_poll_cq(queue, 1, &wc) != 0;
  });
  EXPECT_TRUE(found) << "no completion in time";
  EXPECT_PRED2(explains, wc.status, wc.vendor_err);
  return wc;
}

bool End::is_quiet() {
  const auto end = std::chrono::steady_clock::now() + kQuiet;
  ibv_wc wc{};
  while (std::chrono::steady_clock::now() < end) {
    drive();
    for (ibv_cq* const queue : {sends_.get(), receives_.get()}) {
      if (ibv_poll_cq(queue, 1, &wc) != 0) return false;
    }
  }
  return true;
}

ibv_qp_attr usual_pair_attributes() { return usual_attributes(gid_of(open_device().get())); }

Pair::Pair(const EndSetup& of_a, const EndSetup& of_b) : a(of_a), b(of_b) {
  a.connect(b.qp()->qp_num);
  b.connect(a.qp()->qp_num);
  a.partner_with(b);
  b.partner_with(a);
}

Pair::Pair(const EndSetup& setup, const ibv_qp_attr& with_a, const ibv_qp_attr& with_b)
    : a(setup), b(setup) {
  a.connect(b.qp()->qp_num, with_a);
  b.connect(a.qp()->qp_num, with_b);
  a.partner_with(b);
  b.partner_with(a);
}

}  // namespace weft::verbs_conformance
