// SPDX-License-Identifier: BSD-2-Clause
// Do the statistics of a domain say what its program has done? (fi_open_ops(3), "weft_domain")
#include <gtest/gtest.h>
#include <rdma/fi_ext_weft.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/place.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr const char* kOwn = "the interface is Weft's own";

using Counters = std::map<std::string, std::uint64_t>;

template <class Entry, class Call>
std::vector<Entry> list_of(Call call) {
  std::vector<Entry> all;
  std::size_t count = 0;
  int rc = call(all.data(), &count);
  while (rc == -FI_ETOOSMALL) {
    all.resize(count);
    rc = call(all.data(), &count);
  }
  EXPECT_EQ(rc, 0);
  all.resize(count);
  return all;
}

// Those of one domain, as C++ has them.
class Statistics {
 public:
  explicit Statistics(fid_domain* domain) : domain_(domain) {
    void* table = nullptr;
    EXPECT_EQ(fi_open_ops(&domain->fid, FI_WEFT_DOMAIN_OPS, FI_WEFT_DOMAIN_VERSION, &table, this),
              0);
    ops_ = static_cast<fi_weft_ops_domain*>(table);
  }
  fi_weft_ops_domain* ops() const { return ops_; }

  fi_weft_domain_stats read() const {
    fi_weft_domain_stats stats{};
    EXPECT_EQ(ops_->read(domain_, &stats, sizeof stats), 0);
    return stats;
  }
  Counters counters() const {
    return by_name([&](auto* list, auto* count) { return ops_->counters(domain_, list, count); });
  }
  Counters counters_of_process() const {
    return by_name(
        [&](auto* list, auto* count) { return ops_->process_counters(domain_, list, count); });
  }
  Counters counters_of(fid_ep* ep) const {
    return by_name(
        [&](auto* list, auto* count) { return ops_->endpoint_counters(ep, list, count); });
  }
  std::vector<fi_weft_cq_stats> queues() const {
    return list_of<fi_weft_cq_stats>(
        [&](auto* list, auto* count) { return ops_->queues(domain_, list, sizeof *list, count); });
  }
  std::vector<fi_weft_ep_stats> endpoints() const {
    return list_of<fi_weft_ep_stats>([&](auto* list, auto* count) {
      return ops_->endpoints(domain_, list, sizeof *list, count);
    });
  }
  // The entry of an object, which has to be listed once.
  fi_weft_cq_stats of(fid_cq* cq) const {
    std::vector<fi_weft_cq_stats> all = queues();
    std::erase_if(all, [&](const fi_weft_cq_stats& one) { return one.cq != cq; });
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? fi_weft_cq_stats{} : all.front();
  }
  fi_weft_ep_stats of(fid_ep* ep) const {
    std::vector<fi_weft_ep_stats> all = endpoints();
    std::erase_if(all, [&](const fi_weft_ep_stats& one) { return one.ep != ep; });
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? fi_weft_ep_stats{} : all.front();
  }

 private:
  template <class Call>
  static Counters by_name(Call call) {
    Counters named;
    for (const fi_weft_counter& one : list_of<fi_weft_counter>(call)) {
      EXPECT_TRUE(named.emplace(one.name, one.value).second) << one.name << " is there twice";
    }
    EXPECT_FALSE(named.empty());
    return named;
  }

  fid_domain* const domain_;
  fi_weft_ops_domain* ops_ = nullptr;
};

// The counters of refusals that are not 0.
Counters refusals_in(Counters counters) {
  std::erase_if(counters, [](const auto& one) {
    const bool of_operations = one.first.rfind("refused_", 0) == 0;
    return !of_operations || one.first == "refused_requests" || one.second == 0;
  });
  return counters;
}

// Two endpoints of one domain, each with a completion queue.
class DomainStatistics : public PlacementTest {
 protected:
  DomainStatistics() : world_(GetParam(), Options()) {}
  void SetUp() override {
    if (provider_name() != "weft") GTEST_SKIP() << kOwn;
    ASSERT_TRUE(world_.ok());
  }

