// SPDX-License-Identifier: BSD-2-Clause
// Do endpoints that share a context take each other's receives? (fi_endpoint(3), "Shared contexts")
#include <gtest/gtest.h>
#include <rdma/fi_tagged.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/delivery.h"
#include "support/endpoint.h"
#include "support/guarded_buffer.h"
#include "support/operation.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kCount = 4;
constexpr std::size_t kLarge = 300'000;  // more than is copied through shared memory

Options sharing(fi_ep_type type, std::uint64_t shares) {
  Options options = type == FI_EP_DGRAM ? datagrams() : Options{};
  options.type = type;
  if (type == FI_EP_RDM)
    options.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV;
  if (type == FI_EP_MSG) options.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV;
  options.shares = shares;
  return options;
}

// Four endpoints that share their receives, and four that send, each to one of those.
class SharedReceives : public testing::TestWithParam<fi_ep_type> {
 protected:
  void SetUp() override {
    const Options options = sharing(GetParam(), FI_TRANSMIT | FI_RECV);
    domain_ = std::make_shared<Domain>(options);
    ASSERT_TRUE(domain_->ok());
    srx_ = domain_->shared_receive();
    ASSERT_NE(srx_, nullptr);
    const Options plain = sharing(GetParam(), 0);
    sender_domain_ = std::make_shared<Domain>(plain);
    ASSERT_TRUE(sender_domain_->ok());
    // One address vector of all: numbers mean the same at each of them.
    for (std::size_t i = 0; i < kCount; ++i) {
      receivers_.push_back(std::make_unique<Endpoint>(
          domain_, options, i == 0 || is_connected() ? nullptr : receivers_[0]->av()));
      senders_.push_back(std::make_unique<Endpoint>(sender_domain_, plain));
      ASSERT_TRUE(receivers_[i]->ok() && senders_[i]->ok());
      pump_.add(receivers_[i].get());
      pump_.add(senders_[i].get());
    }
    for (std::size_t i = 0; i < kCount; ++i) join(i);
  }
  // The first one owns the address vector.
  void TearDown() override {
    while (!receivers_.empty()) receivers_.pop_back();
  }
  bool is_connected() const { return GetParam() == FI_EP_MSG; }
  bool is_lossy() const { return GetParam() == FI_EP_DGRAM; }

  void join(std::size_t i) {
    if (!is_connected()) {
      peers_.push_back(senders_[i]->insert(receivers_[i]->name()));
      sources_.push_back(receivers_[0]->insert(senders_[i]->name()));
      return;
    }
    peers_.push_back(0);
    sources_.push_back(0);
    senders_[i]->connect(receivers_[i]->name());
    ASSERT_TRUE(pump_.until([&] { return receivers_[i]->accept(); }));
    ASSERT_TRUE(
        pump_.until([&] { return receivers_[i]->connected() && senders_[i]->connected(); }));
  }
  // Every sender its number, in `length` bytes; in turn, each when the one before has arrived.
  void send(std::size_t i, const GuardedBuffer& buffer, std::size_t length) {
    ASSERT_TRUE(pump_.until([&] {
      const ssize_t rc = fi_send(senders_[i]->ep(), buffer.data(), length, nullptr, peers_[i],
                                 const_cast<GuardedBuffer*>(&buffer));
      return rc != -FI_EAGAIN;
    }));
  }
  Completion sent(std::size_t i, const GuardedBuffer& buffer) {
    std::optional<Completion> done;
    EXPECT_TRUE(pump_.until([&] { return (done = senders_[i]->take(&buffer)).has_value(); }));
    return done.value_or(Completion{});
  }
  ssize_t post(GuardedBuffer& buffer, fi_addr_t source = FI_ADDR_UNSPEC) {
    return fi_recv(srx_, buffer.data(), buffer.length(), nullptr, source, &buffer);
  }
  Completion received(std::size_t i, const GuardedBuffer& buffer) {
    std::optional<Completion> done;
    EXPECT_TRUE(pump_.until([&] { return (done = receivers_[i]->take(&buffer)).has_value(); }))
        << "no completion at receiver " << i;
    return done.value_or(Completion{});
  }

  // Sends, and waits at both ends; again if that was a datagram that may have been lost.
  Completion pass(std::size_t i, const GuardedBuffer& out, std::size_t length,
                  const GuardedBuffer& in) {
    if (!is_lossy()) {
      send(i, out, length);
      const Completion done = received(i, in);
      EXPECT_EQ(sent(i, out).err, 0);
      return done;
    }
    std::optional<Completion> done;
    const auto send_one = [&] {
      send(i, out, length);
      EXPECT_EQ(sent(i, out).err, 0);
    };
    EXPECT_TRUE(until_heard(send_one, [&](std::chrono::milliseconds limit) {
      return pump_.until([&] { return (done = receivers_[i]->take(&in)).has_value(); }, limit);
    }));
    return done.value_or(Completion{});
  }

