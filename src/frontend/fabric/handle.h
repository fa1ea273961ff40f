// SPDX-License-Identifier: BSD-2-Clause
// What do libfabric's transfer calls act on: an endpoint, an alias of one or a shared context?
#pragma once

#include <rdma/fi_endpoint.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fid_object.h"
#include "messaging/endpoint.h"
#include "messaging/receive_queue.h"
#include "offer.h"

namespace weft::fabric {

class Domain;
class Ep;
class TransferRules;

// Flags that one thread may set while another one posts (fi_control(3) is thread safe). A call
// reads them once, before it describes itself in variables whose address is passed on: to the
// compiler an atomic load may change those, so that it would compute everything known about them
// anew.
class Flags {
 public:
  Flags() = default;
  Flags(const Flags& other) : bits_(other) {}
  Flags& operator=(const Flags& other) { return *this = static_cast<std::uint64_t>(other); }
  Flags& operator=(std::uint64_t bits) {
    bits_.store(bits, std::memory_order_relaxed);
    return *this;
  }
  operator std::uint64_t() const { return bits_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> bits_{0};
};

// The object behind every fid_ep that data go through. What a transfer needs to know is here, so
// that no call has to ask which of the three it was given.
class Handle : public FidObject<Handle, fid_ep> {
 public:
  Domain& domain() const { return domain_; }

  // Flags for calls that take none.
  Flags tx_flags;
  Flags rx_flags;

  // The endpoint that this is, or is an alias of; null for a shared receive context.
  Ep* endpoint() const { return endpoint_; }
  // What transmits; null before fi_enable(3), and for a shared receive context.
  messaging::Endpoint* core() const { return running_.core; }
  // Where receives are posted; null before fi_enable(3), and where a shared context takes them.
  messaging::ReceiveQueue* receives() const { return running_.receives; }
  bool tx_selective() const { return running_.tx_selective; }
  bool rx_selective() const { return running_.rx_selective; }

  std::uint64_t caps() const { return caps_; }
  // A receive's source counts (FI_DIRECTED_RECV).
  bool directed() const { return (caps_ & FI_DIRECTED_RECV) != 0; }
  // Buffers may be posted with FI_MULTI_RECV.
  bool multi_receive() const { return (caps_ & FI_MULTI_RECV) != 0; }
  // FI_OPT_MIN_MULTI_RECV, for receives posted from now on. An alias has its endpoint's.
  std::atomic<std::size_t>& min_multi_receive() const { return *min_multi_receive_; }
  // What endpoints of this type can; null for a shared receive context.
  const TypeOffer* offer() const { return offer_; }
  // Of a datagram endpoint: the path MTU of its address.
  std::size_t max_message_size() const { return running_.max_message_size; }

  // The rules of the registration contract for transfers, beyond the offer; null: none.
  const TransferRules* rules() const { return rules_; }

  // Takes over what another handle of the same endpoint has become by binding and enabling it.
  void follow(const Handle& other) { running_ = other.running_; }

 protected:
  struct Running {
    messaging::Endpoint* core = nullptr;
    messaging::ReceiveQueue* receives = nullptr;
    bool tx_selective = false;
    bool rx_selective = false;
    std::size_t max_message_size = 0;
  };

  Handle(std::size_t kind, Domain& domain, void* context, fi_ops* operations)
      : FidObject(kind, context, operations), domain_(domain) {}
  Handle(const Handle&) = default;

  Domain& domain_;
  Ep* endpoint_ = nullptr;
  Running running_;
  std::uint64_t caps_ = 0;
  std::atomic<std::size_t>* min_multi_receive_ = nullptr;
  const TypeOffer* offer_ = nullptr;
  const TransferRules* rules_ = nullptr;
};

// Which of the calls for messages a handle has; the others answer -FI_ENOSYS.
enum class Direction { kTransmit, kReceive, kBoth };
fi_ops_msg* message_operations(Direction direction);
fi_ops_msg* datagram_operations(Direction direction);
fi_ops_tagged* tagged_operations(Direction direction);

// fi_getopt(3), fi_setopt(3), fi_cancel(3), fi_rx_size_left(3), FI_GETOPSFLAG and FI_SETOPSFLAG of
// any handle (ep_control.cc).
fi_ops_ep* handle_operations();
int control_flags(Handle& handle, int command, void* argument);

}  // namespace weft::fabric