  LocalParty& initiator() { return world_.initiator(); }
  LocalParty& target() { return static_cast<LocalParty&>(world_.target()); }
  fid_domain* domain() { return world_.endpoint().domain()->get(); }
  bool connected() const { return GetParam() == Placement::kConnected; }
  Token send(std::uint64_t length, Kind kind = Kind::kSend) {
    return initiator().post({.kind = kind, .length = length, .peer = world_.to_target()});
  }
  // A write that the target's domain refuses.
  void write_in_vain(std::uint64_t key, std::uint64_t address) {
    initiator().wait_error(initiator().post({.kind = Kind::kWrite,
                                             .length = 64,
                                             .peer = world_.to_target(),
                                             .remote_address = address,
                                             .key = key}),
                           FI_EACCES);
  }
  // The target's queue is not read any more, but drives progress.
  void leave_entries_of_target() { world_.pump().remove(&target().endpoint()); }
  bool until_target_has(std::uint64_t entries, const Statistics& statistics) {
    fid_cq* const cq = target().endpoint().cq();
    return world_.pump().until([&] {
      const ssize_t rc = fi_cq_read(cq, nullptr, 0);
      EXPECT_TRUE(rc == 0 || rc == -FI_EAGAIN) << rc;
      return statistics.of(cq).queued >= entries;
    });
  }

  World world_;
};

TEST_P(DomainStatistics, CountWhatIsOpen) {
  const Statistics statistics(domain());
  const fi_weft_domain_stats before = statistics.read();
  EXPECT_EQ(before.regions, 0u);
  EXPECT_EQ(before.endpoints, 2u);
  EXPECT_EQ(before.completion_queues, 2u);
  EXPECT_EQ(before.counters, 0u);
  EXPECT_EQ(before.address_vectors, 2u);
  {
    const Region region = target().expose({});
    fi_cq_attr queue{};
    const auto cq =
        open_fid<fid_cq>([&](fid_cq** out) { return fi_cq_open(domain(), &queue, out, nullptr); });
    fi_cntr_attr counted{};
    const auto counter = open_fid<fid_cntr>(
        [&](fid_cntr** out) { return fi_cntr_open(domain(), &counted, out, nullptr); });
    fi_av_attr vector{};
    const auto av =
        open_fid<fid_av>([&](fid_av** out) { return fi_av_open(domain(), &vector, out, nullptr); });
    const auto ep = open_fid<fid_ep>([&](fid_ep** out) {
      return fi_endpoint(domain(), world_.endpoint().info(), out, nullptr);
    });
    const fi_weft_domain_stats now = statistics.read();
    EXPECT_EQ(now.regions, 1u);
    EXPECT_EQ(now.endpoints, 3u);
    EXPECT_EQ(now.completion_queues, 3u);
    EXPECT_EQ(now.counters, 1u);
    EXPECT_EQ(now.address_vectors, before.address_vectors + 1);
    EXPECT_EQ(statistics.of(ep.get()).enabled, 0u);
    for (const auto& [name, value] : statistics.counters_of(ep.get())) EXPECT_EQ(value, 0u) << name;
    EXPECT_EQ(target().close_region(region), 0);
  }
  const fi_weft_domain_stats after = statistics.read();
  EXPECT_EQ(std::memcmp(&before, &after, offsetof(fi_weft_domain_stats, packets_sent)), 0);
}

TEST_P(DomainStatistics, OfAQueueSayHowManyEntriesWait) {
  constexpr std::uint64_t kMessages = 5;
  const Statistics statistics(domain());
  fid_cq* const cq = target().endpoint().cq();
  EXPECT_EQ(statistics.of(cq).size, Options().cq_size);
  EXPECT_EQ(statistics.of(cq).reported, 0u);
  leave_entries_of_target();
  std::vector<Token> received;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    received.push_back(target().post({.kind = Kind::kRecv, .length = 100}));
    send(100);
  }
  ASSERT_TRUE(until_target_has(kMessages, statistics));
  EXPECT_EQ(statistics.of(cq).queued, kMessages);
  EXPECT_EQ(statistics.of(cq).reported, kMessages);
  std::array<fi_cq_tagged_entry, 2> entries{};
  ASSERT_EQ(fi_cq_read(cq, entries.data(), entries.size()), 2);
  EXPECT_EQ(statistics.of(cq).queued, kMessages - 2);
  EXPECT_EQ(statistics.of(cq).reported, kMessages);
  world_.pump().add(&target().endpoint());
  for (std::uint64_t i = 2; i < kMessages; ++i) target().wait_success(received[i]);
  EXPECT_EQ(statistics.of(cq).queued, 0u);
  EXPECT_EQ(statistics.of(cq).reported, kMessages);
  EXPECT_EQ(statistics.of(cq).errors, 0u);
}

