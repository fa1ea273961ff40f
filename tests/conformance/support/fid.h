// SPDX-License-Identifier: BSD-2-Clause
// How is a libfabric object closed, and is the close checked?
#pragma once

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <memory>

namespace weft::conformance {

// Closing must succeed: a dependent object that is left open is a test failure here.
struct FidCloser {
  template <class T>
  void operator()(T* object) const {
    EXPECT_EQ(fi_close(&object->fid), 0) << "fi_close of an object of class " << object->fid.fclass;
  }
};

template <class T>
using Fid = std::unique_ptr<T, FidCloser>;

struct InfoFree {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoFree>;

// Runs an open call, which writes its result through the pointer that it is given.
template <class T, class Call>
Fid<T> open_fid(Call call) {
  T* object = nullptr;
  const int rc = call(&object);
  EXPECT_EQ(rc, 0) << "open: " << fi_strerror(-rc);
  return Fid<T>(rc == 0 ? object : nullptr);
}

}  // namespace weft::conformance
