// SPDX-License-Identifier: BSD-2-Clause
// Which transitions does a queue pair make, with which attributes? (IBTA table 91,
// ibv_modify_qp(3))
#include <cerrno>
#include <functional>
#include <string>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

using Change = std::function<void(ibv_qp_attr&)>;

// A queue pair of any type, with all that its creation needs.
class AnyPair {
 public:
  explicit AnyPair(ibv_qp_type type) : type_(type), context_(open_device()) {
    pd_.reset(ibv_alloc_pd(context_.get()));
    cq_.reset(ibv_create_cq(context_.get(), 16, nullptr, nullptr, 0));
    ibv_xrcd_init_attr alone{};
    alone.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    alone.fd = -1;
    xrcd_.reset(ibv_open_xrcd(context_.get(), &alone));
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type = type;
    wanted.send_cq = wanted.recv_cq = cq_.get();
    wanted.cap = {4, 4, 1, 1, 0};
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
    wanted.pd = pd_.get();
    if (type == IBV_QPT_XRC_RECV) {
      wanted.comp_mask = IBV_QP_INIT_ATTR_XRCD;
      wanted.xrcd = xrcd_.get();
    }
    qp_.reset(ibv_create_qp_ex(context_.get(), &wanted));
    EXPECT_NE(qp_, nullptr);
    usual_ = usual_attributes(gid_of(context_.get()));
    usual_.dest_qp_num = qp_->qp_num;
  }

  int modify(ibv_qp_state to, int mask, const Change& change = {}) {
    ibv_qp_attr attributes = usual_;
    attributes.qp_state = to;
    if (change) change(attributes);
    return ibv_modify_qp(qp_.get(), &attributes, mask);
  }
  int mask_to(ibv_qp_state to) const { return verbs_conformance::mask_to(to, type_); }
  // From RESET to that state.
  void bring_to(ibv_qp_state to) {
    ASSERT_EQ(modify(IBV_QPS_RESET, IBV_QP_STATE), 0);
    for (const auto next : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
      if (to == IBV_QPS_ERR ? next == IBV_QPS_RTS : next > to) break;
      ASSERT_EQ(modify(next, mask_to(next)), 0) << next;
    }
    if (to == IBV_QPS_ERR) {
      ASSERT_EQ(modify(to, IBV_QP_STATE), 0);
    }
    ASSERT_EQ(state(), to);
  }
  ibv_qp_attr query() const {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr initial{};
    EXPECT_EQ(ibv_query_qp(qp_.get(), &attributes, IBV_QP_STATE, &initial), 0);
    return attributes;
  }
  ibv_qp_state state() const { return query().qp_state; }
  ibv_qp* qp() { return qp_.get(); }

 private:
  const ibv_qp_type type_;
  Owned<ibv_context> context_;
  Owned<ibv_pd> pd_;
  Owned<ibv_cq> cq_;
  Owned<ibv_xrcd> xrcd_;
  Owned<ibv_qp> qp_;
  ibv_qp_attr usual_{};
};

class EveryType : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(All, EveryType,
                         testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
                                         IBV_QPT_XRC_RECV));

constexpr ibv_qp_state kForward[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

TEST_P(EveryType, NeedsEachRequiredAttribute) {
  AnyPair pair(GetParam());
  for (const auto to : kForward) {
    const int required = pair.mask_to(to);
    const ibv_qp_state before = pair.state();
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
      if ((required & bit) == 0 || bit == IBV_QP_STATE) continue;
      EXPECT_EQ(pair.modify(to, required & ~bit), EINVAL) << to << " without " << bit;
      EXPECT_EQ(pair.state(), before);
    }
    ASSERT_EQ(pair.modify(to, required), 0);
    EXPECT_EQ(pair.state(), to);
    EXPECT_EQ(pair.qp()->state, to);
  }
}

// Attributes that may be given beside the required ones.
int optional_of(ibv_qp_type type, ibv_qp_state to) {
  if (to == IBV_QPS_INIT) return 0;
  if (type == IBV_QPT_UD) {
    return to == IBV_QPS_RTR ? IBV_QP_PKEY_INDEX | IBV_QP_QKEY : IBV_QP_CUR_STATE | IBV_QP_QKEY;
  }
  const bool reliable_target = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
  if (to == IBV_QPS_RTR) return IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
  return IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE |
         (reliable_target ? IBV_QP_MIN_RNR_TIMER : 0);
}

