// SPDX-License-Identifier: BSD-2-Clause
// How are the two sides of a test set up for each placement?
#include "world.h"

#include <gtest/gtest.h>

namespace weft::conformance {

const char* to_string(Placement placement) {
  switch (placement) {
    case Placement::kTwoProcesses:
      return "TwoProcesses";
    case Placement::kOneProcess:
      return "OneProcess";
    case Placement::kTwoDomains:
      return "TwoDomains";
    case Placement::kSelf:
      return "Self";
    case Placement::kConnectedProcesses:
      return "ConnectedProcesses";
    case Placement::kConnected:
      return "Connected";
  }
  return "";
}

namespace {

bool is_connected(Placement placement) {
  return placement == Placement::kConnected || placement == Placement::kConnectedProcesses;
}

Options with_type(Options options, Placement placement) {
  if (is_connected(placement)) options.type = FI_EP_MSG;
  return options;
}

}  // namespace

World::World(Placement placement, const Options& options) {
  if (!open_parties(placement, with_type(options, placement))) return;
  if (is_connected(placement)) {
    ok_ = connect_parties();
    return;
  }
  to_target_ = initiator_->insert(target_->name());
  to_initiator_ = placement == Placement::kSelf ? to_target_ : target_->insert(initiator_->name());
  ok_ = to_target_ != FI_ADDR_NOTAVAIL && to_initiator_ != FI_ADDR_NOTAVAIL;
}

bool World::connect_parties() {
  // A connected endpoint needs no address: the one that a call names must not matter.
  to_target_ = 12345;
  to_initiator_ = 54321;
  const bool left_alone = endpoint().options().left_alone;
  if (left_alone) pump_.add(&endpoint());
  initiator_->connect(target_->name());
  target_->accept();
  const bool connected = pump_.until([&] { return endpoint().connected(); });
  if (left_alone) pump_.remove(&endpoint());
  EXPECT_TRUE(connected) << "the initiator heard of no connection";
  return connected;
}

bool World::open_parties(Placement placement, const Options& options) {
  auto domain = std::make_shared<Domain>(options);
  initiator_ = std::make_unique<LocalParty>(domain, options, &pump_);
  if (!initiator_->ok()) return false;
  target_ = initiator_.get();
  if (placement == Placement::kSelf) return true;
  if (placement == Placement::kTwoProcesses || placement == Placement::kConnectedProcesses) {
    auto remote = std::make_unique<RemoteParty>(options, &pump_);
    const bool opened = remote->ok();
    other_ = std::move(remote);
    target_ = other_.get();
    return opened;
  }
  if (placement == Placement::kTwoDomains) domain = std::make_shared<Domain>(options);
  auto local = std::make_unique<LocalParty>(domain, options, &pump_);
  const bool opened = local->ok();
  other_ = std::move(local);
  target_ = other_.get();
  return opened;
}

void World::exchange(std::uint64_t length, std::uint64_t seed) {
  Operation receive;
  receive.kind = Kind::kRecvmsg;
  receive.length = length;
  receive.flags = FI_COMPLETION;
  const Token received = target().post(receive);
  Operation send;
  send.kind = Kind::kSendmsg;
  send.length = length;
  send.seed = seed;
  send.peer = to_target();
  send.flags = FI_COMPLETION;
  const Token sent = initiator().post(send);
  initiator().wait_success(sent);
  target().wait_success(received);
  target().expect_data(received, seed, length);
}

}  // namespace weft::conformance
