// SPDX-License-Identifier: BSD-2-Clause
// Is an operation on a local buffer that is not mapped an error, and not the end of the program?
// (fi_cq(3): FI_EFAULT)
#include <rdma/fi_atomic.h>
#include <signal.h>
#include <sys/mman.h>

#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "support/atomic.h"
#include "support/delivery.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kArea = 2 << 20;
constexpr std::size_t kSizes[] = {1, 8, 100, 1000, 6000, 65536, 1 << 20};

constexpr Kind kSends[] = {Kind::kSend,     Kind::kSendv,      Kind::kSendmsg, Kind::kInject,
                           Kind::kSenddata, Kind::kTsend,      Kind::kTsendv,  Kind::kTsendmsg,
                           Kind::kTinject,  Kind::kTinjectdata};
constexpr Kind kReceives[] = {Kind::kRecv,  Kind::kRecvv,  Kind::kRecvmsg,
                              Kind::kTrecv, Kind::kTrecvv, Kind::kTrecvmsg};
constexpr Kind kAccesses[] = {Kind::kWrite,     Kind::kWritev, Kind::kWritemsg, Kind::kInjectWrite,
                              Kind::kWritedata, Kind::kRead,   Kind::kReadv,    Kind::kReadmsg};

// Memory whose first half may be used and whose second half may not.
class HalfMapped {
 public:
  HalfMapped()
      : base_(static_cast<std::uint8_t*>(::mmap(nullptr, 2 * kArea, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::mprotect(base_ + kArea, kArea, PROT_NONE);
  }
  ~HalfMapped() { ::munmap(base_, 2 * kArea); }
  HalfMapped(const HalfMapped&) = delete;
  HalfMapped& operator=(const HalfMapped&) = delete;

  // A buffer of which `good` bytes may be used and all that follow may not.
  std::uint8_t* buffer(std::size_t good) const { return base_ + kArea - good; }

 private:
  std::uint8_t* base_;
};

class UnmappedBuffer : public PlacementTest {
 protected:
  UnmappedBuffer() : world_(GetParam(), with_atomics()) {}
  static Options with_atomics() {
    Options options;
    options.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    return options;
  }

  // The answer of `call`, which takes a context, or the error of its completion.
  template <class Call>
  int outcome_of(Call call) {
    ssize_t rc = -FI_EAGAIN;
    std::optional<Completion> completion;
    const bool ended = world_.pump().until([&] {
      if (rc == -FI_EAGAIN) rc = call(&context_);
      world_.endpoint().poll();
      completion = world_.endpoint().take(&context_);
      return completion.has_value() || (rc != 0 && rc != -FI_EAGAIN);
    });
    EXPECT_TRUE(ended);
    return rc != 0 ? static_cast<int>(-rc) : completion ? completion->err : -1;
  }
  int issue_at(const Operation& operation, std::uint8_t* buffer) {
    return outcome_of(
        [&](void* context) { return issue(world_.ep(), operation, buffer, context); });
  }
  // Earlier sends have arrived when this returns; receives of the tests do not match it.
  void flush() {
    constexpr std::uint64_t kTag = 4;
    const Token received = world_.target().post({.kind = Kind::kTrecv, .length = 8, .tag = kTag});
    world_.initiator().wait_success(world_.initiator().post(
        {.kind = Kind::kTsend, .length = 8, .peer = world_.to_target(), .tag = kTag}));
    world_.target().wait_success(received);
  }
  // Each size with a buffer that is not mapped at all, and with one that lacks its last byte.
  template <class Try>
  void try_all(std::size_t limit, Try attempt) {
    for (const std::size_t length : kSizes) {
      if (length > limit) break;
      for (const std::size_t good : {std::size_t{0}, length - 1}) {
        SCOPED_TRACE(testing::Message() << length << " bytes, the first " << good << " mapped");
        attempt(length, memory_.buffer(good));
        world_.exchange();
        if (HasFailure()) return;
      }
    }
  }
  std::size_t inject_size() { return world_.endpoint().info()->tx_attr->inject_size; }

  HalfMapped memory_;
  World world_;
  fi_context2 context_{};
};

TEST_P(UnmappedBuffer, OfAMessageThatIsSent) {
  ASSERT_TRUE(world_.ok());
  for (const Kind kind : kSends) {
    SCOPED_TRACE(traits(kind).name);
    const Kind receive = traits(kind).tagged ? Kind::kTrecv : Kind::kRecv;
    try_all(traits(kind).inject ? inject_size() : kArea, [&](std::size_t length, auto* buffer) {
      const Token received = world_.target().post({.kind = receive, .length = length, .tag = 3});
      const Operation operation{
          .kind = kind, .length = length, .peer = world_.to_target(), .tag = 3};
      EXPECT_EQ(issue_at(operation, buffer), FI_EFAULT);
      flush();
      if (world_.target().cancel(received) == 0) {
        world_.target().wait_error(received, FI_ECANCELED);
      } else {
        const auto got = world_.target().wait(received);
        EXPECT_TRUE(got.has_value() && got->err != 0);
      }
    });
  }
}

TEST_P(UnmappedBuffer, OfAReceive) {
  ASSERT_TRUE(world_.ok());
  if (GetParam() == Placement::kSelf) GTEST_SKIP() << "the sender's completion has its test above";
  for (const Kind kind : kReceives) {
    SCOPED_TRACE(traits(kind).name);
    const Kind send = traits(kind).tagged ? Kind::kTsend : Kind::kSend;
    try_all(kArea, [&](std::size_t length, auto* buffer) {
      const Operation operation{.kind = kind, .length = length, .tag = 3};
      ASSERT_EQ(issue(world_.ep(), operation, buffer, &context_), 0);
      const Token sent = world_.target().post(
          {.kind = send, .length = length, .peer = world_.to_initiator(), .tag = 3});
      EXPECT_EQ(outcome_of([](void*) { return 0; }), FI_EFAULT);
      // The sender's buffer is its own again: of what the receiver could not place, it may hear.
      const auto completion = world_.target().wait(sent);
      ASSERT_TRUE(completion.has_value());
      EXPECT_TRUE(completion->err == 0 || completion->err == FI_EFAULT) << completion->err;
    });
  }
}

TEST_P(UnmappedBuffer, OfAnAccess) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = kArea});
  for (const Kind kind : kAccesses) {
    SCOPED_TRACE(traits(kind).name);
    try_all(traits(kind).inject ? inject_size() : kArea, [&](std::size_t length, auto* buffer) {
      const Operation operation{.kind = kind,
                                .length = length,
                                .peer = world_.to_target(),
                                .remote_address = region.base,
                                .key = region.key};
      EXPECT_EQ(issue_at(operation, buffer), FI_EFAULT);
    });
  }
}

