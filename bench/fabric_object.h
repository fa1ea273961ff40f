// SPDX-License-Identifier: BSD-2-Clause
// How is a libfabric object closed? By owning pointers for fids and infos.
#pragma once

#include <rdma/fabric.h>

#include <memory>

namespace weft::bench {

struct FabricClose {
  template <class Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};

struct InfoFree {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};

template <class Object>
using FabricObject = std::unique_ptr<Object, FabricClose>;

using Info = std::unique_ptr<fi_info, InfoFree>;

}  // namespace weft::bench
