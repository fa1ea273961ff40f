// SPDX-License-Identifier: BSD-2-Clause
// Does a receive get messages of the source that it names, and is the source reported?
#include <array>
#include <vector>

#include "support/placements.h"

namespace weft::conformance {
namespace {

// One receiver in this process and two senders, each in a process of its own or here.
class Source : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  Source() {
    options_.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_SOURCE;
    const auto domain = std::make_shared<Domain>(options_);
    receiver_ = std::make_unique<LocalParty>(domain, options_, &pump_);
    if (!receiver_->ok()) return;
    for (auto& sender : senders_) {
      sender = make_sender(domain);
      if (sender == nullptr) return;
      to_receiver_.push_back(sender->insert(receiver_->name()));
      from_.push_back(receiver_->insert(sender->name()));
    }
    ok_ = true;
  }

  std::unique_ptr<Party> make_sender(const std::shared_ptr<Domain>& domain) {
    if (std::get<0>(GetParam())) {
      auto remote = std::make_unique<RemoteParty>(options_, &pump_);
      return remote->ok() ? std::move(remote) : nullptr;
    }
    auto local = std::make_unique<LocalParty>(domain, options_, &pump_);
    return local->ok() ? std::move(local) : nullptr;
  }

  bool tagged() const { return std::get<1>(GetParam()); }

  Token receive_from(fi_addr_t source, std::size_t length) {
    return receiver_->post({.kind = tagged() ? Kind::kTrecv : Kind::kRecv,
                            .length = length,
                            .peer = source,
                            .tag = 1});
  }
  void send(std::size_t sender, std::uint64_t seed, std::size_t length) {
    Party& from = *senders_[sender];
    sent_.push_back({sender, from.post({.kind = tagged() ? Kind::kTsend : Kind::kSend,
                                        .length = length,
                                        .seed = seed,
                                        .peer = to_receiver_[sender],
                                        .tag = 1})});
  }
  void expect(Token token, std::size_t sender, std::uint64_t seed, std::size_t length) {
    const Completion c = receiver_->wait_success(token);
    EXPECT_EQ(c.source, from_[sender]);
    EXPECT_EQ(c.length, length);
    receiver_->expect_data(token, seed, length);
  }
  void finish_sends() {
    for (const auto& [sender, token] : sent_) senders_[sender]->wait_success(token);
    sent_.clear();
  }

  Options options_;
  Pump pump_;
  std::unique_ptr<LocalParty> receiver_;
  std::array<std::unique_ptr<Party>, 2> senders_;
  std::vector<fi_addr_t> to_receiver_;
  std::vector<fi_addr_t> from_;
  std::vector<std::pair<std::size_t, Token>> sent_;
  bool ok_ = false;
};

constexpr std::size_t kSizes[] = {0, 8, 64, 5000, 120000};

TEST_P(Source, PostedReceiveWaitsForTheSourceItNames) {
  ASSERT_TRUE(ok_);
  for (const std::size_t length : kSizes) {
    const Token second = receive_from(from_[1], length);
    const Token first = receive_from(from_[0], length);
    send(0, 1, length);
    expect(first, 0, 1, length);
    send(1, 2, length);
    expect(second, 1, 2, length);
    finish_sends();
  }
}

TEST_P(Source, LateReceiveTakesTheSourceItNames) {
  ASSERT_TRUE(ok_);
  for (const std::size_t length : kSizes) {
    send(0, 1, length);
    send(1, 2, length);
    receiver_->leftovers();
    expect(receive_from(from_[1], length), 1, 2, length);
    expect(receive_from(from_[0], length), 0, 1, length);
    finish_sends();
  }
}

TEST_P(Source, UnspecifiedSourceTakesEveryone) {
  ASSERT_TRUE(ok_);
  for (const std::size_t sender : {1u, 0u, 1u}) {
    const Token any = receive_from(FI_ADDR_UNSPEC, 32);
    send(sender, 3, 32);
    expect(any, sender, 3, 32);
  }
  finish_sends();
}

TEST_P(Source, OldestFittingReceiveWinsWhetherDirectedOrNot) {
  ASSERT_TRUE(ok_);
  const Token any = receive_from(FI_ADDR_UNSPEC, 32);
  const Token directed = receive_from(from_[0], 32);
  send(0, 1, 32);
  expect(any, 0, 1, 32);
  send(0, 2, 32);
  expect(directed, 0, 2, 32);
  finish_sends();
}

TEST_P(Source, AnUnknownSourceIsReportedAsNotAvailable) {
  ASSERT_TRUE(ok_);
  ASSERT_EQ(fi_av_remove(receiver_->endpoint().av(), &from_[0], 1, 0), 0);
  const Token any = receive_from(FI_ADDR_UNSPEC, 32);
  send(0, 4, 32);
  EXPECT_EQ(receiver_->wait_success(any).source, FI_ADDR_NOTAVAIL);
  receiver_->expect_data(any, 4, 32);
  finish_sends();
}

INSTANTIATE_TEST_SUITE_P(Matching, Source, testing::Combine(testing::Bool(), testing::Bool()),
                         [](const testing::TestParamInfo<std::tuple<bool, bool>>& one) {
                           return std::string(std::get<0>(one.param) ? "Processes" : "OneProcess") +
                                  (std::get<1>(one.param) ? "_Tagged" : "_Plain");
                         });

}  // namespace
}  // namespace weft::conformance
