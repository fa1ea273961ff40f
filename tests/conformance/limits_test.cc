// SPDX-License-Identifier: BSD-2-Clause
// Is every count and limit of fi_domain(3) and fi_endpoint(3) true, up to the last one?
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "support/endpoint.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kMost = 3;  // of what a domain is opened for
constexpr std::uint64_t kCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;

Options with_everything(fi_ep_type type) {
  Options options;
  if (type == FI_EP_DGRAM) options = datagrams();
  options.type = type;
  if (type != FI_EP_DGRAM) options.caps = kCaps;
  return options;
}

struct Close {
  void operator()(fid* object) const { EXPECT_EQ(fi_close(object), 0); }
};
using Object = std::unique_ptr<fid, Close>;

// Opens an object of a domain, and returns what the call does.
using Opener = int (*)(fid_domain*, fi_info*, fid**);

template <class T, class Call>
int opened(fid** out, Call call) {
  T* object = nullptr;
  const int rc = call(&object);
  *out = rc == 0 ? &object->fid : nullptr;
  return rc;
}

int open_queue(fid_domain* domain, fi_info*, fid** out) {
  fi_cq_attr attributes{};
  attributes.size = 1;
  attributes.wait_obj = FI_WAIT_NONE;
  return opened<fid_cq>(out,
                        [&](fid_cq** cq) { return fi_cq_open(domain, &attributes, cq, nullptr); });
}

int open_counter(fid_domain* domain, fi_info*, fid** out) {
  fi_cntr_attr attributes{};
  attributes.wait_obj = FI_WAIT_NONE;
  return opened<fid_cntr>(
      out, [&](fid_cntr** cntr) { return fi_cntr_open(domain, &attributes, cntr, nullptr); });
}

int open_endpoint(fid_domain* domain, fi_info* info, fid** out) {
  return opened<fid_ep>(out, [&](fid_ep** ep) { return fi_endpoint(domain, info, ep, nullptr); });
}

// Without contexts of its own.
int open_sharing_endpoint(fid_domain* domain, fi_info* info, fid** out) {
  const Info sharing(fi_dupinfo(info));
  sharing->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
  sharing->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  return open_endpoint(domain, sharing.get(), out);
}

int open_shared_transmit(fid_domain* domain, fi_info* info, fid** out) {
  return opened<fid_stx>(
      out, [&](fid_stx** stx) { return fi_stx_context(domain, info->tx_attr, stx, nullptr); });
}

int open_shared_receive(fid_domain* domain, fi_info* info, fid** out) {
  return opened<fid_ep>(
      out, [&](fid_ep** srx) { return fi_srx_context(domain, info->rx_attr, srx, nullptr); });
}

int open_region(fid_domain* domain, fi_info*, fid** out) {
  static std::uint8_t memory[64];
  return opened<fid_mr>(out, [&](fid_mr** mr) {
    return fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_READ, 0, Endpoint::next_key(), 0, mr,
                     nullptr);
  });
}

// A count of a domain, and what is counted.
struct Count {
  const char* name;
  std::size_t fi_domain_attr::*attribute;
  Opener open;
};

constexpr Count kCounts[] = {
    {"Queues", &fi_domain_attr::cq_cnt, open_queue},
    {"Counters", &fi_domain_attr::cntr_cnt, open_counter},
    {"Endpoints", &fi_domain_attr::ep_cnt, open_endpoint},
    {"EndpointsThatShare", &fi_domain_attr::ep_cnt, open_sharing_endpoint},
    {"TransmitContexts", &fi_domain_attr::tx_ctx_cnt, open_endpoint},
    {"SharedTransmitContexts", &fi_domain_attr::tx_ctx_cnt, open_shared_transmit},
    {"ReceiveContexts", &fi_domain_attr::rx_ctx_cnt, open_endpoint},
    {"SharedReceiveContexts", &fi_domain_attr::rx_ctx_cnt, open_shared_receive},
    {"Regions", &fi_domain_attr::mr_cnt, open_region},
};

// A domain that is opened with changed attributes.
Fid<fid_domain> open_domain(const Domain& like,
                            const std::function<void(fi_domain_attr&)>& change) {
  const Info info(fi_dupinfo(like.info()));
  change(*info->domain_attr);
  return open_fid<fid_domain>(
      [&](fid_domain** out) { return fi_domain(like.fabric(), info.get(), out, nullptr); });
}

class DomainCounts : public testing::TestWithParam<Count> {
 protected:
  DomainCounts() : answered_(with_everything(FI_EP_RDM)) {}

  // Opens one in that domain.
  int open(fid_domain* domain, Object& object) {
    fid* out = nullptr;
    const int rc = GetParam().open(domain, answered_.info(), &out);
    object.reset(out);
    return rc;
  }

  Domain answered_;
};

