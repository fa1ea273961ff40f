// SPDX-License-Identifier: BSD-2-Clause
// Where FI_MR_LOCAL is demanded: is each local buffer checked against its descriptor? (fi_mr(3))
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "support/covering.h"
#include "support/level.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kRights =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::size_t kLength = 64;  // of the buffer in question; atomic operations use 8 bytes
constexpr int kLocal = 65536 + 16;   // docs/user/reasons.md

// Arguments of an operation: its peer, where it writes or reads there, and good buffers for what
// is not in question.
struct Surroundings {
  fid_ep* ep;
  fi_addr_t peer;
  std::uint64_t address;
  std::uint64_t key;
  char* good;
  void* descriptor;
  void* context;
};

// One operation with one buffer in question.
struct Use {
  const char* name;
  std::uint64_t right;
  std::size_t length;
  std::uint64_t cap;  // that an endpoint needs
  ssize_t (*post)(const Surroundings& at, void* buffer, void* descriptor);
};
std::ostream& operator<<(std::ostream& out, const Use& use) { return out << use.name; }

// A list whose second entry is in question.
struct Two {
  iovec list[2];
  void* descriptors[2];
  Two(const Surroundings& at, void* buffer, void* descriptor)
      : list{{at.good, 8}, {buffer, kLength}}, descriptors{at.descriptor, descriptor} {}
};

// A list of single elements for atomic operations, with the second entry in question.
struct TwoElements {
  fi_ioc list[2];
  mutable void* descriptors[2];
  TwoElements(const Surroundings& at, void* buffer, void* descriptor)
      : list{{at.good, 1}, {buffer, 1}}, descriptors{at.descriptor, descriptor} {}
};

struct AtomicMessage {
  fi_ioc operand;
  void* descriptor;
  fi_rma_ioc target;
  fi_msg_atomic msg;
  AtomicMessage(const Surroundings& at, void* buffer, void* descriptor_of_buffer, fi_op op)
      : operand{buffer, 1},
        descriptor(descriptor_of_buffer),
        target{at.address, 1, at.key},
        msg{&operand, &descriptor, 1, at.peer, &target, 1, FI_UINT64, op, at.context, 0} {}
};

fi_msg_rma rma(const Surroundings& at, const iovec& one, void** descriptor,
               const fi_rma_iov& remote) {
  return {&one, descriptor, 1, at.peer, &remote, 1, at.context, 0};
}

