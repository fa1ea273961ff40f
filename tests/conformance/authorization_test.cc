// SPDX-License-Identifier: BSD-2-Clause
// Do authorization keys keep endpoints and regions apart, and do they stay secret? (fi_endpoint(3),
// fi_domain(3), fi_mr(3): auth_key)
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "support/delivery.h"
#include "support/local_party.h"
#include "support/own_region.h"
#include "support/place.h"
#include "support/placements.h"
#include "support/secret.h"

namespace weft::conformance {
namespace {

constexpr int kOtherAuthorization = kRefusals + 12;
constexpr std::size_t kBytes = 4096;

Options keyed(Options options, int domain_key, int endpoint_key = 0) {
  options.domain_key = domain_key;
  options.endpoint_key = endpoint_key;
  return options;
}

// Endpoints without connections, each in a domain of its own.
class KeyedEndpoints {
 public:
  LocalParty& open(const Options& options) {
    parties_.push_back(
        std::make_unique<LocalParty>(std::make_shared<Domain>(options), options, &pump_));
    EXPECT_TRUE(parties_.back()->ok());
    return *parties_.back();
  }

  static void expect_exchange(LocalParty& from, LocalParty& to) {
    const fi_addr_t peer = from.insert(to.name());
    const Token received = to.post({.kind = Kind::kRecv, .length = 64});
    const Operation message{.kind = Kind::kSend, .length = 64, .seed = 5, .peer = peer};
    EXPECT_EQ(deliver(from, message, to, received).err, 0);
    to.expect_data(received, 5, 64);
  }
  static void expect_refused(LocalParty& from, LocalParty& to, const Operation& operation) {
    const Token token = from.post(operation);
    EXPECT_EQ(from.wait_error(token, FI_EACCES).prov_errno, kOtherAuthorization);
    EXPECT_EQ(to.leftovers(), 0u);
  }

 private:
  Pump pump_;
  std::vector<std::unique_ptr<LocalParty>> parties_;
};

class AuthorizationOfEndpoints : public testing::Test {
 protected:
  LocalParty& open(int domain_key, int endpoint_key = 0) {
    return endpoints_.open(keyed({}, domain_key, endpoint_key));
  }
  // Messages and accesses are refused in both directions, and nothing is written.
  static void expect_apart(LocalParty& a, LocalParty& b) {
    for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      const fi_addr_t peer = from->insert(to->name());
      const Region region = to->expose({.length = kBytes, .seed = 3});
      for (const Kind kind : {Kind::kSend, Kind::kTsend, Kind::kWrite, Kind::kRead}) {
        SCOPED_TRACE(traits(kind).name);
        KeyedEndpoints::expect_refused(*from, *to,
                                       {.kind = kind,
                                        .length = 64,
                                        .seed = 9,
                                        .peer = peer,
                                        .remote_address = region.base,
                                        .key = region.key});
      }
      to->expect_region(region, 3, 0, kBytes);
    }
  }

  KeyedEndpoints endpoints_;
};

TEST_F(AuthorizationOfEndpoints, EndpointsWithTheSameKeyExchangeMessages) {
  KeyedEndpoints::expect_exchange(open(0, 1), open(0, 1));
}

TEST_F(AuthorizationOfEndpoints, TheKeyOfTheDomainIsTheDefault) {
  KeyedEndpoints::expect_exchange(open(1), open(0, 1));
  KeyedEndpoints::expect_exchange(open(2, 1), open(1));
}

TEST_F(AuthorizationOfEndpoints, EndpointsWithDifferentKeysReachNothingOfEachOtherAndGoOn) {
  LocalParty& one = open(0, 1);
  LocalParty& two = open(1, 2);
  expect_apart(one, two);
  KeyedEndpoints::expect_exchange(one, open(1));
  KeyedEndpoints::expect_exchange(open(2), two);
  expect_apart(two, one);
}

TEST_F(AuthorizationOfEndpoints, AnEndpointWithoutAKeyIsNoExceptionToIt) {
  LocalParty& one = open(0, 1);
  LocalParty& none = open(0);
  expect_apart(one, none);
  KeyedEndpoints::expect_exchange(none, open(0));
}

TEST_F(AuthorizationOfEndpoints, IsNotHeededBeforeApi15) {
  Options old = keyed({}, 1, 2);
  old.api = FI_VERSION(1, 4);
  old.mr_mode = FI_MR_SCALABLE;
  KeyedEndpoints::expect_exchange(endpoints_.open(old), open(0));
}

class AuthorizationOfUnreliableMessages : public testing::Test {
 protected:
  LocalParty& open(int key) { return endpoints_.open(keyed(datagrams(), 0, key)); }

