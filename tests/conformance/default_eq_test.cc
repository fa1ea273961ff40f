// SPDX-License-Identifier: BSD-2-Clause
// What is the event queue that is bound to a domain good for? fi_domain(3), fi_domain_bind
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>

#include "support/place.h"

namespace weft::conformance {
namespace {

// A domain with an event queue of its fabric; the queue outlives the domain to which it is bound.
class DefaultEventQueue : public testing::Test {
 protected:
  void open(const Options& options) {
    int rc = 0;
    info_ = get_info(options, make_hints(options).get(), &rc);
    ASSERT_EQ(rc, 0);
    fabric_ = open_fid<fid_fabric>(
        [&](fid_fabric** out) { return fi_fabric(info_->fabric_attr, out, nullptr); });
    ASSERT_NE(fabric_, nullptr);
    eq_ = open_eq();
    domain_ = open_fid<fid_domain>(
        [&](fid_domain** out) { return fi_domain(fabric_.get(), info_.get(), out, nullptr); });
    ASSERT_TRUE(eq_ != nullptr && domain_ != nullptr);
  }
  Fid<fid_eq> open_eq() const {
    fi_eq_attr attributes{};
    return open_fid<fid_eq>(
        [&](fid_eq** out) { return fi_eq_open(fabric_.get(), &attributes, out, nullptr); });
  }
  Fid<fid_av> open_av(std::uint64_t flags) const {
    fi_av_attr attributes{};
    attributes.flags = flags;
    return open_fid<fid_av>(
        [&](fid_av** out) { return fi_av_open(domain_.get(), &attributes, out, nullptr); });
  }
  Fid<fid_cq> open_cq() const {
    fi_cq_attr attributes{};
    return open_fid<fid_cq>(
        [&](fid_cq** out) { return fi_cq_open(domain_.get(), &attributes, out, nullptr); });
  }
  Fid<fid_ep> open_ep(fi_info* info) const {
    return open_fid<fid_ep>(
        [&](fid_ep** out) { return fi_endpoint(domain_.get(), info, out, nullptr); });
  }
  int bind(std::uint64_t flags = 0) { return fi_domain_bind(domain_.get(), &eq_->fid, flags); }

  // The next event of a queue, which has to be this one, of `object`. What is read is left in
  // `entry_`.
  void expect_event(fid_eq* eq, std::uint32_t expected, const fid* object) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    std::uint32_t event = 0;
    ssize_t got = -FI_EAGAIN;
    while (got == -FI_EAGAIN && std::chrono::steady_clock::now() < deadline) {
      got = fi_eq_read(eq, &event, &entry_, sizeof entry_, 0);
      sched_yield();
    }
    ASSERT_GE(got, static_cast<ssize_t>(sizeof(fi_eq_cm_entry)));
    EXPECT_EQ(event, expected);
    EXPECT_EQ(entry_.connection.fid, object);
  }

  // The next event of a queue, which has to be the end of the endpoint's request. Returns its
  // context.
  static void* expect_refused(fid_eq* eq, const fid_ep* ep) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    fi_eq_err_entry failed{};
    ssize_t got = -FI_EAGAIN;
    while (got == -FI_EAGAIN && std::chrono::steady_clock::now() < deadline) {
      got = fi_eq_readerr(eq, &failed, 0);
      sched_yield();
    }
    EXPECT_EQ(got, static_cast<ssize_t>(sizeof failed));
    EXPECT_EQ(failed.err, FI_ECONNREFUSED);
    EXPECT_EQ(failed.fid, &ep->fid);
    return failed.context;
  }
  static void expect_silence(fid_eq* eq) {
    std::uint32_t event = 0;
    fi_eq_cm_entry entry{};
    EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), -FI_EAGAIN);
  }

  Info info_;
  Fid<fid_fabric> fabric_;
  Fid<fid_eq> eq_;
  Fid<fid_domain> domain_;
  // Either of them begins with the object.
  union {
    fi_eq_entry plain;
    fi_eq_cm_entry connection;
  } entry_{};
};

