// SPDX-License-Identifier: BSD-2-Clause
// Does each call that fi_domain(3) names for FI_PROGRESS_MANUAL bring every kind of operation to
// its end, where no other call helps?
#include <poll.h>
#include <rdma/fi_eq.h>

#include <chrono>
#include <memory>
#include <string>
#include <tuple>

#include "os/thread_count_support.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

// Reads and waits of a completion queue and of a counter, and of the sets that either may be in.
enum class Call {
  kCqRead,
  kCqReadfrom,
  kCqSread,
  kCqSreadfrom,
  kPollOfQueue,
  kWaitForQueue,
  kCntrRead,
  kCntrWait,
  kPollOfCounter,
  kWaitForCounter,
};
constexpr Call kCalls[] = {Call::kCqRead,        Call::kCqReadfrom,  Call::kCqSread,
                           Call::kCqSreadfrom,   Call::kPollOfQueue, Call::kWaitForQueue,
                           Call::kCntrRead,      Call::kCntrWait,    Call::kPollOfCounter,
                           Call::kWaitForCounter};

const char* to_string(Call call) {
  switch (call) {
    case Call::kCqRead:
      return "CqRead";
    case Call::kCqReadfrom:
      return "CqReadfrom";
    case Call::kCqSread:
      return "CqSread";
    case Call::kCqSreadfrom:
      return "CqSreadfrom";
    case Call::kPollOfQueue:
      return "PollOfQueue";
    case Call::kWaitForQueue:
      return "WaitForQueue";
    case Call::kCntrRead:
      return "CntrRead";
    case Call::kCntrWait:
      return "CntrWait";
    case Call::kPollOfCounter:
      return "PollOfCounter";
    case Call::kWaitForCounter:
      return "WaitForCounter";
  }
  return "";
}

constexpr bool asks_counter(Call call) { return call >= Call::kCntrRead; }

int patience_ms() { return static_cast<int>(patience().count()); }

Options manual() {
  Options options;
  options.caps |= FI_ATOMIC | FI_RMA_EVENT;
  options.control_progress = FI_PROGRESS_MANUAL;
  options.data_progress = FI_PROGRESS_MANUAL;
  return options;
}

// An operation is reported in the queue, and where the call asks counters also in one of these.
Options manual(Call call) {
  Options options = manual();
  const bool set = call == Call::kWaitForQueue || call == Call::kWaitForCounter;
  const fi_wait_obj object = set ? FI_WAIT_SET : FI_WAIT_FD;
  if (asks_counter(call)) {
    options.counters = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    options.counter_wait = object;
  } else {
    options.wait = object;
  }
  return options;
}

// One of the calls for one endpoint, and what it has said.
class Asker {
 public:
  Asker(Call call, Endpoint& endpoint) : call_(call), endpoint_(endpoint) {
    if (call != Call::kPollOfQueue && call != Call::kPollOfCounter) return;
    polls_ = open_fid<fid_poll>(
        [&](fid_poll** out) { return fi_poll_open(endpoint_.domain()->get(), nullptr, out); });
    if (call == Call::kPollOfQueue) add(&endpoint_.cq()->fid);
  }
  ~Asker() {
    if (polled_ != nullptr) fi_poll_del(polls_.get(), polled_, 0);
  }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  // An operation is next of which this counter will tell, too.
  void expect(std::uint64_t event) {
    told_ = false;
    if (!asks_counter(call_)) return;
    counter_ = endpoint_.counter(event);
    if (call_ == Call::kPollOfCounter) add(&counter_->fid);
    seen_ = fi_cntr_read(counter_);
    make(0);  // the poll set has told what was there before
  }
  // Makes the call once, and waits in it so long.
  void ask(int timeout_ms) { told_ = make(timeout_ms) || told_; }
  // Whether it has said that something has ended.
  bool told() const { return told_; }
  // The completion of which the call has told is in the queue.
  void collect() {
    const auto end = std::chrono::steady_clock::now() + patience();
    while (endpoint_.untaken() == 0 && std::chrono::steady_clock::now() < end) {
      endpoint_.read_completions();
    }
    if (asks_counter(call_)) fi_cntr_read(counter());
  }

