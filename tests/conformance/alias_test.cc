// SPDX-License-Identifier: BSD-2-Clause
// Does an alias differ from its endpoint by its default flags, and by nothing else? (fi_ep_alias)
#include <gtest/gtest.h>

#include <optional>

#include "support/endpoint.h"
#include "support/guarded_buffer.h"

namespace weft::conformance {
namespace {

class AliasTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.cq_flags = FI_SELECTIVE_COMPLETION;
    const auto domain = std::make_shared<Domain>(options_);
    endpoint_ = std::make_unique<Endpoint>(domain, options_);
    ASSERT_TRUE(endpoint_->ok());
    self_ = endpoint_->insert(endpoint_->name());
    pump_.add(endpoint_.get());
  }
  Fid<fid_ep> alias(fid_ep* of, std::uint64_t flags) {
    return open_fid<fid_ep>([&](fid_ep** out) { return fi_ep_alias(of, out, flags); });
  }
  std::uint64_t flags_of(fid_ep* ep, std::uint64_t direction) {
    std::uint64_t flags = direction;
    EXPECT_EQ(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
    return flags;
  }
  bool completes(const void* context) {
    return pump_.until([&] { return endpoint_->take(context).has_value(); });
  }

  Options options_;
  std::unique_ptr<Endpoint> endpoint_;
  fi_addr_t self_ = FI_ADDR_NOTAVAIL;
  Pump pump_;
};

TEST_F(AliasTest, CompletesWhatItsEndpointKeepsSilentAbout) {
  const auto loud_sends = alias(endpoint_->ep(), FI_TRANSMIT | FI_COMPLETION);
  const auto loud_receives = alias(endpoint_->ep(), FI_RECV | FI_COMPLETION);
  GuardedBuffer in(8);
  GuardedBuffer out(8);
  GuardedBuffer quiet(8);
  out.fill(1, 0, 8);
  ASSERT_EQ(fi_recv(loud_receives.get(), in.data(), 8, nullptr, FI_ADDR_UNSPEC, &in), 0);
  ASSERT_EQ(fi_recv(loud_sends.get(), quiet.data(), 8, nullptr, FI_ADDR_UNSPEC, &quiet), 0);
  ASSERT_EQ(fi_send(loud_sends.get(), out.data(), 8, nullptr, self_, &out), 0);
  ASSERT_EQ(fi_send(endpoint_->ep(), out.data(), 8, nullptr, self_, &quiet), 0);
  EXPECT_TRUE(completes(&out));
  EXPECT_TRUE(completes(&in));
  EXPECT_EQ(in.check_pattern(1, 0, 8), "");
  EXPECT_TRUE(pump_.until([&] { return quiet.check_pattern(1, 0, 8).empty(); }));
  EXPECT_EQ(endpoint_->untaken(), 0u);
}

TEST_F(AliasTest, HasFlagsOfItsOwnInOneDirectionAndThoseOfItsOriginalInTheOther) {
  std::uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
  ASSERT_EQ(fi_control(&endpoint_->ep()->fid, FI_SETOPSFLAG, &flags), 0);
  const auto first = alias(endpoint_->ep(), FI_RECV | FI_COMPLETION);
  const auto second = alias(first.get(), FI_TRANSMIT | FI_INJECT);
  EXPECT_EQ(flags_of(endpoint_->ep(), FI_TRANSMIT), FI_DELIVERY_COMPLETE);
  EXPECT_EQ(flags_of(endpoint_->ep(), FI_RECV), 0u);
  EXPECT_EQ(flags_of(first.get(), FI_TRANSMIT), FI_DELIVERY_COMPLETE);
  EXPECT_EQ(flags_of(first.get(), FI_RECV), FI_COMPLETION);
  EXPECT_EQ(flags_of(second.get(), FI_TRANSMIT), FI_INJECT);
  EXPECT_EQ(flags_of(second.get(), FI_RECV), FI_COMPLETION);
}

TEST_F(AliasTest, IsKnownByItsEndpointsNameAndOptions) {
  const auto other = alias(endpoint_->ep(), FI_TRANSMIT);
  Address name;
  name.size = name.bytes.size();
  ASSERT_EQ(fi_getname(&other->fid, name.bytes.data(), &name.size), 0);
  EXPECT_EQ(name.bytes, endpoint_->name().bytes);
  std::size_t least = 4321;
  ASSERT_EQ(fi_setopt(&other->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
            0);
  std::size_t seen = 0;
  std::size_t length = sizeof seen;
  ASSERT_EQ(
      fi_getopt(&endpoint_->ep()->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &seen, &length), 0);
  EXPECT_EQ(seen, least);
}

TEST_F(AliasTest, OfAnEndpointThatIsEnabledLaterWorksFromThenOn) {
  const auto domain = std::make_shared<Domain>(options_);
  fi_av_attr av_attributes{};
  const auto av = open_fid<fid_av>(
      [&](fid_av** out) { return fi_av_open(domain->get(), &av_attributes, out, nullptr); });
  fi_cq_attr cq_attributes{};
  cq_attributes.format = FI_CQ_FORMAT_CONTEXT;
  const auto cq = open_fid<fid_cq>(
      [&](fid_cq** out) { return fi_cq_open(domain->get(), &cq_attributes, out, nullptr); });
  const auto late = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_endpoint(domain->get(), domain->info(), out, nullptr); });
  const auto other = alias(late.get(), FI_TRANSMIT | FI_COMPLETION);
  char byte = 0;
  EXPECT_EQ(fi_send(other.get(), &byte, 1, nullptr, 0, &byte), -FI_EOPBADSTATE);
  ASSERT_EQ(fi_ep_bind(late.get(), &av->fid, 0), 0);
  constexpr std::uint64_t kAll = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
  ASSERT_EQ(fi_ep_bind(late.get(), &cq->fid, kAll), 0);
  ASSERT_EQ(fi_enable(other.get()), 0);  // whichever of them is named
  fi_addr_t peer = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(av.get(), endpoint_->name().bytes.data(), 1, &peer, 0, nullptr), 1);
  GuardedBuffer in(1);
  ASSERT_EQ(fi_recv(endpoint_->ep(), in.data(), 1, nullptr, FI_ADDR_UNSPEC, &in), 0);
  ASSERT_EQ(fi_send(late.get(), &byte, 1, nullptr, peer, &byte), 0);
  ASSERT_EQ(fi_send(other.get(), &byte, 1, nullptr, peer, &in), 0);
  fi_cq_entry entry{};
  ASSERT_TRUE(pump_.until([&] { return fi_cq_read(cq.get(), &entry, 1) == 1; }));
  EXPECT_EQ(entry.op_context, &in);
  EXPECT_EQ(fi_cq_read(cq.get(), &entry, 1), -FI_EAGAIN);
  endpoint_->close();  // before the buffer of its receive
}

