// SPDX-License-Identifier: BSD-2-Clause
// Which endpoints are members of a multicast group of this host, and how does a send reach them
// all?
#include "link_shm/group.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "os/descriptor_count_support.h"
#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;

os::SocketAddress group_address(const char* kind) {
  return *kind == '4' ? os::address_of("224.0.1.129", 5000) : os::address_of("ff00::81");
}

struct GroupTest : ::testing::TestWithParam<const char*> {
  RuntimeDir dir;
  os::SocketAddress group = group_address(GetParam());
  std::unique_ptr<Mailbox> box = make_mailbox(dir.path(), 7001);
  InboxLog log{box.get()};
  Peer peer{dir.path(), 7002};
  GroupOutbox outbox{peer.sender, group};

  link::Membership join(std::uint16_t port) {
    auto joined = join_group(dir.path(), group, loopback(port));
    return joined ? std::move(joined).value() : nullptr;
  }
  link::Outcome::State send(std::size_t length = 10) {
    auto bytes = pattern(length, 1);
    const LocalRange sge{bytes.data(), length};
    link::SendRequest request;
    request.operation = link::MessageOperation::kDatagram;
    request.tag = link::group_number(group);
    request.must_copy = true;
    request.sges = {&sge, 1};
    request.length = length;
    return outbox.send(request).state;
  }
  void poll() {
    for (int i = 0; i < 20; ++i) box->poll(log);
  }
  std::size_t heard() {
    poll();
    const std::size_t count = log.messages.size();
    log.messages.clear();
    return count;
  }
  std::ptrdiff_t files() const {
    return static_cast<std::ptrdiff_t>(os::names_in(dir.path(), "mc-").value().size());
  }
};

INSTANTIATE_TEST_SUITE_P(Families, GroupTest, ::testing::Values("4", "6"));

TEST_P(GroupTest, AMemberHearsWhatIsSentWhileItIsOne) {
  EXPECT_EQ(send(), link::Outcome::State::kDone) << "to no member";
  auto membership = join(7001);
  ASSERT_NE(membership, nullptr);
  EXPECT_EQ(send(), link::Outcome::State::kDone);
  EXPECT_EQ(send(4096), link::Outcome::State::kDone);
  EXPECT_EQ(heard(), 2u);
  membership.reset();
  EXPECT_EQ(files(), 0);
  EXPECT_EQ(send(), link::Outcome::State::kDone);
  EXPECT_EQ(heard(), 0u);
}

TEST_P(GroupTest, AMessageCarriesTheNumberOfItsGroup) {
  const auto membership = join(7001);
  send();
  poll();
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_EQ(log.messages[0].arrival.operation, link::MessageOperation::kDatagram);
  EXPECT_EQ(log.messages[0].arrival.tag, link::group_number(group));
  EXPECT_NE(link::group_number(group), 0u);
}

TEST_P(GroupTest, OneMemberIsOneOnce) {
  const auto membership = join(7001);
  const auto again = join_group(dir.path(), group, loopback(7001));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, EADDRINUSE);
}

TEST_P(GroupTest, AMemberWithoutRoomIsSaidSo) {
  const auto membership = join(7001);
  link::Outcome::State state{};
  for (int i = 0; i < 1000; ++i) state = send(4096);
  EXPECT_EQ(state, link::Outcome::State::kAgain);
  EXPECT_GE(heard(), 32u);
}

TEST_P(GroupTest, AMemberWithoutAnEndpointIsPassedOver) {
  const auto absent = join(7005);
  const auto membership = join(7001);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(send(), link::Outcome::State::kDone);
  EXPECT_EQ(heard(), 100u);
  EXPECT_EQ(files(), 2) << "its process lives";
}

TEST_P(GroupTest, AFileWithoutAnAddressIsPassedOver) {
  const std::string path =
      dir.path() + "/mc-" + group.host() + "-" + std::to_string(group.port()) + "-nonsense";
  auto file = os::SharedFile::create(path, 64);
  ASSERT_TRUE(file.ok() && file.value()->publish().ok());
  const auto membership = join(7001);
  EXPECT_EQ(send(), link::Outcome::State::kDone);
  EXPECT_EQ(heard(), 1u);
}

TEST_P(GroupTest, AFileWithoutAnOwnerIsRemoved) {
  const std::string path =
      dir.path() + "/mc-" + group.host() + "-" + std::to_string(group.port()) + "-127.0.0.1-7001";
  std::ofstream(path).put('x');
  EXPECT_EQ(send(), link::Outcome::State::kDone);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_P(GroupTest, AMemberIsFoundOnceThereAreDescriptorsForIt) {
  const auto membership = join(7001);
  // Nothing has changed for so long that the directory is not read again for that reason.
  std::filesystem::last_write_time(
      dir.path(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  {
    const os::NoDescriptors none;
    EXPECT_EQ(send(), link::Outcome::State::kDone);
  }
  EXPECT_EQ(heard(), 0U);
  EXPECT_EQ(send(), link::Outcome::State::kDone);
  EXPECT_EQ(heard(), 1U);
}

TEST_P(GroupTest, ALostMemberIsFoundAgain) {
  const auto membership = join(7001);
  send();
  EXPECT_EQ(heard(), 1u);
  box.reset();
  FlowLog flow;
  EXPECT_EQ(outbox.check_peer(flow), link::PeerState::kAlive) << "a group is always there";
  box = make_mailbox(dir.path(), 7001);
  log.box = box.get();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::size_t again = 0;
  while (again == 0 && std::chrono::steady_clock::now() < end) {
    send();
    again = heard();
  }
  EXPECT_GT(again, 0u);
}

TEST_P(GroupTest, AMemberWithAnotherAuthorizationKeyIsSkippedAndTheSenderIsTold) {
  Authorizations keys;
  MailboxOptions keyed;
  keyed.directory = dir.path();
  keyed.address = loopback(7003);
  keyed.authorization = keys.take(std::as_bytes(std::span("a job"))).value();
  const auto other = std::move(Mailbox::create(keyed)).value();
  InboxLog other_log(other.get());
  const auto first = join(7003);
  const auto second = join(7001);
  EXPECT_EQ(send(), link::Outcome::State::kFailed);
  EXPECT_EQ(heard(), 1u);
  other->poll(other_log);
  EXPECT_TRUE(other_log.messages.empty());
}

}  // namespace
}  // namespace weft::shm