// Attributes of the other end of an extended connection, which Linux takes without effect
// (modify_qp_mask() in uverbs_cmd.c). perftest sets them.
int ignored_of(ibv_qp_type type) {
  if (type == IBV_QPT_XRC_SEND) return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (type != IBV_QPT_XRC_RECV) return 0;
  return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
}

TEST_P(EveryType, TakesAttributesOfTheOtherEndWithoutEffect) {
  AnyPair pair(GetParam());
  const int ignored = ignored_of(GetParam());
  for (const auto to : kForward) {
    ASSERT_EQ(pair.modify(to, pair.mask_to(to) | ignored), 0) << to;
  }
  const ibv_qp_attr found = pair.query();
  if (GetParam() == IBV_QPT_XRC_SEND) {
    EXPECT_EQ(found.max_dest_rd_atomic, 0);
    EXPECT_EQ(found.min_rnr_timer, 0);
  }
  if (GetParam() == IBV_QPT_XRC_RECV) {
    EXPECT_EQ(found.max_rd_atomic, 0);
    EXPECT_EQ(found.retry_cnt, 0);
    EXPECT_EQ(found.rnr_retry, 0);
  }
}

TEST_P(EveryType, RefusesAttributesThatDoNotBelongToTheTransition) {
  AnyPair pair(GetParam());
  for (const auto to : kForward) {
    const int required = pair.mask_to(to);
    const int allowed = required | optional_of(GetParam(), to) | ignored_of(GetParam());
    for (int bit = 1; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
      if ((allowed & bit) != 0) continue;
      EXPECT_EQ(pair.modify(to, required | bit), EINVAL) << to << " with " << bit;
    }
    ASSERT_EQ(pair.modify(to, required), 0);
  }
}

TEST_P(EveryType, TakesOptionalAttributes) {
  AnyPair pair(GetParam());
  const int later = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
  for (const auto to : kForward) {
    const ibv_qp_state before = pair.state();
    const int mask = pair.mask_to(to) | (optional_of(GetParam(), to) & ~later);
    EXPECT_EQ(pair.modify(to, mask, [&](ibv_qp_attr& each) { each.cur_qp_state = before; }), 0);
    EXPECT_EQ(pair.state(), to);
  }
}

TEST_P(EveryType, MakesNoOtherTransition) {
  AnyPair pair(GetParam());
  for (const auto from : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}) {
    pair.bring_to(from);
    for (const auto to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQE}) {
      const bool next = from < IBV_QPS_RTS && to == from + 1;
      const bool stays = from == to && (from == IBV_QPS_INIT || from == IBV_QPS_RTS);
      if (next || stays) continue;
      EXPECT_EQ(pair.modify(to, pair.mask_to(to)), EINVAL) << from << " to " << to;
      EXPECT_EQ(pair.state(), from);
    }
  }
}

TEST_P(EveryType, GoesFromAnyStateToErrorAndToReset) {
  AnyPair pair(GetParam());
  for (const auto from : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}) {
    for (const auto to : {IBV_QPS_ERR, IBV_QPS_RESET}) {
      pair.bring_to(from);
      EXPECT_EQ(pair.modify(to, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
      EXPECT_EQ(pair.modify(to, IBV_QP_STATE), 0);
      EXPECT_EQ(pair.state(), to);
    }
  }
}

TEST_P(EveryType, InInitTakesItsAttributesOnceMore) {
  AnyPair pair(GetParam());
  pair.bring_to(IBV_QPS_INIT);
  EXPECT_EQ(pair.modify(IBV_QPS_INIT, pair.mask_to(IBV_QPS_INIT)), 0);
  EXPECT_EQ(pair.modify(IBV_QPS_INIT, IBV_QP_STATE), 0);
  EXPECT_EQ(pair.modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX), 0) << "without a state it stays";
  EXPECT_EQ(pair.state(), IBV_QPS_INIT);
}

TEST_P(EveryType, ChecksTheCurrentStateThatTheProgramAssumes) {
  AnyPair pair(GetParam());
  pair.bring_to(IBV_QPS_RTR);
  const int mask = pair.mask_to(IBV_QPS_RTS) | IBV_QP_CUR_STATE;
  for (const auto assumed : {IBV_QPS_INIT, IBV_QPS_RTS, IBV_QPS_SQD}) {
    EXPECT_EQ(
        pair.modify(IBV_QPS_RTS, mask, [&](ibv_qp_attr& each) { each.cur_qp_state = assumed; }),
        EINVAL);
  }
  EXPECT_EQ(
      pair.modify(IBV_QPS_RTS, mask, [](ibv_qp_attr& each) { each.cur_qp_state = IBV_QPS_RTR; }),
      0);
}