 private:
  bool make(int timeout_ms) {
    switch (call_) {
      case Call::kCqRead:
        return keep(fi_cq_read(cq(), &entry_, 1));
      case Call::kCqReadfrom:
        return keep(fi_cq_readfrom(cq(), &entry_, 1, &source_));
      case Call::kCqSread:
        return keep(fi_cq_sread(cq(), &entry_, 1, nullptr, timeout_ms));
      case Call::kCqSreadfrom:
        return keep(fi_cq_sreadfrom(cq(), &entry_, 1, &source_, nullptr, timeout_ms));
      case Call::kPollOfQueue:
      case Call::kPollOfCounter:
        return fi_poll(polls_.get(), &context_, 1) == 1;
      case Call::kWaitForQueue:
      case Call::kWaitForCounter:
        return fi_wait(endpoint_.wait_set(), timeout_ms) == 0;
      case Call::kCntrRead:
        return fi_cntr_read(counter()) > seen_;
      case Call::kCntrWait:
        return fi_cntr_wait(counter(), seen_ + 1, timeout_ms) == 0;
    }
    return false;
  }
  fid_cq* cq() { return endpoint_.cq(); }
  fid_cntr* counter() { return counter_ != nullptr ? counter_ : endpoint_.counter(FI_RECV); }
  void add(fid* object) {
    if (polled_ != nullptr) {
      EXPECT_EQ(fi_poll_del(polls_.get(), polled_, 0), 0);
    }
    EXPECT_EQ(fi_poll_add(polls_.get(), object, 0), 0);
    polled_ = object;
  }
  bool keep(ssize_t got) {
    EXPECT_TRUE(got == 1 || got == -FI_EAGAIN) << got;
    if (got == 1) endpoint_.keep(entry_);
    return got == 1;
  }

  const Call call_;
  Endpoint& endpoint_;
  Fid<fid_poll> polls_;
  fid* polled_ = nullptr;
  fid_cntr* counter_ = nullptr;
  std::uint64_t seen_ = 0;
  bool told_ = false;
  fi_cq_tagged_entry entry_{};
  fi_addr_t source_ = FI_ADDR_UNSPEC;
  void* context_ = nullptr;
};

// This process makes that call only, once it is connected; the peer polls its queue.
class ManualProgress : public testing::TestWithParam<std::tuple<Call, Placement>> {
 protected:
  ManualProgress()
      : world_(std::get<Placement>(GetParam()), manual(std::get<Call>(GetParam()))),
        asker_(std::get<Call>(GetParam()), world_.endpoint()) {}
  void SetUp() override {
    ASSERT_TRUE(world_.ok());
    const fi_domain_attr& domain = *world_.endpoint().info()->domain_attr;
    ASSERT_EQ(domain.control_progress, FI_PROGRESS_MANUAL);
    ASSERT_EQ(domain.data_progress, FI_PROGRESS_MANUAL);
    world_.pump().replace([this] { asker_.ask(0); });
  }
  void TearDown() override { world_.pump().replace({}); }

  LocalParty& here() { return world_.initiator(); }
  Party& there() { return world_.target(); }

  // The call, which may sleep until then, says that an operation of here has ended.
  Completion await(Token token) {
    const auto end = std::chrono::steady_clock::now() + patience();
    while (!asker_.told() && std::chrono::steady_clock::now() < end) asker_.ask(patience_ms());
    EXPECT_TRUE(asker_.told()) << "nothing has ended";
    asker_.collect();
    return here().wait_success(token);
  }
  Token post_here(const Operation& operation, std::uint64_t event) {
    asker_.expect(event);
    return here().post(operation);
  }
  Operation access(Kind kind, const Region& region, std::uint64_t length, fi_addr_t peer) {
    return {.kind = kind,
            .length = length,
            .seed = 9,
            .peer = peer,
            .data = 5,
            .remote_address = region.base,
            .key = region.key};
  }

  World world_;
  Asker asker_;
};

