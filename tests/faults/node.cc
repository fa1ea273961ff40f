// SPDX-License-Identifier: BSD-2-Clause
// How are libfabric's objects opened, polled and closed here?
#include "node.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include "failure.h"

namespace weft::faults {

namespace {

constexpr std::uint64_t kAllAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

fi_info* make_hints(fi_ep_type type, fi_progress progress) {
  fi_info* hints = fi_allocinfo();
  require(hints != nullptr, "fi_allocinfo: no memory");
  hints->caps = FI_MSG | FI_MULTI_RECV;
  if (type != FI_EP_MSG) hints->caps |= FI_DIRECTED_RECV;
  if (type != FI_EP_DGRAM) hints->caps |= FI_TAGGED | FI_RMA | FI_ATOMIC;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->addr_format = FI_SOCKADDR_IN;
  hints->ep_attr->type = type;
  hints->domain_attr->mr_mode = 0;
  hints->domain_attr->data_progress = progress;
  // Tests that stop a process in a copy stop its only thread.
  hints->domain_attr->control_progress =
      progress != FI_PROGRESS_UNSPEC ? progress : FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->fabric_attr->prov_name = strdup(provider_name().c_str());
  return hints;
}

}  // namespace

std::string provider_name() {
  const char* chosen = std::getenv("WEFT_TEST_PROVIDER");
  return chosen != nullptr ? chosen : "weft";
}

bool provider_is_weft() { return provider_name() == "weft"; }

Node::~Node() { close(); }

void Node::close() {
  endpoint_.reset();
  receives_.reset();
  addresses_.reset();
  queue_.reset();
  domain_.reset();
  fabric_.reset();
  if (info_ != nullptr) fi_freeinfo(info_);
  info_ = nullptr;
}

int Node::close_endpoint() {
  const int status = fi_close(&endpoint_->fid);
  if (status == 0) endpoint_.release();
  return status;
}

int Node::note(int status, const char* call) {
  if (status != 0) failed_call_ = call;
  return status;
}

int Node::look_up(std::uint16_t port) {
  fi_info* hints = make_hints(type_, progress_);
  const int status = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", std::to_string(port).c_str(),
                                FI_SOURCE, hints, &info_);
  fi_freeinfo(hints);
  return note(status, "fi_getinfo");
}

int Node::open(std::uint16_t port) {
  const int status = look_up(port);
  return status != 0 ? status : open_found();
}

int Node::open_found() {
  const int status = open_objects();
  if (status != 0) close();
  return status;
}

int Node::open_objects() {
  fi_cq_attr queue_attributes = {};
  queue_attributes.format = FI_CQ_FORMAT_TAGGED;
  queue_attributes.wait_obj = FI_WAIT_UNSPEC;
  int status =
      note(open_into(fabric_, [&](auto** o) { return fi_fabric(info_->fabric_attr, o, nullptr); }),
           "fi_fabric");
  if (status == 0) {
    status = note(
        open_into(domain_, [&](auto** o) { return fi_domain(fabric_.get(), info_, o, nullptr); }),
        "fi_domain");
  }
  if (status == 0) {
    status = note(open_into(queue_,
                            [&](auto** o) {
                              return fi_cq_open(domain_.get(), &queue_attributes, o, nullptr);
                            }),
                  "fi_cq_open");
  }
  return status != 0 || connects() ? status : open_endpoint();
}

int Node::open_endpoint() {
  fi_av_attr address_attributes = {};
  address_attributes.type = FI_AV_UNSPEC;
  int status = note(open_into(addresses_,
                              [&](auto** o) {
                                return fi_av_open(domain_.get(), &address_attributes, o, nullptr);
                              }),
                    "fi_av_open");
  if (status == 0 && shares_receives_) status = open_receives();
  if (status == 0) {
    status =
        note(open_into(endpoint_,
                       [&](auto** o) { return fi_endpoint(domain_.get(), info_, o, nullptr); }),
             "fi_endpoint");
  }
  if (status == 0)
    status = note(fi_ep_bind(endpoint_.get(), &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  if (status == 0) status = note(fi_ep_bind(endpoint_.get(), &addresses_->fid, 0), "fi_ep_bind");
  if (status == 0 && shares_receives_) {
    status = note(fi_ep_bind(endpoint_.get(), &receives_->fid, 0), "fi_ep_bind");
  }
  if (status == 0) status = note(fi_enable(endpoint_.get()), "fi_enable");
  std::size_t length = sizeof address_;
  if (status == 0) status = note(fi_getname(&endpoint_->fid, &address_, &length), "fi_getname");
  return status;
}

int Node::open_receives() {
  info_->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  return note(open_into(receives_,
                        [&](auto** o) {
                          return fi_srx_context(domain_.get(), info_->rx_attr, o, nullptr);
                        }),
              "fi_srx_context");
}

fi_addr_t Node::insert(const Address& address) {
  fi_addr_t peer = FI_ADDR_UNSPEC;
  const int inserted = fi_av_insert(addresses_.get(), &address, 1, &peer, 0, nullptr);
  if (inserted != 1) fail("fi_av_insert: " + std::to_string(inserted));
  return peer;
}

void Node::remove(fi_addr_t peer) {
  require_ok(fi_av_remove(addresses_.get(), &peer, 1, 0), "fi_av_remove");
}

int Node::register_memory(ConstBytes memory, std::uint64_t key, Owned<fid_mr>& region) {
  return open_into(region, [&](auto** o) {
    return fi_mr_reg(domain_.get(), memory.data(), memory.size(), kAllAccess, 0, key, 0, o,
                     nullptr);
  });
}

void Node::on_data(DataHandler handler, void* context) {
  data_handler_ = handler;
  data_context_ = context;
}

int Node::poll() {
  std::array<fi_cq_tagged_entry, 16> entries{};
  return deliver(fi_cq_read(queue_.get(), entries.data(), entries.size()), entries.data());
}

int Node::wait(int milliseconds) {
  std::array<fi_cq_tagged_entry, 16> entries{};
  return deliver(fi_cq_sread(queue_.get(), entries.data(), entries.size(), nullptr, milliseconds),
                 entries.data());
}

int Node::deliver(long count, fi_cq_tagged_entry* entries) {
  if (count == -FI_EAGAIN || count == -FI_EINTR) return 0;
  if (count == -FI_EAVAIL) return deliver_error();
  if (count < 0) fail("reading the completion queue: " + error_text(count));
  for (long i = 0; i < count; ++i) {
    const fi_cq_tagged_entry& entry = entries[i];
    if ((entry.flags & FI_REMOTE_WRITE) != 0) {
      if (data_handler_ != nullptr) data_handler_(data_context_, entry.data);
      continue;
    }
    auto* operation = static_cast<Operation*>(entry.op_context);
    require(operation != nullptr && operation->pending,
            "completion of an operation that is not pending");
    operation->pending = operation->many && (entry.flags & FI_MULTI_RECV) == 0;
    operation->target->completed(*operation, entry);
  }
  return static_cast<int>(count);
}

int Node::deliver_error() {
  fi_cq_err_entry error = {};
  const long count = fi_cq_readerr(queue_.get(), &error, 0);
  if (count == -FI_EAGAIN) return 0;
  if (count != 1) fail("fi_cq_readerr: " + error_text(count));
  auto* operation = static_cast<Operation*>(error.op_context);
  require(operation != nullptr && operation->pending,
          "error of an operation that is not pending: " + error_text(error.err));
  operation->pending = operation->many && (error.flags & FI_MULTI_RECV) == 0;
  operation->target->failed(*operation, error);
  return 1;
}

}  // namespace weft::faults
