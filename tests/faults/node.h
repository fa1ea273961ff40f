// SPDX-License-Identifier: BSD-2-Clause
// What does one process need of libfabric to take part in these tests?
#pragma once

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdint>
#include <memory>
#include <string>

#include "payload.h"

namespace weft::faults {

struct Operation;

// Reports the end of each posted operation, exactly once (and each message of a
// receive for several), from within Node::poll or wait.
class CompletionTarget {
 public:
  virtual ~CompletionTarget() = default;
  virtual void completed(Operation& operation, const fi_cq_tagged_entry& entry) = 0;
  virtual void failed(Operation& operation, const fi_cq_err_entry& error) = 0;
};

// One posted operation: the context that libfabric gives back. Must live until its end was heard.
struct Operation {
  fi_context2
      context{};  // first: libfabric may use it while the operation is pending (FI_CONTEXT2)
  CompletionTarget* target = nullptr;
  Bytes memory;
  std::uint64_t sequence = 0;
  std::size_t bytes = 0;
  bool pending = false;
  bool many = false;  // a receive for several messages: it ends when FI_MULTI_RECV is reported
};

// Called for each completion that belongs to no operation of this process: data that came with a
// write.
using DataHandler = void (*)(void* context, std::uint64_t data);

// The provider to test: $WEFT_TEST_PROVIDER, else weft.
std::string provider_name();
bool provider_is_weft();

using Address = sockaddr_in;

struct CloseFid {
  void operator()(void* object) const { fi_close(static_cast<fid*>(object)); }
};
template <class T>
using Owned = std::unique_ptr<T, CloseFid>;

// Runs an open call, which writes its result through the pointer that it is given; its status.
template <class T, class Open>
int open_into(Owned<T>& owned, Open open) {
  T* raw = nullptr;
  const int status = open(&raw);
  if (status == 0) owned.reset(raw);
  return status;
}

// Fabric, domain, completion queue, address vector and one endpoint, enabled. Of type FI_EP_MSG
// only the first three: a Switchboard adds the rest. Not thread-safe.
class Node {
 public:
  explicit Node(fi_ep_type type = FI_EP_RDM, fi_progress progress = FI_PROGRESS_UNSPEC,
                bool shares_receives = false)
      : type_(type), progress_(progress), shares_receives_(shares_receives) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  // Opens everything at 127.0.0.1:`port` (0: any). Returns 0 or libfabric's negative error, and
  // then failed_call() names the call; nothing stays open after an error.
  int open(std::uint16_t port);
  // The first half of open(): what fi_getinfo says, kept for the second.
  int look_up(std::uint16_t port);
  int open_found();
  const char* failed_call() const { return failed_call_; }
  void close();
  // fi_close of the endpoint alone; what it answers. It stays open unless that is 0.
  int close_endpoint();

  fid_ep* endpoint() const { return endpoint_.get(); }
  // Where receives are posted: the endpoint, or its shared context.
  fid_ep* receives() const { return shares_receives_ ? receives_.get() : endpoint_.get(); }
  fid_fabric* fabric() const { return fabric_.get(); }
  fid_domain* domain() const { return domain_.get(); }
  fid_cq* queue() const { return queue_.get(); }
  fi_info* info() const { return info_; }
  bool connects() const { return type_ == FI_EP_MSG; }
  const Address& address() const { return address_; }

  // Address vector. insert() ends the test when it fails.
  fi_addr_t insert(const Address& address);
  void remove(fi_addr_t peer);

  // Registers `memory` for every access under `key`; remote addresses are offsets from its start.
  int register_memory(ConstBytes memory, std::uint64_t key, Owned<fid_mr>& region);

  // Takes completions and tells their targets; returns how many. wait() first blocks in fi_cq_sread
  // for up to `milliseconds` (negative: without limit) unless there are some.
  int poll();
  int wait(int milliseconds);
  void on_data(DataHandler handler, void* context);

 private:
  int open_objects();
  int open_endpoint();
  int open_receives();
  int note(int status, const char* call);
  int deliver(long count, fi_cq_tagged_entry* entries);
  int deliver_error();

  const fi_ep_type type_;
  const fi_progress progress_;
  const bool shares_receives_;
  fi_info* info_ = nullptr;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> queue_;
  Owned<fid_av> addresses_;
  Owned<fid_ep> receives_;  // the shared context
  Owned<fid_ep> endpoint_;
  Address address_{};
  const char* failed_call_ = "";
  DataHandler data_handler_ = nullptr;
  void* data_context_ = nullptr;
};

}  // namespace weft::faults