constexpr Use kUses[] = {
    {"Send", FI_SEND, kLength, FI_MSG,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_send(at.ep, buffer, kLength, descriptor, at.peer, at.context);
     }},
    {"Senddata", FI_SEND, kLength, FI_MSG,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_senddata(at.ep, buffer, kLength, descriptor, 1, at.peer, at.context);
     }},
    {"Sendv", FI_SEND, kLength, FI_MSG,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       Two two(at, buffer, descriptor);
       return fi_sendv(at.ep, two.list, two.descriptors, 2, at.peer, at.context);
     }},
    {"Sendmsg", FI_SEND, kLength, FI_MSG,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       const iovec one{buffer, kLength};
       const fi_msg msg{&one, &descriptor, 1, at.peer, at.context, 0};
       return fi_sendmsg(at.ep, &msg, FI_COMPLETION);
     }},
    {"Tsend", FI_SEND, kLength, FI_TAGGED,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_tsend(at.ep, buffer, kLength, descriptor, at.peer, 5, at.context);
     }},
    {"Tsendv", FI_SEND, kLength, FI_TAGGED,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       Two two(at, buffer, descriptor);
       return fi_tsendv(at.ep, two.list, two.descriptors, 2, at.peer, 5, at.context);
     }},
    {"Tsenddata", FI_SEND, kLength, FI_TAGGED,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_tsenddata(at.ep, buffer, kLength, descriptor, 1, at.peer, 5, at.context);
     }},
    {"Tsendmsg", FI_SEND, kLength, FI_TAGGED,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       const iovec one{buffer, kLength};
       const fi_msg_tagged msg{&one, &descriptor, 1, at.peer, 5, 0, at.context, 0};
       return fi_tsendmsg(at.ep, &msg, FI_COMPLETION);
     }},
    {"Recv", FI_RECV, kLength, FI_MSG,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_recv(at.ep, buffer, kLength, descriptor, FI_ADDR_UNSPEC, at.context);
     }},
    {"Recvv", FI_RECV, kLength, FI_MSG,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       Two two(at, buffer, descriptor);
       return fi_recvv(at.ep, two.list, two.descriptors, 2, FI_ADDR_UNSPEC, at.context);
     }},
    {"Trecv", FI_RECV, kLength, FI_TAGGED,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_trecv(at.ep, buffer, kLength, descriptor, FI_ADDR_UNSPEC, 5, 0, at.context);
     }},
    {"Trecvmsg", FI_RECV, kLength, FI_TAGGED,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       const iovec one{buffer, kLength};
       const fi_msg_tagged msg{&one, &descriptor, 1, FI_ADDR_UNSPEC, 5, 0, at.context, 0};
       return fi_trecvmsg(at.ep, &msg, FI_COMPLETION);
     }},
    {"Trecvv", FI_RECV, kLength, FI_TAGGED,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       Two two(at, buffer, descriptor);
       return fi_trecvv(at.ep, two.list, two.descriptors, 2, FI_ADDR_UNSPEC, 5, 0, at.context);
     }},
    {"Recvmsg", FI_RECV, kLength, FI_MSG,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       const iovec one{buffer, kLength};
       const fi_msg msg{&one, &descriptor, 1, FI_ADDR_UNSPEC, at.context, 0};
       return fi_recvmsg(at.ep, &msg, FI_COMPLETION);
     }},
    {"Write", FI_WRITE, kLength, FI_RMA,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_write(at.ep, buffer, kLength, descriptor, at.peer, at.address, at.key, at.context);
     }},
    {"Writev", FI_WRITE, kLength, FI_RMA,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       Two two(at, buffer, descriptor);
       return fi_writev(at.ep, two.list, two.descriptors, 2, at.peer, at.address, at.key,
                        at.context);
     }},
    {"Writemsg", FI_WRITE, kLength, FI_RMA,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       const iovec one{buffer, kLength};
       const fi_rma_iov remote{at.address, kLength, at.key};
       const fi_msg_rma msg = rma(at, one, &descriptor, remote);
       return fi_writemsg(at.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
     }},
    {"Writedata", FI_WRITE, kLength, FI_RMA,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_writedata(at.ep, buffer, kLength, descriptor, 1, at.peer, at.address, at.key,
                           at.context);
     }},
    {"Read", FI_READ, kLength, FI_RMA,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_read(at.ep, buffer, kLength, descriptor, at.peer, at.address, at.key, at.context);
     }},
    {"Readv", FI_READ, kLength, FI_RMA,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       Two two(at, buffer, descriptor);
       return fi_readv(at.ep, two.list, two.descriptors, 2, at.peer, at.address, at.key,
                       at.context);
     }},
    {"Readmsg", FI_READ, kLength, FI_RMA,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       const iovec one{buffer, kLength};
       const fi_rma_iov remote{at.address, kLength, at.key};
       const fi_msg_rma msg = rma(at, one, &descriptor, remote);
       return fi_readmsg(at.ep, &msg, FI_COMPLETION);
     }},
    {"AtomicOperand", FI_WRITE, 8, FI_ATOMIC,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_atomic(at.ep, buffer, 1, descriptor, at.peer, at.address, at.key, FI_UINT64,
                        FI_ATOMIC_WRITE, at.context);
     }},
    {"FetchOperand", FI_WRITE, 8, FI_ATOMIC,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_fetch_atomic(at.ep, buffer, 1, descriptor, at.good, at.descriptor, at.peer,
                              at.address, at.key, FI_UINT64, FI_ATOMIC_WRITE, at.context);
     }},
    {"FetchResult", FI_READ, 8, FI_ATOMIC,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_fetch_atomic(at.ep, at.good, 1, at.descriptor, buffer, descriptor, at.peer,
                              at.address, at.key, FI_UINT64, FI_ATOMIC_WRITE, at.context);
     }},
    {"CompareOperand", FI_WRITE, 8, FI_ATOMIC,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_compare_atomic(at.ep, buffer, 1, descriptor, at.good, at.descriptor, at.good + 8,
                                at.descriptor, at.peer, at.address, at.key, FI_UINT64, FI_CSWAP_NE,
                                at.context);
     }},
    {"CompareCompare", FI_WRITE, 8, FI_ATOMIC,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_compare_atomic(at.ep, at.good, 1, at.descriptor, buffer, descriptor, at.good + 8,
                                at.descriptor, at.peer, at.address, at.key, FI_UINT64, FI_CSWAP_NE,
                                at.context);
     }},
    {"CompareResult", FI_READ, 8, FI_ATOMIC,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       return fi_compare_atomic(at.ep, at.good, 1, at.descriptor, at.good + 8, at.descriptor,
                                buffer, descriptor, at.peer, at.address, at.key, FI_UINT64,
                                FI_CSWAP_NE, at.context);
     }},
    {"AtomicvOperand", FI_WRITE, 8, FI_ATOMIC,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       const TwoElements two(at, buffer, descriptor);
       return fi_atomicv(at.ep, two.list, two.descriptors, 2, at.peer, at.address, at.key,
                         FI_UINT64, FI_ATOMIC_WRITE, at.context);
     }},
    {"AtomicmsgOperand", FI_WRITE, 8, FI_ATOMIC,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       const AtomicMessage message(at, buffer, descriptor, FI_ATOMIC_WRITE);
       return fi_atomicmsg(at.ep, &message.msg, FI_COMPLETION);
     }},
    {"FetchmsgResult", FI_READ, 8, FI_ATOMIC,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       const AtomicMessage message(at, at.good, at.descriptor, FI_ATOMIC_WRITE);
       fi_ioc result{buffer, 1};
       return fi_fetch_atomicmsg(at.ep, &message.msg, &result, &descriptor, 1, FI_COMPLETION);
     }},
    {"ComparemsgCompare", FI_WRITE, 8, FI_ATOMIC,
     [](const Surroundings& at, void* buffer, void* descriptor) {
       const AtomicMessage message(at, at.good, at.descriptor, FI_CSWAP_NE);
       const fi_ioc compare{buffer, 1};
       fi_ioc result{at.good + 8, 1};
       void* good = at.descriptor;
       return fi_compare_atomicmsg(at.ep, &message.msg, &compare, &descriptor, 1, &result, &good, 1,
                                   FI_COMPLETION);
     }},
};

