// SPDX-License-Identifier: BSD-2-Clause
// Is a greeting read back as it was written, and nothing else taken for one?
#include "link_udp/greeting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "os/loopback.h"

namespace weft::udp {
namespace {

Introduction introduction(std::size_t path_mtu) {
  Introduction me;
  me.token = 0x8765'4321;
  me.station = 0xFEDC'BA98'7654'3211;
  me.queue_pair = 0xFF'FF01;
  me.context = 0xAB'CDEF;
  me.queue_key = 0x9999'0001;
  me.path_mtu = path_mtu;
  me.room = 0xFFFF'FFFE;
  return me;
}

Hello hello(const os::SocketAddress& name, std::size_t path_mtu = 4096) {
  return {introduction(path_mtu), name, link::Service::kReliableDatagram, 512};
}

std::vector<Greeting> one_of_each() {
  return {hello(os::loopback(4791)),
          hello(os::address_of("2001:db8::1", 9, 0)),
          Welcome{7, introduction(1024), Psn(3), 1024},
          Refusal{Refusal::Why::kNobody, 9, 0},
          Refusal{Refusal::Why::kUnknown, 0, 0xABCDEF},
          Refusal{Refusal::Why::kUnwanted, 9, 0},
          Farewell{false, 1, 2},
          Farewell{false, 1, 2, Psn(5)},
          Farewell{true, 1, 2}};
}

void expect_same(const Introduction& got, const Introduction& said) {
  EXPECT_EQ(got.token, said.token);
  EXPECT_EQ(got.station, said.station);
  EXPECT_EQ(got.queue_pair, said.queue_pair);
  EXPECT_EQ(got.context, said.context);
  EXPECT_EQ(got.queue_key, said.queue_key);
  EXPECT_EQ(got.path_mtu, said.path_mtu);
  EXPECT_EQ(got.room, said.room);
}

template <class T>
T again(const T& greeting) {
  const auto read = read_greeting(write_greeting(greeting));
  if (!read || !std::holds_alternative<T>(*read)) {
    ADD_FAILURE() << "it is not read as what it is";
    return {};
  }
  return std::get<T>(*read);
}

TEST(Greeting, TheNumberOfRaisesIsReadBack) {
  for (const unsigned raises : {0U, 1U, 255U}) {
    Hello hello_said = hello(os::address_of("2001:db8::1", 9, 0));
    hello_said.raises = static_cast<std::uint8_t>(raises);
    const Hello heard = again(hello_said);
    EXPECT_EQ(heard.raises, raises);
    EXPECT_EQ(heard.name, hello_said.name);
    Welcome welcome{7, introduction(1024), Psn(3), 1024};
    welcome.raises = static_cast<std::uint8_t>(raises);
    EXPECT_EQ(again(welcome).raises, raises);
  }
}

TEST(Greeting, AHelloIsReadBackWithEveryPathMtuAndService) {
  for (const std::size_t mtu : {256u, 320u, 1024u, 1408u, 4096u, 8896u}) {
    for (const auto service : {link::Service::kReliableDatagram, link::Service::kDatagram}) {
      Hello said = hello(os::loopback(50000), mtu);
      said.service = service;
      said.path_mtu = 256;
      const Hello got = again(said);
      expect_same(got.me, said.me);
      EXPECT_EQ(got.service, service);
      EXPECT_EQ(got.path_mtu, said.path_mtu);
      EXPECT_TRUE(got.name == said.name) << got.name.text();
    }
  }
}

TEST(Greeting, AHelloBringsNamesOfBothFamilies) {
  for (const os::SocketAddress& name :
       {os::loopback(1), os::loopback(65535), os::address_of("::1", 4791, 0),
        os::address_of("fe80::1:2", 65535, 3)}) {
    const Hello got = again(hello(name));
    EXPECT_TRUE(got.name == name) << got.name.text() << " instead of " << name.text();
    const auto* raw = reinterpret_cast<const sockaddr_in6*>(got.name.get());
    const auto* expected = reinterpret_cast<const sockaddr_in6*>(name.get());
    if (name.family() != AF_INET6) continue;
    EXPECT_EQ(raw->sin6_scope_id, expected->sin6_scope_id);
  }
}

TEST(Greeting, AWelcomeIsReadBack) {
  const Welcome said{0x8000'0001, introduction(2048), Psn(0xFF'FFFF), 1024};
  const Welcome got = again(said);
  EXPECT_EQ(got.token, said.token);
  EXPECT_EQ(got.first.value(), said.first.value());
  EXPECT_EQ(got.path_mtu, said.path_mtu);
  expect_same(got.me, said.me);
}

TEST(Greeting, ARefusalSaysWhy) {
  for (const auto why : {Refusal::Why::kNobody, Refusal::Why::kUnknown, Refusal::Why::kUnwanted}) {
    const Refusal got = again(Refusal{why, 0x8000'0002, 0xFF'FFFE});
    EXPECT_EQ(got.why, why);
    EXPECT_EQ(got.token, 0x8000'0002);
    EXPECT_EQ(got.context, 0xFF'FFFEu);
  }
}

TEST(Greeting, AFarewellAndItsAnswerAreReadBack) {
  for (const bool answer : {false, true}) {
    const Farewell got = again(Farewell{answer, 0x8000'0003, 0x8000'0004});
    EXPECT_EQ(got.answer, answer);
    EXPECT_EQ(got.sender_token, 0x8000'0003);
    EXPECT_EQ(got.receiver_token, 0x8000'0004);
  }
}

TEST(Greeting, AHelloBringsWords) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kMostWords}) {
    Hello said = hello(os::loopback(50000));
    said.words.assign(count, std::byte{0xA5});
    EXPECT_EQ(again(said).words, said.words);
  }
}

TEST(Greeting, AFarewellSaysWhatHasCome) {
  for (const Psn expected : {Psn(0), Psn(Psn::kMask)}) {
    const Farewell got = again(Farewell{false, 1, 2, expected});
    ASSERT_TRUE(got.expected.has_value());
    EXPECT_EQ(got.expected->value(), expected.value());
  }
  EXPECT_FALSE(again(Farewell{false, 1, 2}).expected.has_value());
}

TEST(Greeting, WhatIsTruncatedIsNone) {
  for (const Greeting& greeting : one_of_each()) {
    const auto whole = write_greeting(greeting);
    ASSERT_TRUE(read_greeting(whole).has_value());
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<long>(length));
      EXPECT_FALSE(read_greeting(part).has_value()) << length;
    }
  }
}

