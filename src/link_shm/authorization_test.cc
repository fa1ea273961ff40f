// SPDX-License-Identifier: BSD-2-Clause
// Do senders find mailboxes of endpoints with their authorization key only?
#include <gtest/gtest.h>

#include <cerrno>
#include <span>
#include <string_view>

#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;

struct AuthorizationTest : ::testing::Test {
  AuthorizationPtr take(std::string_view text) {
    return keys.take(std::as_bytes(std::span(text))).value();
  }
  std::unique_ptr<Mailbox> mailbox(std::uint16_t port, const AuthorizationPtr& key) {
    MailboxOptions options;
    options.directory = dir.path();
    options.address = loopback(port);
    options.table = "none";
    options.authorization = key;
    return std::move(Mailbox::create(options)).value();
  }
  // 0 or the error of opening the way to that mailbox.
  int open(const AuthorizationPtr& key, std::uint16_t port = kOwner) {
    Peer peer(dir.path(), kSender);
    peer.sender.authorization = key;
    const auto box = Outbox::open(peer.sender, loopback(port));
    return box ? 0 : box.error().code;
  }
  AuthorizationHash hash_at(std::uint16_t port) {
    const Peer peer(dir.path(), kSender);
    return PeerMailbox::open(peer.sender, loopback(port), kHeaderBytes)
        .value()
        .header()
        .authorization_hash;
  }

  RuntimeDir dir;
  Authorizations keys;
};

TEST_F(AuthorizationTest, ASlotIsForSendersWithTheSameKey) {
  const auto box = mailbox(kOwner, take("one"));
  EXPECT_EQ(open(take("one")), 0);
  EXPECT_EQ(open(take("two")), EKEYREJECTED);
  EXPECT_EQ(open(nullptr), EKEYREJECTED);
}

TEST_F(AuthorizationTest, WithoutAKeyItIsForSendersWithoutOne) {
  const auto box = mailbox(kOwner, nullptr);
  EXPECT_EQ(open(nullptr), 0);
  EXPECT_EQ(open(take("one")), EKEYREJECTED);
}

TEST_F(AuthorizationTest, TheSameKeyHasAnotherHashInEachMailbox) {
  const auto one = mailbox(kOwner, take("one"));
  const auto two = mailbox(kOwner + 1, take("one"));
  EXPECT_NE(hash_at(kOwner), hash_at(kOwner + 1));
  EXPECT_NE(hash_at(kOwner), AuthorizationHash{});
}

}  // namespace
}  // namespace weft::shm
