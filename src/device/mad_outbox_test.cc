// SPDX-License-Identifier: BSD-2-Clause
// What becomes of management datagrams for a receiver that does not read its mailbox?
#include "mad_outbox.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "link_shm/mailbox.h"
#include "link_shm/names.h"
#include "os/loopback_support.h"
#include "os/test_directory_support.h"

namespace weft::device {
namespace {

using Bytes = std::vector<std::byte>;

// A sink that nothing but datagrams reach.
struct NoSink final : link::InboxSink {
  void source_opened(std::uint32_t, const os::SocketAddress&) override {}
  void source_closed(std::uint32_t, bool) override {}
  void arrived(const link::Arrival&) override {}
  void received(void*, int) override {}
};

// A full mailbox, and an outbox whose datagrams have two bytes.
struct MadOutboxTest : ::testing::Test {
  os::TestDirectory directory;
  std::vector<unsigned> heard;  // since it was full
  std::unique_ptr<shm::Mailbox> receiver = make(7400);
  std::unique_ptr<shm::Mailbox> own = make(7401);
  NoSink sink;
  Stats stats;
  MadOutbox outbox{own->sender(), {}, stats};

  MadOutboxTest() {
    const auto filler = std::move(shm::MadSender::open(own->sender(), address())).value();
    while (filler->send({}).ok()) {
    }
  }

  static os::SocketAddress address() { return os::loopback(7400); }
  std::unique_ptr<shm::Mailbox> make(std::uint16_t port) {
    shm::MailboxOptions options;
    options.directory = directory.path();
    options.address = os::loopback(port);
    options.on_mad = [this](const os::SocketAddress&, std::span<const std::byte> bytes) {
      if (bytes.empty()) return;
      heard.push_back(std::to_integer<unsigned>(bytes[0]) << 8 |
                      std::to_integer<unsigned>(bytes[1]));
    };
    options.sender.address = options.address;
    return std::move(shm::Mailbox::create(options)).value();
  }
  // True when it is in the mailbox.
  bool send(std::uint32_t id, unsigned word, bool is_answer = true) {
    const Bytes bytes{static_cast<std::byte>(word >> 8), static_cast<std::byte>(word)};
    return outbox.send(address(), id, bytes, is_answer).has_value();
  }
  // Until nothing waits any more. Returns the ids that were told.
  std::vector<std::uint32_t> read_all() {
    std::vector<std::uint32_t> told;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto note = [&](std::uint32_t id, const shm::MadPlace&) { told.push_back(id); };
    do {
      receiver->poll(sink);
    } while (outbox.send_again(note) && std::chrono::steady_clock::now() < end);
    receiver->poll(sink);
    return told;
  }
};

TEST_F(MadOutboxTest, TheLastDatagramOfAConnectionWaits) {
  for (const unsigned word : {1, 2, 3}) EXPECT_FALSE(send(7, word));
  EXPECT_FALSE(send(8, 4));
  EXPECT_EQ(read_all(), (std::vector<std::uint32_t>{7, 8}));
  EXPECT_EQ(heard, (std::vector<unsigned>{3, 4}));
}

TEST_F(MadOutboxTest, AnswersBeyondTheLimitAreLostAndRequestsWait) {
  const auto most = static_cast<unsigned>(MadOutbox::kMostUnsentAnswers);
  for (unsigned i = 0; i < 2 * most; ++i) EXPECT_FALSE(send(i % 2 == 0 ? 0 : i, i));
  EXPECT_FALSE(send(2 * most, 2 * most, false));
  read_all();
  ASSERT_EQ(heard.size(), most + 1);
  for (unsigned i = 0; i < most; ++i) EXPECT_EQ(heard[i], i);
  EXPECT_EQ(heard.back(), 2 * most);
  EXPECT_EQ(stats.of(Stat::kAnswersLimited), most);
  heard.clear();
  EXPECT_TRUE(send(1, 1)) << "there is room again";
}

TEST_F(MadOutboxTest, NothingIsTriedForAReceiverThatOthersWaitFor) {
  EXPECT_FALSE(send(1, 1));
  receiver->poll(sink);
  EXPECT_FALSE(send(2, 2));
  EXPECT_EQ(read_all(), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(heard, (std::vector<unsigned>{1, 2}));
  EXPECT_TRUE(send(3, 3));
}

// Without its name it could not be found anew.
TEST_F(MadOutboxTest, AMailboxIsNotLookedForAgainForEachAttempt) {
  EXPECT_FALSE(send(1, 1));
  std::filesystem::remove(shm::mailbox_path(directory.path(), address()));
  EXPECT_FALSE(send(2, 2));
  read_all();
  EXPECT_EQ(heard, (std::vector<unsigned>{1, 2}));
}

TEST_F(MadOutboxTest, ADatagramThatIsDroppedIsNotSent) {
  EXPECT_FALSE(send(1, 1));
  EXPECT_FALSE(send(2, 2));
  EXPECT_TRUE(outbox.drop(1));
  EXPECT_FALSE(outbox.drop(1));
  read_all();
  EXPECT_EQ(heard, std::vector<unsigned>{2});
}

TEST_F(MadOutboxTest, WithTheReceiverAllThatWaitsForItIsLost) {
  for (const unsigned word : {1, 2, 3}) EXPECT_FALSE(send(word, word));
  receiver.reset();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (outbox.send_again({}) && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_FALSE(outbox.send_again({}));
  EXPECT_FALSE(outbox.drop(1));
}

}  // namespace
}  // namespace weft::device
