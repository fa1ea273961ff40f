// SPDX-License-Identifier: BSD-2-Clause
// Is a receive context full when as many receives wait as its size says? (fi_endpoint(3))
#include <rdma/fi_tagged.h>

#include <vector>

#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kSize = 16;

// One endpoint that talks to itself, with room for kSize receives, or a shared context with that.
class ReceiveRoom : public testing::TestWithParam<fi_ep_type> {
 protected:
  ReceiveRoom() {
    Options options;
    if (GetParam() == FI_EP_DGRAM) options = datagrams();
    int rc = 0;
    const Info hints = make_hints(options);
    hints->rx_attr->size = kSize;
    info_ = get_info(options, hints.get(), &rc);
    EXPECT_EQ(rc, 0);
    EXPECT_EQ(info_->rx_attr->size, kSize);
    fabric_ = open_fid<fid_fabric>(
        [&](fid_fabric** out) { return fi_fabric(info_->fabric_attr, out, nullptr); });
    domain_ = open_fid<fid_domain>(
        [&](fid_domain** out) { return fi_domain(fabric_.get(), info_.get(), out, nullptr); });
    fi_av_attr av{};
    av_ = open_fid<fid_av>(
        [&](fid_av** out) { return fi_av_open(domain_.get(), &av, out, nullptr); });
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_TAGGED;
    cq_ = open_fid<fid_cq>(
        [&](fid_cq** out) { return fi_cq_open(domain_.get(), &cq, out, nullptr); });
    ep_ = open_fid<fid_ep>(
        [&](fid_ep** out) { return fi_endpoint(domain_.get(), info_.get(), out, nullptr); });
    EXPECT_EQ(fi_ep_bind(ep_.get(), &av_->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_enable(ep_.get()), 0);
    std::uint8_t name[64];
    std::size_t length = sizeof name;
    EXPECT_EQ(fi_getname(&ep_->fid, name, &length), 0);
    EXPECT_EQ(fi_av_insert(av_.get(), name, 1, &self_, 0, nullptr), 1);
  }

  bool tagged() const { return GetParam() != FI_EP_DGRAM; }
  ssize_t post(void* context) {
    return fi_recv(ep_.get(), buffer_, sizeof buffer_, nullptr, FI_ADDR_UNSPEC, context);
  }
  ssize_t post_tagged(void* context) {
    return fi_trecv(ep_.get(), buffer_, sizeof buffer_, nullptr, FI_ADDR_UNSPEC, 1, 0, context);
  }
  ssize_t left() { return ep_->ops->rx_size_left(ep_.get()); }
  // Sends to itself and takes `count` completions.
  void send_and_take(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    ssize_t rc = -FI_EAGAIN;
    fi_cq_tagged_entry entry{};
    std::size_t taken = 0;
    while ((rc != 0 || taken < count) && std::chrono::steady_clock::now() < deadline) {
      if (rc != 0) rc = fi_send(ep_.get(), buffer_, 4, nullptr, self_, &context_);
      if (fi_cq_read(cq_.get(), &entry, 1) == 1) ++taken;
    }
    EXPECT_EQ(rc, 0);
    EXPECT_EQ(taken, count);
  }

  char buffer_[8]{};
  fi_context2 context_{};
  Info info_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_av> av_;
  Fid<fid_cq> cq_;
  Fid<fid_ep> ep_;
  fi_addr_t self_ = FI_ADDR_NOTAVAIL;
};

TEST_P(ReceiveRoom, EndsWhenAsManyWaitAsTheSizeSays) {
  std::vector<fi_context2> contexts(kSize + 1);
  for (std::size_t i = 0; i < kSize; ++i) {
    EXPECT_EQ(left(), static_cast<ssize_t>(kSize - i));
    ASSERT_EQ(tagged() && i % 2 != 0 ? post_tagged(&contexts[i]) : post(&contexts[i]), 0) << i;
  }
  EXPECT_EQ(left(), 0);
  EXPECT_EQ(post(&contexts[kSize]), -FI_EAGAIN);
  if (tagged()) {
    EXPECT_EQ(post_tagged(&contexts[kSize]), -FI_EAGAIN);
  }
}

TEST_P(ReceiveRoom, ComesBackWithAMessageAndWithACancelledReceive) {
  std::vector<fi_context2> contexts(kSize + 2);
  for (std::size_t i = 0; i < kSize; ++i) ASSERT_EQ(post(&contexts[i]), 0);
  ASSERT_EQ(post(&contexts[kSize]), -FI_EAGAIN);
  send_and_take(2);
  EXPECT_EQ(post(&contexts[kSize]), 0);
  EXPECT_EQ(post(&contexts[kSize + 1]), -FI_EAGAIN);
  EXPECT_EQ(fi_cancel(&ep_->fid, &contexts[3]), 0);
  EXPECT_EQ(left(), 1);
  EXPECT_EQ(post(&contexts[kSize + 1]), 0);
  EXPECT_EQ(left(), 0);
}

// A shared context has a size of its own.
TEST_P(ReceiveRoom, OfASharedContextEndsToo) {
  const auto shared = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_srx_context(domain_.get(), info_->rx_attr, out, nullptr); });
  ASSERT_NE(shared, nullptr);
  std::vector<fi_context2> contexts(kSize + 1);
  for (std::size_t i = 0; i <= kSize; ++i) {
    EXPECT_EQ(fi_recv(shared.get(), buffer_, sizeof buffer_, nullptr, FI_ADDR_UNSPEC, &contexts[i]),
              i < kSize ? 0 : -FI_EAGAIN);
  }
}

INSTANTIATE_TEST_SUITE_P(Receives, ReceiveRoom, testing::Values(FI_EP_RDM, FI_EP_DGRAM),
                         [](const testing::TestParamInfo<fi_ep_type>& one) {
                           return one.param == FI_EP_RDM ? "Reliable" : "Datagrams";
                         });

}  // namespace
}  // namespace weft::conformance
