// SPDX-License-Identifier: BSD-2-Clause
// Does an open fabric behave as fi_fabric(3) says?
#include "fabric.h"

#include <gtest/gtest.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

namespace weft::fabric {
namespace {

class OpenFabric : public testing::Test {
 protected:
  OpenFabric() {
    fi_fabric_attr attributes{};
    attributes.name = name_;
    attributes.api_version = FI_VERSION(1, 9);
    Options options;
    options.runtime_dir = "somewhere";
    EXPECT_EQ(Fabric::open(attributes, options, &fabric_, this), 0);
  }
  ~OpenFabric() override { EXPECT_EQ(fi_close(&fabric_->fid), 0); }

  char name_[16] = "127.0.0.0/8";
  fid_fabric* fabric_ = nullptr;
};

TEST_F(OpenFabric, IsOfItsClassAndKeepsTheContext) {
  EXPECT_EQ(fabric_->fid.fclass, std::size_t{FI_CLASS_FABRIC});
  EXPECT_EQ(fabric_->fid.context, this);
  EXPECT_EQ(fabric_->api_version, FI_VERSION(1, 9));
}

TEST_F(OpenFabric, PassesDownWhatItWasOpenedWith) {
  const Fabric* object = static_cast<Fabric*>(fabric_);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(object->name(), "127.0.0.0/8");
  EXPECT_EQ(object->requested_api(), FI_VERSION(1, 9));
  EXPECT_EQ(object->options().runtime_dir, "somewhere");
}

TEST_F(OpenFabric, CannotBeClosedWhileInUse) {
  {
    const Use use(*static_cast<Fabric*>(fabric_));
    EXPECT_EQ(fi_close(&fabric_->fid), -FI_EBUSY);
  }
  SUCCEED();  // the destructor of the fixture closes it
}

TEST_F(OpenFabric, RefusesNullArguments) {
  fid_domain* domain = nullptr;
  fi_info empty{};
  EXPECT_EQ(fi_domain(fabric_, nullptr, &domain, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_domain(fabric_, &empty, &domain, nullptr), -FI_EINVAL);
  EXPECT_EQ(fabric_->ops->eq_open(fabric_, nullptr, nullptr, nullptr), -FI_EINVAL);
  EXPECT_EQ(fabric_->ops->trywait(fabric_, nullptr, 1), -FI_EINVAL);
}

TEST_F(OpenFabric, RefusesDomainFlags) {
  fid_domain* domain = nullptr;
  fi_info info{};
  EXPECT_EQ(fi_domain2(fabric_, &info, &domain, FI_PEER, nullptr), -FI_EBADFLAGS);
}

TEST_F(OpenFabric, OpensPassiveEndpointsOfTheTypeThatHasThem) {
  fid_pep* endpoint = nullptr;
  EXPECT_EQ(fabric_->ops->passive_ep(fabric_, nullptr, &endpoint, nullptr), -FI_EINVAL);
  fi_info info{};
  EXPECT_EQ(fabric_->ops->passive_ep(fabric_, &info, &endpoint, nullptr), -FI_EINVAL);
  fi_ep_attr attributes{};
  info.ep_attr = &attributes;
  attributes.type = FI_EP_RDM;
  EXPECT_EQ(fabric_->ops->passive_ep(fabric_, &info, &endpoint, nullptr), -FI_EINVAL);
}

TEST_F(OpenFabric, HasNothingToWaitOnItself) {
  EXPECT_EQ(fi_control(&fabric_->fid, FI_GETWAIT, nullptr), -FI_ENOSYS);
}

TEST_F(OpenFabric, IsListedWhileItIsOpen) {
  EXPECT_TRUE(Instances::find(fabric_).has_value());
  EXPECT_EQ(Instances::first_fabric(name_), fabric_);
  EXPECT_EQ(Instances::first_domain(name_, "weft0"), nullptr);
  const fid_fabric foreign{};
  EXPECT_FALSE(Instances::find(&foreign).has_value());
}

TEST(Fabric, IsNotListedOnceItIsClosed) {
  EXPECT_EQ(Instances::first_fabric("127.0.0.0/8"), nullptr);
}

}  // namespace
}  // namespace weft::fabric