TEST_P(DomainStatistics, OfAQueueSayHowManyErrorsWait) {
  const Statistics statistics(domain());
  fid_cq* const cq = target().endpoint().cq();
  leave_entries_of_target();
  const Token received = target().post({.kind = Kind::kRecv, .length = 4});
  send(100);
  ASSERT_TRUE(world_.pump().until([&] {
    const ssize_t read = fi_cq_read(cq, nullptr, 0);
    return read == -FI_EAVAIL;
  }));
  EXPECT_EQ(statistics.of(cq).errors, 1u);
  EXPECT_EQ(statistics.of(cq).queued, 1u);
  world_.pump().add(&target().endpoint());
  target().wait_error(received, FI_ETRUNC);
  EXPECT_EQ(statistics.of(cq).errors, 0u);
}

TEST_P(DomainStatistics, OfAnEndpointSayWhichPeersAndMessagesItHas) {
  const Statistics statistics(domain());
  fid_ep* const sender = world_.ep();
  fid_ep* const receiver = target().endpoint().ep();
  const std::uint64_t before = connected() ? 1 : 0;
  EXPECT_EQ(statistics.of(sender).type, std::uint32_t{connected() ? FI_EP_MSG : FI_EP_RDM});
  EXPECT_EQ(statistics.of(sender).enabled, 1u);
  EXPECT_EQ(statistics.of(sender).destinations, before);
  EXPECT_EQ(statistics.of(receiver).sources, before);
  world_.exchange();
  EXPECT_EQ(statistics.of(sender).destinations, 1u);
  EXPECT_EQ(statistics.of(sender).sources, before);
  EXPECT_EQ(statistics.of(receiver).sources, 1u);
  EXPECT_EQ(statistics.of(receiver).destinations, before);
  for (int i = 0; i < 3; ++i) target().post({.kind = Kind::kRecv, .length = 100});
  EXPECT_EQ(statistics.of(receiver).receives, 3u);
  EXPECT_EQ(statistics.of(sender).receives, 0u);
  EXPECT_EQ(statistics.of(receiver).kept_bytes, 0u);
  send(200, Kind::kTsend);
  EXPECT_TRUE(world_.pump().until([&] { return statistics.of(receiver).kept_bytes >= 200; }));
  const Token received = target().post({.kind = Kind::kTrecv, .length = 200});
  target().wait_success(received);
  EXPECT_EQ(statistics.of(receiver).kept_bytes, 0u);
}

TEST_P(DomainStatistics, CountRefusedOperationsByReason) {
  const Statistics statistics(domain());
  const Region region = target().expose({.length = 4096, .access = FI_REMOTE_READ});
  const Region open = target().expose({.length = 4096, .access = FI_REMOTE_WRITE});
  write_in_vain(Endpoint::next_key(), 0);
  for (int i = 0; i < 2; ++i) write_in_vain(open.key, open.base + 4096 - 32);
  for (int i = 0; i < 3; ++i) write_in_vain(region.key, region.base);
  const Counters expected = {
      {"refused_unknown_key", 1}, {"refused_past_region", 2}, {"refused_region_right", 3}};
  EXPECT_EQ(refusals_in(statistics.counters()), expected);
  EXPECT_EQ(refusals_in(statistics.counters_of(world_.ep())), expected);
  EXPECT_EQ(refusals_in(statistics.counters_of(target().endpoint().ep())), Counters());
  EXPECT_EQ(refusals_in(statistics.counters_of_process()), Counters());
  EXPECT_EQ(statistics.read().refused_operations, 6u);
  if (only_links("udp")) {
    EXPECT_GE(statistics.read().refused_requests, 6u);
  } else {
    EXPECT_EQ(statistics.read().refused_requests, 0u);
  }
}

