// SPDX-License-Identifier: BSD-2-Clause
// What does Weft not offer, and by which error does a program learn of it? (fi_domain(3),
// fi_getinfo(3), docs/user/limits.md)
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "support/placements.h"

namespace weft::conformance {
namespace {

using Change = std::function<void(fi_info*)>;

constexpr int kAbsurd = 0x7FFF'FFFF;
// Enumerators of libfabric 1.21 and later.
constexpr int kControlUnified = 3;  // FI_PROGRESS_CONTROL_UNIFIED
constexpr int kCountBytes = 1;      // FI_CNTR_EVENTS_BYTES
// FI_AV_AUTH_KEY of libfabric 1.20: the key is that of the address vector.
constexpr std::size_t kKeyOfVector = std::numeric_limits<std::size_t>::max();

// Any number in an attribute of an enumerated type.
template <class Enumeration>
void put(Enumeration& attribute, int number) {
  std::memcpy(&attribute, &number, sizeof number);
}

// A hint, and what the explanation of its refusal names.
struct Hint {
  const char* name;
  Change change;
};

const Hint kHints[] = {
    {"FI_COLLECTIVE", [](fi_info* i) { i->caps |= FI_COLLECTIVE; }},
    {"FI_MR_HMEM", [](fi_info* i) { i->caps |= FI_HMEM; }},
    {"FI_NAMED_RX_CTX", [](fi_info* i) { i->caps |= FI_NAMED_RX_CTX; }},
    {"FI_SHARED_AV", [](fi_info* i) { i->caps |= FI_SHARED_AV; }},
    {"FI_SHARED_AV", [](fi_info* i) { i->domain_attr->caps = FI_SHARED_AV; }},
    {"FI_COLLECTIVE", [](fi_info* i) { i->tx_attr->caps = FI_MSG | FI_COLLECTIVE; }},
    {"FI_COLLECTIVE", [](fi_info* i) { i->rx_attr->caps = FI_MSG | FI_COLLECTIVE; }},
    {"max_ep_tx_ctx 2", [](fi_info* i) { i->domain_attr->max_ep_tx_ctx = 2; }},
    {"max_ep_rx_ctx 2", [](fi_info* i) { i->domain_attr->max_ep_rx_ctx = 2; }},
    {"tx_ctx_cnt 2", [](fi_info* i) { i->ep_attr->tx_ctx_cnt = 2; }},
    {"rx_ctx_cnt 2", [](fi_info* i) { i->ep_attr->rx_ctx_cnt = 2; }},
    {"threading", [](fi_info* i) { put(i->domain_attr->threading, kAbsurd); }},
    {"control_progress", [](fi_info* i) { put(i->domain_attr->control_progress, kAbsurd); }},
    {"data_progress", [](fi_info* i) { put(i->domain_attr->data_progress, kControlUnified); }},
    {"resource_mgmt", [](fi_info* i) { put(i->domain_attr->resource_mgmt, kAbsurd); }},
    {"av_type", [](fi_info* i) { put(i->domain_attr->av_type, kAbsurd); }},
    {"tclass", [](fi_info* i) { i->domain_attr->tclass = FI_TC_NETWORK_CTRL + 1; }},
    {"auth_key_size", [](fi_info* i) { i->domain_attr->auth_key_size = kKeyOfVector; }},
    {"auth_key_size", [](fi_info* i) { i->ep_attr->auth_key_size = kKeyOfVector; }},
    {"protocol", [](fi_info* i) { i->ep_attr->protocol = FI_PROTO_UDP; }},
    {"tx op_flags", [](fi_info* i) { i->tx_attr->op_flags = FI_COMMIT_COMPLETE; }},
    {"rx op_flags", [](fi_info* i) { i->rx_attr->op_flags = FI_CLAIM; }},
    {"tx msg_order", [](fi_info* i) { i->tx_attr->msg_order = std::uint64_t{1} << 50; }},
    {"tx comp_order", [](fi_info* i) { i->tx_attr->comp_order = FI_ORDER_STRICT; }},
    {"rx comp_order", [](fi_info* i) { i->rx_attr->comp_order = FI_ORDER_DATA; }},
    {"addr_format", [](fi_info* i) { i->addr_format = FI_SOCKADDR_IB; }},
};

class NotOffered : public testing::TestWithParam<fi_ep_type> {
 protected:
  static Options options() {
    Options options;
    if (GetParam() == FI_EP_DGRAM) options = datagrams();
    options.type = GetParam();
    return options;
  }
  NotOffered() : domain_(options()) {}
  void SetUp() override {
    if (provider_name() != "weft") GTEST_SKIP() << "says what weft does not offer";
    ASSERT_TRUE(domain_.ok());
  }

