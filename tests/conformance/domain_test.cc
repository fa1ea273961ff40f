// SPDX-License-Identifier: BSD-2-Clause
// What does an open domain keep, hold open and give back, and which address vectors has it?
// (fi_domain(3))
#include <functional>
#include <memory>
#include <string>

#include "os/descriptor_count_support.h"
#include "os/thread_count_support.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

TEST(OpenDomain, KeepsItsContext) {
  const Domain other(Options{});
  ASSERT_TRUE(other.ok());
  int context = 0;
  const auto domain = open_fid<fid_domain>(
      [&](fid_domain** out) { return fi_domain(other.fabric(), other.info(), out, &context); });
  ASSERT_NE(domain, nullptr);
  EXPECT_EQ(domain->fid.context, &context);
  EXPECT_EQ(domain->fid.fclass, static_cast<std::size_t>(FI_CLASS_DOMAIN));
}

// Opens an object of one kind in a domain; it closes itself.
struct Kept {
  const char* name;
  std::function<std::shared_ptr<void>(const Domain&)> open;
};

template <class T, class Call>
std::shared_ptr<void> keep(Call call) {
  return std::shared_ptr<T>(open_fid<T>(call));
}

std::shared_ptr<void> open_region(const Domain& domain) {
  static std::array<std::uint8_t, 64> memory;
  return keep<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(domain.get(), memory.data(), memory.size(), FI_REMOTE_READ, 0,
                     Endpoint::next_key(), 0, out, nullptr);
  });
}

const Kept kKinds[] = {
    {"Endpoint",
     [](const Domain& domain) {
       return keep<fid_ep>(
           [&](fid_ep** out) { return fi_endpoint(domain.get(), domain.info(), out, nullptr); });
     }},
    {"AddressVector",
     [](const Domain& domain) {
       fi_av_attr attributes{};
       return keep<fid_av>(
           [&](fid_av** out) { return fi_av_open(domain.get(), &attributes, out, nullptr); });
     }},
    {"CompletionQueue",
     [](const Domain& domain) {
       return keep<fid_cq>(
           [&](fid_cq** out) { return fi_cq_open(domain.get(), nullptr, out, nullptr); });
     }},
    {"Counter",
     [](const Domain& domain) {
       fi_cntr_attr attributes{};
       return keep<fid_cntr>(
           [&](fid_cntr** out) { return fi_cntr_open(domain.get(), &attributes, out, nullptr); });
     }},
    {"Region", open_region},
    {"PollSet",
     [](const Domain& domain) {
       return keep<fid_poll>(
           [&](fid_poll** out) { return fi_poll_open(domain.get(), nullptr, out); });
     }},
    {"SharedTransmitContext",
     [](const Domain& domain) {
       return keep<fid_stx>([&](fid_stx** out) {
         return fi_stx_context(domain.get(), domain.info()->tx_attr, out, nullptr);
       });
     }},
    {"SharedReceiveContext",
     [](const Domain& domain) {
       return keep<fid_ep>([&](fid_ep** out) {
         return fi_srx_context(domain.get(), domain.info()->rx_attr, out, nullptr);
       });
     }},
};

class DomainInUse : public testing::TestWithParam<Kept> {};

TEST_P(DomainInUse, IsNotClosed) {
  for (const fi_ep_type type : {FI_EP_RDM, FI_EP_MSG}) {
    Options options;
    options.type = type;
    const Domain domain(options);
    ASSERT_TRUE(domain.ok());
    const std::shared_ptr<void> object = GetParam().open(domain);
    ASSERT_NE(object, nullptr);
    EXPECT_EQ(fi_close(&domain.get()->fid), -FI_EBUSY);
    EXPECT_EQ(fi_close(&domain.fabric()->fid), -FI_EBUSY);
    EXPECT_NE(open_region(domain), nullptr) << "it is still open";
  }  // Now each closes: the support checks that.
}

INSTANTIATE_TEST_SUITE_P(Kinds, DomainInUse, testing::ValuesIn(kKinds),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ClosedDomain, LeavesNeitherDescriptorsNorThreads) {
  const auto use = [] {
    Options options;
    options.data_progress = FI_PROGRESS_AUTO;
    options.wait = FI_WAIT_FD;
    options.counters = FI_SEND;
    World world(Placement::kTwoDomains, options);
    ASSERT_TRUE(world.ok());
    world.exchange(100000);
  };
  use();  // A process keeps some descriptors from its first domain on.
  const std::size_t descriptors = os::count_descriptors();
  const std::size_t threads = os::count_threads();
  for (int round = 0; round < 3; ++round) use();
  EXPECT_EQ(os::count_descriptors(), descriptors);
  EXPECT_EQ(os::count_threads(), threads);
}

constexpr fi_av_type kVectorTypes[] = {FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE};

TEST(AddressVectorTypes, OfEitherKindWorkInEveryDomain) {
  if (provider_name() != "weft") GTEST_SKIP() << "a domain may have vectors of its own type only";
  for (const fi_av_type of_domain : kVectorTypes) {
    Options options;
    options.av_type = of_domain;
    const auto domain = std::make_shared<Domain>(options);
    ASSERT_TRUE(domain->ok());
    for (const fi_av_type of_vector : kVectorTypes) {
      SCOPED_TRACE(testing::Message() << "domain " << of_domain << ", vector " << of_vector);
      options.av_type = of_vector;
      Pump pump;
      LocalParty party(domain, options, &pump);
      ASSERT_TRUE(party.ok());
      const fi_addr_t self = party.insert(party.name());
      const Token received = party.post({.kind = Kind::kRecv, .length = 8});
      party.wait_success(party.post({.kind = Kind::kSend, .length = 8, .seed = 3, .peer = self}));
      party.wait_success(received);
      party.expect_data(received, 3, 8);
    }
  }
}

}  // namespace
}  // namespace weft::conformance
