// SPDX-License-Identifier: BSD-2-Clause
// How do the programs of these tests open one endpoint of libfabric, or end with a reason?
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdio>
#include <cstdlib>

namespace weft::hosts {

[[noreturn]] inline void fail(const char* what, long status) {
  std::printf("%s: %s\n", what, fi_strerror(static_cast<int>(-status)));
  std::exit(1);
}

inline void check(const char* what, long status) {
  if (status < 0) fail(what, status);
}

// An endpoint with one queue for all its completions, and what it needs. Takes the info.
class OpenEndpoint {
 public:
  OpenEndpoint(fi_info* info, fi_cq_format format, fi_wait_obj wait = FI_WAIT_NONE) : info_(info) {
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric_, nullptr));
    check("fi_domain", fi_domain(fabric_, info, &domain_, nullptr));
    fi_av_attr av_attr{};
    check("fi_av_open", fi_av_open(domain_, &av_attr, &addresses, nullptr));
    fi_cq_attr cq_attr{};
    cq_attr.format = format;
    cq_attr.wait_obj = wait;
    check("fi_cq_open", fi_cq_open(domain_, &cq_attr, &completions, nullptr));
    check("fi_endpoint", fi_endpoint(domain_, info, &endpoint, nullptr));
    check("fi_ep_bind", fi_ep_bind(endpoint, &addresses->fid, 0));
    check("fi_ep_bind", fi_ep_bind(endpoint, &completions->fid, FI_SEND | FI_RECV));
    check("fi_enable", fi_enable(endpoint));
  }
  ~OpenEndpoint() {
    for (fid* each :
         {&endpoint->fid, &completions->fid, &addresses->fid, &domain_->fid, &fabric_->fid}) {
      fi_close(each);
    }
    fi_freeinfo(info_);
  }
  OpenEndpoint(const OpenEndpoint&) = delete;
  OpenEndpoint& operator=(const OpenEndpoint&) = delete;

  fid_av* addresses = nullptr;
  fid_cq* completions = nullptr;
  fid_ep* endpoint = nullptr;

 private:
  fi_info* info_;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
};

}  // namespace weft::hosts
