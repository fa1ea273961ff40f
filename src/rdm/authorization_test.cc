// SPDX-License-Identifier: BSD-2-Clause
// Do endpoints with different authorization keys keep flows from each other? (fi_endpoint(3))
#include <gtest/gtest.h>

#include <span>
#include <string_view>

#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

struct AuthorizationTest : ::testing::Test {
  AuthorizationPtr take(std::string_view text) {
    return keys.take(std::as_bytes(std::span(text))).value();
  }
  static RdmOptions with(const AuthorizationPtr& key) {
    RdmOptions options;
    options.authorization = key;
    return options;
  }
  // How the flow from one to the other ends, or kAlive once it is open.
  static link::PeerState ask(Endpoint& from, Endpoint& to) {
    const auto flow = std::move(from.open(to.address)).value();
    link::PeerState state = link::PeerState::kAlive;
    const bool decided = until({&from, &to}, [&] {
      state = flow->check_peer(from.ends);
      return flow->reached() || state != link::PeerState::kAlive;
    });
    EXPECT_TRUE(decided);
    return state;
  }

  World world;
  Authorizations keys;
  Endpoint none{world};
  Endpoint one{world, with(take("one"))};
  Endpoint same{world, with(take("one"))};
  Endpoint two{world, with(take("two"))};
};

TEST_F(AuthorizationTest, AFlowBeginsBetweenEqualKeysOnly) {
  EXPECT_EQ(ask(one, same), link::PeerState::kAlive);
  EXPECT_EQ(ask(same, one), link::PeerState::kAlive);
  for (const auto& [from, to] :
       {std::pair(&one, &two), {&two, &one}, {&none, &one}, {&one, &none}}) {
    EXPECT_EQ(ask(*from, *to), link::PeerState::kUnauthorized);
    EXPECT_EQ(to->log.opened.size(), to == &one ? 1U : 0U);
  }
  EXPECT_EQ(ask(one, same), link::PeerState::kAlive);
}

}  // namespace
}  // namespace weft::rdm::testing