struct Message {
  Kind send;
  Kind receive;
  std::uint64_t length;
};
// Inline, eager, of several segments, and a rendezvous.
constexpr Message kMessages[] = {{Kind::kSend, Kind::kRecv, 8},
                                 {Kind::kTsend, Kind::kTrecv, 200},
                                 {Kind::kSenddata, Kind::kRecv, 20000},
                                 {Kind::kTsendmsg, Kind::kTrecv, 300000},
                                 {Kind::kSend, Kind::kRecv, 300000}};

constexpr std::uint64_t kLargest = 300000;
// The reads find the bytes of the writes.
constexpr std::pair<Kind, std::uint64_t> kAccesses[] = {
    {Kind::kWrite, 8},   {Kind::kWrite, 5000},     {Kind::kWrite, kLargest},
    {Kind::kRead, 8},    {Kind::kRead, 5000},      {Kind::kRead, kLargest},
    {Kind::kAtomic, 64}, {Kind::kFetchAtomic, 64}, {Kind::kCompareAtomic, 8}};

TEST_P(ManualProgress, EndsSendsWhetherTheyAreAwaitedOrNot) {
  std::uint64_t seed = 0;
  for (const Message& message : kMessages) {
    for (const bool awaited : {true, false}) {
      SCOPED_TRACE(testing::Message() << traits(message.send).name << " of " << message.length);
      const Operation receive{.kind = message.receive, .length = message.length};
      Token received = awaited ? there().post(receive) : kNoToken;
      const Token sent = post_here({.kind = message.send,
                                    .length = message.length,
                                    .seed = ++seed,
                                    .peer = world_.to_target()},
                                   FI_SEND);
      if (!awaited) received = there().post(receive);
      await(sent);
      there().wait_success(received);
      there().expect_data(received, seed, message.length);
    }
  }
}

TEST_P(ManualProgress, EndsReceivesWhetherTheirMessageIsThereOrNot) {
  std::uint64_t seed = 0;
  for (const Message& message : kMessages) {
    for (const bool there_before : {true, false}) {
      SCOPED_TRACE(testing::Message() << traits(message.receive).name << " of " << message.length);
      const Operation send{.kind = message.send,
                           .length = message.length,
                           .seed = ++seed,
                           .peer = world_.to_initiator()};
      Token sent = there_before ? there().post(send) : kNoToken;
      const Token received =
          post_here({.kind = message.receive, .length = message.length}, FI_RECV);
      if (!there_before) sent = there().post(send);
      await(received);
      here().expect_data(received, seed, message.length);
      there().wait_success(sent);
    }
  }
}

TEST_P(ManualProgress, EndsAccessesToThePeer) {
  const Region region = there().expose({.length = kLargest});
  for (const auto& [kind, length] : kAccesses) {
    SCOPED_TRACE(testing::Message() << traits(kind).name << " of " << length);
    const bool read = traits(kind).read;
    const Token token =
        post_here(access(kind, region, length, world_.to_target()), read ? FI_READ : FI_WRITE);
    await(token);
    if (kind == Kind::kRead) here().expect_data(token, 9, length);
    if (length == kLargest) there().expect_region(region, 9, 0, length);
  }
}

TEST_P(ManualProgress, DeliversInjectedOperations) {
  asker_.expect(FI_SEND);
  for (const Kind kind : {Kind::kInject, Kind::kTinject}) {
    const bool tagged = kind == Kind::kTinject;
    const Token received = there().post({.kind = tagged ? Kind::kTrecv : Kind::kRecv, .length = 8});
    here().post({.kind = kind, .length = 8, .seed = 3, .peer = world_.to_target()});
    there().wait_success(received);
    there().expect_data(received, 3, 8);
  }
  const Region region = there().expose({.length = 4096});
  asker_.expect(FI_WRITE);
  here().post(access(Kind::kInjectWritedata, region, 8, world_.to_target()));
  EXPECT_EQ(there().wait_success(kNoToken).data, 5u);
  there().expect_region(region, 9, 0, 8);
}