  KeyedEndpoints endpoints_;
};

// The sender is told nothing, as of every loss.
TEST_F(AuthorizationOfUnreliableMessages, KeepsDatagramsApart) {
  LocalParty& one = open(1);
  LocalParty& same = open(1);
  const Token received = same.post({.kind = Kind::kRecv, .length = 64});
  for (LocalParty* other : {&open(2), &open(0)}) {
    const fi_addr_t peer = other->insert(same.name());
    other->wait_success(other->post({.kind = Kind::kSend, .length = 64, .seed = 7, .peer = peer}));
    EXPECT_EQ(other->leftovers(), 0u);
  }
  const fi_addr_t peer = one.insert(same.name());
  const Operation message{.kind = Kind::kSend, .length = 64, .seed = 5, .peer = peer};
  EXPECT_EQ(deliver(one, message, same, received).err, 0);
  same.expect_data(received, 5, 64);
}

// Connections call by call.
class AuthorizationOfConnections : public testing::Test {
 protected:
  Fid<fid_ep> open(fi_info& info, int key) {
    set_key(*info.ep_attr, key);
    return place_.open(&info);
  }
  // The acceptor's endpoint, which has accepted.
  Fid<fid_ep> meet(fid_pep* listener, fid_ep* requester, int key) {
    const Address address = name_of(&listener->fid);
    EXPECT_EQ(fi_connect(requester, address.bytes.data(), nullptr, 0), 0);
    Event request = place_.expect(FI_CONNREQ, &listener->fid);
    if (request.info == nullptr) return nullptr;
    Fid<fid_ep> acceptor = open(*request.info, key);
    EXPECT_EQ(fi_accept(acceptor.get(), nullptr, 0), 0);
    return acceptor;
  }

  Place place_;
};

TEST_F(AuthorizationOfConnections, EqualKeysAreConnected) {
  const Fid<fid_pep> listener = place_.listen();
  const Info info(fi_dupinfo(place_.info()));
  const Fid<fid_ep> requester = open(*info, 1);
  const Fid<fid_ep> acceptor = meet(listener.get(), requester.get(), 1);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(place_.next().what, static_cast<std::uint32_t>(FI_CONNECTED));
}

TEST_F(AuthorizationOfConnections, DifferentKeysAreRefusedAtBothEnds) {
  const Fid<fid_pep> listener = place_.listen();
  for (const auto& [ours, theirs] : {std::pair(1, 2), std::pair(0, 1), std::pair(1, 0)}) {
    const Info info(fi_dupinfo(place_.info()));
    const Fid<fid_ep> requester = open(*info, ours);
    const Fid<fid_ep> acceptor = meet(listener.get(), requester.get(), theirs);
    std::vector<const fid*> failed;
    for (int i = 0; i < 2; ++i) {
      const Event event = place_.next();
      EXPECT_EQ(event.what, 0u);
      EXPECT_EQ(event.err, FI_EACCES);
      failed.push_back(event.object);
    }
    EXPECT_NE(failed[0], failed[1]);
    place_.expect_silence();
  }
}

TEST_F(AuthorizationOfConnections, TheListenersKeyIsThatOfItsRequests) {
  const Info info(fi_dupinfo(place_.info()));
  set_key(*info->ep_attr, 3);
  const Fid<fid_pep> listener = open_fid<fid_pep>([&](fid_pep** out) {
    return fi_passive_ep(place_.domain().fabric(), info.get(), out, nullptr);
  });
  EXPECT_EQ(fi_pep_bind(listener.get(), &place_.eq()->fid, 0), 0);
  EXPECT_EQ(fi_listen(listener.get()), 0);
  const Fid<fid_ep> requester = place_.open(info.get());
  const Fid<fid_ep> acceptor = meet(listener.get(), requester.get(), 0);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(place_.next().what, static_cast<std::uint32_t>(FI_CONNECTED));
}

// Regions of this process, of two peers with the same key.
class RegionAuthorization : public PlacementTest {
 protected:
  RegionAuthorization() : world_(GetParam(), keyed({}, 1)) {}

