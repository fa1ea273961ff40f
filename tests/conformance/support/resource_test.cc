// SPDX-License-Identifier: BSD-2-Clause
// How do the endpoints of a test of resources meet, and what must arrive?
#include "resource_test.h"

#include <sched.h>

#include <cstdlib>
#include <set>

#include "delivery.h"

namespace weft::conformance {

const char* Resources::column_of(fi_ep_type type) {
  return type == FI_EP_DGRAM ? "Dgram" : type == FI_EP_MSG ? "Msg" : "Rdm";
}

bool Resources::unexpected_are_limited() {
  return std::getenv("FI_WEFT_UNEXPECTED_LIMIT") != nullptr;
}

Options Resources::plain(fi_ep_type type) {
  Options options;
  options.type = type;
  options.caps = type == FI_EP_DGRAM ? FI_MSG : FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
  if (type == FI_EP_DGRAM) options.order = 0;
  options.tx_size = kContext;
  options.rx_size = kContext;
  return options;
}

bool Resources::until(const std::function<bool()>& done, std::chrono::milliseconds limit) {
  constexpr unsigned kLooksInARow = 64;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (unsigned looks = 1; !done(); ++looks) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    if (looks % kLooksInARow == 0) sched_yield();
  }
  return true;
}

fi_addr_t Resources::meet(Endpoint& from, Endpoint& to) {
  if (from.options().type != FI_EP_MSG) return from.insert(to.name());
  Pump both;
  both.add(&from);
  both.add(&to);
  from.connect(to.name());
  EXPECT_TRUE(both.until([&] { return to.accept(); }));
  EXPECT_TRUE(both.until([&] { return from.connected() && to.connected(); }));
  return 0;
}

void Resources::expect_datagrams(const Numbers& received, std::size_t sent) {
  std::set<std::uint64_t> heard;
  for (std::size_t i = 0; i < received.count() && !testing::Test::HasFailure(); ++i) {
    const Numbered& one = received[i];
    if (one.ends == 0) continue;
    EXPECT_EQ(one.end.err, 0);
    EXPECT_LT(one.end.data, sent);
    EXPECT_TRUE(heard.insert(one.end.data).second) << "number " << one.end.data << " came twice";
    received.expect_holds(i, one.end.data);
  }
}

std::string ResourceTest::name(const testing::TestParamInfo<Cell>& one) {
  constexpr const char* kManagement[] = {"_Unspec", "_Disabled", ""};
  const auto& [type, kind, queue, shares, silent, management] = one.param;
  return std::string(column_of(type)) + "_" + traits(kind).name + "_" + std::to_string(queue) +
         (shares != 0 ? "_Shared" : "") + (silent ? "_Silent" : "") + kManagement[management];
}

Options ResourceTest::roomy() {
  Options options = plain(GetParam().type);
  options.counters = FI_SEND | FI_RECV;
  if (!lossy()) options.counters |= FI_READ | FI_WRITE;
  options.cq_size = kRoomy;
  options.rx_size = kFlood + 2 * kUsual;
  options.left_alone = true;
  options.resource_mgmt = GetParam().management;
  return options;
}

void ResourceTest::open(const Options& near, const Options& far) {
  near_domain_ = std::make_shared<Domain>(near);
  far_domain_ = std::make_shared<Domain>(far);
  near_ = std::make_unique<Endpoint>(near_domain_, near);
  far_ = std::make_unique<Endpoint>(far_domain_, far);
  ASSERT_TRUE(near_->ok() && far_->ok());
  to_far_ = meet(*near_, *far_);
  // Receives that the far endpoints share are for those of the test.
  ASSERT_NO_FATAL_FAILURE(open_beside(far.shares != 0 ? near_domain_ : far_domain_));
  warm_up();
}

void ResourceTest::open_beside(const std::shared_ptr<Domain>& other) {
  beside_near_ = std::make_unique<LocalParty>(near_domain_, plain(GetParam().type), &pump_);
  beside_far_ = std::make_unique<LocalParty>(other, plain(GetParam().type), &pump_);
  ASSERT_TRUE(beside_near_->ok() && beside_far_->ok());
  to_beside_ = meet(beside_near_->endpoint(), beside_far_->endpoint());
  others_go_on();
}

void ResourceTest::others_go_on() {
  constexpr std::uint64_t kSeed = 9;
  const Operation send{.kind = Kind::kSend, .length = kWord, .seed = kSeed, .peer = to_beside_};
  const Token received = beside_far_->post({.kind = Kind::kRecv, .length = kWord});
  deliver(*beside_near_, send, *beside_far_, received);
  beside_far_->expect_data(received, kSeed, kWord);
}