  // The status of fi_getinfo for the usual hints as `change` leaves them, and what it has logged.
  int ask(const Change& change) {
    const Info hints = make_hints(options());
    change(hints.get());
    testing::internal::CaptureStderr();
    int rc = 0;
    answer_ = get_info(options(), hints.get(), &rc);
    log_ = testing::internal::GetCapturedStderr();
    return rc;
  }
  // The status of a call that must open nothing.
  template <class Object, class Call>
  static int status_of(Call call) {
    Object* opened = nullptr;
    const int rc = call(&opened);
    if (rc == 0) fi_close(&opened->fid);
    return rc;
  }
  int open_endpoint(const Change& change) {
    const Info info(fi_dupinfo(domain_.info()));
    change(info.get());
    return status_of<fid_ep>(
        [&](fid_ep** out) { return fi_endpoint(domain_.get(), info.get(), out, nullptr); });
  }
  int open_cq(const std::function<void(fi_cq_attr&)>& change) {
    fi_cq_attr attributes{};
    change(attributes);
    return status_of<fid_cq>(
        [&](fid_cq** out) { return fi_cq_open(domain_.get(), &attributes, out, nullptr); });
  }
  int open_counter(const std::function<void(fi_cntr_attr&)>& change) {
    fi_cntr_attr attributes{};
    change(attributes);
    return status_of<fid_cntr>(
        [&](fid_cntr** out) { return fi_cntr_open(domain_.get(), &attributes, out, nullptr); });
  }
  int open_av(const std::function<void(fi_av_attr&)>& change) {
    fi_av_attr attributes{};
    change(attributes);
    return status_of<fid_av>(
        [&](fid_av** out) { return fi_av_open(domain_.get(), &attributes, out, nullptr); });
  }
  int open_eq(const std::function<void(fi_eq_attr&)>& change) {
    fi_eq_attr attributes{};
    change(attributes);
    return status_of<fid_eq>(
        [&](fid_eq** out) { return fi_eq_open(domain_.fabric(), &attributes, out, nullptr); });
  }
  int open_receives(const std::function<void(fi_rx_attr&)>& change) {
    fi_rx_attr attributes{};
    change(attributes);
    return status_of<fid_ep>(
        [&](fid_ep** out) { return fi_srx_context(domain_.get(), &attributes, out, nullptr); });
  }
  Fid<fid_ep> endpoint(std::uint64_t caps = 0) {
    const Info info(fi_dupinfo(domain_.info()));
    if (caps != 0) info->caps = caps;
    return open_fid<fid_ep>(
        [&](fid_ep** out) { return fi_endpoint(domain_.get(), info.get(), out, nullptr); });
  }
  Fid<fid_av> vector() {
    fi_av_attr attributes{};
    return open_fid<fid_av>(
        [&](fid_av** out) { return fi_av_open(domain_.get(), &attributes, out, nullptr); });
  }

