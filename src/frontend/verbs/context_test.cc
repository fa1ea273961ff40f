// SPDX-License-Identifier: BSD-2-Clause
// Are devices listed, opened and queried as libibverbs does it?
#include "context.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "operations.h"
#include "verbs/limits.h"

extern "C" int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index,
                                  int* type);

namespace weft::verbs {
namespace {

class Devices : public testing::Test {
 protected:
  // The settings are read once by a process.
  static void SetUpTestSuite() { ::setenv("WEFT_IFACE", "lo", 1); }

  static std::vector<ibv_device*> list() {
    int count = -1;
    ibv_device** const list = ibv_get_device_list(&count);
    EXPECT_NE(list, nullptr);
    std::vector<ibv_device*> devices(list, list + count);
    EXPECT_EQ(list[count], nullptr);
    ibv_free_device_list(list);
    return devices;
  }
};

TEST_F(Devices, KeepTheirIdentityFromListToList) {
  const auto devices = list();
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(list(), devices);
  ibv_device** const again = ibv_get_device_list(nullptr);
  EXPECT_EQ(again[0], devices[0]);
  ibv_free_device_list(again);
}

TEST_F(Devices, AreAdaptersOfInfinibandWithANameAndAGuid) {
  ibv_device* const device = list().front();
  EXPECT_EQ(device->node_type, IBV_NODE_CA);
  EXPECT_EQ(device->transport_type, IBV_TRANSPORT_IB);
  EXPECT_EQ(std::string(ibv_get_device_name(device)),
            "weft" + std::to_string(ibv_get_device_index(device)));
  EXPECT_NE(ibv_get_device_guid(device), 0U);
}

TEST_F(Devices, AreListedAndOpenedInAForkedChildToo) {
  const auto devices = list();
  const pid_t child = ::fork();
  if (child == 0) {
    ibv_context* const context = ibv_open_device(devices.front());
    const bool right = context != nullptr && list() == devices && ibv_close_device(context) == 0;
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Devices, AreOpenedInAChildThatIsForkedBesideAThreadThatOpensThem) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "gcc 12's sanitizers do not bring their own locks through a fork with threads";
#endif
  ibv_device* const device = list().front();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) EXPECT_EQ(ibv_close_device(ibv_open_device(device)), 0);
  });
  for (int round = 0; round < 16 && !HasFailure(); ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      ibv_context* const context = ibv_open_device(device);
      ::_exit(context != nullptr && ibv_close_device(context) == 0 ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  other.join();
}

class OpenDevice : public Devices {
 protected:
  OpenDevice() : context_(ibv_open_device(list().front())) {}
  ~OpenDevice() override { EXPECT_EQ(ibv_close_device(context_), 0); }

  ibv_context* const context_;
};

TEST_F(OpenDevice, HasTheTableOfOperationsInFrontAndAReadablePageBeforeIt) {
  ASSERT_NE(verbs_get_ctx(context_), nullptr);
  EXPECT_EQ(verbs_get_ctx(context_)->sz, 648U);
  EXPECT_EQ(verbs_get_ctx_op(context_, open_qp), verbs_get_ctx(context_));
  EXPECT_EQ(verbs_get_ctx_op(context_, create_wq), nullptr);
  const auto* page = reinterpret_cast<const unsigned char*>(context_) - 4096;
  EXPECT_EQ(page[0], 0);
  EXPECT_GE(context_->async_fd, 0);
  EXPECT_GE(context_->num_comp_vectors, 1);
  EXPECT_FALSE(VerbsContext::of(context_).inherited());
}

TEST_F(OpenDevice, DescribesItselfInStructuresOfAnySize) {
  ibv_device_attr_ex full;
  ASSERT_EQ(query_device_ex(context_, nullptr, &full, sizeof full), 0);
  EXPECT_EQ(full.orig_attr.max_qp_wr, Limits::kWorkRequests);
  EXPECT_EQ(full.orig_attr.node_guid, ibv_get_device_guid(context_->device));
  EXPECT_EQ(full.completion_timestamp_mask, ~std::uint64_t{0});
  EXPECT_EQ(full.hca_core_clock, 1'000'000U);
  EXPECT_NE(full.odp_caps.general_caps & IBV_ODP_SUPPORT, 0U);
  ibv_device_attr old;
  ASSERT_EQ(ibv_query_device(context_, &old), 0);
  EXPECT_EQ(std::memcmp(&old, &full.orig_attr, sizeof old), 0);

  std::vector<unsigned char> bytes(sizeof full + 8, 0xAA);
  auto* const attributes = reinterpret_cast<ibv_device_attr_ex*>(bytes.data());
  ASSERT_EQ(query_device_ex(context_, nullptr, attributes, sizeof old + 8), 0);
  EXPECT_EQ(bytes[sizeof old + 8], 0xAA);
  ASSERT_EQ(query_device_ex(context_, nullptr, attributes, sizeof full + 4), 0);
  EXPECT_EQ(bytes[sizeof full + 3], 0);
  EXPECT_EQ(bytes[sizeof full + 4], 0xAA);
  const ibv_query_device_ex_input unknown = {1};
  EXPECT_EQ(query_device_ex(context_, &unknown, &full, sizeof full), EINVAL);
}

TEST_F(OpenDevice, HasOnePort) {
  ibv_port_attr port;
  std::memset(&port, 0xAA, sizeof port);
  ASSERT_EQ(ibv_query_port(context_, 1, reinterpret_cast<_compat_ibv_port_attr*>(&port)), 0);
  EXPECT_EQ(port.port_cap_flags2, 0xAAAA) << "the old structure ends before it";
  ASSERT_EQ(query_port(context_, 1, &port, sizeof port), 0);
  EXPECT_EQ(port.port_cap_flags2, 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(port.active_mtu, IBV_MTU_4096);
  for (const std::uint8_t other : {0, 2, 255}) {
    EXPECT_EQ(query_port(context_, other, &port, sizeof port), EINVAL);
  }
}

TEST_F(OpenDevice, AnswersForEveryIndexOfItsGidTableAndForNoOther) {
  ibv_port_attr port;
  ASSERT_EQ(query_port(context_, 1, &port, sizeof port), 0);
  ASSERT_GE(port.gid_tbl_len, 4);
  ibv_gid gid;
  ibv_gid_entry entry;
  int type = -1;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    EXPECT_EQ(ibv_query_gid(context_, 1, i, &gid), 0);
    EXPECT_NE(gid.global.interface_id, 0U);
    ASSERT_EQ(ibv_query_gid_ex(context_, 1, static_cast<unsigned>(i), &entry, 0), 0);
    EXPECT_EQ(std::memcmp(&entry.gid, &gid, sizeof gid), 0);
    EXPECT_EQ(entry.gid_type, unsigned{IBV_GID_TYPE_ROCE_V2});
    EXPECT_NE(entry.ndev_ifindex, 0U);
    EXPECT_EQ(ibv_query_gid_type(context_, 1, static_cast<unsigned>(i), &type), 0);
    EXPECT_EQ(type, 1);
  }
  for (const int beyond : {-1, port.gid_tbl_len}) {
    EXPECT_EQ(ibv_query_gid(context_, 1, beyond, &gid), -1);
    EXPECT_EQ(ibv_query_gid_ex(context_, 1, static_cast<unsigned>(beyond), &entry, 0), EINVAL);
  }
  EXPECT_EQ(ibv_query_gid(context_, 2, 0, &gid), -1);
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, 0, &entry, 1), EINVAL);
}