  std::shared_ptr<Domain> domain_;
  std::shared_ptr<Domain> sender_domain_;
  std::vector<std::unique_ptr<Endpoint>> receivers_;
  std::vector<std::unique_ptr<Endpoint>> senders_;
  std::vector<fi_addr_t> peers_;
  std::vector<fi_addr_t> sources_;
  fid_ep* srx_ = nullptr;
  Pump pump_;
};

TEST_P(SharedReceives, AreTakenByWhicheverEndpointHasAMessageAndReportedThere) {
  for (const std::size_t length : {std::size_t{8}, is_lossy() ? std::size_t{1000} : kLarge}) {
    for (const std::size_t i : {2u, 0u, 3u, 1u, 1u}) {
      GuardedBuffer out(length);
      GuardedBuffer in(length);
      out.fill(length + i, 0, length);
      ASSERT_EQ(post(in), 0);
      const Completion done = pass(i, out, length, in);
      EXPECT_EQ(done.err, 0);
      EXPECT_EQ(done.length, length);
      EXPECT_EQ(in.check_pattern(length + i, 0, length), "");
    }
  }
}

TEST_P(SharedReceives, TakeMessagesOfAllEndpointsThatCameBefore) {
  if (is_lossy()) GTEST_SKIP() << "datagrams are not kept";
  std::vector<std::unique_ptr<GuardedBuffer>> out;
  std::vector<std::unique_ptr<GuardedBuffer>> in;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t length = i % 2 == 0 ? 100 : kLarge;
    out.push_back(std::make_unique<GuardedBuffer>(length));
    in.push_back(std::make_unique<GuardedBuffer>(kLarge));
    out.back()->fill(i, 0, length);
    send(i, *out[i], length);
  }
  for (int i = 0; i < 1000; ++i) pump_.once();
  std::multiset<std::size_t> takers;
  for (auto& buffer : in) ASSERT_EQ(post(*buffer), 0);
  for (auto& buffer : in) {
    std::optional<Completion> done;
    std::size_t taker = 0;
    ASSERT_TRUE(pump_.until([&] {
      for (taker = 0; taker < kCount; ++taker) {
        if ((done = receivers_[taker]->take(buffer.get()))) return true;
      }
      return false;
    }));
    takers.insert(taker);
    EXPECT_EQ(done->length, out[taker]->length());
    EXPECT_EQ(buffer->check_pattern(taker, 0, done->length), "") << "of sender " << taker;
  }
  EXPECT_EQ(takers, (std::multiset<std::size_t>{0, 1, 2, 3}));
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(sent(i, *out[i]).err, 0);
}

TEST_P(SharedReceives, MayBeMeantForOneSender) {
  if (is_connected()) GTEST_SKIP() << "a connection has one";
  GuardedBuffer of_three(8);
  GuardedBuffer of_any(8);
  GuardedBuffer out(8);
  ASSERT_EQ(post(of_three, sources_[3]), 0);
  ASSERT_EQ(post(of_any), 0);
  EXPECT_EQ(pass(1, out, 8, of_any).source, sources_[1]);
  EXPECT_EQ(pass(3, out, 8, of_three).source, sources_[3]);
}

TEST_P(SharedReceives, TakeTaggedMessages) {
  if (is_lossy()) GTEST_SKIP() << "datagrams have no tags";
  GuardedBuffer first(8);
  GuardedBuffer second(8);
  ASSERT_EQ(fi_trecv(srx_, first.data(), 8, nullptr, FI_ADDR_UNSPEC, 7, 0, &first), 0);
  ASSERT_EQ(fi_trecv(srx_, second.data(), 8, nullptr, FI_ADDR_UNSPEC, 9, 0, &second), 0);
  ASSERT_EQ(fi_tinject(senders_[2]->ep(), "sevenand", 8, peers_[2], 9), 0);
  ASSERT_EQ(fi_tinject(senders_[0]->ep(), "sevenand", 8, peers_[0], 7), 0);
  EXPECT_EQ(received(0, first).tag, 7u);
  EXPECT_EQ(received(2, second).tag, 9u);
}

TEST_P(SharedReceives, TakeSeveralMessagesEach) {
  GuardedBuffer buffer(64 + 4 * 100);
  const iovec piece{buffer.data(), buffer.length()};
  const fi_msg message = message_of({&piece, 1}, FI_ADDR_UNSPEC, &buffer);
  std::size_t least = 100;
  ASSERT_EQ(fi_setopt(&srx_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least), 0);
  ASSERT_EQ(fi_recvmsg(srx_, &message, FI_MULTI_RECV), 0);
  for (std::size_t i = 0; i < kCount; ++i) {
    GuardedBuffer out(100);
    out.fill(i, 0, 100);
    const Completion done = pass(i, out, 100, buffer);
    EXPECT_EQ(done.length, 100u);
    EXPECT_EQ((done.flags & FI_MULTI_RECV) != 0, i == kCount - 1);
    EXPECT_EQ(buffer.check_pattern(i, i * 100, 100), "");
  }
}

