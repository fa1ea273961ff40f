// SPDX-License-Identifier: BSD-2-Clause
// Which error does each bad argument get, and does the endpoint go on? (fi_msg(3), fi_rma(3))
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <initializer_list>
#include <vector>

#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kUnknownFlag = 1ull << 53;

bool is_vector(Kind kind) {
  return kind == Kind::kSendv || kind == Kind::kTsendv || kind == Kind::kRecvv ||
         kind == Kind::kTrecvv;
}

class Arguments : public testing::Test {
 protected:
  Arguments() : world_(Placement::kTwoProcesses, Options{}) {}

  fid_ep* ep() { return world_.ep(); }
  fi_tx_attr* tx() { return world_.endpoint().info()->tx_attr; }
  fi_addr_t peer() { return world_.to_target(); }

  // Calls again while the answer is -FI_EAGAIN, which says nothing about the argument.
  template <class Call>
  ssize_t settled(Call call) {
    ssize_t rc = -FI_EAGAIN;
    world_.pump().until([&] { return (rc = call()) != -FI_EAGAIN; });
    return rc;
  }
  template <class Call>
  void expect_refused(const char* what, std::initializer_list<int> allowed, Call call) {
    SCOPED_TRACE(what);
    const ssize_t rc = settled(call);
    bool fits = false;
    for (const int one : allowed) fits = fits || rc == one;
    EXPECT_TRUE(fits) << "answered " << rc << " (" << fi_strerror(static_cast<int>(-rc)) << ")";
  }
  void TearDown() override {
    if (!world_.ok()) return;
    EXPECT_EQ(world_.initiator().leftovers() + world_.target().leftovers(), 0u)
        << "a refused call may not complete";
    world_.exchange();
  }

  World world_;
  std::array<std::uint8_t, 64> buffer_{};
  fi_context2 context_{};
};

TEST_F(Arguments, UnknownAddress) {
  ASSERT_TRUE(world_.ok());
  const auto expected = {-FI_EINVAL, -FI_EADDRNOTAVAIL};
  for (const fi_addr_t absent : {fi_addr_t{4711}, fi_addr_t{FI_ADDR_UNSPEC}}) {
    for (int kind = 0; kind <= static_cast<int>(Kind::kReadmsg); ++kind) {
      Operation o;
      o.kind = static_cast<Kind>(kind);
      if (traits(o.kind).receive) continue;
      o.length = 8;
      o.peer = absent;
      expect_refused(traits(o.kind).name, expected,
                     [&] { return issue(ep(), o, buffer_.data(), &context_); });
    }
  }
}

TEST_F(Arguments, UnknownFlags) {
  ASSERT_TRUE(world_.ok());
  for (const Kind kind : {Kind::kSendmsg, Kind::kTsendmsg, Kind::kRecvmsg, Kind::kTrecvmsg,
                          Kind::kWritemsg, Kind::kReadmsg}) {
    Operation o;
    o.kind = kind;
    o.length = 8;
    o.peer = traits(kind).receive ? FI_ADDR_UNSPEC : peer();
    o.flags = kUnknownFlag;
    expect_refused(traits(kind).name, {-FI_EINVAL, -FI_EBADFLAGS, -FI_EOPNOTSUPP},
                   [&] { return issue(ep(), o, buffer_.data(), &context_); });
  }
}

TEST_F(Arguments, OversizedInject) {
  ASSERT_TRUE(world_.ok());
  std::vector<std::uint8_t> large(tx()->inject_size + 1);
  for (const Kind kind :
       {Kind::kInject, Kind::kInjectdata, Kind::kTinject, Kind::kTinjectdata, Kind::kInjectWrite,
        Kind::kInjectWritedata, Kind::kSendmsg, Kind::kTsendmsg, Kind::kWritemsg}) {
    Operation o;
    o.kind = kind;
    o.length = large.size();
    o.peer = peer();
    o.flags = FI_INJECT;
    expect_refused(traits(kind).name, {-FI_EINVAL, -FI_EMSGSIZE},
                   [&] { return issue(ep(), o, large.data(), &context_); });
  }
}

TEST_F(Arguments, MoreThanTheLargestMessage) {
  ASSERT_TRUE(world_.ok());
  const std::uint64_t limit = world_.endpoint().info()->ep_attr->max_msg_size;
  if (limit == ~std::uint64_t{0}) GTEST_SKIP() << "no message is too long";
  for (const Kind kind : {Kind::kSend, Kind::kTsend, Kind::kWrite, Kind::kRead}) {
    Operation o;
    o.kind = kind;
    o.length = limit + 1;
    o.peer = peer();
    expect_refused(traits(kind).name, {-FI_EINVAL, -FI_EMSGSIZE},
                   [&] { return issue(ep(), o, buffer_.data(), &context_); });
  }
}