TEST_P(UnmappedBuffer, OfAnAtomicOperation) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 64});
  std::uint64_t good = 1;
  void* const bad = memory_.buffer(0);
  const fi_addr_t peer = world_.to_target();
  EXPECT_EQ(outcome_of([&](void* context) {
              return fi_atomic(world_.ep(), bad, 1, nullptr, peer, region.base, region.key,
                               FI_UINT64, FI_SUM, context);
            }),
            FI_EFAULT);
  EXPECT_EQ(outcome_of([&](void* context) {
              return fi_fetch_atomic(world_.ep(), &good, 1, nullptr, bad, nullptr, peer,
                                     region.base, region.key, FI_UINT64, FI_SUM, context);
            }),
            FI_EFAULT);
  EXPECT_EQ(outcome_of([&](void* context) {
              return fi_compare_atomic(world_.ep(), &good, 1, nullptr, bad, nullptr, &good, nullptr,
                                       peer, region.base, region.key, FI_UINT64, FI_CSWAP, context);
            }),
            FI_EFAULT);
  world_.exchange();
}

// The pages of a read-only buffer are there, but nothing can be placed in them.
TEST_P(UnmappedBuffer, OrOneThatCannotBeWritten) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = kArea});
  void* const constant = ::mmap(nullptr, kArea, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(constant, MAP_FAILED);
  for (const std::size_t length : kSizes) {
    const Operation operation{.kind = Kind::kRead,
                              .length = length,
                              .peer = world_.to_target(),
                              .remote_address = region.base,
                              .key = region.key};
    EXPECT_EQ(issue_at(operation, static_cast<std::uint8_t*>(constant)), FI_EFAULT) << length;
    world_.exchange();
  }
  ::munmap(constant, kArea);
}

// Every piece of a list is looked at.
TEST_P(UnmappedBuffer, OrTheSecondPieceOfOne) {
  ASSERT_TRUE(world_.ok());
  std::uint8_t good[4096] = {};
  for (const std::size_t length : {std::size_t{20}, sizeof good}) {
    SCOPED_TRACE(length);
    iovec pieces[] = {{good, length}, {memory_.buffer(length - 1), length}};
    const Token received = world_.target().post({.kind = Kind::kRecv, .length = 2 * length});
    EXPECT_EQ(outcome_of([&](void* context) {
                return fi_sendv(world_.ep(), pieces, nullptr, 2, world_.to_target(), context);
              }),
              FI_EFAULT);
    EXPECT_EQ(world_.target().cancel(received), 0);
    world_.target().wait_error(received, FI_ECANCELED);
    world_.exchange();
    if (GetParam() == Placement::kSelf) continue;
    ASSERT_EQ(fi_recvv(world_.ep(), pieces, nullptr, 2, FI_ADDR_UNSPEC, &context_), 0);
    const Token sent = world_.target().post(
        {.kind = Kind::kSend, .length = 2 * length, .peer = world_.to_initiator()});
    EXPECT_EQ(outcome_of([](void*) { return 0; }), FI_EFAULT);
    world_.target().wait(sent);
    world_.exchange();
  }
}

