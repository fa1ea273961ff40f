// SPDX-License-Identifier: BSD-2-Clause
// Does a full completion queue hold its senders back instead of overrunning?
// (fi_domain(3), resource management)
#include <string>
#include <vector>

#include "support/local_party.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kQueue = 64;
// What may have been accepted when the queue became full: the messages of one packet.
constexpr std::size_t kAccepted = 256;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kManyMessages = 400;  // each takes ten times as long
#else
constexpr std::size_t kManyMessages = 1000;
#endif

enum class What { kWrites, kMessages, kLargeMessages };

// The target reads a counter, which drives progress, and not its queue.
class Backpressure : public testing::TestWithParam<std::tuple<fi_ep_type, bool, What>> {
 protected:
  static Options options() {
    const auto& [type, shared, what] = GetParam();
    Options options;
    options.type = type;
    options.cq_size = kQueue;
    options.counters = what == What::kWrites ? FI_REMOTE_WRITE : FI_RECV;
    options.shares = shared ? FI_RECV : 0;
    options.left_alone = true;
    return options;
  }
  static Options roomy() {
    Options wide = options();
    wide.cq_size = 2 * flood_size();
    wide.counters = 0;
    return wide;
  }

  // More than the queue and what was accepted.
  static std::size_t flood_size() {
    return std::get<2>(GetParam()) == What::kLargeMessages ? 400 : kManyMessages;
  }

  bool open() {
    auto near = std::make_shared<Domain>(roomy());
    auto far = std::make_shared<Domain>(options());
    initiator_ = std::make_unique<LocalParty>(near, roomy(), &pump_);
    target_ = std::make_unique<LocalParty>(far, options(), &pump_);
    if (!initiator_->ok() || !target_->ok()) return false;
    if (std::get<0>(GetParam()) == FI_EP_RDM) {
      to_target_ = initiator_->insert(target_->name());
      return true;
    }
    pump_.add(&initiator_->endpoint());
    pump_.add(&target_->endpoint());
    initiator_->connect(target_->name());
    target_->accept();
    const bool connected = pump_.until([&] { return initiator_->endpoint().connected(); });
    pump_.remove(&target_->endpoint());
    pump_.remove(&initiator_->endpoint());
    return connected;
  }

  std::size_t length() const {
    return std::get<2>(GetParam()) == What::kLargeMessages ? 150000 : 8;
  }

  void post_receives() {
    buffer_.resize(length());
    for (std::size_t i = 0; i < flood_size(); ++i) {
      ASSERT_EQ(
          fi_recv(receiver(), buffer_.data(), buffer_.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    }
  }
  // Posts the receives of the flood, or returns the region that it writes to.
  Region await_flood() {
    if (std::get<2>(GetParam()) == What::kWrites) return target_->expose({.length = 64});
    post_receives();
    return {};
  }
  fid_ep* receiver() {
    fid_ep* const shared = target_->endpoint().domain()->shared_receive();
    return shared != nullptr ? shared : target_->endpoint().ep();
  }

  ssize_t post_one(const Region& region) {
    fid_ep* const ep = initiator_->endpoint().ep();
    if (std::get<2>(GetParam()) == What::kWrites) {
      return fi_writedata(ep, source_.data(), 8, nullptr, 7, to_target_, region.base, region.key,
                          nullptr);
    }
    return fi_send(ep, source_.data(), length(), nullptr, to_target_, nullptr);
  }

  // Both sides make progress, and the target's queue stays unread.
  void progress() {
    initiator_->endpoint().poll();
    fi_cntr_read(target_->endpoint().counter(options().counters));
  }

  // As many operations as are accepted, and then a while more.
  std::size_t flood(const Region& region) {
    std::size_t posted = 0;
    for (int refused = 0; posted < flood_size() && refused < 3000; ++refused) {
      const ssize_t rc = post_one(region);
      EXPECT_TRUE(rc == 0 || rc == -FI_EAGAIN) << fi_strerror(static_cast<int>(-rc));
      if (rc == 0) {
        ++posted;
        refused = 0;
      }
      progress();
    }
    for (int i = 0; i < 3000; ++i) progress();
    return posted;
  }

  // Entries that are there already: a queue with entries is read without progress.
  std::size_t read_queue() {
    std::vector<fi_cq_tagged_entry> entries(100000);
    const ssize_t got = fi_cq_read(target_->endpoint().cq(), entries.data(), entries.size());
    EXPECT_TRUE(got > 0 || got == -FI_EAGAIN) << got;
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

  // Before the endpoints: unfinished operations use them until an endpoint is closed.
  std::vector<std::uint8_t> buffer_;
  std::vector<std::uint8_t> source_ = std::vector<std::uint8_t>(200000, 5);
  Pump pump_;
  std::unique_ptr<LocalParty> initiator_;
  std::unique_ptr<LocalParty> target_;
  fi_addr_t to_target_ = FI_ADDR_UNSPEC;
};

TEST_P(Backpressure, AFullQueueHoldsTheSenderBackUntilItIsRead) {
  ASSERT_TRUE(open());
  const Region region = await_flood();
  std::size_t posted = flood(region);
  ASSERT_GT(posted, 0U);
  std::size_t told = read_queue();
  // Over the network the bytes of a large message come behind all that the peer has sent before:
  // as long as one is under way, others are accepted, for as many receives as there are.
  const bool behind_others = only_links("udp") && std::get<2>(GetParam()) == What::kLargeMessages;
  EXPECT_LE(told, behind_others ? flood_size() : kQueue + kAccepted);
  const auto all_told = [&] {
    if (posted < flood_size() && post_one(region) == 0) ++posted;
    initiator_->endpoint().poll();
    told += read_queue();
    return told >= flood_size();
  };
  EXPECT_TRUE(pump_.until(all_told)) << told << " of " << posted;
  EXPECT_EQ(told, flood_size());
}

// The endpoints of other queues go on, also those of the same domain.
TEST_P(Backpressure, OtherEndpointsAreNotDelayed) {
  if (std::get<0>(GetParam()) == FI_EP_MSG || std::get<1>(GetParam())) {
    GTEST_SKIP() << "one endpoint type without sharing will do";
  }
  ASSERT_TRUE(open());
  const Region region = await_flood();
  flood(region);
  LocalParty other(target_->endpoint().domain(), options(), &pump_);
  ASSERT_TRUE(other.ok());
  pump_.add(&initiator_->endpoint());
  pump_.add(&other.endpoint());
  const Token received = other.post({.kind = Kind::kRecv, .length = 8});
  const Token sent = initiator_->post(
      {.kind = Kind::kSend, .length = 8, .seed = 4, .peer = initiator_->insert(other.name())});
  initiator_->wait_success(sent);
  other.wait_success(received);
  pump_.remove(&other.endpoint());
  pump_.remove(&initiator_->endpoint());
}

constexpr const char* kNames[] = {"Writes", "Messages", "LargeMessages"};

INSTANTIATE_TEST_SUITE_P(Receives, Backpressure,
                         testing::Combine(testing::Values(FI_EP_RDM, FI_EP_MSG), testing::Bool(),
                                          testing::Values(What::kWrites, What::kMessages,
                                                          What::kLargeMessages)),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param) == FI_EP_RDM ? "Datagrams"
                                                                                  : "Connected") +
                                  (std::get<1>(one.param) ? "Shared" : "Own") +
                                  kNames[static_cast<int>(std::get<2>(one.param))];
                         });

}  // namespace
}  // namespace weft::conformance