TEST_P(DomainStatistics, AreThoseOfItsEndpointsTogether) {
  const Statistics statistics(domain());
  constexpr std::uint64_t kMessages = 10;
  for (std::uint64_t i = 0; i < kMessages; ++i) world_.exchange();
  write_in_vain(Endpoint::next_key(), 0);
  Counters sum;
  const auto agrees = [&] {
    sum = statistics.counters_of(world_.ep());
    for (const auto& [name, value] : statistics.counters_of(target().endpoint().ep())) {
      sum[name] += value;
    }
    return sum == statistics.counters();
  };
  EXPECT_TRUE(world_.pump().until(agrees));
  const fi_weft_domain_stats stats = statistics.read();
  if (only_links("udp")) {
    EXPECT_GE(stats.packets_sent, kMessages);
    EXPECT_GE(sum["rx_requests"], kMessages);
    EXPECT_GE(stats.packets_received, sum["rx_requests"] + sum["rx_responses"]);
  } else {
    EXPECT_EQ(stats.packets_sent, 0u);
    EXPECT_EQ(sum["rx_requests"], 0u);
  }
  EXPECT_EQ(statistics.counters_of_process()["tx_packets"], 0u);
}

TEST_P(DomainStatistics, KeepTheCountsOfClosedEndpoints) {
  const Statistics statistics(domain());
  world_.exchange();
  for (int i = 0; i < 4; ++i) write_in_vain(Endpoint::next_key(), 0);
  const Counters before = statistics.counters();
  world_.pump().remove(&target().endpoint());
  world_.pump().remove(&initiator().endpoint());
  initiator().endpoint().close();
  target().endpoint().close();
  EXPECT_EQ(statistics.read().endpoints, 0u);
  EXPECT_EQ(statistics.endpoints().size(), 0u);
  EXPECT_EQ(statistics.read().refused_operations, 4u);
  const Counters after = statistics.counters();
  for (const auto& [name, value] : before) EXPECT_GE(after.at(name), value) << name;
  EXPECT_EQ(after.at("tx_packets") > 0, only_links("udp"));
}

INSTANTIATE_TEST_SUITE_P(Statistics, DomainStatistics,
                         testing::Values(Placement::kOneProcess, Placement::kConnected),
                         placement_name);

class DomainStatisticsCalls : public testing::Test {
 protected:
  DomainStatisticsCalls() : domain_(Options()) {}
  void SetUp() override {
    if (provider_name() != "weft") GTEST_SKIP() << kOwn;
    ASSERT_TRUE(domain_.ok());
  }
  int open_ops(const char* name, std::uint64_t version) {
    return fi_open_ops(&domain_.get()->fid, name, version, &table_, nullptr);
  }
  Fid<fid_cq> open_queue() {
    fi_cq_attr attributes{};
    return open_fid<fid_cq>(
        [&](fid_cq** out) { return fi_cq_open(domain_.get(), &attributes, out, nullptr); });
  }

  Domain domain_;
  void* table_ = nullptr;
};

TEST_F(DomainStatisticsCalls, OtherNamesAndVersionsAreUnknown) {
  for (const char* name : {"", "weft", "weft_domain ", "Weft_domain", FI_SET_OPS_HMEM_OVERRIDE}) {
    EXPECT_EQ(open_ops(name, FI_WEFT_DOMAIN_VERSION), -FI_ENOSYS) << name;
  }
  for (const std::uint64_t version : {std::uint64_t{0}, std::uint64_t{FI_WEFT_DOMAIN_VERSION + 1},
                                      (std::uint64_t{1} << 32) + FI_WEFT_DOMAIN_VERSION, ~0ul}) {
    EXPECT_EQ(open_ops(FI_WEFT_DOMAIN_OPS, version), -FI_ENOSYS) << version;
  }
  EXPECT_EQ(table_, nullptr);
}