// A program that frees a buffer while a receive uses it.
TEST_P(UnmappedBuffer, OrOneThatIsUnmappedAfterItWasPosted) {
  ASSERT_TRUE(world_.ok());
  if (GetParam() == Placement::kSelf) GTEST_SKIP() << "the sender's completion has its test above";
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    // Far from where the kernel would map something else in its place.
    void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
    void* const buffer =
        ::mmap(far, kArea, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(buffer, MAP_FAILED);
    ASSERT_EQ(fi_recv(world_.ep(), buffer, length, nullptr, FI_ADDR_UNSPEC, &context_), 0);
    ASSERT_EQ(::munmap(buffer, kArea), 0);
    const Token sent = world_.target().post(
        {.kind = Kind::kSend, .length = length, .peer = world_.to_initiator()});
    EXPECT_EQ(outcome_of([](void*) { return 0; }), FI_EFAULT);
    world_.target().wait(sent);
    world_.exchange();
    if (HasFailure()) return;
  }
}

// The kernel ends a process whose thread blocks the signal of a fault.
void block_all_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &all, nullptr), 0);
}

TEST_P(UnmappedBuffer, InAThreadThatBlocksAllSignals) {
  ASSERT_TRUE(world_.ok());
  std::thread([&] {
    block_all_signals();
    const Operation send{.kind = Kind::kSend, .length = 8, .peer = world_.to_target()};
    EXPECT_EQ(issue_at(send, memory_.buffer(0)), FI_EFAULT);
    if (GetParam() == Placement::kSelf) return;
    ASSERT_EQ(fi_recv(world_.ep(), memory_.buffer(0), 8, nullptr, FI_ADDR_UNSPEC, &context_), 0);
    const Token sent =
        world_.target().post({.kind = Kind::kSend, .length = 8, .peer = world_.to_initiator()});
    EXPECT_EQ(outcome_of([](void*) { return 0; }), FI_EFAULT);
    world_.target().wait(sent);
  }).join();
}

// A peer's access is a fault of the thread that serves it.
TEST_P(UnmappedBuffer, OfARegionThatAThreadServesWhichBlocksAllSignals) {
  ASSERT_TRUE(world_.ok());
  void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
  void* const memory =
      ::mmap(far, kArea, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto region = open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(world_.endpoint().domain()->get(), memory, kArea,
                     FI_REMOTE_READ | FI_REMOTE_WRITE, 0, Endpoint::next_key(), 0, out, nullptr);
  });
  ASSERT_NE(region, nullptr);
  const bool by_address = (world_.endpoint().info()->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  ASSERT_EQ(::munmap(memory, kArea), 0);
  std::thread([&] {
    block_all_signals();
    for (const Kind kind : {Kind::kWrite, Kind::kRead}) {
      const Token access = world_.target().post(
          {.kind = kind,
           .length = 64,
           .peer = world_.to_initiator(),
           .remote_address = by_address ? reinterpret_cast<std::uintptr_t>(memory) : 0,
           .key = fi_mr_key(region.get())});
      const auto completion = world_.target().wait(access);
      EXPECT_TRUE(completion.has_value() && completion->err != 0);
    }
  }).join();
}

INSTANTIATE_TEST_SUITE_P(Refusal, UnmappedBuffer,
                         testing::Values(Placement::kTwoProcesses, Placement::kOneProcess,
                                         Placement::kTwoDomains, Placement::kSelf,
                                         Placement::kConnectedProcesses, Placement::kConnected),
                         placement_name);

class UnmappedDatagram : public testing::TestWithParam<Placement> {
 protected:
  // The error of the operation that has context_, or -1 if it has not ended in that time.
  int error(std::chrono::milliseconds limit = patience()) {
    std::optional<Completion> completion;
    world_.pump().until(
        [&] { return (completion = world_.endpoint().take(&context_)).has_value(); }, limit);
    return completion ? completion->err : -1;
  }

  const HalfMapped memory_;
  World world_{GetParam(), datagrams()};
  fi_context2 context_{};
};

TEST_P(UnmappedDatagram, IsAnErrorWhereItIsSentAndWhereItIsReceived) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : {1, 8, 100, 1000}) {
    SCOPED_TRACE(length);
    void* const buffer = memory_.buffer(length / 2);
    if (length <= world_.endpoint().info()->tx_attr->inject_size) {
      EXPECT_EQ(fi_inject(world_.ep(), buffer, length, world_.to_target()), -FI_EFAULT);
    }
    ASSERT_EQ(fi_send(world_.ep(), buffer, length, nullptr, world_.to_target(), &context_), 0);
    EXPECT_EQ(error(), FI_EFAULT);
    ASSERT_EQ(fi_recv(world_.ep(), buffer, length, nullptr, FI_ADDR_UNSPEC, &context_), 0);
    int received = -1;
    until_heard(
        [&] {
          world_.target().wait_success(world_.target().post(
              {.kind = Kind::kSend, .length = length, .peer = world_.to_initiator()}));
        },
        [&](std::chrono::milliseconds limit) { return (received = error(limit)) != -1; });
    EXPECT_EQ(received, FI_EFAULT);
    world_.exchange();
  }
}

INSTANTIATE_TEST_SUITE_P(Refusal, UnmappedDatagram,
                         testing::Values(Placement::kTwoProcesses, Placement::kOneProcess,
                                         Placement::kSelf),
                         placement_name);

}  // namespace
}  // namespace weft::conformance