  Domain domain_;
  Info answer_;
  std::string log_;
};

TEST_P(NotOffered, HintsDoNotMatchAndTheLogNamesThem) {
  const bool logs = std::getenv("FI_LOG_LEVEL") != nullptr;
  for (const Hint& hint : kHints) {
    EXPECT_EQ(ask(hint.change), -FI_ENODATA) << hint.name;
    if (logs) {
      EXPECT_NE(log_.find(hint.name), std::string::npos) << hint.name << " not in: " << log_;
    }
  }
  EXPECT_EQ(ask([](fi_info*) {}), 0);
}

// Later libraries define more of them, and use some again.
TEST_P(NotOffered, CapabilityBitsMatchOnlyIfTheyAreAnsweredWithoutHints) {
  ASSERT_EQ(ask([](fi_info* i) { i->caps = 0; }), 0);
  const std::uint64_t offered = answer_->caps;
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t cap = std::uint64_t{1} << bit;
    const int rc = ask([=](fi_info* i) { i->caps |= cap; });
    ASSERT_EQ(rc, (offered & cap) != 0 ? 0 : -FI_ENODATA) << "bit " << bit;
    if (rc == 0) {
      EXPECT_NE(answer_->caps & cap, 0u) << "bit " << bit;
    }
  }
}

TEST_P(NotOffered, EndpointsWithSuchAttributesAreNotOpened) {
  const Change wrong[] = {
      [](fi_info* i) { i->caps |= FI_HMEM; },
      [](fi_info* i) { i->caps |= FI_NAMED_RX_CTX; },
      [](fi_info* i) { i->caps |= std::uint64_t{1} << 43; },  // FI_PEER
      [](fi_info* i) { i->ep_attr->tx_ctx_cnt = 2; },
      [](fi_info* i) { i->ep_attr->rx_ctx_cnt = 2; },
      [](fi_info* i) { i->ep_attr->auth_key_size = kKeyOfVector; },
  };
  int number = 0;
  for (const Change& change : wrong) {
    EXPECT_EQ(open_endpoint(change), -FI_EINVAL) << "change " << number;
    ++number;
  }
}

// fi_domain2, fi_endpoint2: flags are for peer providers (fi_peer(3)).
TEST_P(NotOffered, OpeningCallsTakeNoFlags) {
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t flag = std::uint64_t{1} << bit;
    EXPECT_EQ(status_of<fid_domain>([&](fid_domain** out) {
                return fi_domain2(domain_.fabric(), domain_.info(), out, flag, nullptr);
              }),
              -FI_EBADFLAGS)
        << "bit " << bit;
    EXPECT_EQ(status_of<fid_ep>([&](fid_ep** out) {
                return fi_endpoint2(domain_.get(), domain_.info(), out, flag, nullptr);
              }),
              -FI_EBADFLAGS)
        << "bit " << bit;
  }
  EXPECT_EQ(status_of<fid_domain>([&](fid_domain** out) {
              return fi_domain2(domain_.fabric(), domain_.info(), out, 0, nullptr);
            }),
            0);
  EXPECT_EQ(status_of<fid_ep>([&](fid_ep** out) {
              return fi_endpoint2(domain_.get(), domain_.info(), out, 0, nullptr);
            }),
            0);
}

// Nor may a queue, a counter, a vector or a context be another provider's.
TEST_P(NotOffered, ObjectsOfPeerProvidersAreRefused) {
  EXPECT_EQ(open_cq([](fi_cq_attr& attributes) { attributes.flags = FI_PEER; }), -FI_EBADFLAGS);
  EXPECT_EQ(open_counter([](fi_cntr_attr& attributes) { attributes.flags = FI_PEER; }),
            -FI_EBADFLAGS);
  EXPECT_EQ(open_av([](fi_av_attr& attributes) { attributes.flags = FI_PEER; }), -FI_EBADFLAGS);
  EXPECT_EQ(open_eq([](fi_eq_attr& attributes) { attributes.flags = FI_PEER; }), -FI_EBADFLAGS);
  EXPECT_EQ(open_receives([](fi_rx_attr& attributes) { attributes.op_flags = FI_PEER; }),
            -FI_EINVAL);
  EXPECT_EQ(open_receives([](fi_rx_attr& attributes) { attributes.caps = FI_PEER; }), -FI_EINVAL);
}