// An endpoint that is a target only: the peer's accesses end though nothing is reported here.
TEST_P(ManualProgress, ServesAccessesOfThePeer) {
  asker_.expect(FI_REMOTE_READ);
  world_.pump().replace([this] { asker_.ask(1); });
  const Region region = here().expose({.length = kLargest});
  for (const auto& [kind, length] : kAccesses) {
    SCOPED_TRACE(testing::Message() << traits(kind).name << " of " << length);
    const Token token = there().post(access(kind, region, length, world_.to_initiator()));
    there().wait_success(token);
    if (kind == Kind::kRead) there().expect_data(token, 9, length);
    if (length == kLargest) here().expect_region(region, 9, 0, length);
  }
}

TEST_P(ManualProgress, ReportsRemoteDataOfThePeer) {
  const Region region = here().expose({.length = 4096});
  asker_.expect(FI_REMOTE_WRITE);
  const Token write = there().post(access(Kind::kWritedata, region, 64, world_.to_initiator()));
  EXPECT_EQ(await(kNoToken).data, 5u);
  here().expect_region(region, 9, 0, 64);
  there().wait_success(write);
}

INSTANTIATE_TEST_SUITE_P(Manual, ManualProgress,
                         testing::Combine(testing::ValuesIn(kCalls),
                                          testing::Values(Placement::kTwoProcesses,
                                                          Placement::kConnectedProcesses)),
                         [](const auto& one) {
                           return std::string(to_string(std::get<Call>(one.param))) + "_" +
                                  to_string(std::get<Placement>(one.param));
                         });

// Nothing but the program's calls moves data within a host: no thread, and no wait that is not of
// the fabric interface.
class ManualWithinTheHost : public PlacementTest {
 protected:
  void SetUp() override {
    if (only_links("udp")) GTEST_SKIP() << "all peers are met over the network";
  }
};

TEST_P(ManualWithinTheHost, HasNoThread) {
  const std::size_t before = os::count_threads();
  for (const fi_wait_obj object : {FI_WAIT_NONE, FI_WAIT_FD, FI_WAIT_SET}) {
    Options options = manual();
    options.wait = object;
    World world(GetParam(), options);
    ASSERT_TRUE(world.ok());
    EXPECT_EQ(os::count_threads(), before) << "before the first message";
    world.exchange(100000);
    const Region region = world.target().expose({.length = 4096});
    world.initiator().wait_success(world.initiator().post({.kind = Kind::kWritedata,
                                                           .length = 64,
                                                           .peer = world.to_target(),
                                                           .remote_address = region.base,
                                                           .key = region.key}));
    EXPECT_EQ(os::count_threads(), before);
  }
}

TEST_P(ManualWithinTheHost, ReceivesNothingInAWaitOfTheOperatingSystem) {
  Options options = manual();
  options.wait = FI_WAIT_FD;
  World world(GetParam(), options);
  ASSERT_TRUE(world.ok());
  world.exchange();  // They have met.
  fid_fabric* const fabric = world.endpoint().domain()->fabric();
  fid* queue = &world.endpoint().cq()->fid;
  pollfd waits{-1, POLLIN, 0};
  ASSERT_EQ(fi_control(queue, FI_GETWAIT, &waits.fd), 0);
  for (const std::uint64_t length : {200u, 300000u}) {
    const Token received = world.initiator().post({.kind = Kind::kRecv, .length = length});
    ASSERT_TRUE(world.pump().until([&] { return fi_trywait(fabric, &queue, 1) == 0; }));
    Request send;
    send.what = Request::What::kPost;
    send.operation = {
        .kind = Kind::kSend, .length = length, .seed = 4, .peer = world.to_initiator()};
    world.pump().replace([] {});
    world.remote().start(send);
    EXPECT_EQ(::poll(&waits, 1, patience_ms()), 1);
    const Token sent = world.remote().finish().value;
    EXPECT_EQ(world.initiator().buffer_of(received).check_blank(0, length), "");
    world.pump().replace({});
    world.initiator().wait_success(received);
    world.initiator().expect_data(received, 4, length);
    world.target().wait_success(sent);
  }
}

INSTANTIATE_TEST_SUITE_P(Manual, ManualWithinTheHost,
                         testing::Values(Placement::kTwoProcesses, Placement::kConnectedProcesses),
                         placement_name);

}  // namespace
}  // namespace weft::conformance