TEST_P(EveryType, DoesNotDrainItsSendQueue) {
  AnyPair pair(GetParam());
  pair.bring_to(IBV_QPS_RTS);
  EXPECT_EQ(pair.modify(IBV_QPS_SQD, IBV_QP_STATE), EOPNOTSUPP);
  EXPECT_EQ(pair.state(), IBV_QPS_RTS);
}

TEST_P(EveryType, IsUsableAgainAfterReset) {
  AnyPair pair(GetParam());
  const std::uint32_t number = pair.qp()->qp_num;
  pair.bring_to(IBV_QPS_RTS);
  pair.bring_to(IBV_QPS_RTS);
  EXPECT_EQ(pair.qp()->qp_num, number);
}

TEST(StateNumber, BeyondTheLastIsRefused) {
  AnyPair pair(IBV_QPT_RC);
  EXPECT_EQ(pair.modify(static_cast<ibv_qp_state>(9), IBV_QP_STATE), EINVAL);
  EXPECT_EQ(pair.modify(static_cast<ibv_qp_state>(-1), IBV_QP_STATE), EINVAL);
  EXPECT_EQ(pair.state(), IBV_QPS_RESET);
}

// Values: on failure nothing is changed.
struct Wrong {
  const char* name;
  ibv_qp_state to;
  Change change;
};

class WrongValue : public testing::TestWithParam<Wrong> {};