TEST_F(DomainStatisticsCalls, ANameAndAPlaceAreNeeded) {
  EXPECT_EQ(open_ops(nullptr, FI_WEFT_DOMAIN_VERSION), -FI_EINVAL);
  fid* const domain = &domain_.get()->fid;
  EXPECT_EQ(fi_open_ops(domain, FI_WEFT_DOMAIN_OPS, FI_WEFT_DOMAIN_VERSION, nullptr, nullptr),
            -FI_EINVAL);
}

TEST_F(DomainStatisticsCalls, NoOperationIsReplaced) {
  fid* const domain = &domain_.get()->fid;
  std::array<std::byte, 64> callbacks{};
  for (const char* name : {"", FI_WEFT_DOMAIN_OPS, FI_SET_OPS_HMEM_OVERRIDE}) {
    EXPECT_EQ(fi_set_ops(domain, name, 0, callbacks.data(), nullptr), -FI_ENOSYS) << name;
  }
  EXPECT_EQ(fi_set_ops(domain, nullptr, 0, callbacks.data(), nullptr), -FI_EINVAL);
}

TEST_F(DomainStatisticsCalls, OtherObjectsHaveNoInterface) {
  const Fid<fid_cq> cq = open_queue();
  const auto ep = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_endpoint(domain_.get(), domain_.info(), out, nullptr); });
  for (fid* const object : {&domain_.fabric()->fid, &cq->fid, &ep->fid}) {
    EXPECT_EQ(fi_open_ops(object, FI_WEFT_DOMAIN_OPS, FI_WEFT_DOMAIN_VERSION, &table_, nullptr),
              -FI_ENOSYS);
    EXPECT_EQ(fi_set_ops(object, FI_WEFT_DOMAIN_OPS, 0, nullptr, nullptr), -FI_ENOSYS);
  }
}