TEST_F(DefaultEventQueue, IsOneAndOfTheSameFabric) {
  ASSERT_NO_FATAL_FAILURE(open(Options()));
  Domain other((Options()));
  fi_eq_attr attributes{};
  const auto foreign = open_fid<fid_eq>(
      [&](fid_eq** out) { return fi_eq_open(other.fabric(), &attributes, out, nullptr); });
  ASSERT_NE(foreign, nullptr);
  EXPECT_EQ(bind(FI_SEND), -FI_EBADFLAGS);
  EXPECT_EQ(fi_domain_bind(domain_.get(), &foreign->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_domain_bind(domain_.get(), &domain_->fid, 0), -FI_EINVAL);
  EXPECT_EQ(bind(), 0);
  EXPECT_EQ(bind(), -FI_EINVAL) << "bound already";
  const auto second = open_eq();
  EXPECT_EQ(fi_domain_bind(domain_.get(), &second->fid, 0), -FI_EINVAL);
}

TEST_F(DefaultEventQueue, IsBusyWhileItIsBound) {
  ASSERT_NO_FATAL_FAILURE(open(Options()));
  ASSERT_EQ(bind(), 0);
  EXPECT_EQ(fi_close(&eq_->fid), -FI_EBUSY);
  domain_.reset();
  EXPECT_EQ(fi_close(&eq_.release()->fid), 0);
}

TEST_F(DefaultEventQueue, HearsOfInsertionsUnlessTheVectorHasItsOwn) {
  ASSERT_NO_FATAL_FAILURE(open(Options()));
  const auto av = open_av(FI_EVENT);
  const auto own = open_eq();
  const auto independent = open_av(FI_EVENT);
  ASSERT_TRUE(av != nullptr && own != nullptr && independent != nullptr);
  ASSERT_EQ(fi_av_bind(independent.get(), &own->fid, 0), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(4711);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  fi_addr_t number = 0;
  EXPECT_EQ(fi_av_insert(av.get(), &address, 1, &number, 0, nullptr), -FI_ENOEQ);
  ASSERT_EQ(bind(), 0);
  EXPECT_EQ(fi_av_insert(av.get(), &address, 1, &number, 0, nullptr), 0);
  expect_event(eq_.get(), FI_AV_COMPLETE, &av->fid);
  EXPECT_EQ(fi_av_insert(independent.get(), &address, 1, &number, 0, nullptr), 0);
  expect_event(own.get(), FI_AV_COMPLETE, &independent->fid);
}

TEST_F(DefaultEventQueue, HearsOfConnections) {
  Options options;
  options.type = FI_EP_MSG;
  ASSERT_NO_FATAL_FAILURE(open(options));
  const auto cq = open_cq();
  const auto pep = open_fid<fid_pep>(
      [&](fid_pep** out) { return fi_passive_ep(fabric_.get(), info_.get(), out, nullptr); });
  ASSERT_TRUE(cq != nullptr && pep != nullptr);
  ASSERT_EQ(fi_pep_bind(pep.get(), &eq_->fid, 0), 0);
  ASSERT_EQ(fi_listen(pep.get()), 0);
  const auto active = open_ep(info_.get());
  ASSERT_EQ(fi_ep_bind(active.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(active.get()), -FI_ENOEQ);
  ASSERT_EQ(bind(), 0);
  ASSERT_EQ(fi_enable(active.get()), 0);
  const Address listener = name_of(&pep->fid);
  ASSERT_EQ(fi_connect(active.get(), listener.bytes.data(), nullptr, 0), 0);
  ASSERT_NO_FATAL_FAILURE(expect_event(eq_.get(), FI_CONNREQ, &pep->fid));
  const Info request(entry_.connection.info);
  const auto passive = open_ep(request.get());
  ASSERT_EQ(fi_ep_bind(passive.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  // Either end may hear first.
  std::uint32_t heard = 0;
  const auto deadline = std::chrono::steady_clock::now() + patience();
  while (heard != 2 && std::chrono::steady_clock::now() < deadline) {
    std::uint32_t event = 0;
    if (fi_eq_read(eq_.get(), &event, &entry_, sizeof entry_, 0) < 0) continue;
    EXPECT_EQ(event, static_cast<std::uint32_t>(FI_CONNECTED));
    ++heard;
  }
  EXPECT_EQ(heard, 2u);
}

TEST_F(DefaultEventQueue, HearsNothingOfAnEndpointWithItsOwn) {
  Options options;
  options.type = FI_EP_MSG;
  ASSERT_NO_FATAL_FAILURE(open(options));
  ASSERT_EQ(bind(), 0);
  const auto own = open_eq();
  const auto cq = open_cq();
  const auto pep = open_fid<fid_pep>(
      [&](fid_pep** out) { return fi_passive_ep(fabric_.get(), info_.get(), out, nullptr); });
  ASSERT_TRUE(own != nullptr && cq != nullptr && pep != nullptr);
  ASSERT_EQ(fi_pep_bind(pep.get(), &own->fid, 0), 0);
  const Address nothing_listens = name_of(&pep->fid);
  const auto active = open_ep(info_.get());
  ASSERT_EQ(fi_ep_bind(active.get(), &own->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(active.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_connect(active.get(), nothing_listens.bytes.data(), nullptr, 0), 0);
  expect_refused(own.get(), active.get());
  expect_silence(eq_.get());
}

// fi_domain(3): with the flag FI_REG_MR it would.
TEST_F(DefaultEventQueue, HearsOfNoRegistrationUnlessItIsBoundForThem) {
  ASSERT_NO_FATAL_FAILURE(open(Options()));
  ASSERT_EQ(bind(), 0);
  std::uint64_t memory = 0;
  const auto mr = open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(domain_.get(), &memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                     Endpoint::next_key(), 0, out, nullptr);
  });
  ASSERT_NE(mr, nullptr);
  EXPECT_NE(fi_mr_key(mr.get()), FI_KEY_NOTAVAIL) << "registered when the call returns";
  expect_silence(eq_.get());
}

TEST_F(DefaultEventQueue, GivesTheContextOfTheCallOrOfTheObject) {
  Options options;
  options.type = FI_EP_MSG;
  ASSERT_NO_FATAL_FAILURE(open(options));
  ASSERT_EQ(bind(), 0);
  const auto av = open_av(FI_EVENT);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(4711);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int context = 0;
  EXPECT_EQ(fi_av_insert(av.get(), &address, 1, nullptr, 0, &context), 0);
  ASSERT_NO_FATAL_FAILURE(expect_event(eq_.get(), FI_AV_COMPLETE, &av->fid));
  EXPECT_EQ(entry_.plain.context, &context);

  const auto cq = open_cq();
  const auto pep = open_fid<fid_pep>(
      [&](fid_pep** out) { return fi_passive_ep(fabric_.get(), info_.get(), out, nullptr); });
  ASSERT_EQ(fi_pep_bind(pep.get(), &eq_->fid, 0), 0);
  const Address nothing_listens = name_of(&pep->fid);
  const auto active = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_endpoint(domain_.get(), info_.get(), out, &address); });
  ASSERT_EQ(fi_ep_bind(active.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_connect(active.get(), nothing_listens.bytes.data(), nullptr, 0), 0);
  EXPECT_EQ(expect_refused(eq_.get(), active.get()), &address);
}

TEST_F(DefaultEventQueue, HearsOfMulticastGroups) {
  ASSERT_NO_FATAL_FAILURE(open(datagrams()));
  if (info_->addr_format != FI_SOCKADDR_IN) GTEST_SKIP() << "a group of IPv4 is joined here";
  const auto cq = open_cq();
  const auto av = open_av(0);
  const auto ep = open_ep(info_.get());
  ASSERT_TRUE(cq != nullptr && av != nullptr && ep != nullptr);
  ASSERT_EQ(fi_ep_bind(ep.get(), &av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(ep.get()), 0);
  sockaddr_in group{};
  group.sin_family = AF_INET;
  group.sin_port = htons(static_cast<std::uint16_t>(20000 + getpid() % 40000));
  group.sin_addr.s_addr = inet_addr("224.0.1.129");
  fid_mc* joined = nullptr;
  EXPECT_EQ(fi_join(ep.get(), &group, 0, &joined, nullptr), -FI_ENOEQ);
  ASSERT_EQ(bind(), 0);
  ASSERT_EQ(fi_join(ep.get(), &group, 0, &joined, nullptr), 0);
  const Fid<fid_mc> leaves(joined);
  expect_event(eq_.get(), FI_JOIN_COMPLETE, &joined->fid);
}

}  // namespace
}  // namespace weft::conformance
