// SPDX-License-Identifier: BSD-2-Clause
// Do management datagrams arrive whole, in order and once, and is the sender told?
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "link_shm/mad_reader.h"
#include "link_shm/mad_sender.h"
#include "link_shm/mailbox.h"
#include "link_shm/names.h"
#include "link_shm/peer_slot.h"
#include "os/event.h"
#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;
using Bytes = std::vector<std::byte>;

struct MadTest : ::testing::Test {
  RuntimeDir directory;
  std::vector<std::pair<os::SocketAddress, Bytes>> heard;
  std::unique_ptr<Mailbox> box = make(7100, true);
  os::Waker waker = std::move(os::Waker::create()).value();
  Sender sender{directory.path(), loopback(7101), &waker};
  InboxLog sink{box.get()};

  std::unique_ptr<Mailbox> make(std::uint16_t port, bool takes) {
    MailboxOptions options;
    options.directory = directory.path();
    options.address = loopback(port);
    if (takes) {
      options.on_mad = [this](const os::SocketAddress& from, std::span<const std::byte> bytes) {
        heard.emplace_back(from, Bytes(bytes.begin(), bytes.end()));
      };
    }
    return std::move(Mailbox::create(options)).value();
  }
  std::unique_ptr<MadSender> open() const {
    return std::move(MadSender::open(sender, loopback(7100))).value();
  }
};

TEST_F(MadTest, EachLengthArrivesWithTheAddressOfItsSender) {
  const auto way = open();
  for (const std::size_t length : {0u, 1u, 256u, kLongestMad}) {
    const auto place = way->send(pattern(length, 7));
    ASSERT_TRUE(place.ok());
    EXPECT_FALSE(way->was_read(place.value()));
    EXPECT_EQ(box->poll(sink), 1u);
    EXPECT_TRUE(way->was_read(place.value()));
    EXPECT_EQ(heard.back().first, sender.address);
    EXPECT_EQ(heard.back().second, pattern(length, 7));
  }
  EXPECT_EQ(way->send(pattern(kLongestMad + 1, 0)).error().code, EMSGSIZE);
  EXPECT_EQ(box->poll(sink), 0u);
}

TEST_F(MadTest, ADatagramWithoutAnAddressIsHandedOverAsOne) {
  const auto way = open();
  sender.address = os::SocketAddress();
  ASSERT_TRUE(way->send(pattern(9, 7)).ok());
  EXPECT_EQ(box->poll(sink), 1u);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard.back().first.length(), 0u);
}

TEST_F(MadTest, AFullMailboxTakesMoreWhenItWasRead) {
  const auto way = open();
  unsigned sent = 0;
  for (int round = 0; round < 5; ++round) {
    const std::size_t before = heard.size();
    while (way->send(pattern(9, sent)).ok()) ++sent;
    EXPECT_EQ(way->send(pattern(9, sent)).error().code, EAGAIN);
    box->poll(sink);
    EXPECT_EQ(heard.size() - before, kMads);
    ASSERT_TRUE(way->send(pattern(9, sent++)).ok());  // the next ones begin at another cell
    box->poll(sink);
  }
  ASSERT_EQ(heard.size(), sent);
  for (unsigned i = 0; i < sent; ++i) EXPECT_EQ(heard[i].second, pattern(9, i)) << i;
}

TEST_F(MadTest, ManySendersLoseNothing) {
  constexpr unsigned kSenders = 4;
  constexpr unsigned kEach = 500;
  std::vector<std::thread> senders;
  for (unsigned s = 0; s < kSenders; ++s) {
    senders.emplace_back([this, s] {
      const auto way = open();
      for (unsigned i = 0; i < kEach;) {
        if (way->send(Bytes{static_cast<std::byte>(s)}).ok()) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  while (heard.size() < kSenders * kEach) box->poll(sink);
  for (std::thread& each : senders) each.join();
  std::array<unsigned, kSenders> counts{};
  for (const auto& [from, bytes] : heard) ++counts.at(static_cast<std::size_t>(bytes.at(0)));
  for (const unsigned count : counts) EXPECT_EQ(count, kEach);
}

TEST_F(MadTest, ASleepingOwnerIsWoken) {
  const auto way = open();
  ASSERT_TRUE(box->fall_asleep());
  ASSERT_TRUE(way->send(pattern(1, 0)).ok());
  EXPECT_TRUE(os::wait_readable(box->wake_fd(), std::chrono::seconds(20)));
  EXPECT_FALSE(box->fall_asleep());
  box->wake_up();
  EXPECT_EQ(box->poll(sink), 1u);
}

TEST_F(MadTest, AMailboxWithoutThemRefuses) {
  const auto other = make(7102, false);
  EXPECT_EQ(MadSender::open(sender, loopback(7102)).error().code, ECONNREFUSED);
  EXPECT_EQ(MadSender::open(sender, loopback(7103)).error().code, ENOENT);
  // Also when slots have made its file longer.
  const auto slot = std::move(PeerSlot::claim(sender, loopback(7102))).value();
  EXPECT_EQ(MadSender::open(sender, loopback(7102)).error().code, ECONNREFUSED);
}

TEST_F(MadTest, TheSenderSeesHowTheReceiverEnds) {
  const auto way = open();
  EXPECT_EQ(way->peer_state(), link::PeerState::kAlive);
  EXPECT_EQ(way->process(), ::getpid());
  box.reset();
  EXPECT_EQ(way->peer_state(), link::PeerState::kLeft);
}

// It holds the lock of a cell, as a sender that was stopped while it wrote.
TEST_F(MadTest, ACellThatAnotherProcessWritesIsLeftOut) {
  const auto way = open();
  const auto file = os::SharedFile::open(mailbox_path(directory.path(), loopback(7100))).value();
  for (std::uint32_t i = 0; i < kMads; i += 2) ASSERT_TRUE(file->claim(kMadLock + i));
  unsigned sent = 0;
  while (way->send(pattern(9, sent)).ok()) ++sent;
  EXPECT_EQ(sent, kMads / 2);
  box->poll(sink);
  EXPECT_EQ(heard.size(), sent);
  for (std::uint32_t i = 0; i < kMads; i += 2) file->disclaim(kMadLock + i);
}

TEST_F(MadTest, WhatAHostileSenderWritesIsBounded) {
  const auto file = os::SharedFile::open(mailbox_path(directory.path(), loopback(7100))).value();
  const auto memory = std::move(file->map(0, kSlotsAt)).value();
  auto* const cells = memory.at<MadCell>(kMadsAt);
  std::memset(static_cast<void*>(cells), 0xFF, kMads * sizeof(MadCell));
  memory.at<MailboxHeader>(0)->takes_mads = 0;
  memory.at<MailboxHeader>(0)->mads = ~std::uint64_t{0};
  memory.at<MailboxHeader>(0)->summary = 1;
  box->poll(sink);
  for (const auto& [from, bytes] : heard) EXPECT_LE(bytes.size(), kLongestMad);
  heard.clear();
  memory.at<MailboxHeader>(0)->takes_mads = 1;
  ASSERT_TRUE(open()->send(pattern(3, 1)).ok());
  EXPECT_EQ(box->poll(sink), 1u);
}

TEST_F(MadTest, AForkedChildSendsNothingOfItsParents) {
  const auto way = open();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(way->send(pattern(1, 0)).ok() ? 1 : 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(box->poll(sink), 0u);
}

}  // namespace
}  // namespace weft::shm
