// SPDX-License-Identifier: BSD-2-Clause
// In which order are an endpoint and its objects opened, bound, named and closed? (fi_endpoint(3))
#include <netinet/in.h>

#include <array>
#include <cstring>

#include "support/placements.h"

namespace weft::conformance {
namespace {

// A domain with one unbound endpoint and the objects that could be bound to it.
class Life : public testing::Test {
 protected:
  Life() {
    options_.caps |= FI_RMA_EVENT;
    domain_ = std::make_unique<Domain>(options_);
    if (!domain_->ok()) return;
    fi_av_attr av{};
    av.type = FI_AV_TABLE;
    av_ = open_fid<fid_av>([&](fid_av** o) { return fi_av_open(domain(), &av, o, nullptr); });
    cq_ = open_cq();
    fi_cntr_attr cntr{};
    cntr_ =
        open_fid<fid_cntr>([&](fid_cntr** o) { return fi_cntr_open(domain(), &cntr, o, nullptr); });
    ep_ = open_fid<fid_ep>(
        [&](fid_ep** o) { return fi_endpoint(domain(), domain_->info(), o, nullptr); });
  }
  fid_domain* domain() { return domain_->get(); }
  Fid<fid_cq> open_cq() {
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_TAGGED;
    return open_fid<fid_cq>([&](fid_cq** o) { return fi_cq_open(domain(), &cq, o, nullptr); });
  }
  bool ok() const { return ep_ != nullptr && cq_ != nullptr && av_ != nullptr; }
  int bind(fid* object, std::uint64_t flags) { return fi_ep_bind(ep_.get(), object, flags); }
  void enable() {
    ASSERT_EQ(bind(&av_->fid, 0), 0);
    ASSERT_EQ(bind(&cq_->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(ep_.get()), 0);
  }

  Options options_;
  std::unique_ptr<Domain> domain_;
  Fid<fid_av> av_;
  Fid<fid_cq> cq_;
  Fid<fid_cntr> cntr_;
  Fid<fid_ep> ep_;
};

TEST_F(Life, EnablingNeedsAnAddressVector) {
  ASSERT_TRUE(ok());
  ASSERT_EQ(bind(&cq_->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep_.get()), -FI_ENOAV);
}

TEST_F(Life, EnablingNeedsAQueueForBothDirections) {
  ASSERT_TRUE(ok());
  ASSERT_EQ(bind(&av_->fid, 0), 0);
  EXPECT_EQ(fi_enable(ep_.get()), -FI_ENOCQ);
  ASSERT_EQ(bind(&cq_->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_enable(ep_.get()), -FI_ENOCQ);
  ASSERT_EQ(bind(&cq_->fid, FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep_.get()), 0);
}

TEST_F(Life, DirectionsMayHaveQueuesOfTheirOwn) {
  ASSERT_TRUE(ok());
  const Fid<fid_cq> receive_queue = open_cq();
  ASSERT_EQ(bind(&av_->fid, 0), 0);
  ASSERT_EQ(bind(&cq_->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(bind(&receive_queue->fid, FI_RECV), 0);
  ASSERT_EQ(fi_enable(ep_.get()), 0);
  std::array<std::uint8_t, 64> name{};
  std::size_t size = name.size();
  ASSERT_EQ(fi_getname(&ep_->fid, name.data(), &size), 0);
  fi_addr_t self = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(av_.get(), name.data(), 1, &self, 0, nullptr), 1);
  std::array<char, 8> in{};
  std::array<char, 8> out{"weft"};
  fi_context2 receive{};
  fi_context2 send{};
  ASSERT_EQ(fi_recv(ep_.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, &receive), 0);
  const auto deadline = std::chrono::steady_clock::now() + patience();
  fi_cq_tagged_entry sent{};
  fi_cq_tagged_entry got{};
  ssize_t rc = -FI_EAGAIN;
  while (rc == -FI_EAGAIN && std::chrono::steady_clock::now() < deadline) {
    rc = fi_send(ep_.get(), out.data(), out.size(), nullptr, self, &send);
    if (rc == -FI_EAGAIN) fi_cq_read(cq_.get(), nullptr, 0);
  }
  ASSERT_EQ(rc, 0);
  while (std::chrono::steady_clock::now() < deadline &&
         (sent.op_context == nullptr || got.op_context == nullptr)) {
    fi_cq_read(cq_.get(), &sent, 1);
    fi_cq_read(receive_queue.get(), &got, 1);
  }
  EXPECT_EQ(sent.op_context, &send);
  EXPECT_EQ(got.op_context, &receive);
  EXPECT_EQ(in, out);
  ep_.reset();
}

TEST_F(Life, OneQueueForEachDirectionOnly) {
  ASSERT_TRUE(ok());
  const Fid<fid_cq> second = open_cq();
  ASSERT_EQ(bind(&cq_->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_LT(bind(&second->fid, FI_TRANSMIT), 0);
  EXPECT_LT(bind(&second->fid, FI_RECV), 0);
}

TEST_F(Life, OneCounterForEachEventOnly) {
  ASSERT_TRUE(ok());
  fi_cntr_attr attr{};
  const auto second =
      open_fid<fid_cntr>([&](fid_cntr** o) { return fi_cntr_open(domain(), &attr, o, nullptr); });
  ASSERT_EQ(bind(&cntr_->fid, FI_SEND | FI_WRITE), 0);
  EXPECT_LT(bind(&second->fid, FI_WRITE), 0);
  EXPECT_EQ(bind(&second->fid, FI_RECV), 0);
  ep_.reset();
}

TEST_F(Life, NothingIsBoundAfterEnabling) {
  ASSERT_TRUE(ok());
  enable();
  EXPECT_LT(bind(&cntr_->fid, FI_SEND), 0);
}

TEST_F(Life, ObjectsOfAnotherDomainAreNotBound) {
  ASSERT_TRUE(ok());
  const Domain other(options_);
  ASSERT_TRUE(other.ok());
  fi_cntr_attr cntr{};
  const auto counter = open_fid<fid_cntr>(
      [&](fid_cntr** o) { return fi_cntr_open(other.get(), &cntr, o, nullptr); });
  fi_cq_attr cq{};
  const auto queue =
      open_fid<fid_cq>([&](fid_cq** o) { return fi_cq_open(other.get(), &cq, o, nullptr); });
  fi_av_attr av{};
  const auto vector =
      open_fid<fid_av>([&](fid_av** o) { return fi_av_open(other.get(), &av, o, nullptr); });
  EXPECT_EQ(bind(&counter->fid, FI_SEND), -FI_EINVAL);
  EXPECT_EQ(bind(&queue->fid, FI_TRANSMIT), -FI_EINVAL);
  EXPECT_EQ(bind(&vector->fid, 0), -FI_EINVAL);
}

TEST_F(Life, MeaninglessBindFlagsAreRefused) {
  ASSERT_TRUE(ok());
  for (const std::uint64_t flags :
       {std::uint64_t{0}, std::uint64_t{FI_ATOMIC}, std::uint64_t{FI_RECV | (1ull << 40)},
        std::uint64_t{FI_SELECTIVE_COMPLETION}}) {
    const int rc = bind(&cq_->fid, flags);
    EXPECT_TRUE(rc == -FI_EINVAL || rc == -FI_EBADFLAGS) << rc << " for flags " << flags;
  }
}

TEST_F(Life, DisabledEndpointRefusesOperations) {
  ASSERT_TRUE(ok());
  ASSERT_EQ(bind(&av_->fid, 0), 0);
  ASSERT_EQ(bind(&cq_->fid, FI_TRANSMIT | FI_RECV), 0);
  std::array<std::uint8_t, 8> buffer{};
  fi_context2 context{};
  for (int kind = 0; kind <= static_cast<int>(Kind::kReadmsg); ++kind) {
    Operation o;
    o.kind = static_cast<Kind>(kind);
    o.length = buffer.size();
    o.peer = traits(o.kind).receive ? FI_ADDR_UNSPEC : 0;
    EXPECT_EQ(issue(ep_.get(), o, buffer.data(), &context), -FI_EOPBADSTATE) << traits(o.kind).name;
  }
}

TEST_F(Life, ObjectsInUseAreNotClosed) {
  ASSERT_TRUE(ok());
  ASSERT_EQ(bind(&cntr_->fid, FI_SEND), 0);
  enable();
  EXPECT_EQ(fi_close(&av_->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&cq_->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&cntr_->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&domain()->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&domain_->fabric()->fid), -FI_EBUSY);
  ep_.reset();  // Now each of them closes: the fixture checks that.
}

TEST_F(Life, DomainWithARegionIsNotClosed) {
  ASSERT_TRUE(ok());
  ep_.reset();
  cq_.reset();
  av_.reset();
  cntr_.reset();
  std::array<std::uint8_t, 64> memory{};
  const auto mr = open_fid<fid_mr>([&](fid_mr** o) {
    return fi_mr_reg(domain(), memory.data(), memory.size(), FI_REMOTE_READ, 0, 5, 0, o, nullptr);
  });
  EXPECT_EQ(fi_close(&domain()->fid), -FI_EBUSY);
}

TEST_F(Life, UnboundEndpointCloses) { ASSERT_TRUE(ok()); }

std::size_t usual_size() {
  return usual_format() == FI_SOCKADDR_IN6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

TEST_F(Life, NameNeedsRoom) {
  ASSERT_TRUE(ok());
  enable();
  std::array<std::uint8_t, 64> name;
  name.fill(0xEE);
  std::size_t size = 4;
  EXPECT_EQ(fi_getname(&ep_->fid, name.data(), &size), -FI_ETOOSMALL);
  EXPECT_EQ(size, usual_size());
  EXPECT_EQ(name[4], 0xEE) << "wrote past the given size";
  size = 0;
  EXPECT_EQ(fi_getname(&ep_->fid, nullptr, &size), -FI_ETOOSMALL);
}

TEST_F(Life, NamesAreDistinctAndConcrete) {
  World world(Placement::kOneProcess, Options{});
  ASSERT_TRUE(world.ok());
  const Address first = world.initiator().name();
  const Address second = world.target().name();
  EXPECT_EQ(first.size, usual_size());
  EXPECT_NE(first.bytes, second.bytes);
  if (usual_format() == FI_SOCKADDR_IN6) {
    sockaddr_in6 parsed{};
    std::memcpy(&parsed, first.bytes.data(), sizeof parsed);
    EXPECT_EQ(parsed.sin6_family, AF_INET6);
    EXPECT_NE(parsed.sin6_port, 0);
    EXPECT_FALSE(IN6_IS_ADDR_UNSPECIFIED(&parsed.sin6_addr));
    return;
  }
  sockaddr_in parsed{};
  std::memcpy(&parsed, first.bytes.data(), sizeof parsed);
  EXPECT_EQ(parsed.sin_family, AF_INET);
  EXPECT_NE(parsed.sin_port, 0);
  EXPECT_NE(parsed.sin_addr.s_addr, htonl(INADDR_ANY));
}

TEST_F(Life, GivenNameIsKept) {
  ASSERT_TRUE(ok());
  sockaddr_in wish{};
  wish.sin_family = AF_INET;
  wish.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int rc = -1;
  for (int port = 47001; port < 47100 && rc != 0; ++port) {  // Some may be in use.
    wish.sin_port = htons(static_cast<std::uint16_t>(port));
    rc = fi_setname(&ep_->fid, &wish, sizeof wish);
  }
  ASSERT_EQ(rc, 0);
  enable();
  sockaddr_in name{};
  std::size_t size = sizeof name;
  ASSERT_EQ(fi_getname(&ep_->fid, &name, &size), 0);
  EXPECT_EQ(name.sin_port, wish.sin_port);
  EXPECT_EQ(name.sin_addr.s_addr, wish.sin_addr.s_addr);
}

TEST_F(Life, NameOfTheWrongSizeIsRefused) {
  ASSERT_TRUE(ok());
  sockaddr_in wish{};
  wish.sin_family = AF_INET;
  EXPECT_LT(fi_setname(&ep_->fid, &wish, 3), 0);
}

class Families : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Families, TrafficFlowsOverEachAddressFormat) {
  Options options;
  options.addr_format = GetParam();
  int rc = 0;
  const Info found = get_info(options, make_hints(options).get(), &rc);
  if (found == nullptr) GTEST_SKIP() << "no interface with such addresses";
  for (const Placement placement : {Placement::kTwoProcesses, Placement::kSelf}) {
    World world(placement, options);
    ASSERT_TRUE(world.ok());
    world.exchange(3000);
  }
}

INSTANTIATE_TEST_SUITE_P(Endpoint, Families, testing::Values(FI_SOCKADDR_IN, FI_SOCKADDR_IN6));

TEST(Endpoint, PeersComeAndGo) {
  Options options;
  Pump pump;
  LocalParty here(std::make_shared<Domain>(options), options, &pump);
  ASSERT_TRUE(here.ok());
  for (std::uint64_t round = 0; round < 5; ++round) {
    RemoteParty peer(options, &pump);
    ASSERT_TRUE(peer.ok());
    const fi_addr_t there = here.insert(peer.name());
    peer.insert(here.name());
    const Token received = peer.post({.kind = Kind::kRecv, .length = 5000});
    here.wait_success(
        here.post({.kind = Kind::kSend, .length = 5000, .seed = round, .peer = there}));
    peer.wait_success(received);
    peer.expect_data(received, round, 5000);
  }
}

}  // namespace
}  // namespace weft::conformance
