// SPDX-License-Identifier: BSD-2-Clause
// Does every message go to the receive that fi_tagged(3) names?
#include "messaging/matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "test_support.h"

namespace weft::messaging {
namespace {

using testing::loopback;

struct MatcherTest : ::testing::Test {
  AddressVector addresses{8};
  Matcher matcher;
  std::deque<Receive> receives;

  Receive& post(std::uint64_t tag, std::uint64_t ignore = 0, PeerIndex source = kNoPeer) {
    Receive& receive = receives.emplace_back();
    receive.tag = tag;
    receive.ignore = ignore;
    receive.source = source;
    receive.context = &receive;
    matcher.post(receive);
    return receive;
  }
  std::shared_ptr<RemoteSender> sender(std::uint16_t port) {
    auto made = std::make_shared<RemoteSender>();
    made->address = loopback(port);
    made->addresses = &addresses;
    return made;
  }
  void keep(std::uint64_t tag, const std::shared_ptr<RemoteSender>& from,
            std::span<const std::byte> bytes = {}, bool offered = false) {
    link::Arrival arrival;
    arrival.tag = tag;
    arrival.operation = link::MessageOperation::kTagged;
    arrival.payload = offered ? nullptr : bytes.empty() ? &nothing_ : bytes.data();
    arrival.length = offered ? 1000 : bytes.size();
    matcher.keep(arrival, from);
  }
  const std::byte nothing_{};
};

TEST_F(MatcherTest, TheFirstReceivePostedThatMatchesTakesTheMessage) {
  post(1);
  Receive& first = post(2);
  Receive& second = post(2);
  EXPECT_EQ(matcher.match(2, kNoPeer), &first);
  EXPECT_EQ(matcher.match(2, kNoPeer), &second);
  EXPECT_EQ(matcher.match(2, kNoPeer), nullptr);
}

TEST_F(MatcherTest, IgnoredBitsMayDifferAndNoOthers) {
  Receive& receive = post(0xff00, 0x00ff);
  EXPECT_EQ(matcher.match(0xfe00, kNoPeer), nullptr);
  EXPECT_EQ(matcher.match(0x1ff00, kNoPeer), nullptr);
  EXPECT_EQ(matcher.match(0xff5a, kNoPeer), &receive);
}

TEST_F(MatcherTest, ADirectedReceiveTakesMessagesOfItsSourceOnly) {
  Receive& directed = post(1, 0, 3);
  Receive& any = post(1);
  EXPECT_EQ(matcher.match(1, kNoPeer), &any) << "an unknown sender is not the named source";
  EXPECT_EQ(matcher.match(1, 4), nullptr);
  EXPECT_EQ(matcher.match(1, 3), &directed);
}

TEST_F(MatcherTest, ACancelledReceiveTakesNothing) {
  Receive& first = post(1);
  Receive& second = post(1);
  EXPECT_EQ(matcher.cancel(&first), &first);
  EXPECT_EQ(matcher.cancel(&first), nullptr);
  EXPECT_EQ(matcher.match(1, kNoPeer), &second);
}

TEST_F(MatcherTest, AllReceivesDirectedAtASourceCanBeTakenOut) {
  post(1, 0, 4);
  Receive& any = post(1);
  post(2, 0, 4);
  EXPECT_NE(matcher.take_directed(4), nullptr);
  EXPECT_NE(matcher.take_directed(4), nullptr);
  EXPECT_EQ(matcher.take_directed(4), nullptr);
  EXPECT_EQ(matcher.match(1, 4), &any);
}

TEST_F(MatcherTest, AKeptMessageOwnsItsPayload) {
  std::vector<std::byte> bytes(100, std::byte{7});
  keep(1, sender(1), bytes);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  EXPECT_GT(matcher.bytes_kept(), 100 + sizeof(QueuedUnexpected));
  EXPECT_FALSE(matcher.nothing_kept());
  const Unexpected kept = matcher.take(*matcher.find({1, 0, kNoPeer}));
  ASSERT_NE(kept.arrival.payload, bytes.data());
  EXPECT_EQ(std::count(kept.arrival.payload, kept.arrival.payload + 100, std::byte{7}), 100);
  EXPECT_EQ(matcher.bytes_kept(), 0u);
  EXPECT_TRUE(matcher.nothing_kept());
}

// An empty message takes memory, too; what was added for a message is taken off for it, even if it
// was changed meanwhile.
TEST_F(MatcherTest, TheMemoryOfAKeptMessageIsCounted) {
  keep(1, sender(1), {});
  const std::size_t empty = matcher.bytes_kept();
  EXPECT_GE(empty, sizeof(QueuedUnexpected));
  link::Arrival acknowledged;
  acknowledged.wants_ack = true;
  const auto gone = sender(2);
  matcher.keep(acknowledged, gone);
  EXPECT_EQ(matcher.bytes_kept(), empty + Matcher::cost_of(acknowledged));
  EXPECT_GT(matcher.bytes_kept(), 2 * empty);
  matcher.forget(*gone);
  EXPECT_EQ(matcher.bytes_kept(), empty) << "its offer is void";
  matcher.take(*matcher.find({1, 0, kNoPeer}));
  EXPECT_EQ(matcher.bytes_kept(), 0u);
}

TEST_F(MatcherTest, TheFirstKeptMessageThatIsWantedIsFoundAndStays) {
  const auto from = sender(1);
  keep(1, from);
  keep(2, from);
  keep(2, from);
  QueuedUnexpected* found = matcher.find({2, 0, kNoPeer});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(matcher.find({2, 0, kNoPeer}), found);
  matcher.take(*found);
  EXPECT_NE(matcher.find({2, 0, kNoPeer}), nullptr);
  EXPECT_EQ(matcher.find({3, 0, kNoPeer}), nullptr);
}

TEST_F(MatcherTest, AClaimedMessageIsFoundByItsClaimOnly) {
  const auto from = sender(1);
  keep(1, from);
  int claim = 0;
  QueuedUnexpected* message = matcher.find({1, 0, kNoPeer});
  message->claimed = true;
  message->claimed_by = &claim;
  EXPECT_EQ(matcher.find({1, 0, kNoPeer}), nullptr);
  EXPECT_EQ(matcher.find_claimed(nullptr), nullptr);
  EXPECT_EQ(matcher.find_claimed(&claim), message);
  matcher.take(*message);
  EXPECT_EQ(matcher.find_claimed(&claim), nullptr);
  keep(1, from);
  EXPECT_NE(matcher.find({1, 0, kNoPeer}), nullptr) << "a used object carries no old claim";
}

TEST_F(MatcherTest, ASenderIsKnownFromTheMomentThatItsAddressIsAdded) {
  keep(1, sender(5));
  EXPECT_EQ(matcher.find({1, 0, 0}), nullptr);
  EXPECT_EQ(addresses.insert(loopback(5)), 0u);
  EXPECT_NE(matcher.find({1, 0, 0}), nullptr);
  addresses.remove(0);
  EXPECT_EQ(matcher.find({1, 0, 0}), nullptr);
}

TEST_F(MatcherTest, MessagesHeldByAClosedSenderAreForgottenAndCopiesAreNot) {
  const auto gone = sender(1);
  const auto other = sender(1);  // a successor at the same address
  std::vector<std::byte> bytes(10, std::byte{7});
  keep(1, gone, bytes);
  keep(2, gone, {}, true);
  keep(3, other, {}, true);
  keep(4, gone);
  matcher.find({1, 0, kNoPeer})->arrival.wants_ack = true;
  matcher.forget(*gone);
  ASSERT_NE(matcher.find({1, 0, kNoPeer}), nullptr);
  EXPECT_FALSE(matcher.find({1, 0, kNoPeer})->arrival.wants_ack);
  EXPECT_EQ(matcher.find({2, 0, kNoPeer}), nullptr);
  EXPECT_NE(matcher.find({3, 0, kNoPeer}), nullptr);
  EXPECT_NE(matcher.find({4, 0, kNoPeer}), nullptr);
}

// The rules once more, as plainly as possible.
struct Model {
  struct Posted {
    std::uint64_t tag, ignore;
    PeerIndex source;
    int id;
  };
  struct Stored {
    std::uint64_t tag;
    PeerIndex from;
    int id;
    int claim;
  };
  std::vector<Posted> posted;
  std::vector<Stored> stored;