TEST(Greeting, AnotherVersionOfWeftIsNone) {
  for (const Greeting& greeting :
       {Greeting(hello(os::loopback(1))), Greeting(Welcome{7, introduction(1024), Psn(3), 1024})}) {
    const auto right = write_greeting(greeting);
    // Where the version stands is where the two greetings of different rooms begin to differ, four
    // bytes before: only that byte and its peers are tried.
    Greeting roomier = greeting;
    if (auto* one = std::get_if<Hello>(&roomier)) one->me.room = 0;
    if (auto* one = std::get_if<Welcome>(&roomier)) one->me.room = 0;
    const auto other = write_greeting(roomier);
    const auto differ = std::mismatch(right.begin(), right.end(), other.begin());
    ASSERT_NE(differ.first, right.end());
    const auto version = static_cast<std::size_t>(differ.first - right.begin()) - 4;
    for (unsigned value = 0; value < 256; ++value) {
      auto bytes = right;
      bytes[version] = static_cast<std::byte>(value);
      EXPECT_EQ(read_greeting(bytes).has_value(), value == 4) << value;
    }
    for (unsigned code = 0; code < 256; ++code) {
      auto bytes = right;
      bytes[version + 1] = static_cast<std::byte>(code);
      EXPECT_EQ(read_greeting(bytes).has_value(), code >= 4 && code <= 139) << code;
    }
  }
}

TEST(Greeting, AnotherVersionOfTheConnectionManagerIsNone) {
  for (const Greeting& greeting : one_of_each()) {
    for (std::size_t at = 0; at < 4; ++at) {  // base version, class, class version, method
      auto bytes = write_greeting(greeting);
      bytes[at] ^= std::byte{0x40};
      EXPECT_FALSE(read_greeting(bytes).has_value()) << at;
    }
  }
}

TEST(Greeting, RandomBytesAreNone) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes(i % 2 == 0 ? wire::kMadBytes : random() % 600);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(read_greeting(bytes).has_value());
  }
}

// Whatever the bytes behind the header say, what is read can be said again, and means the same.
TEST(Greeting, ChangedOnesAreReadAsSomethingSensibleOrNotAtAll) {
  std::mt19937_64 random(2);
  const auto all = one_of_each();
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = write_greeting(all[static_cast<std::size_t>(i) % all.size()]);
    for (int changes = 0; changes < 4; ++changes) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    const auto read = read_greeting(bytes);
    if (!read) continue;
    const auto once = write_greeting(*read);
    const auto twice = read_greeting(once);
    ASSERT_TRUE(twice.has_value());
    EXPECT_EQ(twice->index(), read->index());
    EXPECT_EQ(write_greeting(*twice), once);
  }
}

}  // namespace
}  // namespace weft::udp