TEST_P(SharedReceives, ThatAreCancelledAreReportedByTheFirstEndpoint) {
  GuardedBuffer buffer(8);
  ASSERT_EQ(post(buffer), 0);
  ASSERT_EQ(fi_cancel(&srx_->fid, &buffer), 0);
  EXPECT_EQ(received(0, buffer).err, FI_ECANCELED);
  EXPECT_EQ(fi_cancel(&srx_->fid, &buffer), -FI_ENOENT);
}

// Those that stay go on with the receives that wait.
TEST_P(SharedReceives, OutliveTheEndpointsThatShareThem) {
  GuardedBuffer in(8);
  GuardedBuffer out(8);
  ASSERT_EQ(post(in), 0);
  for (const std::size_t gone : {0u, 1u, 3u}) {
    pump_.remove(receivers_[gone].get());
    receivers_[gone]->close();
  }
  EXPECT_EQ(pass(2, out, 8, in).err, 0);
}

TEST_P(SharedReceives, ArePostedNowhereElse) {
  GuardedBuffer in(8);
  EXPECT_EQ(fi_recv(receivers_[0]->ep(), in.data(), 8, nullptr, FI_ADDR_UNSPEC, &in), -FI_ENOSYS);
  EXPECT_EQ(fi_send(srx_, in.data(), 8, nullptr, 0, &in), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&srx_->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&domain_->shared_transmit()->fid), -FI_EBUSY);
}

INSTANTIATE_TEST_SUITE_P(Sharing, SharedReceives,
                         testing::Values(FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM));

class SharedContexts : public testing::Test {
 protected:
  Fid<fid_ep> open(const Options& options, Domain& domain) {
    int rc = 0;
    const Info info = get_info(options, make_hints(options).get(), &rc);
    EXPECT_EQ(rc, 0);
    return open_fid<fid_ep>(
        [&](fid_ep** out) { return fi_endpoint(domain.get(), info.get(), out, nullptr); });
  }
};

TEST_F(SharedContexts, AreAskedForBeforeTheyAreBound) {
  const Options options = sharing(FI_EP_RDM, FI_TRANSMIT | FI_RECV);
  const auto domain = std::make_shared<Domain>(options);
  ASSERT_TRUE(domain->ok());
  EXPECT_EQ(domain->info()->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
  EXPECT_EQ(domain->info()->ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT);
  const Fid<fid_ep> plain = open(sharing(FI_EP_RDM, 0), *domain);
  EXPECT_EQ(fi_ep_bind(plain.get(), &domain->shared_receive()->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(plain.get(), &domain->shared_transmit()->fid, 0), -FI_EINVAL);
  const Fid<fid_ep> sharing_one = open(options, *domain);
  EXPECT_EQ(fi_ep_bind(sharing_one.get(), &domain->shared_receive()->fid, FI_RECV), -FI_EBADFLAGS);
  EXPECT_EQ(fi_ep_bind(sharing_one.get(), &domain->shared_receive()->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(sharing_one.get(), &domain->shared_receive()->fid, 0), -FI_EINVAL);
}

TEST_F(SharedContexts, OfOtherAddressVectorsCannotBeShared) {
  const Options options = sharing(FI_EP_RDM, FI_RECV);
  const auto domain = std::make_shared<Domain>(options);
  const Endpoint first(domain, options);
  ASSERT_TRUE(first.ok());
  fi_av_attr attributes{};
  const auto av = open_fid<fid_av>(
      [&](fid_av** out) { return fi_av_open(domain->get(), &attributes, out, nullptr); });
  const Fid<fid_ep> second = open(options, *domain);
  ASSERT_EQ(fi_ep_bind(second.get(), &av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(second.get(), &first.cq()->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(second.get()), -FI_EOPBADSTATE);
  ASSERT_EQ(fi_ep_bind(second.get(), &domain->shared_receive()->fid, 0), 0);
  EXPECT_EQ(fi_enable(second.get()), -FI_EINVAL);
}

TEST_F(SharedContexts, HaveTheAttributesThatWereAskedFor) {
  const Options options = sharing(FI_EP_RDM, 0);
  const Domain domain(options);
  fi_rx_attr rx{};
  rx.caps = FI_TAGGED;
  const auto srx = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_srx_context(domain.get(), &rx, out, nullptr); });
  char byte = 0;
  EXPECT_EQ(fi_recv(srx.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, &byte), -FI_ENOSYS);
  EXPECT_EQ(fi_trecv(srx.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &byte), 0);
  EXPECT_EQ(fi_cancel(&srx->fid, &byte), 0);  // no endpoint is there to report it
  rx.iov_limit = 1000;
  fid_ep* none = nullptr;
  EXPECT_EQ(fi_srx_context(domain.get(), &rx, &none, nullptr), -FI_EINVAL);
  fi_tx_attr tx{};
  tx.size = SIZE_MAX;
  fid_stx* no_stx = nullptr;
  EXPECT_EQ(fi_stx_context(domain.get(), &tx, &no_stx, nullptr), -FI_EINVAL);
}

}  // namespace
}  // namespace weft::conformance
