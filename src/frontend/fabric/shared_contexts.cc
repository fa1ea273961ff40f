// SPDX-License-Identifier: BSD-2-Clause
// What may several endpoints of a domain share? fi_endpoint(3), "Shared contexts"
#include "shared_contexts.h"

#include "fid_object.h"
#include "internal.h"
#include "negotiate.h"
#include "unsupported.h"

namespace weft::fabric {
namespace {

// There is nothing to enable, but a program may treat it like an endpoint.
int control_receive(fid* fid, int command, void* argument) {
  return command == FI_ENABLE ? 0 : control_flags(Handle::from(fid), command, argument);
}

constexpr FidCalls kTransmitCalls{.close = close_object<SharedTransmit>};
constexpr FidCalls kReceiveCalls{.close = close_object<SharedReceive>, .control = control_receive};

bool offered(const fi_tx_attr& tx) {
  return (tx.caps & ~(kTxCaps | kDomainCaps)) == 0 && tx.size <= kLargestQueueSize &&
         tx.inject_size <= kMaxDatagramSize && tx.iov_limit <= kIovLimit &&
         tx.rma_iov_limit <= kRmaIovLimit;
}

bool offered(const fi_rx_attr& rx) {
  return (rx.caps & ~(kRxCaps | kDomainCaps)) == 0 && (rx.op_flags & ~kRxFlags) == 0 &&
         rx.size <= kLargestQueueSize && rx.iov_limit <= kIovLimit;
}

}  // namespace

SharedTransmit::SharedTransmit(Domain& domain, const fi_tx_attr& attributes,
                               Places::Reservation place, void* context)
    : ChildObject(FI_CLASS_STX_CTX, domain, context, fid_operations<kTransmitCalls>()),
      place_(std::move(place)),
      size_(attributes.size != 0 ? attributes.size : kUsualQueueSize),
      places_("max_ep_stx_ctx", domain.places().sharing_transmit) {
  ops = no_operations<fi_ops_ep>();
}

int open_shared_transmit(Domain& domain, const fi_tx_attr* attributes, fid_stx** stx,
                         void* context) {
  const fi_tx_attr wanted = attributes != nullptr ? *attributes : fi_tx_attr{};
  if (!offered(wanted)) return -FI_EINVAL;
  Places::Reservation place = domain.places().transmit_contexts.take();
  if (!place) return -FI_ENOSPC;
  *stx = new SharedTransmit(domain, wanted, std::move(place), context);
  return 0;
}

SharedReceive::SharedReceive(Domain& domain, const fi_rx_attr& attributes,
                             Places::Reservation place, void* context)
    : Handle(FI_CLASS_SRX_CTX, domain, context, fid_operations<kReceiveCalls>()),
      use_(domain),
      place_(std::move(place)),
      places_("max_ep_srx_ctx", domain.places().sharing_receive),
      queue_(domain.locking(), attributes.size != 0 ? attributes.size : kUsualReceives) {
  caps_ = attributes.caps != 0 ? attributes.caps : kRxCaps & ~FI_DIRECTED_RECV;
  rx_flags = attributes.op_flags;
  min_multi_receive_ = &min_multi_receive_here_;
  rules_ = domain.transfer_rules();
  running_.receives = &queue_;
  ops = handle_operations();
  cm = no_operations<fi_ops_cm>();
  msg =
      (caps_ & FI_MSG) != 0 ? message_operations(Direction::kReceive) : no_operations<fi_ops_msg>();
  tagged = (caps_ & FI_TAGGED) != 0 ? tagged_operations(Direction::kReceive)
                                    : no_operations<fi_ops_tagged>();
  rma = no_operations<fi_ops_rma>();
  atomic = no_operations<fi_ops_atomic>();
  collective = no_operations<fi_ops_collective>();
}

SharedReceive::~SharedReceive() { domain_.triggers().drop(&queue_); }

int open_shared_receive(Domain& domain, const fi_rx_attr* attributes, fid_ep** ep, void* context) {
  const fi_rx_attr wanted = attributes != nullptr ? *attributes : fi_rx_attr{};
  if (!offered(wanted)) return -FI_EINVAL;
  Places::Reservation place = domain.places().receive_contexts.take();
  if (!place) return -FI_ENOSPC;
  *ep = new SharedReceive(domain, wanted, std::move(place), context);
  return 0;
}

}  // namespace weft::fabric