TEST_F(OpenDevice, ListsItsGidsIntoAnArrayThatIsLongEnough) {
  std::vector<ibv_gid_entry> entries(64);
  const ssize_t count = ibv_query_gid_table(context_, entries.data(), entries.size(), 0);
  ASSERT_GE(count, 4);
  const auto length = static_cast<std::size_t>(count);
  EXPECT_EQ(entries[length - 1].gid_index, length - 1);
  EXPECT_EQ(entries[length].port_num, 0U);
  EXPECT_EQ(ibv_query_gid_table(context_, entries.data(), length - 1, 0), -EINVAL);
  EXPECT_EQ(ibv_query_gid_table(context_, entries.data(), entries.size(), 1), -EINVAL);
}

TEST_F(OpenDevice, HasTheDefaultPkeyAlone) {
  __be16 pkey = 0;
  EXPECT_EQ(ibv_query_pkey(context_, 1, 0, &pkey), 0);
  EXPECT_EQ(pkey, 0xFFFF);
  EXPECT_EQ(ibv_query_pkey(context_, 1, 1, &pkey), -1);
  EXPECT_EQ(ibv_get_pkey_index(context_, 1, 0xFFFF), 0);
  EXPECT_EQ(ibv_get_pkey_index(context_, 1, 0x1234), -1);
}

TEST_F(OpenDevice, FindsTheAddressOfAReplyInTheHeaderOfADatagram) {
  // 192.0.2.7 to 127.0.0.1 with a right checksum, in the last 20 of 40 octets.
  const unsigned char v4[] = {0x45, 0,    0,   20, 0, 0, 0,   0, 64, 17,
                              0x39, 0xD1, 192, 0,  2, 7, 127, 0, 0,  1};
  unsigned char header[sizeof(ibv_grh)] = {};
  std::memcpy(header + 20, v4, sizeof v4);
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_ah_attr reply{};
  auto* const grh = reinterpret_cast<ibv_grh*>(header);
  ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, grh, &reply), 0);
  EXPECT_EQ(reply.is_global, 1);
  EXPECT_EQ(reply.grh.sgid_index, 0);
  EXPECT_EQ(std::memcmp(reply.grh.dgid.raw + 12, v4 + 12, 4), 0);
  header[39] = 2;  // another address, and a wrong checksum
  EXPECT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, grh, &reply), -1);
  wc.wc_flags = 0;
  EXPECT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, grh, &reply), -1);
}

TEST_F(OpenDevice, TellsTheTimeOfCompletions) {
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  ASSERT_EQ(query_rt_values(context_, &values), 0);
  EXPECT_GT(values.raw_clock.tv_nsec, 0);
  values.comp_mask = IBV_VALUES_MASK_RESERVED;
  EXPECT_EQ(query_rt_values(context_, &values), EINVAL);
}

TEST(Texts, AreThoseOfLibibverbs) {
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
  EXPECT_STREQ(ibv_wc_status_str(static_cast<ibv_wc_status>(999)), "unknown");
  EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_QP_LAST_WQE_REACHED), "last WQE reached");
  EXPECT_STREQ(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
  EXPECT_STREQ(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
}

TEST(Rates, AreConvertedThereAndBack) {
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_40_GBPS), 16);
  EXPECT_EQ(mult_to_ibv_rate(16), IBV_RATE_40_GBPS);
  EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103'125);
  EXPECT_EQ(mbps_to_ibv_rate(103'125), IBV_RATE_100_GBPS);
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_100_GBPS), -1);
  EXPECT_EQ(mult_to_ibv_rate(-1), IBV_RATE_MAX);
  EXPECT_EQ(mbps_to_ibv_rate(17), IBV_RATE_MAX);
}

}  // namespace
}  // namespace weft::verbs
