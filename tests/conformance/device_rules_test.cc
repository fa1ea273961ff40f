// SPDX-License-Identifier: BSD-2-Clause
// Which rules hold for memory of devices? (fi_mr(3), FI_HMEM; fi_set_ops of fi_domain(3))
#include <rdma/fi_trigger.h>

#include <memory>
#include <vector>

#include "support/devices.h"

namespace weft::conformance {
namespace {

// Rules of registration and descriptors.
class DeviceRules : public testing::Test, protected Devices {
 protected:
  DeviceRules() : Devices(kWays[0], FI_EP_RDM, FI_MSG | FI_TAGGED, FI_MSG | FI_TAGGED) {}

  int register_with(fi_hmem_iface iface, std::uint64_t device, std::uint64_t flags = 0) {
    std::byte bytes[64];
    const iovec iov{bytes, sizeof bytes};
    const fi_mr_attr attributes = attributes_of(iov, FI_SEND, iface, device);
    fid_mr* mr = nullptr;
    const int rc = fi_mr_regattr(a_.domain()->get(), &attributes, flags, &mr);
    if (mr != nullptr) fi_close(&mr->fid);
    return rc;
  }
  int error_of_send(void* buffer, void* descriptor) {
    int context;
    EXPECT_EQ(fi_send(a_.ep(), buffer, 64, descriptor, to_b_, &context), 0);
    return await(a_, &context).err;
  }
};

TEST_F(DeviceRules, BuffersOfDevicesNeedALiveDescriptor) {
  const auto source = memory(a_, true, 64);
  EXPECT_EQ(error_of_send(source->at(), nullptr), FI_EACCES);
  void* const descriptor = source->descriptor();
  source->deregister();
  EXPECT_EQ(error_of_send(source->at(), descriptor), FI_EACCES);
}

TEST_F(DeviceRules, BuffersOfTheHostNeedNone) {
  const auto target = memory(b_, false, 64);
  std::byte bytes[64] = {};
  int context;
  ASSERT_EQ(fi_recv(b_.ep(), target->at(), 64, nullptr, FI_ADDR_UNSPEC, &context), 0);
  EXPECT_EQ(error_of_send(bytes, nullptr), 0);
  EXPECT_EQ(await(b_, &context).err, 0);
}

// As programs register that know no descriptors but for memory of devices.
TEST_F(DeviceRules, WithoutFiMrLocalDescriptorsAllowEveryLocalUse) {
  const auto source = memory(a_, true, 64, FI_REMOTE_READ);
  const auto target = memory(b_, true, 64, 0);
  source->fill(2);
  int context;
  ASSERT_EQ(fi_recv(b_.ep(), target->at(), 64, target->descriptor(), FI_ADDR_UNSPEC, &context), 0);
  EXPECT_EQ(error_of_send(source->at(), source->descriptor()), 0);
  EXPECT_EQ(await(b_, &context).err, 0);
  EXPECT_EQ(target->complaint(2, 0, 64), "");
}

TEST_F(DeviceRules, OtherInterfacesAreNotOffered) {
  EXPECT_EQ(register_with(FI_HMEM_NEURON, 0), -FI_ENOSYS);
  EXPECT_EQ(register_with(FI_HMEM_SYNAPSEAI, 0), -FI_ENOSYS);
  EXPECT_EQ(register_with(static_cast<fi_hmem_iface>(99), 0), -FI_ENOSYS);
  EXPECT_EQ(register_with(FI_HMEM_CUDA, 2), -FI_EINVAL);
  EXPECT_EQ(register_with(FI_HMEM_ZE, 2), -FI_EINVAL);
}

TEST_F(DeviceRules, FlagsSayOnlyOneOwner) {
  EXPECT_EQ(register_with(FI_HMEM_CUDA, 0, FI_HMEM_DEVICE_ONLY), 0);
  EXPECT_EQ(register_with(FI_HMEM_CUDA, 9, FI_HMEM_HOST_ALLOC), 0);
  EXPECT_EQ(register_with(FI_HMEM_CUDA, 0, FI_HMEM_DEVICE_ONLY | FI_HMEM_HOST_ALLOC), -FI_EINVAL);
  EXPECT_EQ(register_with(FI_HMEM_SYSTEM, 0, FI_HMEM_DEVICE_ONLY), -FI_EINVAL);
}

// It is memory that the processor may touch: no copy goes through the driver.
TEST_F(DeviceRules, MemoryThatADeviceAllocatedOnTheHostIsTheHosts) {
  std::vector<std::byte> bytes(64, std::byte{3});
  const iovec iov{bytes.data(), bytes.size()};
  const fi_mr_attr attributes = attributes_of(iov, FI_SEND, FI_HMEM_CUDA, 0);
  const auto region = open_fid<fid_mr>([&](fid_mr** mr) {
    return fi_mr_regattr(a_.domain()->get(), &attributes, FI_HMEM_HOST_ALLOC, mr);
  });
  const StandIn stand_in("libcuda.so.1");
  const std::uint64_t before = stand_in.copies();
  EXPECT_EQ(error_of_send(bytes.data(), fi_mr_desc(region.get())), 0);
  EXPECT_EQ(stand_in.copies(), before);
}

TEST_F(DeviceRules, PeerToPeerTransfersAreNotRequired) {
  int value = 9;
  std::size_t length = sizeof value;
  ASSERT_EQ(fi_getopt(&a_.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &value, &length), 0);
  EXPECT_EQ(value, FI_HMEM_P2P_ENABLED);
  const auto set = [&](int wanted) {
    return fi_setopt(&a_.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &wanted, sizeof wanted);
  };
  EXPECT_EQ(set(FI_HMEM_P2P_REQUIRED), -FI_EOPNOTSUPP);
  EXPECT_EQ(set(17), -FI_EINVAL);
  EXPECT_EQ(set(FI_HMEM_P2P_PREFERRED), 0);
  EXPECT_EQ(set(FI_HMEM_P2P_DISABLED), 0);
  ASSERT_EQ(fi_getopt(&a_.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &value, &length), 0);
  EXPECT_EQ(value, FI_HMEM_P2P_DISABLED);
}

TEST_F(DeviceRules, AnOverrideIsWholeAndBeforeTheFirstRegion) {
  const auto domain = std::make_shared<Domain>(device_options(FI_EP_RDM, FI_MSG));
  fid* const object = &domain->get()->fid;
  const auto set = [&](fi_hmem_override_ops functions, const char* name) {
    return fi_set_ops(object, name, 0, &functions, nullptr);
  };
  fi_hmem_override_ops functions = overriding();
  EXPECT_EQ(set(functions, "weft_no_such_operations"), -FI_ENOSYS);
  functions.size = sizeof functions - 1;
  EXPECT_EQ(set(functions, FI_SET_OPS_HMEM_OVERRIDE), -FI_EINVAL);
  functions = overriding();
  functions.copy_from_hmem_iov = nullptr;
  EXPECT_EQ(set(functions, FI_SET_OPS_HMEM_OVERRIDE), -FI_EINVAL);
  functions = overriding();
  functions.copy_to_hmem_iov = nullptr;
  EXPECT_EQ(set(functions, FI_SET_OPS_HMEM_OVERRIDE), -FI_EINVAL);
  EXPECT_EQ(fi_set_ops(object, FI_SET_OPS_HMEM_OVERRIDE, 0, nullptr, nullptr), -FI_EINVAL);
  EXPECT_EQ(set(overriding(), FI_SET_OPS_HMEM_OVERRIDE), 0);
  std::byte bytes[8];
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(domain->get(), bytes, sizeof bytes, FI_SEND, 0, 0, 0, &mr, nullptr), 0);
  EXPECT_EQ(set(overriding(), FI_SET_OPS_HMEM_OVERRIDE), -FI_EBUSY);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  Options options;
  const Domain other(options);
  functions = overriding();
  EXPECT_EQ(fi_set_ops(&other.get()->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &functions, nullptr),
            -FI_ENOSYS);
}

TEST_F(DeviceRules, OperationsThatWaitForACounterTakeMemoryOfTheHostOnly) {
  Options options = device_options(FI_EP_RDM, FI_MSG | FI_TRIGGER);
  options.counters = FI_SEND;
  Endpoint endpoint(std::make_shared<Domain>(options), options);
  const fi_addr_t self = endpoint.insert(endpoint.name());
  const Memory source(endpoint, &way_, 64);
  fi_triggered_context context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold.cntr = endpoint.counter(FI_SEND);
  context.trigger.threshold.threshold = 1;
  const iovec iov{source.at(), 64};
  void* descriptor = source.descriptor();
  const fi_msg msg{&iov, &descriptor, 1, self, &context, 0};
  EXPECT_EQ(fi_sendmsg(endpoint.ep(), &msg, FI_TRIGGER), -FI_ENOSYS);
}

// Runs where no driver is installed.
TEST(DeviceMemoryWithoutDrivers, IsNotRegistered) {
  const Options options = device_options(FI_EP_RDM, FI_MSG);
  const Domain domain(options);
  ASSERT_TRUE(domain.ok());
  EXPECT_NE(domain.info()->domain_attr->mr_mode & FI_MR_HMEM, 0);
  std::byte bytes[64];
  for (const fi_hmem_iface iface : {FI_HMEM_CUDA, FI_HMEM_ROCR, FI_HMEM_ZE}) {
    const iovec iov{bytes, sizeof bytes};
    const fi_mr_attr attributes = attributes_of(iov, FI_SEND, iface, 0);
    fid_mr* mr = nullptr;
    EXPECT_EQ(fi_mr_regattr(domain.get(), &attributes, 0, &mr), -FI_ENOSYS) << iface;
  }
}

// Peers within the host cannot reach memory of devices.
TEST(DeviceMemoryWithoutDrivers, IsServedOverTheNetworkOnly) {
  const Options options = device_options(FI_EP_RDM, FI_MSG | FI_RMA);
  const Info hints = make_hints(options);
  int rc = 0;
  const Info info = get_info(options, hints.get(), &rc);
  EXPECT_EQ(rc, only_links("shm") ? -FI_ENODATA : 0);
  hints->caps = FI_MSG | FI_RMA | FI_READ | FI_WRITE | FI_HMEM;
  EXPECT_NE(get_info(options, hints.get(), &rc), nullptr);
}

TEST(DeviceMemoryWithoutDrivers, NeedsItsModeBit) {
  Options options = device_options(FI_EP_RDM, FI_MSG);
  options.mr_mode &= ~FI_MR_HMEM;
  const Info hints = make_hints(options);
  int rc = 0;
  EXPECT_EQ(get_info(options, hints.get(), &rc), nullptr);
  EXPECT_EQ(rc, -FI_ENODATA);
  // A program that names no capabilities is offered none of devices.
  Options plain;
  const Info any = make_hints(plain);
  any->caps = 0;
  const Info info = get_info(plain, any.get(), &rc);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->caps & FI_HMEM, 0U);
  EXPECT_EQ(info->domain_attr->mr_mode & FI_MR_HMEM, 0);
}

}  // namespace
}  // namespace weft::conformance
