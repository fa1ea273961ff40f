// SPDX-License-Identifier: BSD-2-Clause
// Do XRC domains, their queues and their targets reach all contexts of a process?
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "test_support.h"

namespace weft::verbs {
namespace {

ibv_xrcd* open_domain(ibv_context* context, int fd, int flags) {
  ibv_xrcd_init_attr wanted{};
  wanted.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  wanted.fd = fd;
  wanted.oflags = flags;
  return ibv_open_xrcd(context, &wanted);
}

ibv_qp* create_target(ibv_context* context, ibv_xrcd* domain) {
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = IBV_QPT_XRC_RECV;
  wanted.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  wanted.xrcd = domain;
  return ibv_create_qp_ex(context, &wanted);
}

ibv_qp_open_attr naming(std::uint32_t qpn, ibv_xrcd* domain) {
  ibv_qp_open_attr wanted{};
  wanted.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  wanted.qp_num = qpn;
  wanted.xrcd = domain;
  wanted.qp_type = IBV_QPT_XRC_RECV;
  return wanted;
}

ibv_qp* open_target(ibv_context* context, std::uint32_t qpn, ibv_xrcd* domain) {
  ibv_qp_open_attr wanted = naming(qpn, domain);
  return ibv_open_qp(context, &wanted);
}

int begin(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  return ibv_modify_qp(qp, &attributes,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int receive_from(ibv_qp* qp, std::uint32_t destination) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = destination;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.grh.hop_limit = 1;
  EXPECT_EQ(ibv_query_gid(qp->context, 1, 0, &attributes.ah_attr.grh.dgid), 0);
  const int more =
      qp->qp_type == IBV_QPT_XRC_RECV ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
  return ibv_modify_qp(
      qp, &attributes,
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | more);
}

int send_to_peer(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;
  attributes.retry_cnt = 7;
  attributes.rnr_retry = 7;
  attributes.max_rd_atomic = 1;
  return ibv_modify_qp(qp, &attributes,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

ibv_qp_state state_of(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  EXPECT_EQ(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &initial), 0);
  EXPECT_EQ(qp->state, attributes.qp_state);
  return attributes.qp_state;
}

ibv_wc next(ibv_cq* cq) {
  ibv_wc wc{};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int found = 0;
  while (found == 0 && std::chrono::steady_clock::now() < end) found = ibv_poll_cq(cq, 1, &wc);
  EXPECT_EQ(found, 1);
  return wc;
}

class XrcDomains : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    std::string name = testing::TempDir() + "weft-xrcd-XXXXXX";
    file_ = ::mkstemp(name.data());
    ASSERT_GE(file_, 0);
    ::unlink(name.c_str());
    other_ = open_loopback_device();
    ASSERT_NE(other_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_close_device(other_), 0);
    ::close(file_);
    VerbsTest::TearDown();
  }

  ibv_context* other_ = nullptr;
  int file_ = -1;
};

TEST_F(XrcDomains, OfAFileAreFoundByEveryContextAndEndWithTheLastHandle) {
  EXPECT_EQ(open_domain(context_, file_, 0), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  ibv_xrcd* const first = open_domain(context_, file_, O_CREAT);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(open_domain(other_, file_, O_CREAT | O_EXCL), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_xrcd* const second = open_domain(other_, file_, 0);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(ibv_close_xrcd(first), 0);
  ibv_xrcd* const third = open_domain(context_, file_, 0);
  EXPECT_NE(third, nullptr);
  EXPECT_EQ(ibv_close_xrcd(second), 0);
  EXPECT_EQ(ibv_close_xrcd(third), 0);
  EXPECT_EQ(open_domain(context_, file_, 0), nullptr);
  EXPECT_EQ(open_domain(context_, 1'000'000, O_CREAT), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(XrcDomains, NeedAFileAndFlagsEvenWhereTheFileIsNone) {
  ibv_xrcd_init_attr wanted{};
  wanted.comp_mask = IBV_XRCD_INIT_ATTR_OFLAGS;
  EXPECT_EQ(ibv_open_xrcd(context_, &wanted), nullptr);
  EXPECT_EQ(errno, EINVAL);
  wanted.comp_mask = 1U << 10;
  EXPECT_EQ(ibv_open_xrcd(context_, &wanted), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(XrcDomains, LetTwoHandlesShareOneTarget) {
  ibv_xrcd* const domain = open_domain(context_, file_, O_CREAT);
  ibv_qp* const first = create_target(context_, domain);
  ASSERT_NE(first, nullptr);
  ibv_xrcd* const same = open_domain(other_, file_, 0);
  ibv_qp* const second = open_target(other_, first->qp_num, same);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->qp_num, first->qp_num);
  EXPECT_EQ(second->state, IBV_QPS_UNKNOWN);
  EXPECT_EQ(state_of(second), IBV_QPS_RESET);
  EXPECT_EQ(begin(second), 0);
  EXPECT_EQ(state_of(first), IBV_QPS_INIT);

  EXPECT_EQ(ibv_destroy_qp(first), 0);
  EXPECT_EQ(ibv_close_xrcd(domain), 0);
  EXPECT_EQ(ibv_close_xrcd(same), EBUSY);
  EXPECT_EQ(state_of(second), IBV_QPS_INIT);
  const std::uint32_t qpn = second->qp_num;
  EXPECT_EQ(ibv_destroy_qp(second), 0);
  EXPECT_EQ(open_target(other_, qpn, same), nullptr) << "it ended with its last handle";
  EXPECT_EQ(ibv_close_xrcd(same), 0);
}

TEST_F(XrcDomains, SendEventsOfATargetToEachHandle) {
  ibv_xrcd* const domain = open_domain(context_, -1, O_CREAT);
  ibv_qp* const first = create_target(context_, domain);
  ibv_qp* const second = open_target(context_, first->qp_num, domain);
  ASSERT_NE(second, nullptr);
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(ibv_modify_qp(second, &error, IBV_QP_STATE), 0);
  std::set<ibv_qp*> told;
  for (int i = 0; i < 2; ++i) {
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
    told.insert(event.element.qp);
    ibv_ack_async_event(&event);
  }
  EXPECT_EQ(told, (std::set<ibv_qp*>{first, second}));
  EXPECT_EQ(ibv_destroy_qp(second), 0);
  EXPECT_EQ(ibv_destroy_qp(first), 0);
  EXPECT_EQ(ibv_close_xrcd(domain), 0);
}

TEST_F(XrcDomains, OpenNoTargetOfAnotherNumberDomainOrType) {
  ibv_xrcd* const domain = open_domain(context_, -1, O_CREAT);
  ibv_xrcd* const stranger = open_domain(context_, -1, O_CREAT);
  ibv_qp* const target = create_target(context_, domain);
  EXPECT_EQ(open_target(context_, target->qp_num ^ 1U, domain), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(open_target(context_, target->qp_num, stranger), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_qp_open_attr wanted = naming(target->qp_num, domain);
  wanted.qp_type = IBV_QPT_RC;
  EXPECT_EQ(ibv_open_qp(context_, &wanted), nullptr);
  EXPECT_EQ(errno, EINVAL);
  wanted = naming(target->qp_num, domain);
  wanted.comp_mask |= 1U << 10;
  EXPECT_EQ(ibv_open_qp(context_, &wanted), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_destroy_qp(target), 0);
  EXPECT_EQ(ibv_close_xrcd(stranger), 0);
  EXPECT_EQ(ibv_close_xrcd(domain), 0);
}

// A shared queue of one context, and a target and its peer of the other.
class XrcMessages : public XrcDomains {
 protected:
  static constexpr std::uint32_t kRoom = 16;

  void SetUp() override {
    XrcDomains::SetUp();
    domain_ = open_domain(context_, file_, O_CREAT);
    same_ = open_domain(other_, file_, 0);
    region_ = ibv_reg_mr(pd_, bytes_.data(), bytes_.size(), IBV_ACCESS_LOCAL_WRITE);
    sender_pd_ = ibv_alloc_pd(other_);
    sender_cq_ = ibv_create_cq(other_, kRoom, nullptr, nullptr, 0);
    ASSERT_NE(sender_cq_, nullptr);
    connect();
    create_queue();
  }
  void TearDown() override {
    destroy_queue();
    disconnect();
    EXPECT_EQ(ibv_dereg_mr(region_), 0);
    EXPECT_EQ(ibv_destroy_cq(sender_cq_), 0);
    EXPECT_EQ(ibv_dealloc_pd(sender_pd_), 0);
    EXPECT_EQ(ibv_close_xrcd(same_), 0);
    EXPECT_EQ(ibv_close_xrcd(domain_), 0);
    XrcDomains::TearDown();
  }

  void connect() {
    target_ = create_target(other_, same_);
    ibv_qp_init_attr_ex initial{};
    initial.qp_type = IBV_QPT_XRC_SEND;
    initial.send_cq = sender_cq_;
    initial.cap = {kRoom, 0, 1, 0, 0};
    initial.comp_mask = IBV_QP_INIT_ATTR_PD;
    initial.pd = sender_pd_;
    sender_ = ibv_create_qp_ex(other_, &initial);
    ASSERT_NE(sender_, nullptr);
    ASSERT_EQ(begin(target_), 0);
    ASSERT_EQ(begin(sender_), 0);
    ASSERT_EQ(receive_from(target_, sender_->qp_num), 0);
    ASSERT_EQ(receive_from(sender_, target_->qp_num), 0);
    ASSERT_EQ(send_to_peer(sender_), 0);
  }
  void disconnect() const {
    EXPECT_EQ(ibv_destroy_qp(sender_), 0);
    EXPECT_EQ(ibv_destroy_qp(target_), 0);
  }
  // A shared queue that is full of receives.
  void create_queue() {
    cq_ = ibv_create_cq(context_, kRoom, nullptr, nullptr, 0);
    ibv_srq_init_attr_ex queue{};
    queue.attr = {kRoom, 1, 0};
    queue.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                      IBV_SRQ_INIT_ATTR_CQ;
    queue.srq_type = IBV_SRQT_XRC;
    queue.pd = pd_;
    queue.xrcd = domain_;
    queue.cq = cq_;
    srq_ = ibv_create_srq_ex(context_, &queue);
    ASSERT_NE(srq_, nullptr);
    ASSERT_EQ(ibv_get_srq_num(srq_, &number_), 0);
    ibv_sge entry{reinterpret_cast<std::uint64_t>(bytes_.data()),
                  static_cast<std::uint32_t>(bytes_.size()), region_->lkey};
    for (std::uint64_t id = 0; id < kRoom; ++id) {
      ibv_recv_wr receive{id, nullptr, &entry, 1};
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_srq_recv(srq_, &receive, &bad), 0);
    }
  }
  void destroy_queue() {
    if (srq_ == nullptr) return;
    EXPECT_EQ(ibv_destroy_srq(std::exchange(srq_, nullptr)), 0);
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
  }
  void send() {
    ibv_sge from{reinterpret_cast<std::uint64_t>(message_), sizeof message_, 0};
    ibv_send_wr request{};
    request.sg_list = &from;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    request.qp_type.xrc.remote_srqn = number_;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(sender_, &request, &bad), 0);
  }

  char message_[17] = "through the file";
  std::array<char, 32> bytes_{};
  ibv_xrcd* domain_ = nullptr;
  ibv_xrcd* same_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  std::uint32_t number_ = 0;
  ibv_pd* sender_pd_ = nullptr;
  ibv_cq* sender_cq_ = nullptr;
  ibv_qp* sender_ = nullptr;
  ibv_qp* target_ = nullptr;
};

TEST_F(XrcMessages, ReachQueuesOfAnotherContext) {
  send();
  EXPECT_EQ(next(sender_cq_).status, IBV_WC_SUCCESS);
  const ibv_wc received = next(cq_);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.byte_len, sizeof message_);
  EXPECT_STREQ(bytes_.data(), message_);
  destroy_queue();
  send();
  EXPECT_EQ(next(sender_cq_).status, IBV_WC_REM_INV_REQ_ERR) << "there is no such queue any more";
}

TEST_F(XrcMessages, EndWhileTheirQueueIsDestroyed) {
  for (int round = 0; round < 50; ++round) {
    for (std::uint32_t i = 0; i < kRoom; ++i) send();
    std::thread destroyer([&] { destroy_queue(); });
    for (std::uint32_t i = 0; i < kRoom; ++i) {
      const ibv_wc_status status = next(sender_cq_).status;
      EXPECT_TRUE(status == IBV_WC_SUCCESS || status == IBV_WC_REM_INV_REQ_ERR ||
                  status == IBV_WC_WR_FLUSH_ERR)
          << status;
    }
    destroyer.join();
    disconnect();
    connect();
    create_queue();
  }
}

}  // namespace
}  // namespace weft::verbs
