// SPDX-License-Identifier: BSD-2-Clause
// Does a region keep what belongs to it until it is closed? fi_mr(3)
#include <gtest/gtest.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <memory>

#include "domain.h"
#include "memory/access_guard.h"
#include "provider.h"

namespace weft::fabric {
namespace {

// A region with a counter of remote writes, and a user of the region table, as a peer has one.
class CountedRegion : public testing::Test {
 protected:
  CountedRegion() {
    fi_param* all = nullptr;
    int count = 0;
    if (fi_getparams(&all, &count) == 0) fi_freeparams(all);  // starts libfabric
    provider_ = fi_prov_ini();
    EXPECT_EQ(provider_->getinfo(fi_version(), nullptr, nullptr, 0, nullptr, &info_), 0);
    info_->fabric_attr->api_version = fi_version();
    EXPECT_EQ(provider_->fabric(info_->fabric_attr, &fabric_, nullptr), 0);
    EXPECT_EQ(fi_domain(fabric_, info_, &domain_, nullptr), 0);
    EXPECT_EQ(fi_mr_reg(domain_, memory_, sizeof memory_, FI_REMOTE_WRITE, 0, 7, 0, &mr_, nullptr),
              0);
    fi_cntr_attr attributes{};
    EXPECT_EQ(fi_cntr_open(domain_, &attributes, &counter_, nullptr), 0);
    EXPECT_EQ(fi_mr_bind(mr_, &counter_->fid, FI_REMOTE_WRITE), 0);
  }
  ~CountedRegion() override {
    for (fid* each : {&counter_->fid, &domain_->fid, &fabric_->fid}) EXPECT_EQ(fi_close(each), 0);
    fi_freeinfo(info_);
    provider_->cleanup();
  }

  std::unique_ptr<memory::AccessGuard> attach() const {
    const auto& device = static_cast<Domain*>(domain_)->device();
    return std::move(memory::AccessGuard::attach(device->regions_of_users())).value();
  }

  char memory_[64]{};
  fi_provider* provider_ = nullptr;
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_mr* mr_ = nullptr;
  fid_cntr* counter_ = nullptr;
};

TEST_F(CountedRegion, KeepsItsCounterWhenItCannotBeClosed) {
  const auto user = attach();
  const RemoteRange range{0, 8, RegionKey{fi_mr_key(mr_)}};
  const DomainId domain = static_cast<Domain*>(domain_)->id();
  ASSERT_TRUE(user->check_and_pin(domain, Access::kRemoteWrite, {&range, 1}).ok());
  EXPECT_EQ(fi_close(&mr_->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&counter_->fid), -FI_EBUSY) << "the region counts there";
  user->release();
  EXPECT_EQ(fi_close(&mr_->fid), 0);
}

}  // namespace
}  // namespace weft::fabric