  static bool fits(const Posted& want, std::uint64_t tag, PeerIndex from) {
    for (int bit = 0; bit < 64; ++bit) {
      const std::uint64_t mask = std::uint64_t{1} << bit;
      if ((want.ignore & mask) == 0 && (want.tag & mask) != (tag & mask)) return false;
    }
    return want.source == kNoPeer || want.source == from;
  }
  // The receive for a message, or -1 and the message is stored.
  int arrive(std::uint64_t tag, PeerIndex from, int id) {
    for (auto entry = posted.begin(); entry != posted.end(); ++entry) {
      if (!fits(*entry, tag, from)) continue;
      const int taken = entry->id;
      posted.erase(entry);
      return taken;
    }
    stored.push_back({tag, from, id, 0});
    return -1;
  }
  // The first stored message that is not claimed, or -1.
  int look(const Posted& want) const {
    for (const Stored& message : stored) {
      if (message.claim == 0 && fits(want, message.tag, message.from)) return message.id;
    }
    return -1;
  }
  void drop(int id) {
    std::erase_if(stored, [id](const Stored& message) { return message.id == id; });
  }
};

struct Agreement : MatcherTest, ::testing::WithParamInterface<std::uint32_t> {
  Model model;
  std::mt19937 random{GetParam()};
  std::vector<std::shared_ptr<RemoteSender>> senders;
  int next_id = 1;