TEST_F(DomainStatisticsCalls, TheTableHasAllFunctionsOfItsVersion) {
  const Statistics statistics(domain_.get());
  EXPECT_GE(statistics.ops()->size, sizeof(fi_weft_ops_domain));
  const Counters names = statistics.counters();
  EXPECT_EQ(statistics.counters_of_process().size(), names.size());
  for (const char* name : {"tx_packets", "tx_retransmissions", "icrc_errors", "refused_requests"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
}

TEST_F(DomainStatisticsCalls, NothingIsWrittenWithoutAPlace) {
  const Statistics statistics(domain_.get());
  fi_weft_ops_domain& ops = *statistics.ops();
  fid_domain* const domain = domain_.get();
  fi_weft_domain_stats stats{};
  fi_weft_counter counter{};
  fi_weft_cq_stats queue{};
  fi_weft_ep_stats endpoint{};
  std::size_t one = 1;
  EXPECT_EQ(ops.read(domain, nullptr, sizeof stats), -FI_EINVAL);
  EXPECT_EQ(ops.read(domain, &stats, 0), -FI_EINVAL);
  EXPECT_EQ(ops.counters(domain, nullptr, &one), -FI_EINVAL);
  EXPECT_EQ(ops.counters(domain, &counter, nullptr), -FI_EINVAL);
  EXPECT_EQ(ops.process_counters(domain, nullptr, &one), -FI_EINVAL);
  EXPECT_EQ(ops.endpoint_counters(nullptr, &counter, &one), -FI_EINVAL);
  EXPECT_EQ(ops.queues(domain, nullptr, sizeof queue, &one), -FI_EINVAL);
  EXPECT_EQ(ops.queues(domain, &queue, 0, &one), -FI_EINVAL);
  EXPECT_EQ(ops.queues(domain, &queue, sizeof queue, nullptr), -FI_EINVAL);
  EXPECT_EQ(ops.endpoints(domain, nullptr, sizeof endpoint, &one), -FI_EINVAL);
  EXPECT_EQ(one, 1u);
}

TEST_F(DomainStatisticsCalls, AListThatIsTooSmallIsFilled) {
  const Statistics statistics(domain_.get());
  const Fid<fid_cq> first = open_queue();
  const Fid<fid_cq> second = open_queue();
  std::array<fi_weft_cq_stats, 2> list{};
  std::size_t count = 1;
  EXPECT_EQ(statistics.ops()->queues(domain_.get(), list.data(), sizeof list[0], &count),
            -FI_ETOOSMALL);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(list[0].cq, first.get());
  EXPECT_EQ(list[1].cq, nullptr);
  EXPECT_EQ(statistics.ops()->queues(domain_.get(), list.data(), sizeof list[0], &count), 0);
  EXPECT_EQ(list[1].cq, second.get());
}

TEST_F(DomainStatisticsCalls, AProgramGetsTheMembersThatItKnows) {
  struct Later {
    fi_weft_cq_stats known;
    std::uint64_t added;
  };
  const Statistics statistics(domain_.get());
  const Fid<fid_cq> first = open_queue();
  const Fid<fid_cq> second = open_queue();
  std::array<Later, 2> later{};
  for (Later& one : later) one.added = 7;
  std::size_t count = later.size();
  ASSERT_EQ(statistics.ops()->queues(domain_.get(), &later[0].known, sizeof later[0], &count), 0);
  EXPECT_EQ(later[1].known.cq, second.get());
  EXPECT_EQ(later[1].added, 0u);
  std::array<fid_cq*, 3> earlier{};
  ASSERT_EQ(statistics.ops()->queues(domain_.get(), reinterpret_cast<fi_weft_cq_stats*>(&earlier),
                                     sizeof earlier[0], &count),
            0);
  EXPECT_EQ(earlier[1], second.get());
  EXPECT_EQ(earlier[2], nullptr);
}

// Those of one place report to one queue, so they share a port.
TEST(DomainStatisticsOfSharedPorts, CountEachEventOnce) {
  if (provider_name() != "weft") GTEST_SKIP() << kOwn;
  Place place;
  ASSERT_TRUE(place.ok());
  const Pair pair(place);
  const Statistics statistics(place.domain().get());
  std::uint64_t word = 0;
  constexpr std::uint64_t kUnknown = 0x123456;
  ASSERT_EQ(fi_write(pair.active.get(), &word, sizeof word, nullptr, 0, 0, kUnknown, nullptr), 0);
  EXPECT_EQ(place.completion().err, FI_EACCES);
  const Counters once = {{"refused_unknown_key", 1}};
  EXPECT_EQ(refusals_in(statistics.counters()), once);
  EXPECT_EQ(refusals_in(statistics.counters_of(pair.active.get())), once);
  EXPECT_EQ(refusals_in(statistics.counters_of(pair.passive.get())), once);
}

// Two threads read all that there is, and compare it with what they read before.
class DomainStatisticsThreads : public testing::TestWithParam<fi_threading> {
 protected:
  static constexpr std::uint64_t kMessages = 1000;

  void SetUp() override {
    if (provider_name() != "weft") GTEST_SKIP() << kOwn;
    Options options;
    options.threading = GetParam();
    domain_ = std::make_shared<Domain>(options);
    for (auto& endpoint : ends_) {
      endpoint = std::make_unique<Endpoint>(domain_, options);
      ASSERT_TRUE(endpoint->ok());
    }
    to_receiver_ = ends_[0]->insert(ends_[1]->name());
  }
  // True for each message that has come, in its order.
  bool receive(std::uint64_t number) {
    if (!posted_)
      posted_ = post([&] {
        return fi_recv(ends_[1]->ep(), &got_, sizeof got_, nullptr, FI_ADDR_UNSPEC, &received_);
      });
    ends_[1]->poll();
    const auto completion = ends_[1]->take(&received_);
    if (!completion) return false;
    posted_ = false;
    if (completion->err != 0 || got_ != number) failed_ = true;
    return true;
  }
  // True once the next one is on its way.
  bool send(std::uint64_t number) {
    ends_[0]->poll();
    while (const auto completion = ends_[0]->take(&sent_)) {
      if (completion->err != 0) failed_ = true;
    }
    return post([&] { return fi_inject(ends_[0]->ep(), &number, sizeof number, to_receiver_); });
  }
  template <class Call>
  bool post(Call call) {
    const ssize_t rc = call();
    if (rc != 0 && rc != -FI_EAGAIN) failed_ = true;
    return rc == 0;
  }
  bool goes_on() const {
    return !failed_ && std::chrono::steady_clock::now() < start_ + patience();
  }
  void read_on() {
    const Statistics statistics(domain_->get());
    Counters last = statistics.counters();
    std::uint64_t reported = 0;
    do {
      for (const auto& [name, value] : statistics.counters()) {
        EXPECT_GE(value, last[name]) << name;
        last[name] = value;
      }
      const fi_weft_cq_stats queue = statistics.of(ends_[1]->cq());
      EXPECT_GE(queue.reported, reported);
      EXPECT_LE(queue.queued, queue.reported);
      EXPECT_LE(queue.queued, 1u) << "one receive is posted at a time";
      reported = queue.reported;
      EXPECT_LE(statistics.of(ends_[1]->ep()).sources, 1u);
      EXPECT_GE(statistics.read().endpoints, 2u);
      EXPECT_GE(statistics.counters_of(ends_[0]->ep()).size(), last.size());
    } while (!ended_ && !HasFailure());
  }
  // Objects that open and close meanwhile are listed and forgotten.
  void open_and_close() {
    do {
      fi_cq_attr attributes{};
      const auto cq = open_fid<fid_cq>(
          [&](fid_cq** out) { return fi_cq_open(domain_->get(), &attributes, out, nullptr); });
      const auto ep = open_fid<fid_ep>(
          [&](fid_ep** out) { return fi_endpoint(domain_->get(), domain_->info(), out, nullptr); });
      EXPECT_EQ(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
      EXPECT_EQ(fi_ep_bind(ep.get(), &ends_[0]->av()->fid, 0), 0);
      EXPECT_EQ(fi_enable(ep.get()), 0);
    } while (!ended_ && !HasFailure());
  }

  std::shared_ptr<Domain> domain_;
  std::array<std::unique_ptr<Endpoint>, 2> ends_;
  fi_addr_t to_receiver_ = FI_ADDR_NOTAVAIL;
  fi_context2 received_{};
  fi_context2 sent_{};
  std::uint64_t got_ = 0;
  bool posted_ = false;
  std::atomic<bool> failed_{false};
  std::atomic<bool> ended_{false};
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

TEST_P(DomainStatisticsThreads, NeverGoBackWhileOthersTransfer) {
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) others.emplace_back([this] { read_on(); });
  others.emplace_back([this] { open_and_close(); });
  std::atomic<std::uint64_t> sent{0};
  const auto send_next = [&] { sent += sent < kMessages && send(sent) ? 1 : 0; };
  std::thread sender;
  const bool both_at_once = GetParam() == FI_THREAD_SAFE;
  if (both_at_once) {
    sender = std::thread([&] {
      while (sent < kMessages && goes_on()) send_next();
      while (!ended_ && goes_on()) ends_[0]->poll();
    });
  }
  for (std::uint64_t number = 0; number < kMessages && goes_on();) {
    if (!both_at_once) send_next();
    number += receive(number) ? 1 : 0;
  }
  ended_ = true;
  if (sender.joinable()) sender.join();
  for (std::thread& other : others) other.join();
  EXPECT_FALSE(failed_);
  EXPECT_EQ(sent, kMessages);
  const Statistics statistics(domain_->get());
  EXPECT_EQ(statistics.of(ends_[1]->cq()).reported, kMessages);
  EXPECT_EQ(statistics.read().endpoints, 2u);
  EXPECT_EQ(statistics.read().completion_queues, 2u);
}

INSTANTIATE_TEST_SUITE_P(Threaded, DomainStatisticsThreads,
                         testing::Values(FI_THREAD_SAFE, FI_THREAD_DOMAIN), [](const auto& one) {
                           return one.param == FI_THREAD_SAFE ? "Safe" : "Domain";
                         });

}  // namespace
}  // namespace weft::conformance