TEST_P(WrongValue, IsRefusedAndChangesNothing) {
  AnyPair pair(IBV_QPT_RC);
  pair.bring_to(static_cast<ibv_qp_state>(GetParam().to - 1));
  const ibv_qp_attr before = pair.query();
  EXPECT_EQ(pair.modify(GetParam().to, pair.mask_to(GetParam().to), GetParam().change), EINVAL);
  const ibv_qp_attr after = pair.query();
  EXPECT_EQ(after.qp_state, before.qp_state);
  EXPECT_EQ(after.dest_qp_num, before.dest_qp_num);
  EXPECT_EQ(after.qp_access_flags, before.qp_access_flags);
  EXPECT_EQ(after.timeout, before.timeout);
  EXPECT_EQ(pair.modify(GetParam().to, pair.mask_to(GetParam().to)), 0) << "it is usable still";
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongValue,
    testing::Values(
        Wrong{"PortZero", IBV_QPS_INIT, [](ibv_qp_attr& each) { each.port_num = 0; }},
        Wrong{"PortTwo", IBV_QPS_INIT, [](ibv_qp_attr& each) { each.port_num = 2; }},
        Wrong{"PkeyIndex", IBV_QPS_INIT, [](ibv_qp_attr& each) { each.pkey_index = 1; }},
        Wrong{"AccessFlags", IBV_QPS_INIT,
              [](ibv_qp_attr& each) { each.qp_access_flags = 1u << 30; }},
        Wrong{"PathMtuZero", IBV_QPS_RTR,
              [](ibv_qp_attr& each) { each.path_mtu = static_cast<ibv_mtu>(0); }},
        Wrong{"PathMtuSix", IBV_QPS_RTR,
              [](ibv_qp_attr& each) { each.path_mtu = static_cast<ibv_mtu>(6); }},
        Wrong{"GidIndex", IBV_QPS_RTR,
              [](ibv_qp_attr& each) { each.ah_attr.grh.sgid_index = 200; }},
        Wrong{"NoGlobalHeader", IBV_QPS_RTR, [](ibv_qp_attr& each) { each.ah_attr.is_global = 0; }},
        Wrong{"GidZero", IBV_QPS_RTR, [](ibv_qp_attr& each) { each.ah_attr.grh.dgid = {}; }},
        Wrong{"ReadsOfThePeer", IBV_QPS_RTR,
              [](ibv_qp_attr& each) { each.max_dest_rd_atomic = 129; }},
        Wrong{"RnrTimer", IBV_QPS_RTR, [](ibv_qp_attr& each) { each.min_rnr_timer = 32; }},
        Wrong{"Reads", IBV_QPS_RTS, [](ibv_qp_attr& each) { each.max_rd_atomic = 129; }},
        Wrong{"Timeout", IBV_QPS_RTS, [](ibv_qp_attr& each) { each.timeout = 32; }},
        Wrong{"Retries", IBV_QPS_RTS, [](ibv_qp_attr& each) { each.retry_cnt = 8; }},
        Wrong{"RnrRetries", IBV_QPS_RTS, [](ibv_qp_attr& each) { each.rnr_retry = 8; }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(QueryQp, ReturnsEveryAttributeThatWasSet) {
  AnyPair pair(IBV_QPT_RC);
  const auto set = [](ibv_qp_attr& each) {
    each.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    each.path_mtu = IBV_MTU_2048;
    each.rq_psn = 0x111111;
    each.sq_psn = 0x222222;
    each.max_rd_atomic = 128;
    each.max_dest_rd_atomic = 127;
    each.min_rnr_timer = 31;
    each.timeout = 31;
    each.retry_cnt = 6;
    each.rnr_retry = 5;
    each.ah_attr.grh.flow_label = 0x12345;
    each.ah_attr.grh.hop_limit = 7;
    each.ah_attr.grh.traffic_class = 0x20;
    each.ah_attr.sl = 3;
  };
  for (const auto to : kForward) ASSERT_EQ(pair.modify(to, pair.mask_to(to), set), 0);
  const ibv_qp_attr found = pair.query();
  EXPECT_EQ(found.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(found.cur_qp_state, IBV_QPS_RTS);
  EXPECT_EQ(found.port_num, 1);
  EXPECT_EQ(found.pkey_index, 0);
  EXPECT_EQ(found.qp_access_flags, IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(found.path_mtu, IBV_MTU_2048);
  EXPECT_EQ(found.dest_qp_num, pair.qp()->qp_num);
  EXPECT_EQ(found.rq_psn, 0x111111u);
  EXPECT_EQ(found.sq_psn, 0x222222u);
  EXPECT_EQ(found.max_rd_atomic, 128);
  EXPECT_EQ(found.max_dest_rd_atomic, 127);
  EXPECT_EQ(found.min_rnr_timer, 31);
  EXPECT_EQ(found.timeout, 31);
  EXPECT_EQ(found.retry_cnt, 6);
  EXPECT_EQ(found.rnr_retry, 5);
  EXPECT_EQ(found.ah_attr.is_global, 1);
  EXPECT_EQ(found.ah_attr.grh.flow_label, 0x12345u);
  EXPECT_EQ(found.ah_attr.grh.hop_limit, 7);
  EXPECT_EQ(found.ah_attr.grh.traffic_class, 0x20);
  EXPECT_EQ(found.ah_attr.sl, 3);
  EXPECT_EQ(found.ah_attr.port_num, 1);
}

TEST(QueryQp, ReturnsWhatTheQueuePairWasCreatedWith) {
  EndSetup setup;
  setup.capacities = {10, 20, 3, 4, 100};
  End end(setup);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(ibv_query_qp(end.qp(), &attributes, IBV_QP_CAP, &initial), 0);
  EXPECT_GE(attributes.cap.max_send_wr, 10u);
  EXPECT_GE(attributes.cap.max_recv_wr, 20u);
  EXPECT_GE(attributes.cap.max_send_sge, 3u);
  EXPECT_GE(attributes.cap.max_recv_sge, 4u);
  EXPECT_GE(attributes.cap.max_inline_data, 100u);
  EXPECT_EQ(initial.send_cq, end.sends());
  EXPECT_EQ(initial.recv_cq, end.receives());
  EXPECT_EQ(initial.qp_type, IBV_QPT_RC);
  EXPECT_EQ(initial.sq_sig_all, 1);
  EXPECT_EQ(initial.cap.max_send_wr, attributes.cap.max_send_wr);
}

// PSNs have 24 bits, and wrap around.
class LastNumbers : public testing::TestWithParam<ibv_qp_type> {};

TEST_P(LastNumbers, AreFollowedByZero) {
  ibv_qp_attr last = usual_pair_attributes();
  last.rq_psn = last.sq_psn = 0xFF'FFFE;
  EndSetup setup;
  setup.type = GetParam();
  Pair two(setup, last, last);
  for (std::uint64_t id = 0; id < 10; ++id) {
    ASSERT_EQ(two.b.receive(4096, id), 0);
    ASSERT_EQ(two.a.send(4096, id), 0);
    EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
    const ibv_wc wc = two.b.received();
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.byte_len, 4096u);
  }
}
INSTANTIATE_TEST_SUITE_P(Connected, LastNumbers, testing::Values(IBV_QPT_RC, IBV_QPT_UC));

}  // namespace
}  // namespace weft::verbs_conformance