  Fid<fid_mr> reg(int key) {
    const iovec piece{memory_.data(), memory_.size()};
    std::string bytes = key != 0 ? authorization_key(key) : "";
    fi_mr_attr attributes{};
    attributes.mr_iov = &piece;
    attributes.iov_count = 1;
    attributes.access = FI_REMOTE_READ | FI_REMOTE_WRITE;
    attributes.requested_key = Endpoint::next_key();
    attributes.auth_key_size = bytes.size();
    attributes.auth_key = reinterpret_cast<std::uint8_t*>(bytes.data());
    auto mr = open_fid<fid_mr>([&](fid_mr** out) {
      return fi_mr_regattr(world_.endpoint().domain()->get(), &attributes, 0, out);
    });
    std::ranges::fill(bytes, 'x');  // the key was copied
    return mr;
  }
  Completion access(fid_mr* mr, Kind kind) {
    const int mode = world_.endpoint().info()->domain_attr->mr_mode;
    const auto base = reinterpret_cast<std::uint64_t>(memory_.data());
    const Operation operation{.kind = kind,
                              .length = 64,
                              .seed = 9,
                              .peer = world_.to_initiator(),
                              .remote_address = (mode & FI_MR_VIRT_ADDR) != 0 ? base : 0,
                              .key = fi_mr_key(mr)};
    Party& peer = world_.target();
    return peer.wait(peer.post(operation)).value_or(Completion{});
  }

  World world_;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kBytes);
};