Options local_options() {
  Options options;
  options.mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE);
  options.caps |= FI_ATOMIC | FI_TRIGGER;
  return options;
}

// Two endpoints of one domain, a buffer in question and memory that the peer exposes.
class LocalDescriptorsTest : public testing::Test {
 protected:
  LocalDescriptorsTest(Placement placement, const Options& options) : world_(placement, options) {
    if (!world_.ok()) return;
    std::ranges::fill(memory_, 'm');
    std::ranges::fill(exposed_, 'e');
    std::ranges::fill(good_, 'g');
    exposed_region_ = reg(exposed_.data(), exposed_.size(), kRights);
    good_region_ = reg(good_.data(), good_.size(), kRights);
  }

  Endpoint& peer() { return static_cast<LocalParty&>(world_.target()).endpoint(); }
  Fid<fid_mr> reg(void* base, std::size_t length, std::uint64_t access, fid_domain* in = nullptr) {
    if (in == nullptr) in = world_.endpoint().domain()->get();
    return open_fid<fid_mr>([&](fid_mr** out) {
      return fi_mr_reg(in, base, length, access, 0, Endpoint::next_key(), 0, out, nullptr);
    });
  }
  Surroundings surroundings() {
    const bool virtual_addresses =
        (world_.endpoint().info()->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    return {world_.ep(),
            world_.to_target(),
            virtual_addresses ? reinterpret_cast<std::uint64_t>(exposed_.data()) : 0,
            fi_mr_key(exposed_region_.get()),
            good_.data(),
            fi_mr_desc(good_region_.get()),
            &context_};
  }
  Completion completion_of(Endpoint& at, void* context) {
    std::optional<Completion> found;
    EXPECT_TRUE(world_.pump().until([&] { return (found = at.take(context)).has_value(); }));
    return found.value_or(Completion{});
  }
  void expect_refused(ssize_t rc, int reason) {
    ASSERT_EQ(rc, 0);
    const Completion ended = completion_of(world_.endpoint(), &context_);
    EXPECT_EQ(ended.err, FI_EACCES);
    EXPECT_EQ(ended.prov_errno, kLocal + reason);
    const std::string text =
        fi_cq_strerror(world_.endpoint().cq(), ended.prov_errno, nullptr, nullptr, 0);
    EXPECT_NE(text.find(reason == 4 ? "wraps" : "local buffer"), std::string::npos) << text;
    EXPECT_TRUE(std::ranges::all_of(exposed_, [](char c) { return c == 'e'; }));
    EXPECT_TRUE(std::ranges::all_of(good_, [](char c) { return c == 'g'; }));
    EXPECT_TRUE(std::ranges::all_of(memory_, [](char c) { return c == 'm'; }));
  }
  // The endpoint goes on, and the peer has received nothing before this message.
  void exchange() {
    std::array<char, kLength> in{};
    const auto region = reg(in.data(), in.size(), FI_RECV);
    std::array<char, 16> contexts{};
    void* into = fi_mr_desc(region.get());
    void* from = fi_mr_desc(good_region_.get());
    const iovec whole{in.data(), in.size()};
    const iovec few{good_.data(), 8};
    const fi_msg receive{&whole, &into, 1, FI_ADDR_UNSPEC, contexts.data(), 0};
    const fi_msg send{&few, &from, 1, world_.to_target(), contexts.data() + 8, 0};
    ASSERT_EQ(fi_recvmsg(peer().ep(), &receive, FI_COMPLETION), 0);
    good_[0] = 'x';
    ASSERT_EQ(fi_sendmsg(world_.ep(), &send, FI_COMPLETION), 0);
    EXPECT_EQ(completion_of(peer(), contexts.data()).err, 0);
    EXPECT_EQ(completion_of(world_.endpoint(), contexts.data() + 8).err, 0);
    EXPECT_EQ(in[0], 'x');
    good_[0] = 'g';
    EXPECT_EQ(world_.endpoint().untaken() + peer().untaken(), 0u);
  }

  std::array<char, 4096> memory_{};  // with the buffer in question
  std::array<char, 4096> exposed_{};
  std::array<char, 64> good_{};
  World world_;
  Fid<fid_mr> exposed_region_;
  Fid<fid_mr> good_region_;
  fi_context2 context_{};
};

using LocalCase = std::tuple<Use, Placement>;

class LocalDescriptors : public LocalDescriptorsTest,
                         public testing::WithParamInterface<LocalCase> {
 protected:
  LocalDescriptors() : LocalDescriptorsTest(std::get<1>(GetParam()), local_options()) {}
  const Use& use() const { return std::get<0>(GetParam()); }
  char* buffer() { return memory_.data() + 1024; }
  ssize_t post(void* at, void* descriptor) { return use().post(surroundings(), at, descriptor); }
};

TEST_P(LocalDescriptors, ThatCoverTheirBufferAreAccepted) {
  ASSERT_TRUE(world_.ok());
  const auto region = reg(buffer(), use().length, use().right);
  const bool receives = use().right == FI_RECV;
  const bool tagged = use().cap == FI_TAGGED;
  ASSERT_EQ(post(buffer(), fi_mr_desc(region.get())), 0);
  if (receives) {
    const auto sent = tagged ? fi_tinject(peer().ep(), good_.data(), 32, world_.to_initiator(), 5)
                             : fi_inject(peer().ep(), good_.data(), 32, world_.to_initiator());
    ASSERT_EQ(sent, 0) << "injected bytes need no descriptor";
  }
  EXPECT_EQ(completion_of(world_.endpoint(), &context_).err, 0);
  if (receives || use().right == FI_READ) {
    EXPECT_NE(*buffer(), 'm');
  }
}

INSTANTIATE_TEST_SUITE_P(Local, LocalDescriptors,
                         testing::Combine(testing::ValuesIn(kUses),
                                          testing::Values(Placement::kOneProcess,
                                                          Placement::kConnected)),
                         [](const testing::TestParamInfo<LocalCase>& one) {
                           return std::string(std::get<0>(one.param).name) +
                                  to_string(std::get<1>(one.param));
                         });

class BadLocalDescriptors;

// A buffer and a descriptor that do not fit.
struct Question {
  void* buffer;
  void* descriptor;
};
struct Fault {
  const char* name;
  int reason;
  Question (BadLocalDescriptors::*make)();
};

struct BadPoint {
  Use use;
  Fault fault;
  Placement placement;
  Reporting report;
};
std::string name_of(const BadPoint& point) {
  return std::string(point.use.name) + "_" + point.fault.name + "_" + to_string(point.placement) +
         "_" + point.report.name;
}
std::ostream& operator<<(std::ostream& out, const BadPoint& point) { return out << name_of(point); }

class BadLocalDescriptors : public LocalDescriptorsTest,
                            public testing::WithParamInterface<BadPoint> {
 public:
  Question none() { return {buffer(), nullptr}; }
  Question closed() {
    auto region = reg(memory_.data(), memory_.size(), kRights);
    void* const closed = fi_mr_desc(region.get());
    region.reset();
    EXPECT_NE(fi_mr_desc(use_region(memory_.data(), memory_.size())), closed);
    return {buffer(), closed};
  }
  Question garbage() {
    return {buffer(), static_cast<char*>(fi_mr_desc(use_region(buffer(), length()))) + 1};
  }
  Question of_another_domain() {
    other_ = std::make_unique<Domain>(local_options());
    region_ = reg(memory_.data(), memory_.size(), kRights, other_->get());
    return {buffer(), fi_mr_desc(region_.get())};
  }
  Question before_start() { return beside(buffer() - 1); }
  Question past_end() { return beside(buffer() + 1); }
  Question far_past_end() { return beside(buffer() + 1000); }
  Question wrapping() { return beside(reinterpret_cast<char*>(~std::uintptr_t{0} - 3)); }
  Question without_the_right() {
    return {buffer(), fi_mr_desc(use_region(memory_.data(), memory_.size(),
                                            kRights & ~GetParam().use.right))};
  }

 protected:
  BadLocalDescriptors() : LocalDescriptorsTest(GetParam().placement, options()) {}
  static Options options() {
    Options options = local_options();
    GetParam().report.choose(options);
    return options;
  }
  char* buffer() { return memory_.data() + 1024; }
  std::size_t length() const { return GetParam().use.length; }
  fid_mr* use_region(void* base, std::size_t length, std::uint64_t rights = kRights) {
    region_ = reg(base, length, rights);
    return region_.get();
  }
  // The descriptor belongs to a region of exactly the bytes at buffer().
  Question beside(char* at) { return {at, fi_mr_desc(use_region(buffer(), length()))}; }

  std::unique_ptr<Domain> other_;
  Fid<fid_mr> region_;
};

constexpr Fault kFaults[] = {
    {"None", 1, &BadLocalDescriptors::none},
    {"Closed", 1, &BadLocalDescriptors::closed},
    {"Garbage", 1, &BadLocalDescriptors::garbage},
    {"OtherDomain", 1, &BadLocalDescriptors::of_another_domain},
    {"BeforeStart", 2, &BadLocalDescriptors::before_start},
    {"PastEnd", 3, &BadLocalDescriptors::past_end},
    {"FarPastEnd", 3, &BadLocalDescriptors::far_past_end},
    {"Wrapping", 4, &BadLocalDescriptors::wrapping},
    {"NoRight", 5, &BadLocalDescriptors::without_the_right},
};

TEST_P(BadLocalDescriptors, AreRefused) {
  ASSERT_TRUE(world_.ok());
  const Question question = (this->*GetParam().fault.make)();
  expect_refused(GetParam().use.post(surroundings(), question.buffer, question.descriptor),
                 GetParam().fault.reason);
  exchange();
}

// Every pair of values, so each operation with each fault; or all points (support/covering.h).
std::vector<BadPoint> bad_points() {
  constexpr Placement kPlacements[] = {Placement::kOneProcess, Placement::kConnected};
  const Matrix matrix{
      {std::size(kUses), std::size(kFaults), std::size(kPlacements), std::size(kReports)},
      [](Value, Value) { return true; }};
  std::vector<BadPoint> points;
  for (const Choice& choice : chosen_points(matrix)) {
    points.push_back(
        {kUses[choice[0]], kFaults[choice[1]], kPlacements[choice[2]], kReports[choice[3]]});
  }
  return points;
}

INSTANTIATE_TEST_SUITE_P(Local, BadLocalDescriptors, testing::ValuesIn(bad_points()),
                         [](const testing::TestParamInfo<BadPoint>& one) {
                           return name_of(one.param);
                         });

class LocalDescriptorsOfMessages : public LocalDescriptorsTest {
 protected:
  LocalDescriptorsOfMessages() : LocalDescriptorsTest(Placement::kOneProcess, local_options()) {}
};

TEST_F(LocalDescriptorsOfMessages, BuffersOfNoBytesNeedNone) {
  ASSERT_TRUE(world_.ok());
  ASSERT_EQ(fi_send(world_.ep(), nullptr, 0, nullptr, world_.to_target(), &context_), 0);
  EXPECT_EQ(completion_of(world_.endpoint(), &context_).err, 0);
}

TEST_F(LocalDescriptorsOfMessages, InjectedBuffersNeedNone) {
  ASSERT_TRUE(world_.ok());
  const Surroundings at = surroundings();
  const iovec one{memory_.data(), 16};
  const fi_msg msg{&one, nullptr, 1, at.peer, at.context, 0};
  ASSERT_EQ(fi_sendmsg(at.ep, &msg, FI_INJECT | FI_COMPLETION), 0);
  EXPECT_EQ(completion_of(world_.endpoint(), &context_).err, 0);
  EXPECT_EQ(fi_inject_write(at.ep, memory_.data(), 16, at.peer, at.address, at.key), 0);
  EXPECT_EQ(fi_inject_atomic(at.ep, memory_.data(), 1, at.peer, at.address + 16, at.key, FI_UINT64,
                             FI_ATOMIC_WRITE),
            0);
  EXPECT_TRUE(world_.pump().until([&] { return exposed_[23] == 'm' && exposed_[15] == 'm'; }));
  const fi_ioc operand{memory_.data(), 1};
  const fi_rma_ioc target{at.address, 1, at.key};
  fi_msg_atomic atomic{&operand,  nullptr,         1,          at.peer, &target, 1,
                       FI_UINT64, FI_ATOMIC_WRITE, at.context, 0};
  fi_ioc result{memory_.data(), 1};
  std::ranges::fill(exposed_, 'e');
  void* none = nullptr;
  expect_refused(fi_fetch_atomicmsg(at.ep, &atomic, &result, &none, 1, FI_INJECT | FI_COMPLETION),
                 1);
}

TEST_F(LocalDescriptorsOfMessages, EverySegmentOfARegionIsCovered) {
  ASSERT_TRUE(world_.ok());
  const iovec parts[] = {{memory_.data(), 100}, {memory_.data() + 500, 100}};
  fid_mr* opened = nullptr;
  const int rc = fi_mr_regv(world_.endpoint().domain()->get(), parts, 2, kRights, 0,
                            Endpoint::next_key(), 0, &opened, nullptr);
  if (world_.endpoint().info()->domain_attr->mr_iov_limit < 2) {
    EXPECT_EQ(rc, -FI_EINVAL);
    return;
  }
  ASSERT_EQ(rc, 0);
  const Fid<fid_mr> region(opened);
  const auto send = [&](std::size_t at) {
    return fi_send(world_.ep(), memory_.data() + at, 50, fi_mr_desc(opened), world_.to_target(),
                   &context_);
  };
  for (const std::size_t at : {std::size_t{0}, std::size_t{50}, std::size_t{500}}) {
    ASSERT_EQ(send(at), 0);
    EXPECT_EQ(completion_of(world_.endpoint(), &context_).err, 0) << at;
  }
  expect_refused(send(300), 3);
  expect_refused(send(551), 3);
}

TEST_F(LocalDescriptorsOfMessages, TriggeredOperationsAreRefusedWhenTheyAreDue) {
  ASSERT_TRUE(world_.ok());
  fi_cntr_attr attributes{};
  attributes.events = FI_CNTR_EVENTS_COMP;
  const auto counter = open_fid<fid_cntr>([&](fid_cntr** out) {
    return fi_cntr_open(world_.endpoint().domain()->get(), &attributes, out, nullptr);
  });
  fi_triggered_context2 when{};
  when.event_type = FI_TRIGGER_THRESHOLD;
  when.trigger.threshold = {counter.get(), 1};
  const iovec one{memory_.data(), 16};
  const fi_msg msg{&one, nullptr, 1, world_.to_target(), &when, 0};
  ASSERT_EQ(fi_sendmsg(world_.ep(), &msg, FI_TRIGGER | FI_COMPLETION), 0);
  world_.pump().settle();
  EXPECT_EQ(world_.endpoint().untaken(), 0u);
  ASSERT_EQ(fi_cntr_add(counter.get(), 1), 0);
  const Completion ended = completion_of(world_.endpoint(), &when);
  EXPECT_EQ(ended.err, FI_EACCES);
  EXPECT_EQ(ended.prov_errno, kLocal + 1);
  exchange();
}

class LocalDescriptorsOfSharedReceives : public LocalDescriptorsTest {
 protected:
  static Options options() {
    Options options = local_options();
    options.shares = FI_RECV;
    return options;
  }
  LocalDescriptorsOfSharedReceives() : LocalDescriptorsTest(Placement::kTwoDomains, options()) {}
};

TEST_F(LocalDescriptorsOfSharedReceives, AreChecked) {
  ASSERT_TRUE(world_.ok());
  fid_ep* const shared = world_.endpoint().domain()->shared_receive();
  expect_refused(fi_recv(shared, memory_.data(), 16, nullptr, FI_ADDR_UNSPEC, &context_), 1);
}

class DatagramLocalDescriptors : public LocalDescriptorsTest {
 protected:
  static Options options() {
    Options options = datagrams();
    options.mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE);
    return options;
  }
  DatagramLocalDescriptors() : LocalDescriptorsTest(Placement::kOneProcess, options()) {}
};

TEST_F(DatagramLocalDescriptors, AreChecked) {
  ASSERT_TRUE(world_.ok());
  const int modes = world_.endpoint().info()->domain_attr->mr_mode;
  EXPECT_EQ(modes & (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY), FI_MR_LOCAL);
  expect_refused(fi_send(world_.ep(), memory_.data(), 16, nullptr, world_.to_target(), &context_),
                 1);
  expect_refused(fi_recv(world_.ep(), memory_.data(), 16, nullptr, FI_ADDR_UNSPEC, &context_), 1);
  void* const descriptor = fi_mr_desc(good_region_.get());
  ASSERT_EQ(fi_send(world_.ep(), good_.data(), 16, descriptor, world_.to_target(), &context_), 0);
  EXPECT_EQ(completion_of(world_.endpoint(), &context_).err, 0);
}

}  // namespace
}  // namespace weft::conformance