TEST_F(Arguments, LengthsWhoseSumWraps) {
  ASSERT_TRUE(world_.ok());
  std::array<iovec, 2> parts{{{buffer_.data(), ~std::size_t{0} - 8}, {buffer_.data(), 64}}};
  const auto expected = {-FI_EINVAL, -FI_EMSGSIZE};
  expect_refused("sendv", expected,
                 [&] { return fi_sendv(ep(), parts.data(), nullptr, 2, peer(), &context_); });
  expect_refused("tsendv", expected,
                 [&] { return fi_tsendv(ep(), parts.data(), nullptr, 2, peer(), 1, &context_); });
  expect_refused("writev", expected, [&] {
    return fi_writev(ep(), parts.data(), nullptr, 2, peer(), 0, 1, &context_);
  });
}

TEST_F(Arguments, TooManyParts) {
  ASSERT_TRUE(world_.ok());
  const std::size_t count = tx()->iov_limit + 1;
  std::vector<iovec> parts(count, iovec{buffer_.data(), 1});
  const std::size_t rx_count = world_.endpoint().info()->rx_attr->iov_limit + 1;
  std::vector<iovec> rx_parts(rx_count, iovec{buffer_.data(), 1});
  iovec* v = parts.data();
  const auto expected = {-FI_EINVAL, -FI_E2BIG};
  expect_refused("sendv", expected,
                 [&] { return fi_sendv(ep(), v, nullptr, count, peer(), &context_); });
  expect_refused("tsendv", expected,
                 [&] { return fi_tsendv(ep(), v, nullptr, count, peer(), 1, &context_); });
  expect_refused("recvv", expected, [&] {
    return fi_recvv(ep(), rx_parts.data(), nullptr, rx_count, FI_ADDR_UNSPEC, &context_);
  });
  expect_refused("trecvv", expected, [&] {
    return fi_trecvv(ep(), rx_parts.data(), nullptr, rx_count, FI_ADDR_UNSPEC, 1, 0, &context_);
  });
  expect_refused("writev", expected,
                 [&] { return fi_writev(ep(), v, nullptr, count, peer(), 0, 1, &context_); });
  expect_refused("readv", expected,
                 [&] { return fi_readv(ep(), v, nullptr, count, peer(), 0, 1, &context_); });
}

TEST_F(Arguments, TooManyRemoteParts) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({});
  const std::size_t count = tx()->rma_iov_limit + 1;
  std::vector<fi_rma_iov> remote(count, fi_rma_iov{region.base, 1, region.key});
  iovec part{buffer_.data(), count};
  const fi_msg_rma msg{&part, nullptr, 1, peer(), remote.data(), count, &context_, 0};
  const auto expected = {-FI_EINVAL, -FI_E2BIG};
  expect_refused("writemsg", expected, [&] { return fi_writemsg(ep(), &msg, 0); });
  expect_refused("readmsg", expected, [&] { return fi_readmsg(ep(), &msg, 0); });
  world_.target().expect_region_blank(region, 0, region.length);
}

TEST_F(Arguments, LocalAndRemoteLengthsThatDiffer) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({});
  for (const std::size_t local : {16u, 48u}) {
    fi_rma_iov remote{region.base, 32, region.key};
    iovec part{buffer_.data(), local};
    const fi_msg_rma msg{&part, nullptr, 1, peer(), &remote, 1, &context_, 0};
    expect_refused("writemsg", {-FI_EINVAL}, [&] { return fi_writemsg(ep(), &msg, 0); });
    expect_refused("readmsg", {-FI_EINVAL}, [&] { return fi_readmsg(ep(), &msg, 0); });
  }
  world_.target().expect_region_blank(region, 0, region.length);
}

TEST_F(Arguments, MissingPointers) {
  ASSERT_TRUE(world_.ok());
  const auto expected = {-FI_EINVAL, -FI_EFAULT};
  for (int kind = 0; kind <= static_cast<int>(Kind::kReadmsg); ++kind) {
    Operation o;
    o.kind = static_cast<Kind>(kind);
    const bool one_buffer_of_a_message = !traits(o.kind).rma && !is_vector(o.kind);
    if (traits(o.kind).message || one_buffer_of_a_message) continue;
    o.length = 8;
    o.peer = traits(o.kind).receive ? FI_ADDR_UNSPEC : peer();
    expect_refused(traits(o.kind).name, expected,
                   [&] { return issue(ep(), o, nullptr, &context_); });
  }
  expect_refused("sendv", expected,
                 [&] { return fi_sendv(ep(), nullptr, nullptr, 2, peer(), &context_); });
  expect_refused("writev", expected,
                 [&] { return fi_writev(ep(), nullptr, nullptr, 2, peer(), 0, 1, &context_); });
  expect_refused("recvv", expected,
                 [&] { return fi_recvv(ep(), nullptr, nullptr, 2, FI_ADDR_UNSPEC, &context_); });
  expect_refused("sendmsg", expected, [&] { return fi_sendmsg(ep(), nullptr, 0); });
  expect_refused("recvmsg", expected, [&] { return fi_recvmsg(ep(), nullptr, 0); });
  expect_refused("tsendmsg", expected, [&] { return fi_tsendmsg(ep(), nullptr, 0); });
  expect_refused("trecvmsg", expected, [&] { return fi_trecvmsg(ep(), nullptr, 0); });
  expect_refused("writemsg", expected, [&] { return fi_writemsg(ep(), nullptr, 0); });
  expect_refused("readmsg", expected, [&] { return fi_readmsg(ep(), nullptr, 0); });
}