// The first message to a peer waits until that is known.
void ResourceTest::warm_up() {
  if (lossy()) return;
  std::uint8_t bytes[kWord]{};
  ASSERT_EQ(fi_recv(receiver(), bytes, kWord, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_TRUE(until([&] {
    drive(*far_);
    return fi_inject(near_->ep(), bytes, kWord, to_far_) == 0;
  }));
  ASSERT_TRUE(until([&] { return ends(*near_, FI_SEND) + ends(*far_, FI_RECV) == 2; }));
  if (far_->cq() != nullptr) read_entries(far_->cq(), 1);
}

fid_ep* ResourceTest::receiver() const {
  fid_ep* const shared = far_domain_->shared_receive();
  return shared != nullptr ? shared : far_->ep();
}

Numbers& ResourceTest::sends(Kind kind, std::size_t length) {
  return rows_.emplace_back(near_->ep(),
                            Operation{.kind = kind, .length = length, .peer = to_far_, .tag = 1});
}

Numbers& ResourceTest::accesses(Kind kind, const Region& region) {
  return rows_.emplace_back(near_->ep(), Operation{.kind = kind,
                                                   .length = kWord,
                                                   .peer = to_far_,
                                                   .remote_address = region.base,
                                                   .key = region.key});
}

Numbers& ResourceTest::receives(Kind sent, std::size_t length) {
  const Kind kind = traits(sent).tagged ? Kind::kTrecv : Kind::kRecv;
  return rows_.emplace_back(receiver(), Operation{.kind = kind, .length = length, .tag = 1});
}

void ResourceTest::drain(Numbers& sent, Numbers& received) {
  const std::size_t reported = injects() ? 0 : sent.count();
  EXPECT_TRUE(until([&] {
    if (received.count() < sent.count()) received.post();
    read_entries(far_->cq(), 1);
    read_entries(near_->cq(), kRoomy);
    return received.ended() == sent.count() && sent.ended() == reported;
  })) << received.ended()
      << " of " << sent.count() << " received, " << sent.ended() << " reported";
  if (!injects()) sent.expect_all_ended();
  received.expect_all_ended();
  received.expect_in_order();
}

void ResourceTest::expect_nothing_twice(Numbers& received) {
  constexpr int kLooks = 200;
  ASSERT_EQ(received.post(), 0);
  const std::size_t last = received.count() - 1;
  for (int i = 0; i < kLooks; ++i) {
    EXPECT_TRUE(read_entries(far_->cq(), 1).empty());
    EXPECT_TRUE(read_entries(near_->cq(), 1).empty());
  }
  EXPECT_EQ(fi_cancel(&receiver()->fid, received[last].context()), 0);
  EXPECT_TRUE(until([&] { return !read_entries(far_->cq(), 1).empty(); }));
  EXPECT_EQ(received[last].end.err, FI_ECANCELED);
}

void ResourceTest::hear_all(Numbers& received, Numbers& sent) {
  constexpr std::chrono::milliseconds kMoment(200);
  const auto all_heard = [&] {
    read_entries(near_->cq(), kRoomy);
    read_entries(far_->cq(), kRoomy);
    return received.ended() == sent.count();
  };
  EXPECT_TRUE(until(all_heard, may_lose() ? kMoment : patience()) || may_lose())
      << received.ended() << " of " << sent.count();
  expect_datagrams(received, sent.count());
}

void ResourceTest::hear_another(Numbers& sent, Numbers& received) {
  const auto send = [&] { EXPECT_EQ(sent.post(), 0); };
  EXPECT_TRUE(until_heard(send, [&](std::chrono::milliseconds limit) {
    const auto heard = [&] {
      read_entries(near_->cq(), kRoomy);
      return !read_entries(far_->cq(), 1).empty();
    };
    return until(heard, limit);
  }));
  expect_datagrams(received, sent.count());
}

void TwoResourcesTest::open_second(const Options& near, fid_cq* near_queue, const Options& far) {
  other_near_ = std::make_unique<Endpoint>(near_domain_, near, nullptr, near_queue);
  // Endpoints that share their receives know peers by one address vector.
  const bool one_vector = far.shares != 0 && far.type != FI_EP_MSG;
  other_far_ = std::make_unique<Endpoint>(far_domain_, far, one_vector ? far_->av() : nullptr);
  ASSERT_TRUE(other_near_->ok() && other_far_->ok());
  to_other_ = meet(*other_near_, *other_far_);
}

// They use what the first pair owns.
void TwoResourcesTest::TearDown() {
  other_far_.reset();
  other_near_.reset();
}

Numbers& TwoResourcesTest::other_sends() {
  return rows_.emplace_back(other_near_->ep(),
                            Operation{.kind = Kind::kSenddata, .length = kWord, .peer = to_other_});
}

Numbers& TwoResourcesTest::other_receives() {
  return rows_.emplace_back(other_far_->ep(), Operation{.kind = Kind::kRecv, .length = kWord});
}

}  // namespace weft::conformance
