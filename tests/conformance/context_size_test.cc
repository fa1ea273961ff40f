// SPDX-License-Identifier: BSD-2-Clause
// Does a context hold as many operations as its size says, and a completion queue as many entries?
// (fi_endpoint(3): size of fi_tx_attr and fi_rx_attr; fi_cq(3): size)
#include <sched.h>

#include <set>
#include <string>
#include <vector>

#include "support/endpoint.h"
#include "support/operation.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kLargest = 65536;
constexpr int kLooks = 50;               // attempts that show that a context stays full
constexpr std::size_t kLarge = 300'000;  // bytes that wait in their buffer until they are received

struct Size {
  fi_ep_type type;
  Kind kind;
  std::size_t size;     // 0: the provider's choice
  bool shared = false;  // the context
};

std::string name_of(const testing::TestParamInfo<Size>& one) {
  const auto& [type, kind, size, shared] = one.param;
  const std::string column = type == FI_EP_RDM ? "Rdm" : type == FI_EP_MSG ? "Msg" : "Dgram";
  const std::string count = size == 0 ? "Usual" : std::to_string(size);
  return column + "_" + traits(kind).name + "_" + count + (shared ? "_Shared" : "");
}

// An endpoint whose contexts or queue are filled, and one that is its peer. A counter drives the
// first without reading its queue.
class Sizes : public testing::TestWithParam<Size> {
 protected:
  static fi_ep_type type() { return GetParam().type; }
  static Options options() {
    Options options = type() == FI_EP_DGRAM ? datagrams() : Options{};
    options.type = type();
    if (type() != FI_EP_DGRAM) options.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    options.caps &= ~std::uint64_t{FI_MULTICAST};
    options.cq_size = 0;
    options.counters = FI_SEND;
    if (type() != FI_EP_DGRAM) options.counters |= FI_READ | FI_WRITE;
    return options;
  }