TEST_F(AliasTest, KeepsItsEndpointOpen) {
  auto other = alias(endpoint_->ep(), FI_TRANSMIT);
  EXPECT_EQ(fi_close(&endpoint_->ep()->fid), -FI_EBUSY);
  other.reset();
}

TEST_F(AliasTest, ThatIsAskedForWronglyIsRefused) {
  fid_ep* none = nullptr;
  EXPECT_EQ(fi_ep_alias(endpoint_->ep(), &none, 0), -FI_EINVAL);
  EXPECT_EQ(fi_ep_alias(endpoint_->ep(), &none, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
  EXPECT_EQ(fi_ep_alias(endpoint_->ep(), &none, FI_TRANSMIT | FI_PEEK), -FI_EBADFLAGS);
  EXPECT_EQ(fi_control(&endpoint_->ep()->fid, FI_ALIAS, nullptr), -FI_EINVAL);
}

TEST_F(AliasTest, AndItsEndpointHaveTheSameSpaceLeft) {
  const auto other = alias(endpoint_->ep(), FI_TRANSMIT);
  const auto all = static_cast<ssize_t>(endpoint_->info()->tx_attr->size);
  EXPECT_EQ(other->ops->tx_size_left(other.get()), all);
  EXPECT_EQ(other->ops->rx_size_left(other.get()),
            static_cast<ssize_t>(endpoint_->info()->rx_attr->size));
}

}  // namespace
}  // namespace weft::conformance