TEST_P(DomainCounts, OneMoreIsRefusedUntilOneIsClosed) {
  ASSERT_TRUE(answered_.ok());
  const auto domain =
      open_domain(answered_, [](fi_domain_attr& a) { a.*GetParam().attribute = kMost; });
  ASSERT_NE(domain, nullptr);
  std::vector<Object> objects(kMost);
  for (Object& object : objects) ASSERT_EQ(open(domain.get(), object), 0);
  Object one_more;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(open(domain.get(), one_more), -FI_ENOSPC);
  EXPECT_EQ(open(answered_.get(), one_more), 0) << "another domain";
  objects.front().reset();
  EXPECT_EQ(open(domain.get(), objects.front()), 0);
  EXPECT_EQ(open(domain.get(), one_more), -FI_ENOSPC);
}

TEST_P(DomainCounts, OfAnOpenDomainAreAnswered) {
  ASSERT_TRUE(answered_.ok());
  const auto narrow =
      open_domain(answered_, [](fi_domain_attr& a) { a.*GetParam().attribute = kMost; });
  ASSERT_NE(narrow, nullptr);
  const Options options = with_everything(FI_EP_RDM);
  const Info hints = make_hints(options);
  hints->domain_attr->domain = narrow.get();
  int rc = 0;
  const Info info = get_info(options, hints.get(), &rc);
  ASSERT_EQ(rc, 0);
  EXPECT_EQ(info->domain_attr->*GetParam().attribute, kMost);
  hints->domain_attr->*GetParam().attribute = kMost + 1;
  EXPECT_EQ(get_info(options, hints.get(), &rc), nullptr);
  EXPECT_EQ(rc, -FI_ENODATA);
}

INSTANTIATE_TEST_SUITE_P(Limits, DomainCounts, testing::ValuesIn(kCounts),
                         [](const auto& one) { return std::string(one.param.name); });

// As many as fi_getinfo(3) answers. (Regions: Registration.BeyondMrCnt...; endpoints, which each
// have a descriptor and a port of the host: ManyEndpoints.)
class AnsweredCounts : public DomainCounts {};

TEST_P(AnsweredCounts, CanBeOpened) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "tens of thousands of objects";
#endif
  ASSERT_TRUE(answered_.ok());
  const std::size_t most = answered_.info()->domain_attr->*GetParam().attribute;
  std::vector<Object> objects(most);
  for (Object& object : objects) ASSERT_EQ(open(answered_.get(), object), 0);
  Object one_more;
  EXPECT_EQ(open(answered_.get(), one_more), -FI_ENOSPC);
  while (!objects.empty()) objects.pop_back();
}

INSTANTIATE_TEST_SUITE_P(Limits, AnsweredCounts,
                         testing::Values(kCounts[0], kCounts[1], kCounts[5], kCounts[7]),
                         [](const auto& one) { return std::string(one.param.name); });

// How many endpoints share a context.
struct Sharing {
  const char* name;
  std::size_t fi_domain_attr::*attribute;
  Opener open;
};

class SharingEndpoints : public testing::TestWithParam<Sharing> {};

TEST_P(SharingEndpoints, AreAsManyAsTheDomainSays) {
  const Domain answered(with_everything(FI_EP_RDM));
  ASSERT_TRUE(answered.ok());
  EXPECT_EQ(answered.info()->domain_attr->*GetParam().attribute,
            answered.info()->domain_attr->ep_cnt);
  const auto domain =
      open_domain(answered, [](fi_domain_attr& a) { a.*GetParam().attribute = kMost; });
  ASSERT_NE(domain, nullptr);
  const auto open = [&](Opener how) {
    fid* out = nullptr;
    EXPECT_EQ(how(domain.get(), answered.info(), &out), 0);
    return Object(out);
  };
  const Object shared = open(GetParam().open);
  const Object other = open(GetParam().open);
  std::vector<Object> endpoints(kMost);
  const auto bind = [](const Object& endpoint, const Object& to) {
    return fi_ep_bind(reinterpret_cast<fid_ep*>(endpoint.get()), to.get(), 0);
  };
  for (Object& endpoint : endpoints) {
    endpoint = open(open_sharing_endpoint);
    ASSERT_EQ(bind(endpoint, shared), 0);
    EXPECT_EQ(bind(endpoint, shared), -FI_EINVAL) << "a second time";
  }
  const Object one_more = open(open_sharing_endpoint);
  EXPECT_EQ(bind(one_more, shared), -FI_ENOSPC);
  endpoints.pop_back();
  const Object next = open(open_sharing_endpoint);
  EXPECT_EQ(bind(next, shared), 0);
  EXPECT_EQ(bind(one_more, shared), -FI_ENOSPC);
  EXPECT_EQ(bind(one_more, other), 0) << "the endpoint is as before";
}

INSTANTIATE_TEST_SUITE_P(
    Limits, SharingEndpoints,
    testing::Values(Sharing{"Transmit", &fi_domain_attr::max_ep_stx_ctx, open_shared_transmit},
                    Sharing{"Receive", &fi_domain_attr::max_ep_srx_ctx, open_shared_receive}),
    [](const auto& one) { return std::string(one.param.name); });

// An attribute that is an upper limit.
struct Limit {
  const char* name;
  std::size_t* (*of)(fi_info&);
};