  void open(const Options& near) {
    near_ = std::make_unique<Endpoint>(std::make_shared<Domain>(near), near);
    far_ = std::make_unique<Endpoint>(std::make_shared<Domain>(options()), options());
    ASSERT_TRUE(near_->ok() && far_->ok());
    to_far_ = meet(*near_, *far_);
    to_near_ = type() == FI_EP_MSG ? 0 : far_->insert(near_->name());
    if (type() == FI_EP_DGRAM) return;
    region_ = open_fid<fid_mr>([&](fid_mr** out) {
      return fi_mr_reg(far_->domain()->get(), &sum_, sizeof sum_, FI_REMOTE_READ | FI_REMOTE_WRITE,
                       0, Endpoint::next_key(), 0, out, nullptr);
    });
    ASSERT_NE(region_, nullptr);
    base_ = (far_->info()->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0
                ? reinterpret_cast<std::uintptr_t>(&sum_)
                : 0;
  }

  static fi_addr_t meet(Endpoint& from, Endpoint& to) {
    if (type() != FI_EP_MSG) return from.insert(to.name());
    Pump both;
    both.add(&from);
    both.add(&to);
    from.connect(to.name());
    EXPECT_TRUE(both.until([&] { return to.accept(); }));
    EXPECT_TRUE(both.until([&] { return from.connected() && to.connected(); }));
    return 0;
  }

  // The near endpoint starts an operation with that context.
  ssize_t post(Kind kind, void* context, std::size_t length = sizeof(std::uint64_t)) {
    fid_ep* const ep = near_->ep();
    const std::uint64_t key = region_ != nullptr ? fi_mr_key(region_.get()) : 0;
    const void* const out = data_.data();
    if (kind == Kind::kTsend) return fi_tsend(ep, out, length, nullptr, to_far_, 1, context);
    if (kind == Kind::kInject) return fi_inject(ep, out, length, to_far_);
    if (kind == Kind::kWrite) {
      return fi_write(ep, out, length, nullptr, to_far_, base_, key, context);
    }
    if (kind == Kind::kInjectWrite) return fi_inject_write(ep, out, length, to_far_, base_, key);
    if (kind == Kind::kRead) {
      return fi_read(ep, data_.data(), length, nullptr, to_far_, base_, key, context);
    }
    if (kind == Kind::kAtomic) {
      return fi_atomic(ep, &one_, 1, nullptr, to_far_, base_, key, FI_UINT64, FI_SUM, context);
    }
    return fi_send(ep, out, length, nullptr, to_far_, context);
  }
  // How many operations have ended.
  std::uint64_t ended() {
    std::uint64_t all = 0;
    for (const std::uint64_t event : {FI_SEND, FI_READ, FI_WRITE}) {
      if ((near_->options().counters & event) != 0) all += fi_cntr_read(near_->counter(event));
    }
    return all;
  }
  void drive() {
    ended();
    far_->poll();
  }
  bool until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    for (int i = 1; !done(); ++i) {
      drive();
      if (i % 64 != 0) continue;
      sched_yield();
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }

  // Starts operations up to that number; the peer takes what it is sent.
  void fill(std::size_t count) {
    if (contexts_.empty()) contexts_.resize(count + 2);
    while (posted_ < count) {
      if (GetParam().kind == Kind::kSend) {
        ASSERT_TRUE(until([&] { return receive() == 0; }));
      }
      ASSERT_TRUE(until([&] { return post(GetParam().kind, &contexts_[posted_]) == 0; }))
          << "operation " << posted_;
      ++posted_;
    }
  }
  ssize_t receive() {
    return fi_recv(far_->ep(), in_, sizeof in_, nullptr, FI_ADDR_UNSPEC, nullptr);
  }
  // No operation is accepted, not even when earlier ones have ended.
  void expect_full(std::initializer_list<Kind> kinds) {
    for (int i = 0; i < kLooks; ++i) {
      for (const Kind kind : kinds) EXPECT_EQ(post(kind, nullptr), -FI_EAGAIN);
      drive();
    }
    EXPECT_EQ(left(), 0);
  }
  ssize_t left() { return near_->ep()->ops->tx_size_left(near_->ep()); }
  // Takes one completion of the near endpoint.
  void drain_one() {
    fi_cq_tagged_entry entry{};
    ASSERT_TRUE(until([&] { return fi_cq_read(near_->cq(), &entry, 1) == 1; }));
    EXPECT_TRUE(drained_.insert(entry.op_context).second) << "twice";
  }
  // Takes all others: each operation that was started has one.
  void drain() {
    while (drained_.size() < posted_ && !HasFatalFailure()) drain_one();
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_read(near_->cq(), &entry, 1), -FI_EAGAIN);
    for (std::size_t i = 0; i < posted_; ++i) EXPECT_EQ(drained_.count(&contexts_[i]), 1u) << i;
  }
  // Everything has arrived, once.
  void expect_arrived() {
    if (GetParam().kind == Kind::kAtomic) {
      EXPECT_EQ(sum_, posted_);
    }
    if (GetParam().kind != Kind::kSend || type() == FI_EP_DGRAM) return;
    EXPECT_TRUE(until([&] { return far_->untaken() >= posted_; }));
    EXPECT_EQ(far_->untaken(), posted_);
    EXPECT_FALSE(far_->take_error());
  }

  std::uint64_t one_ = 1;
  std::uint64_t sum_ = 0;
  std::vector<std::uint8_t> data_ = std::vector<std::uint8_t>(kLarge);
  std::uint8_t in_[64];
  std::vector<fi_context2> contexts_;
  std::size_t posted_ = 0;
  std::set<void*> drained_;
  std::unique_ptr<Endpoint> near_;
  std::unique_ptr<Endpoint> far_;
  Fid<fid_mr> region_;
  std::uint64_t base_ = 0;
  fi_addr_t to_far_ = FI_ADDR_UNSPEC;
  fi_addr_t to_near_ = FI_ADDR_UNSPEC;
};

