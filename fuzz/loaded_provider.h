// SPDX-License-Identifier: BSD-2-Clause
// How does a fuzzer call the libfabric provider that is linked to it?
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/providers/fi_prov.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "input.h"
#include "opened_objects.h"
#include "playground.h"

extern "C" fi_provider* fi_prov_ini(void);

namespace weft::fuzz {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// The provider of this process, and what it answers without hints.
class Provider {
 public:
  Provider() {
    ::setenv("FI_WEFT_RUNTIME_DIR", directory_.path().c_str(), 1);
    ::setenv("FI_WEFT_IFACE", "lo", 1);
    ::setenv("FI_WEFT_FOREIGN_PEERS", "no", 1);
    fi_param* all = nullptr;
    int count = 0;
    if (fi_getparams(&all, &count) == 0) fi_freeparams(all);  // starts libfabric
    provider_ = fi_prov_ini();
    require(provider_ != nullptr, "no provider");
    offer_ = ask(fi_version(), nullptr, nullptr, 0, nullptr);
    require(offer_ != nullptr, "no offer");
    for (const fi_info* each = offer_.get(); each != nullptr; each = each->next) ++offers_;
    keep_device_open();
  }
  ~Provider() {
    fi_close(&domain_->fid);
    fi_close(&fabric_->fid);
  }
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  Info ask(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
           const fi_info* hints) const {
    fi_info* found = nullptr;
    const int status =
        check_status(provider_->getinfo(version, node, service, flags, hints, &found));
    require((status == 0) == (found != nullptr), "an answer of fi_getinfo that contradicts itself");
    for (fi_info* each = found; each != nullptr; each = each->next) {
      each->fabric_attr->api_version = version;  // as libfabric does
    }
    return Info(found);
  }
  int open(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) const {
    return provider_->fabric(attributes, fabric, context);
  }
  // One of the answers without hints.
  const fi_info& offer(Input& input) const {
    const fi_info* chosen = offer_.get();
    for (std::uint32_t i = input.below(offers_); i != 0; --i) chosen = chosen->next;
    return *chosen;
  }

 private:
  // The device of a process is open as long as one of its domains: opening it takes long.
  void keep_device_open() {
    require(open(offer_->fabric_attr, &fabric_, nullptr) == 0, "no fabric");
    require(fi_domain(fabric_, offer_.get(), &domain_, nullptr) == 0, "no domain");
  }

  Directory directory_;
  fi_provider* provider_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  Info offer_;
  std::uint32_t offers_ = 0;
};

}  // namespace weft::fuzz