#define DOMAIN_LIMIT(attribute)                                                \
  {                                                                            \
    "domain " #attribute, [](fi_info& i) { return &i.domain_attr->attribute; } \
  }
constexpr Limit kDomainLimits[] = {
    DOMAIN_LIMIT(mr_key_size),    DOMAIN_LIMIT(cq_data_size),  DOMAIN_LIMIT(cq_cnt),
    DOMAIN_LIMIT(ep_cnt),         DOMAIN_LIMIT(tx_ctx_cnt),    DOMAIN_LIMIT(rx_ctx_cnt),
    DOMAIN_LIMIT(max_ep_tx_ctx),  DOMAIN_LIMIT(max_ep_rx_ctx), DOMAIN_LIMIT(max_ep_stx_ctx),
    DOMAIN_LIMIT(max_ep_srx_ctx), DOMAIN_LIMIT(cntr_cnt),      DOMAIN_LIMIT(mr_iov_limit),
    DOMAIN_LIMIT(max_err_data),   DOMAIN_LIMIT(mr_cnt),
};
// The first two depend on the interface for datagrams (Datagrams.*).
constexpr Limit kEndpointLimits[] = {
    {"ep max_msg_size", [](fi_info& i) { return &i.ep_attr->max_msg_size; }},
    {"tx inject_size", [](fi_info& i) { return &i.tx_attr->inject_size; }},
    {"ep tx_ctx_cnt", [](fi_info& i) { return &i.ep_attr->tx_ctx_cnt; }},
    {"ep rx_ctx_cnt", [](fi_info& i) { return &i.ep_attr->rx_ctx_cnt; }},
    {"tx iov_limit", [](fi_info& i) { return &i.tx_attr->iov_limit; }},
    {"tx rma_iov_limit", [](fi_info& i) { return &i.tx_attr->rma_iov_limit; }},
    {"rx iov_limit", [](fi_info& i) { return &i.rx_attr->iov_limit; }},
};

std::string type_name(const testing::TestParamInfo<fi_ep_type>& one) {
  return one.param == FI_EP_RDM ? "Rdm" : one.param == FI_EP_MSG ? "Msg" : "Dgram";
}

class AttributeLimits : public testing::TestWithParam<fi_ep_type> {
 protected:
  AttributeLimits() : options_(with_everything(GetParam())), domain_(options_) {}

  static std::span<const Limit> endpoint_limits() {
    return std::span<const Limit>(kEndpointLimits).subspan(GetParam() == FI_EP_DGRAM ? 2 : 0);
  }
  // The answer to hints with that value, or null and `*rc`.
  Info ask(const Limit& limit, std::size_t value, int* rc) {
    const Info hints = make_hints(options_);
    *limit.of(*hints) = value;
    return get_info(options_, hints.get(), rc);
  }
  void expect_limit(const Limit& limit, std::size_t most) {
    EXPECT_GT(most, 0u) << limit.name;
    int rc = 0;
    const Info same = ask(limit, most, &rc);
    ASSERT_EQ(rc, 0) << limit.name;
    EXPECT_EQ(*limit.of(*same), most) << limit.name;
    EXPECT_EQ(ask(limit, most + 1, &rc), nullptr) << limit.name;
    EXPECT_EQ(rc, -FI_ENODATA) << limit.name;
  }
  Info one_more_than_answered(const Limit& limit) {
    Info info(fi_dupinfo(domain_.info()));
    ++*limit.of(*info);
    return info;
  }

  const Options options_;
  Domain domain_;
};

TEST_P(AttributeLimits, AreGrantedAndOneMoreIsNot) {
  ASSERT_TRUE(domain_.ok());
  for (const Limit& limit : kDomainLimits) expect_limit(limit, *limit.of(*domain_.info()));
  for (const Limit& limit : endpoint_limits()) expect_limit(limit, *limit.of(*domain_.info()));
}

TEST_P(AttributeLimits, OneMoreOpensNoDomainAndNoEndpoint) {
  ASSERT_TRUE(domain_.ok());
  for (const Limit& limit : kDomainLimits) {
    // The data of a datagram are fewer than those of its domain's other endpoints.
    if (GetParam() == FI_EP_DGRAM && std::string(limit.name) == "domain cq_data_size") continue;
    const Info info = one_more_than_answered(limit);
    fid_domain* opened = nullptr;
    EXPECT_EQ(fi_domain(domain_.fabric(), info.get(), &opened, nullptr), -FI_EINVAL) << limit.name;
  }
  for (const Limit& limit : endpoint_limits()) {
    const Info info = one_more_than_answered(limit);
    fid_ep* opened = nullptr;
    EXPECT_EQ(fi_endpoint(domain_.get(), info.get(), &opened, nullptr), -FI_EINVAL) << limit.name;
  }
  const Endpoint endpoint(std::make_shared<Domain>(options_), options_);
  EXPECT_TRUE(endpoint.ok()) << "what is within the limits opens";
}

INSTANTIATE_TEST_SUITE_P(Limits, AttributeLimits,
                         testing::Values(FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM), type_name);

}  // namespace
}  // namespace weft::conformance
