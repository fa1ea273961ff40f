// SPDX-License-Identifier: BSD-2-Clause
// What does a test ask of the provider, and how are fabric and domain opened?
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "fid.h"

namespace weft::conformance {

// The provider under test: WEFT_TEST_PROVIDER, by default weft.
std::string provider_name();

// The kind of addresses that tests use which do not care: IPv4, or IPv6 if WEFT_TEST_ADDRESSES says
// "ipv6".
std::uint32_t usual_format();

// Whether FI_WEFT_LINKS confines the provider to that link: "shm" or "udp".
bool only_links(const char* link);

// Whether FI_WEFT_CONTRACT has the provider demand FI_MR_VIRT_ADDR, FI_MR_ALLOCATED and
// FI_MR_PROV_KEY, and what tests offer that do not care: these, or nothing.
bool map_contract();
inline constexpr int kMapModes = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
inline int usual_mr_mode() { return map_contract() ? kMapModes : 0; }

// Whether FI_WEFT_CONTRACT is a list of bits and has this one.
bool contract_lists(const char* bit);

// All bits of mr_mode that regions may require of a program.
inline constexpr int kRequirableModes =
    kMapModes | FI_MR_RAW | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT;

// Everything a test can choose. Trivially copyable: it travels to peer processes.
struct Options {
  std::uint32_t api = FI_VERSION(1, 17);
  fi_ep_type type = FI_EP_RDM;  // Or FI_EP_MSG, or FI_EP_DGRAM.
  std::uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA;
  std::uint64_t tx_flags = 0;  // Default operation flags of the transmit side.
  std::uint64_t order = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_RAW;
  int mr_mode = usual_mr_mode();
  std::uint32_t addr_format = usual_format();
  std::uint16_t port = 0;  // of the endpoint; 0: any
  fi_threading threading = FI_THREAD_SAFE;
  fi_av_type av_type = FI_AV_TABLE;
  fi_cq_format format = FI_CQ_FORMAT_TAGGED;
  fi_wait_obj wait = FI_WAIT_NONE;
  bool threshold = false;  // FI_CQ_COND_THRESHOLD
  std::size_t cq_size = 4096;
  std::uint64_t cq_flags = 0;  // FI_SELECTIVE_COMPLETION or nothing.
  bool queueless = false;      // no completion queue: counters report
  // Sizes of the contexts; 0: the provider's choice.
  std::size_t tx_size = 0;
  std::size_t rx_size = 0;
  // Each set bit of FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE gets a
  // counter of its own.
  std::uint64_t counters = 0;
  fi_wait_obj counter_wait = FI_WAIT_UNSPEC;
  fi_progress data_progress = FI_PROGRESS_UNSPEC;
  fi_progress control_progress = FI_PROGRESS_UNSPEC;
  // A hint, and what domains are opened with whatever the answer is.
  fi_resource_mgmt resource_mgmt = FI_RM_ENABLED;
  // Domains tell an event queue with this wait object of registrations (FI_REG_MR); or none does.
  fi_wait_obj registrations = FI_WAIT_NONE;
  std::uint64_t shares = 0;  // FI_TRANSMIT, FI_RECV: what all endpoints of a domain share
  // Parties call into libfabric for nothing but what a test asks of them: they do not poll between,
  // but read the counters of their regions.
  bool left_alone = false;
  // A peer process shares no files with this one: it is reached over the network.
  bool far = false;
  // Authorization keys of the domain and of the endpoint, by numbers; 0: none.
  int domain_key = 0;
  int endpoint_key = 0;
};

// The key of such a number: 64 bytes that occur nowhere else.
std::string authorization_key(int number);
// Gives attributes their own copy of it, which fi_freeinfo(3) frees.
template <class Attributes>
void set_key(Attributes& attributes, int number) {
  if (number == 0) return;
  const std::string key = authorization_key(number);
  std::free(attributes.auth_key);
  attributes.auth_key = static_cast<std::uint8_t*>(std::malloc(key.size()));
  std::memcpy(attributes.auth_key, key.data(), key.size());
  attributes.auth_key_size = key.size();
}

// The usual options, with completion queues that are waited for in this way.
inline Options waiting(fi_wait_obj object) {
  Options options;
  options.wait = object;
  return options;
}
// Options for endpoints of type FI_EP_DGRAM with everything that such can do.
Options datagrams();
// Hints for an endpoint with these options, to be changed further by the caller.
Info make_hints(const Options& options);
// fi_getinfo with these hints; the first match, or null and `*rc`.
Info get_info(const Options& options, const fi_info* hints, int* rc);

// A set of wait objects, for what is opened with FI_WAIT_SET.
Fid<fid_wait> open_wait_set(fid_fabric* fabric);

// One opened fabric and domain. Closes itself after everything that was opened in it.
class Domain {
 public:
  explicit Domain(const Options& options);
  bool ok() const { return domain_ != nullptr; }
  fi_info* info() const { return info_.get(); }
  fid_fabric* fabric() const { return fabric_.get(); }
  fid_domain* get() const { return domain_.get(); }
  // The event queue that it tells of registrations, or null.
  fid_eq* registrations() const { return registrations_.get(); }
  // What its endpoints share; null if nothing.
  fid_stx* shared_transmit() const { return shared_transmit_.get(); }
  fid_ep* shared_receive() const { return shared_receive_.get(); }

 private:
  void open_registrations(fi_wait_obj object);

  Info info_;
  Fid<fid_fabric> fabric_;
  Fid<fid_eq> registrations_;
  Fid<fid_domain> domain_;
  Fid<fid_stx> shared_transmit_;
  Fid<fid_ep> shared_receive_;
};

}  // namespace weft::conformance