TEST_P(NotOffered, ScalableEndpointsAreRefused) {
  fid_ep* opened = nullptr;
  EXPECT_EQ(fi_scalable_ep(domain_.get(), domain_.info(), &opened, nullptr), -FI_ENOSYS);
  const auto ep = endpoint();
  ASSERT_NE(ep, nullptr);
  EXPECT_EQ(fi_tx_context(ep.get(), 0, nullptr, &opened, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_rx_context(ep.get(), 0, nullptr, &opened, nullptr), -FI_ENOSYS);
  EXPECT_EQ(open_av([](fi_av_attr& attributes) { attributes.rx_ctx_bits = 1; }), -FI_ENOSYS);
  EXPECT_EQ(ask([](fi_info*) {}), 0);
  EXPECT_EQ(answer_->domain_attr->max_ep_tx_ctx, 1u);
  EXPECT_EQ(answer_->domain_attr->max_ep_rx_ctx, 1u);
}

TEST_P(NotOffered, CollectiveOperationsAreRefused) {
  fi_collective_attr attributes{};
  for (int operation = FI_BARRIER; operation <= FI_GATHER; ++operation) {
    const auto asked = static_cast<fi_collective_op>(operation);
    EXPECT_EQ(fi_query_collective(domain_.get(), asked, &attributes, 0), -FI_ENOSYS);
  }
  const auto ep = endpoint();
  const auto av = vector();
  ASSERT_TRUE(ep != nullptr && av != nullptr);
  fi_av_set_attr members{};
  fid_av_set* set = nullptr;
  EXPECT_EQ(fi_av_set(av.get(), &members, &set, nullptr), -FI_ENOSYS);
  fid_mc* group = nullptr;
  EXPECT_EQ(fi_join_collective(ep.get(), FI_ADDR_NOTAVAIL, nullptr, 0, &group, nullptr),
            GetParam() == FI_EP_DGRAM ? -FI_EBADFLAGS : -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_barrier(ep.get(), FI_ADDR_NOTAVAIL, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_broadcast(ep.get(), nullptr, 0, nullptr, FI_ADDR_NOTAVAIL, 0, FI_UINT8, 0, nullptr),
            -FI_ENOSYS);
}

TEST_P(NotOffered, NamedAddressVectorsAreRefused) {
  EXPECT_EQ(open_av([](fi_av_attr& attributes) { attributes.name = "shared"; }), -FI_ENOSYS);
  EXPECT_EQ(open_av([](fi_av_attr& attributes) {
              attributes.name = "shared";
              attributes.flags = FI_READ;
            }),
            -FI_EBADFLAGS);
  ASSERT_EQ(ask([](fi_info*) {}), 0);
  EXPECT_EQ(answer_->domain_attr->caps & FI_SHARED_AV, 0u);
}

// fi_set_ops(3): an override that is unknown or not supported.
TEST_P(NotOffered, OverridesAreRefused) {
  const auto ep = endpoint();
  ASSERT_NE(ep, nullptr);
  fi_hmem_override_ops overrides{};
  overrides.size = sizeof overrides;
  for (const char* name : {FI_SET_OPS_HMEM_OVERRIDE, "no_such_ops", ""}) {
    for (fid* object : {&domain_.get()->fid, &domain_.fabric()->fid, &ep->fid}) {
      EXPECT_EQ(fi_set_ops(object, name, 0, &overrides, nullptr), -FI_ENOSYS) << name;
    }
  }
}

// A program may say that it could live with the restriction.
TEST_P(NotOffered, RestrictedCompletionsAreNotRequired) {
  ASSERT_EQ(ask([](fi_info* i) {
              i->mode = FI_RESTRICTED_COMP;
              i->domain_attr->mode = FI_RESTRICTED_COMP;
            }),
            0);
  EXPECT_EQ(answer_->mode, 0u);
  EXPECT_EQ(answer_->domain_attr->mode, 0u);
  if (GetParam() == FI_EP_MSG) return;
  fi_cq_attr attributes{};
  const auto cq = open_fid<fid_cq>(
      [&](fid_cq** out) { return fi_cq_open(domain_.get(), &attributes, out, nullptr); });
  const auto av = vector();
  const auto all = endpoint();
  const auto sender = endpoint(FI_MSG | FI_SEND);
  for (fid_ep* ep : {all.get(), sender.get()}) {
    ASSERT_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
    EXPECT_EQ(fi_enable(ep), 0);
  }
}

// It asks for less than FI_PROGRESS_MANUAL does: control calls need not be thread safe.
TEST_P(NotOffered, UnifiedControlProgressIsAnsweredByManual) {
  ASSERT_EQ(ask([](fi_info* i) { put(i->domain_attr->control_progress, kControlUnified); }), 0);
  EXPECT_EQ(answer_->domain_attr->control_progress, FI_PROGRESS_MANUAL);
}

TEST_P(NotOffered, UnknownEnumeratorsAreRefused) {
  EXPECT_EQ(open_cq([](fi_cq_attr& attributes) { put(attributes.format, kAbsurd); }), -FI_EINVAL);
  EXPECT_EQ(open_cq([](fi_cq_attr& attributes) { put(attributes.wait_obj, kAbsurd); }), -FI_EINVAL);
  EXPECT_EQ(open_cq([](fi_cq_attr& attributes) {
              attributes.wait_obj = FI_WAIT_FD;
              put(attributes.wait_cond, kAbsurd);
            }),
            -FI_EINVAL);
  for (const int events : {kCountBytes, kAbsurd}) {
    EXPECT_EQ(open_counter([=](fi_cntr_attr& attributes) { put(attributes.events, events); }),
              -FI_ENOSYS);
  }
  EXPECT_EQ(open_counter([](fi_cntr_attr& attributes) { put(attributes.wait_obj, -1); }),
            -FI_EINVAL);
  EXPECT_EQ(open_eq([](fi_eq_attr& attributes) { put(attributes.wait_obj, kAbsurd); }), -FI_EINVAL);
  for (const int type : {FI_AV_TABLE + 1, kAbsurd, -1}) {
    EXPECT_EQ(open_av([=](fi_av_attr& attributes) { put(attributes.type, type); }), -FI_EINVAL);
  }
  fi_wait_attr attributes{};
  put(attributes.wait_obj, kAbsurd);
  EXPECT_EQ(status_of<fid_wait>(
                [&](fid_wait** out) { return fi_wait_open(domain_.fabric(), &attributes, out); }),
            -FI_EINVAL);
}

TEST_P(NotOffered, UnknownCommandsAndOptionsAreRefused) {
  const auto ep = endpoint();
  const auto av = vector();
  ASSERT_TRUE(ep != nullptr && av != nullptr);
  std::uint64_t place[16]{};
  for (const int command : {int{FI_DUP}, int{FI_EXPORT_FID}, FI_EXPORT_FID + 1, kAbsurd, -1}) {
    for (fid* object : {&domain_.get()->fid, &domain_.fabric()->fid, &ep->fid, &av->fid}) {
      EXPECT_EQ(fi_control(object, command, place), -FI_ENOSYS) << command;
    }
  }
  constexpr int kFirstUnknown = FI_OPT_CM_DATA_SIZE + 1;
  for (int option = kFirstUnknown; option < 64; ++option) {
    std::size_t length = sizeof(std::size_t);
    EXPECT_EQ(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, option, place, &length), -FI_ENOPROTOOPT);
    EXPECT_EQ(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, option, place, length), -FI_ENOPROTOOPT);
  }
}

// mr_mode in hints says what the program could live with.
TEST_P(NotOffered, UnknownRegistrationModesAreNotRequired) {
  const int usual = options().mr_mode;
  ASSERT_EQ(ask([](fi_info* i) { i->domain_attr->mr_mode |= FI_MR_COLLECTIVE | FI_MR_HMEM; }), 0);
  EXPECT_EQ(answer_->domain_attr->mr_mode & ~usual, 0);
}

INSTANTIATE_TEST_SUITE_P(Endpoints, NotOffered, testing::Values(FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM),
                         [](const testing::TestParamInfo<fi_ep_type>& one) {
                           return one.param == FI_EP_RDM   ? "Reliable"
                                  : one.param == FI_EP_MSG ? "Connected"
                                                           : "Datagrams";
                         });

}  // namespace
}  // namespace weft::conformance