// libfabric's own programs post such messages (fi_shared_ctx).
TEST_F(Arguments, MessagesWithoutABufferHaveNoBytes) {
  ASSERT_TRUE(world_.ok());
  for (const bool tagged : {false, true}) {
    const Token received =
        world_.target().post({.kind = tagged ? Kind::kTrecv : Kind::kRecv, .length = 8, .tag = 1});
    const auto send = [&] {
      return tagged ? fi_tsend(ep(), nullptr, 8, nullptr, peer(), 1, &context_)
                    : fi_send(ep(), nullptr, 8, nullptr, peer(), &context_);
    };
    EXPECT_EQ(settled(send), 0);
    EXPECT_EQ(world_.target().wait_success(received).length, 0u);
    std::optional<Completion> c;
    EXPECT_TRUE(
        world_.pump().until([&] { return (c = world_.endpoint().take(&context_)).has_value(); }));
  }
}

TEST_F(Arguments, ReceivesWithoutABufferTakeNoBytes) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : {0u, 8u, 100000u}) {
    ASSERT_EQ(
        settled([&] { return fi_recv(ep(), nullptr, 8, nullptr, FI_ADDR_UNSPEC, &context_); }), 0);
    const Token sent = world_.target().post(
        {.kind = Kind::kSend, .length = length, .seed = 3, .peer = world_.to_initiator()});
    std::optional<Completion> c;
    ASSERT_TRUE(
        world_.pump().until([&] { return (c = world_.endpoint().take(&context_)).has_value(); }));
    EXPECT_EQ(c->err, length == 0 ? 0 : FI_ETRUNC);
    EXPECT_EQ(c->overflow, length);
    world_.target().wait_success(sent);
  }
}

TEST_F(Arguments, EmptyMessagesNeedNoBuffer) {
  ASSERT_TRUE(world_.ok());
  const Token received = world_.target().post({.kind = Kind::kRecv, .length = 8});
  EXPECT_EQ(settled([&] { return fi_send(ep(), nullptr, 0, nullptr, peer(), &context_); }), 0);
  EXPECT_EQ(world_.target().wait_success(received).length, 0u);
  std::optional<Completion> c;
  EXPECT_TRUE(
      world_.pump().until([&] { return (c = world_.endpoint().take(&context_)).has_value(); }));
}

TEST_F(Arguments, ClaimWithoutAPeekFindsNothing) {
  ASSERT_TRUE(world_.ok());
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.context = &context_;
  const ssize_t rc = settled([&] { return fi_trecvmsg(ep(), &msg, FI_CLAIM); });
  if (rc != 0) {
    EXPECT_TRUE(rc == -FI_EINVAL || rc == -FI_ENOMSG) << rc;
    return;
  }
  std::optional<Completion> c;
  EXPECT_TRUE(
      world_.pump().until([&] { return (c = world_.endpoint().take(&context_)).has_value(); }));
  EXPECT_NE(c.value_or(Completion{}).err, 0);
}

TEST_F(Arguments, CancelOfNothing) {
  ASSERT_TRUE(world_.ok());
  const ssize_t rc = fi_cancel(&ep()->fid, &context_);
  EXPECT_TRUE(rc == 0 || rc == -FI_ENOENT) << rc;
}

TEST_F(Arguments, UnknownEndpointOptions) {
  ASSERT_TRUE(world_.ok());
  std::size_t value = 0;
  std::size_t size = sizeof value;
  EXPECT_EQ(fi_getopt(&ep()->fid, FI_OPT_ENDPOINT, 9999, &value, &size), -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_setopt(&ep()->fid, FI_OPT_ENDPOINT, 9999, &value, size), -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_setopt(&ep()->fid, 77, 0, &value, size), -FI_ENOPROTOOPT);
}

// Opening with attributes that mean nothing gives an error and no object. The bad values are such
// as the enumerations can hold but do not name.
class Attributes : public testing::Test {
 protected:
  Attributes() : domain_(Options{}) {}

