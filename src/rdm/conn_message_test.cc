// SPDX-License-Identifier: BSD-2-Clause
// Is a greeting read back as it was written, and nothing else taken for one?
#include "rdm/conn_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "os/loopback_support.h"

namespace weft::rdm {
namespace {

Introduction introduction(std::size_t path_mtu) {
  Introduction me;
  me.connection_id = 0x8765'4321;
  me.station = 0xFEDC'BA98'7654'3211;
  me.queue_pair = 0xFF'FF01;
  me.context = 0xAB'CDEF;
  me.queue_key = 0x9999'0001;
  me.path_mtu = path_mtu;
  me.room = 0xFFFF'FFFE;
  return me;
}

ConnReq req(const os::SocketAddress& name, std::size_t path_mtu = 4096) {
  return {introduction(path_mtu), name, link::Service::kReliableDatagram, 512};
}

std::vector<ConnMessage> one_of_each() {
  return {req(os::loopback(4791)),
          req(os::address_of("2001:db8::1", 9, 0)),
          ConnRep{7, introduction(1024), Psn(3), 1024},
          ConnRej{ConnRej::Why::kNoService, 9, 0},
          ConnRej{ConnRej::Why::kUnknown, 0, 0xABCDEF},
          ConnRej{ConnRej::Why::kUnwanted, 9, 0},
          Disconnect{false, 1, 2},
          Disconnect{false, 1, 2, Psn(5)},
          Disconnect{true, 1, 2}};
}

void expect_same(const Introduction& got, const Introduction& said) {
  EXPECT_EQ(got.connection_id, said.connection_id);
  EXPECT_EQ(got.station, said.station);
  EXPECT_EQ(got.queue_pair, said.queue_pair);
  EXPECT_EQ(got.context, said.context);
  EXPECT_EQ(got.queue_key, said.queue_key);
  EXPECT_EQ(got.path_mtu, said.path_mtu);
  EXPECT_EQ(got.room, said.room);
}

template <class T>
T again(const T& message) {
  const auto read = read_conn_message(write_conn_message(message));
  if (!read || !std::holds_alternative<T>(*read)) {
    ADD_FAILURE() << "it is not read as what it is";
    return {};
  }
  return std::get<T>(*read);
}

TEST(ConnMessage, AChangeOfThePathMtuIsReadBack) {
  for (const unsigned changes : {0U, 1U, 255U}) {
    ConnReq hello_said = req(os::address_of("2001:db8::1", 9, 0));
    hello_said.changes = static_cast<std::uint8_t>(changes);
    hello_said.first = Psn(0xFF'FFFE);
    const ConnReq heard = again(hello_said);
    EXPECT_EQ(heard.changes, changes);
    EXPECT_EQ(heard.first, hello_said.first);
    EXPECT_EQ(heard.name, hello_said.name);
    ConnRep rep{7, introduction(1024), Psn(3), 1024};
    rep.changes = static_cast<std::uint8_t>(changes);
    EXPECT_EQ(again(rep).changes, changes);
  }
}

TEST(ConnMessage, AHelloIsReadBackWithEveryPathMtuAndService) {
  for (const std::size_t mtu : {256u, 320u, 1024u, 1408u, 4096u, 8896u}) {
    for (const auto service : {link::Service::kReliableDatagram, link::Service::kDatagram}) {
      ConnReq said = req(os::loopback(50000), mtu);
      said.service = service;
      said.path_mtu = 256;
      const ConnReq got = again(said);
      expect_same(got.me, said.me);
      EXPECT_EQ(got.service, service);
      EXPECT_EQ(got.path_mtu, said.path_mtu);
      EXPECT_TRUE(got.name == said.name) << got.name.text();
    }
  }
}

TEST(ConnMessage, AHelloBringsNamesOfBothFamilies) {
  for (const os::SocketAddress& name :
       {os::loopback(1), os::loopback(65535), os::address_of("::1", 4791, 0),
        os::address_of("fe80::1:2", 65535, 3)}) {
    const ConnReq got = again(req(name));
    EXPECT_TRUE(got.name == name) << got.name.text() << " instead of " << name.text();
    const auto* raw = reinterpret_cast<const sockaddr_in6*>(got.name.get());
    const auto* expected = reinterpret_cast<const sockaddr_in6*>(name.get());
    if (name.family() != AF_INET6) continue;
    EXPECT_EQ(raw->sin6_scope_id, expected->sin6_scope_id);
  }
}

TEST(ConnMessage, AWelcomeIsReadBack) {
  const ConnRep said{0x8000'0001, introduction(2048), Psn(0xFF'FFFF), 1024};
  const ConnRep got = again(said);
  EXPECT_EQ(got.connection_id, said.connection_id);
  EXPECT_EQ(got.first.value(), said.first.value());
  EXPECT_EQ(got.path_mtu, said.path_mtu);
  expect_same(got.me, said.me);
}

TEST(ConnMessage, ARefusalSaysWhy) {
  for (const auto why :
       {ConnRej::Why::kNoService, ConnRej::Why::kUnknown, ConnRej::Why::kUnwanted}) {
    const ConnRej got = again(ConnRej{why, 0x8000'0002, 0xFF'FFFE});
    EXPECT_EQ(got.why, why);
    EXPECT_EQ(got.connection_id, 0x8000'0002);
    EXPECT_EQ(got.context, 0xFF'FFFEu);
  }
}

TEST(ConnMessage, AFarewellAndItsAnswerAreReadBack) {
  for (const bool answer : {false, true}) {
    const Disconnect got = again(Disconnect{answer, 0x8000'0003, 0x8000'0004});
    EXPECT_EQ(got.answer, answer);
    EXPECT_EQ(got.sender_id, 0x8000'0003);
    EXPECT_EQ(got.receiver_id, 0x8000'0004);
  }
}

TEST(ConnMessage, ARequestCarriesEarlyData) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kMaxEarlyData}) {
    ConnReq said = req(os::loopback(50000));
    said.early_data.assign(count, std::byte{0xA5});
    EXPECT_EQ(again(said).early_data, said.early_data);
  }
}

TEST(ConnMessage, AFarewellSaysWhatHasCome) {
  for (const Psn expected : {Psn(0), Psn(Psn::kMask)}) {
    const Disconnect got = again(Disconnect{false, 1, 2, expected});
    ASSERT_TRUE(got.expected.has_value());
    EXPECT_EQ(got.expected->value(), expected.value());
  }
  EXPECT_FALSE(again(Disconnect{false, 1, 2}).expected.has_value());
}

TEST(ConnMessage, ATruncatedMessageIsNone) {
  for (const ConnMessage& message : one_of_each()) {
    const auto whole = write_conn_message(message);
    ASSERT_TRUE(read_conn_message(whole).has_value());
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<long>(length));
      EXPECT_FALSE(read_conn_message(part).has_value()) << length;
    }
  }
}

TEST(ConnMessage, AnotherVersionOfWeftIsNone) {
  for (const ConnMessage& message : {ConnMessage(req(os::loopback(1))),
                                     ConnMessage(ConnRep{7, introduction(1024), Psn(3), 1024})}) {
    const auto right = write_conn_message(message);
    // Where the version stands is where the two greetings of different rooms begin to differ, four
    // bytes before: only that byte and its peers are tried.
    ConnMessage roomier = message;
    if (auto* one = std::get_if<ConnReq>(&roomier)) one->me.room = 0;
    if (auto* one = std::get_if<ConnRep>(&roomier)) one->me.room = 0;
    const auto other = write_conn_message(roomier);
    const auto differ = std::mismatch(right.begin(), right.end(), other.begin());
    ASSERT_NE(differ.first, right.end());
    const auto version = static_cast<std::size_t>(differ.first - right.begin()) - 4;
    for (unsigned value = 0; value < 256; ++value) {
      auto bytes = right;
      bytes[version] = static_cast<std::byte>(value);
      EXPECT_EQ(read_conn_message(bytes).has_value(), value == 5) << value;
    }
    for (unsigned code = 0; code < 256; ++code) {
      auto bytes = right;
      bytes[version + 1] = static_cast<std::byte>(code);
      EXPECT_EQ(read_conn_message(bytes).has_value(), code >= 4 && code <= 139) << code;
    }
  }
}

TEST(ConnMessage, AnotherVersionOfTheConnectionManagerIsNone) {
  for (const ConnMessage& message : one_of_each()) {
    for (std::size_t at = 0; at < 4; ++at) {  // base version, class, class version, method
      auto bytes = write_conn_message(message);
      bytes[at] ^= std::byte{0x40};
      EXPECT_FALSE(read_conn_message(bytes).has_value()) << at;
    }
  }
}

TEST(ConnMessage, RandomBytesAreNone) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes(i % 2 == 0 ? wire::kMadBytes : random() % 600);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(read_conn_message(bytes).has_value());
  }
}

// Whatever the bytes behind the header say, what is read can be said again, and means the same.
TEST(ConnMessage, ChangedOnesAreReadAsSomethingSensibleOrNotAtAll) {
  std::mt19937_64 random(2);
  const auto all = one_of_each();
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = write_conn_message(all[static_cast<std::size_t>(i) % all.size()]);
    for (int changes = 0; changes < 4; ++changes) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    const auto read = read_conn_message(bytes);
    if (!read) continue;
    const auto once = write_conn_message(*read);
    const auto twice = read_conn_message(once);
    ASSERT_TRUE(twice.has_value());
    EXPECT_EQ(twice->index(), read->index());
    EXPECT_EQ(write_conn_message(*twice), once);
  }
}

}  // namespace
}  // namespace weft::rdm
