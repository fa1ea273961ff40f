// SPDX-License-Identifier: BSD-2-Clause
// Does an endpoint perform the remote accesses that it was opened for, and no others?
// (fi_getinfo(3), capabilities: FI_REMOTE_READ and FI_REMOTE_WRITE)
#include <algorithm>
#include <string>
#include <vector>

#include "support/atomic.h"
#include "support/local_party.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kEverything = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
constexpr std::size_t kRegion = 65536;
constexpr std::uint64_t kContents = 5;

// Capabilities of a target's endpoint, and the accesses that follow from them.
struct Opened {
  const char* name;
  std::uint64_t caps;
  bool reads = false;
  bool writes = false;
  bool changes = false;  // fetching atomic operations: they read and write
};

constexpr Opened kOpened[] = {
    {"Messages", FI_MSG},
    {"RmaAsInitiator", FI_MSG | FI_RMA | FI_READ | FI_WRITE},
    {"RmaReads", FI_MSG | FI_RMA | FI_REMOTE_READ, true},
    {"RmaWrites", FI_MSG | FI_RMA | FI_REMOTE_WRITE, false, true},
    {"Rma", FI_MSG | FI_RMA, true, true},
    {"AtomicsAsInitiator", FI_MSG | FI_ATOMIC | FI_READ | FI_WRITE},
    {"AtomicReads", FI_MSG | FI_ATOMIC | FI_REMOTE_READ},
    {"Atomics", FI_MSG | FI_ATOMIC, false, false, true},
    {"Everything", kEverything, true, true, true},
};

// The target's region lies in a domain of the same process, with every right.
class ServedAccess : public testing::TestWithParam<std::tuple<fi_ep_type, Opened>> {
 protected:
  static Options with_caps(std::uint64_t caps) {
    Options options;
    options.type = std::get<0>(GetParam());
    options.caps = caps;
    return options;
  }
  LocalParty& initiator() { return *initiator_; }

  bool open(std::uint64_t target_caps) {
    const Options ours = with_caps(kEverything);
    const Options theirs = with_caps(target_caps);
    initiator_ = std::make_unique<LocalParty>(std::make_shared<Domain>(ours), ours, &pump_);
    target_ = std::make_unique<LocalParty>(std::make_shared<Domain>(theirs), theirs, &pump_);
    if (!initiator_->ok() || !target_->ok()) return false;
    region_ = target_->expose({.length = kRegion, .seed = kContents});
    if (ours.type == FI_EP_RDM) {
      to_target_ = initiator_->insert(target_->name());
      return to_target_ != FI_ADDR_NOTAVAIL && region_.rc == 0;
    }
    initiator_->connect(target_->name());
    target_->accept();
    return pump_.until([&] { return initiator_->endpoint().connected(); }) && region_.rc == 0;
  }

  // FI_SUCCESS, or the error that the operation ended with.
  int end_of(const Posted& posted) {
    EXPECT_EQ(posted.rc, 0) << fi_strerror(static_cast<int>(-posted.rc));
    const auto completion = initiator().wait(posted.token);
    return completion ? completion->err : -1;
  }
  int access(Kind kind, std::size_t length) {
    return end_of(initiator().try_post({.kind = kind,
                                        .length = length,
                                        .seed = 99,
                                        .peer = to_target_,
                                        .remote_address = region_.base,
                                        .key = region_.key}));
  }
  int change() {
    Atomic atomic;
    atomic.peer = to_target_;
    atomic.address = region_.base;
    atomic.key = region_.key;
    std::mt19937_64 random(1);
    atomic.fill(random);
    fi_context2 context{};
    ssize_t rc = -FI_EAGAIN;
    const auto post = [&] { return issue(initiator().endpoint().ep(), atomic, &context); };
    pump_.until([&] { return (rc = post()) != -FI_EAGAIN; });
    EXPECT_EQ(rc, 0) << fi_strerror(static_cast<int>(-rc));
    std::optional<Completion> c;
    pump_.until([&] { return (c = initiator().endpoint().take(&context)).has_value(); });
    EXPECT_TRUE(c.has_value()) << "no completion";
    return c ? c->err : -1;
  }
  static int expected(bool allowed) { return allowed ? FI_SUCCESS : FI_EACCES; }

  // One that a cell carries, one of several packets.
  const std::vector<std::size_t> lengths_ = {8, 20000};
  Pump pump_;
  std::unique_ptr<LocalParty> initiator_;
  std::unique_ptr<LocalParty> target_;
  Region region_;
  fi_addr_t to_target_ = FI_ADDR_UNSPEC;
};

TEST_P(ServedAccess, IsWhatTheTargetsEndpointWasOpenedFor) {
  const Opened& opened = std::get<1>(GetParam());
  ASSERT_TRUE(open(opened.caps));
  for (const std::size_t length : lengths_) {
    EXPECT_EQ(access(Kind::kRead, length), expected(opened.reads)) << length;
  }
  EXPECT_EQ(change(), expected(opened.changes));
  if (!opened.changes) target_->expect_region(region_, kContents, 0, kRegion);
  for (const std::size_t length : lengths_) {
    EXPECT_EQ(access(Kind::kWrite, length), expected(opened.writes)) << length;
  }
  if (!opened.writes && !opened.changes) target_->expect_region(region_, kContents, 0, kRegion);
  if (opened.writes) target_->expect_region(region_, 99, 0, lengths_.back());
}

INSTANTIATE_TEST_SUITE_P(Refusal, ServedAccess,
                         testing::Combine(testing::Values(FI_EP_RDM, FI_EP_MSG),
                                          testing::ValuesIn(kOpened)),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param) == FI_EP_RDM ? "Datagrams"
                                                                                  : "Connected") +
                                  std::get<1>(one.param).name;
                         });

}  // namespace
}  // namespace weft::conformance