  void SetUp() override {
    for (std::uint16_t i = 0; i < 3; ++i) {
      addresses.insert(loopback(i));
      senders.push_back(sender(i));
    }
  }
  Model::Posted any_wish() {
    const std::uint64_t ignores[] = {0, 0, 1, 6, ~std::uint64_t{0}};
    return {random() % 8, ignores[random() % 5], random() % 2 == 0 ? kNoPeer : random() % 3, 0};
  }
  static int id_of(const QueuedUnexpected* message) {
    return message == nullptr ? -1 : static_cast<int>(message->arrival.data);
  }
  void message_arrives() {
    const std::uint64_t tag = random() % 8;
    const PeerIndex from = random() % 3;
    const int id = next_id++;
    Receive* receive = matcher.match(tag, from);
    const int expected = model.arrive(tag, from, id);
    ASSERT_EQ(receive == nullptr ? -1 : static_cast<int>(receive->taken.data), expected);
    if (receive != nullptr) return;
    link::Arrival arrival;
    arrival.tag = tag;
    arrival.data = static_cast<std::uint64_t>(id);
    matcher.keep(arrival, senders[from]);
  }
  void receive_is_posted() {
    Model::Posted wish = any_wish();
    QueuedUnexpected* message = matcher.find({wish.tag, wish.ignore, wish.source});
    ASSERT_EQ(id_of(message), model.look(wish));
    if (message != nullptr) {
      model.drop(id_of(message));
      matcher.take(*message);
      return;
    }
    wish.id = next_id++;
    model.posted.push_back(wish);
    Receive& receive = post(wish.tag, wish.ignore, wish.source);
    receive.taken.data = static_cast<std::uint64_t>(wish.id);
    receive.context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(wish.id));
  }
  void message_is_claimed() {
    const Model::Posted wish = any_wish();
    QueuedUnexpected* message = matcher.find({wish.tag, wish.ignore, wish.source});
    ASSERT_EQ(id_of(message), model.look(wish));
    if (message == nullptr) return;
    message->claimed = true;
    message->claimed_by = reinterpret_cast<void*>(message->arrival.data);
    for (auto& stored : model.stored) stored.claim |= stored.id == id_of(message);
  }
  void claim_is_taken() {
    const int id = static_cast<int>(random() % static_cast<unsigned>(next_id));
    QueuedUnexpected* message =
        matcher.find_claimed(reinterpret_cast<void*>(static_cast<std::uintptr_t>(id)));
    const bool expected = std::any_of(model.stored.begin(), model.stored.end(), [id](auto& stored) {
      return stored.id == id && stored.claim != 0;
    });
    ASSERT_EQ(message != nullptr, expected);
    if (message == nullptr) return;
    matcher.take(*message);
    model.drop(id);
  }
  void receive_is_cancelled() {
    const int id = static_cast<int>(random() % static_cast<unsigned>(next_id));
    const auto count = std::erase_if(model.posted, [id](auto& posted) { return posted.id == id; });
    Receive* receive = matcher.cancel(reinterpret_cast<void*>(static_cast<std::uintptr_t>(id)));
    ASSERT_EQ(receive != nullptr, count == 1);
  }
};

TEST_P(Agreement, WithThePlainRulesOverThousandsOfOperations) {
  for (int step = 0; step < 4000; ++step) {
    SCOPED_TRACE("seed " + std::to_string(GetParam()) + " step " + std::to_string(step));
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
        ASSERT_NO_FATAL_FAILURE(message_arrives());
        break;
      case 3:
      case 4:
        ASSERT_NO_FATAL_FAILURE(receive_is_posted());
        break;
      case 5:
        ASSERT_NO_FATAL_FAILURE(message_is_claimed());
        break;
      case 6:
        ASSERT_NO_FATAL_FAILURE(claim_is_taken());
        break;
      default:
        ASSERT_NO_FATAL_FAILURE(receive_is_cancelled());
        break;
    }
    ASSERT_EQ(matcher.nothing_kept(), model.stored.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Matcher, Agreement, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace weft::messaging