TEST_P(RegionAuthorization, AllowsEndpointsWithTheRegionsKeyOnly) {
  ASSERT_TRUE(world_.ok());
  const Fid<fid_mr> other = reg(2);
  for (const Kind kind : {Kind::kWrite, Kind::kRead, Kind::kWritedata, Kind::kWritev}) {
    SCOPED_TRACE(traits(kind).name);
    const Completion c = access(other.get(), kind);
    EXPECT_EQ(c.err, FI_EACCES);
    EXPECT_EQ(c.prov_errno, kOtherAuthorization);
    world_.exchange();
  }
  EXPECT_EQ(memory_, std::vector<std::uint8_t>(kBytes));
  for (const int key : {0, 1}) {
    const Fid<fid_mr> own = reg(key);
    EXPECT_EQ(access(own.get(), Kind::kWrite).err, 0);
    EXPECT_EQ(access(own.get(), Kind::kRead).err, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Keyed, RegionAuthorization, every_placement(), placement_name);

class AuthorizationArguments : public testing::Test {
 protected:
  // With a key of so many bytes in the attributes; a null pointer without any.
  template <class Attributes>
  static void put(Attributes& attributes, std::size_t size, bool present = true) {
    std::free(attributes.auth_key);
    attributes.auth_key = present ? static_cast<std::uint8_t*>(std::calloc(1, size)) : nullptr;
    attributes.auth_key_size = size;
  }
  int open_domain(std::size_t size, bool present) {
    const Info info(fi_dupinfo(domain_.info()));
    put(*info->domain_attr, size, present);
    fid_domain* opened = nullptr;
    const int rc = fi_domain(domain_.fabric(), info.get(), &opened, nullptr);
    return rc == 0 ? fi_close(&opened->fid) : rc;
  }
  int open_endpoint(std::size_t size, bool present) {
    const Info info(fi_dupinfo(domain_.info()));
    put(*info->ep_attr, size, present);
    fid_ep* opened = nullptr;
    const int rc = fi_endpoint(domain_.get(), info.get(), &opened, nullptr);
    return rc == 0 ? fi_close(&opened->fid) : rc;
  }
  int reg(std::size_t size, bool present) {
    std::vector<std::uint8_t> key(size);
    const iovec piece{this, sizeof *this};
    fi_mr_attr attributes{};
    attributes.mr_iov = &piece;
    attributes.iov_count = 1;
    attributes.access = FI_REMOTE_READ;
    attributes.requested_key = Endpoint::next_key();
    attributes.auth_key_size = size;
    attributes.auth_key = present ? key.data() : nullptr;
    fid_mr* mr = nullptr;
    const int rc = fi_mr_regattr(domain_.get(), &attributes, 0, &mr);
    return rc == 0 ? fi_close(&mr->fid) : rc;
  }
  static int getinfo(std::size_t size, bool present) {
    int rc = 0;
    const Info hints = make_hints({});
    put(*hints->ep_attr, size, present);
    const Info info = get_info({}, hints.get(), &rc);
    return rc;
  }

  Domain domain_{Options{}};
};

TEST_F(AuthorizationArguments, AKeyHas1To64Bytes) {
  ASSERT_TRUE(domain_.ok());
  struct {
    std::size_t size;
    bool present;
    int answer;
  } const cases[] = {{1, true, 0}, {64, true, 0}, {65, true, -FI_EINVAL}, {1, false, -FI_EINVAL}};
  for (const auto& [size, present, answer] : cases) {
    SCOPED_TRACE(size);
    EXPECT_EQ(open_domain(size, present), answer);
    EXPECT_EQ(open_endpoint(size, present), answer);
    EXPECT_EQ(reg(size, present), answer);
    EXPECT_EQ(getinfo(size, present), answer == 0 ? 0 : -FI_ENODATA);
  }
}

TEST_F(AuthorizationArguments, FiGetinfoAnswersWithTheHintedKey) {
  EXPECT_EQ(domain_.info()->ep_attr->auth_key_size, 0u);
  EXPECT_EQ(domain_.info()->domain_attr->auth_key_size, 0u);
  int rc = 0;
  const Info hints = make_hints(keyed({}, 1, 2));
  const Info info = get_info({}, hints.get(), &rc);
  ASSERT_EQ(rc, 0);
  const auto text = [](const auto& attributes) {
    return std::string(reinterpret_cast<const char*>(attributes.auth_key),
                       attributes.auth_key_size);
  };
  EXPECT_EQ(text(*info->domain_attr), authorization_key(1));
  EXPECT_EQ(text(*info->ep_attr), authorization_key(2));
}

// A program of its own, whose captures and log are whole when it has ended.
TEST(AuthorizationSecret, StandsInNoCaptureAndInNoLog) {
  if (!watched_files().empty()) GTEST_SKIP() << "this is that program";
  const WatchedRun run("AuthorizationOf*:Keyed/*");
  EXPECT_EQ(run.status(), 0);
  EXPECT_TRUE(run.captured({"Weft\0\3", 6})) << "the service of a connection, in its REQ";
  EXPECT_TRUE(run.logged("libfabric:"));
  for (int key = 1; key <= 3; ++key) {
    EXPECT_FALSE(run.captured(authorization_key(key).substr(0, 20)));
    EXPECT_FALSE(run.logged(authorization_key(key).substr(0, 20)));
  }
}

TEST_F(AuthorizationOfEndpoints, LeavesNoKeyInSharedFiles) {
  const std::string files = watched_files();
  if (files.empty()) GTEST_SKIP() << "run by the test above";
  LocalParty& one = open(0, 1);
  LocalParty& two = open(1);
  one.expose({});
  KeyedEndpoints::expect_exchange(one, two);
  EXPECT_TRUE(any_file_has(files, "1LBTTFEW")) << "the magic number of a region table";
  EXPECT_FALSE(any_file_has(files, authorization_key(1).substr(0, 20)));
}

}  // namespace
}  // namespace weft::conformance