  int open_cq(const std::function<void(fi_cq_attr*)>& change) {
    fi_cq_attr attr{};
    change(&attr);
    fid_cq* cq = nullptr;
    const int rc = fi_cq_open(domain_.get(), &attr, &cq, nullptr);
    if (rc == 0) fi_close(&cq->fid);
    return rc;
  }
  int open_cntr(const std::function<void(fi_cntr_attr*)>& change) {
    fi_cntr_attr attr{};
    change(&attr);
    fid_cntr* cntr = nullptr;
    const int rc = fi_cntr_open(domain_.get(), &attr, &cntr, nullptr);
    if (rc == 0) fi_close(&cntr->fid);
    return rc;
  }
  int open_av(const std::function<void(fi_av_attr*)>& change) {
    fi_av_attr attr{};
    change(&attr);
    fid_av* av = nullptr;
    const int rc = fi_av_open(domain_.get(), &attr, &av, nullptr);
    if (rc == 0) fi_close(&av->fid);
    return rc;
  }

  Domain domain_;
};

TEST_F(Attributes, OfQueuesAreChecked) {
  ASSERT_TRUE(domain_.ok());
  EXPECT_EQ(open_cq([](fi_cq_attr*) {}), 0);
  EXPECT_LT(open_cq([](fi_cq_attr* attr) { attr->format = static_cast<fi_cq_format>(7); }), 0);
  EXPECT_LT(open_cq([](fi_cq_attr* attr) { attr->wait_obj = static_cast<fi_wait_obj>(7); }), 0);
  EXPECT_LT(open_cq([](fi_cq_attr* attr) { attr->flags = kUnknownFlag; }), 0);
  EXPECT_LT(open_cq([](fi_cq_attr* attr) { attr->wait_obj = FI_WAIT_SET; }), 0) << "no wait set";
}

TEST_F(Attributes, OfCountersAreChecked) {
  ASSERT_TRUE(domain_.ok());
  EXPECT_EQ(open_cntr([](fi_cntr_attr*) {}), 0);
  EXPECT_LT(open_cntr([](fi_cntr_attr* attr) { attr->events = static_cast<fi_cntr_events>(1); }),
            0);
  EXPECT_LT(open_cntr([](fi_cntr_attr* attr) { attr->wait_obj = static_cast<fi_wait_obj>(7); }), 0);
  EXPECT_LT(open_cntr([](fi_cntr_attr* attr) { attr->flags = 1; }), 0);
}

TEST_F(Attributes, OfAddressVectorsAreChecked) {
  ASSERT_TRUE(domain_.ok());
  EXPECT_EQ(open_av([](fi_av_attr*) {}), 0);
  EXPECT_LT(open_av([](fi_av_attr* attr) { attr->type = static_cast<fi_av_type>(3); }), 0);
  EXPECT_LT(open_av([](fi_av_attr* attr) { attr->flags = kUnknownFlag; }), 0);
  EXPECT_LT(open_av([](fi_av_attr* attr) { attr->flags = FI_READ; }), 0) << "read-only, no name";
}

// The address of an endpoint that was closed. A socket keeps its port, which endpoints of other
// programs take otherwise.
class GoneEndpoint {
 public:
  GoneEndpoint() {
    constexpr int kTries = 10;
    for (int i = 0; i < kTries && !kept_; ++i) {
      address_ = closed();
      kept_ = ::bind(socket_, reinterpret_cast<const sockaddr*>(address_.bytes.data()),
                     static_cast<socklen_t>(address_.size)) == 0;
    }
  }
  ~GoneEndpoint() { ::close(socket_); }
  GoneEndpoint(const GoneEndpoint&) = delete;
  GoneEndpoint& operator=(const GoneEndpoint&) = delete;

  bool ok() const { return kept_; }
  const Address& address() const { return address_; }

 private:
  static Address closed() {
    Pump idle;
    LocalParty brief(std::make_shared<Domain>(Options{}), Options{}, &idle);
    return brief.ok() ? brief.name() : Address{};
  }

  const int socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  Address address_;
  bool kept_ = false;
};

// A peer that is not there: the post or its completion says so, after the connect timeout.
TEST(Reachability, EndpointThatWasClosedIsUnreachable) {
  World world(Placement::kOneProcess, Options{});
  ASSERT_TRUE(world.ok());
  const GoneEndpoint gone;
  ASSERT_TRUE(gone.ok());
  const fi_addr_t absent = world.endpoint().insert(gone.address());
  const Posted posted =
      world.initiator().try_post({.kind = Kind::kSend, .length = 8, .peer = absent});
  if (posted.rc == 0) {
    world.initiator().wait_error(posted.token, FI_EHOSTUNREACH);
  } else {
    EXPECT_EQ(posted.rc, -FI_EHOSTUNREACH);
  }
  world.exchange();
}

}  // namespace
}  // namespace weft::conformance