class TransmitSize : public Sizes {
 protected:
  void SetUp() override {
    Options near = options();
    near.tx_size = GetParam().size;
    if (GetParam().shared) near.shares = FI_TRANSMIT;
    open(near);
    size_ = near_->info()->tx_attr->size;
    if (GetParam().size != 0) {
      EXPECT_EQ(size_, GetParam().size);
    }
  }
  std::size_t size_ = 0;
};

TEST_P(TransmitSize, IsHowManyOperationsAreHeldUntilTheirCompletionsAreRead) {
  EXPECT_EQ(left(), static_cast<ssize_t>(size_));
  ASSERT_NO_FATAL_FAILURE(fill(size_));
  expect_full({GetParam().kind});
  ASSERT_NO_FATAL_FAILURE(drain_one());
  EXPECT_EQ(left(), 1);
  ASSERT_NO_FATAL_FAILURE(fill(size_ + 1));
  expect_full({GetParam().kind});
  ASSERT_NO_FATAL_FAILURE(drain());
  expect_arrived();
  EXPECT_EQ(left(), static_cast<ssize_t>(size_));
}

std::vector<Size> transmit_sizes() {
  std::vector<Size> all;
  for (const fi_ep_type type : {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM}) {
    for (const Kind kind : {Kind::kSend, Kind::kWrite, Kind::kRead, Kind::kAtomic}) {
      if (type == FI_EP_DGRAM && kind != Kind::kSend) continue;
      for (const std::size_t size : {1, 2, 7, 0}) all.push_back({type, kind, size});
    }
    all.push_back({type, Kind::kSend, kLargest});
    for (const std::size_t size : {1, 7}) all.push_back({type, Kind::kSend, size, true});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(ContextSizes, TransmitSize, testing::ValuesIn(transmit_sizes()), name_of);

// Messages that stay in their buffers, as the peer receives nothing.
class OperationsInFlight : public TransmitSize {};

TEST_P(OperationsInFlight, FillTheContextForEveryOther) {
  contexts_.resize(size_);
  for (; posted_ < size_; ++posted_) {
    ASSERT_TRUE(until([&] { return post(Kind::kSend, &contexts_[posted_], kLarge) == 0; }));
  }
  expect_full({Kind::kSend, Kind::kTsend, Kind::kInject, Kind::kWrite, Kind::kInjectWrite,
               Kind::kRead, Kind::kAtomic});
  std::vector<std::uint8_t> in(kLarge);
  const auto receive_one = [&] {
    ASSERT_EQ(fi_recv(far_->ep(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  };
  receive_one();
  EXPECT_TRUE(until([&] { return ended() == 1; }));
  expect_full({Kind::kInject, Kind::kWrite});
  ASSERT_NO_FATAL_FAILURE(drain_one());
  EXPECT_EQ(left(), 1);
  EXPECT_TRUE(until([&] { return post(Kind::kInjectWrite, nullptr) == 0; }));
  EXPECT_TRUE(until([&] { return ended() == 2; }));
  EXPECT_EQ(left(), 1) << "it has no completion";
  for (std::size_t i = 1; i < size_; ++i) receive_one();
  ASSERT_NO_FATAL_FAILURE(drain());
  EXPECT_EQ(left(), static_cast<ssize_t>(size_));
  EXPECT_TRUE(until([&] { return far_->untaken() == size_; }));
}

INSTANTIATE_TEST_SUITE_P(ContextSizes, OperationsInFlight,
                         testing::Values(Size{FI_EP_RDM, Kind::kSend, 1},
                                         Size{FI_EP_RDM, Kind::kSend, 7},
                                         Size{FI_EP_RDM, Kind::kSend, 2, true},
                                         Size{FI_EP_MSG, Kind::kSend, 1},
                                         Size{FI_EP_MSG, Kind::kSend, 7}),
                         name_of);

class QueueSize : public Sizes {
 protected:
  void SetUp() override {
    Options near = options();
    near.tx_size = kLargest;
    near.cq_size = GetParam().size;
    open(near);
  }
};

TEST_P(QueueSize, IsHowManyEntriesAreKeptBeforeOperationsAreHeldBack) {
  const std::size_t size = GetParam().size;
  ASSERT_NO_FATAL_FAILURE(fill(size));
  ASSERT_TRUE(until([&] { return ended() == size; }));
  expect_full({GetParam().kind});
  ASSERT_NO_FATAL_FAILURE(drain_one());
  ASSERT_NO_FATAL_FAILURE(fill(size + 1));
  ASSERT_TRUE(until([&] { return ended() == size + 1; }));
  expect_full({GetParam().kind});
  ASSERT_NO_FATAL_FAILURE(drain());
  expect_arrived();
}

std::vector<Size> queue_sizes() {
  std::vector<Size> all;
  for (const std::size_t size : {1, 2, 7, 1024}) {
    for (const fi_ep_type type : {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM}) {
      all.push_back({type, Kind::kSend, size});
    }
    all.push_back({FI_EP_RDM, Kind::kWrite, size});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(ContextSizes, QueueSize, testing::ValuesIn(queue_sizes()), name_of);

class ReceiveSize : public Sizes {
 protected:
  void SetUp() override {
    Options near = options();
    near.rx_size = GetParam().size;
    if (GetParam().shared) near.shares = FI_RECV;
    open(near);
    size_ = near_->info()->rx_attr->size;
    if (GetParam().size != 0) {
      EXPECT_EQ(size_, GetParam().size);
    }
    receiver_ = GetParam().shared ? near_->domain()->shared_receive() : near_->ep();
    contexts_.resize(size_ + 2);
  }
  ssize_t post_receive(void* context) {
    return fi_recv(receiver_, in_, sizeof in_, nullptr, FI_ADDR_UNSPEC, context);
  }
  // The peer sends until a receive has completed: a datagram may be lost.
  void take_one() {
    fi_cq_tagged_entry entry{};
    const bool lossy = type() == FI_EP_DGRAM;
    int looks = 0;
    bool sent = false;
    ASSERT_TRUE(until([&] {
      if (!sent || (lossy && ++looks % 100'000 == 0)) {
        sent = fi_inject(far_->ep(), &one_, sizeof one_, to_near_) == 0;
      }
      return fi_cq_read(near_->cq(), &entry, 1) == 1;
    }));
    EXPECT_TRUE(drained_.insert(entry.op_context).second) << "twice";
  }

  std::size_t size_ = 0;
  fid_ep* receiver_ = nullptr;
};

TEST_P(ReceiveSize, IsHowManyReceivesWait) {
  for (; posted_ < size_; ++posted_) ASSERT_EQ(post_receive(&contexts_[posted_]), 0) << posted_;
  EXPECT_EQ(post_receive(nullptr), -FI_EAGAIN);
  ASSERT_NO_FATAL_FAILURE(take_one());
  EXPECT_EQ(post_receive(&contexts_[posted_++]), 0);
  EXPECT_EQ(post_receive(nullptr), -FI_EAGAIN);
  for (int i = 0; i < 2; ++i) ASSERT_NO_FATAL_FAILURE(take_one());
  for (void* each : drained_) EXPECT_LT(static_cast<fi_context2*>(each), &contexts_[posted_]);
}

std::vector<Size> receive_sizes() {
  std::vector<Size> all;
  for (const fi_ep_type type : {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM}) {
    for (const std::size_t size : {2, 7, 0}) {
      for (const bool shared : {false, true}) all.push_back({type, Kind::kRecv, size, shared});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(ContextSizes, ReceiveSize, testing::ValuesIn(receive_sizes()), name_of);

}  // namespace
}  // namespace weft::conformance
