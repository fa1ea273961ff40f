// SPDX-License-Identifier: BSD-2-Clause
// What do the message calls do? fi_msg(3)
#include "transfer.h"

namespace weft::fabric {
namespace {

using messaging::ReceiveCall;
using messaging::SendCall;

// A receive with the flags of the call, or the default ones. fi_msg(3): FI_MULTI_RECV makes it take
// several messages, in a buffer of one piece.
ssize_t post(Handle& ep, std::span<const LocalRange> list, fi_addr_t source, void* context,
             std::uint64_t flags, const fi_deferred_work* work = nullptr) {
  ReceiveCall call;
  call.pieces = list;
  call.report = report(ep.rx_selective(), flags, context);
  if ((flags & FI_MULTI_RECV) != 0) [[unlikely]] {
    if (!ep.multi_receive()) return -FI_EBADFLAGS;
    if (list.size() != 1) return -FI_EINVAL;
    call.multi = true;
    call.least = ep.min_multi_receive();
  }
  return receive(ep, call, source, flags, work);
}

ssize_t recv(fid_ep* fid, void* buffer, std::size_t length, void*, fi_addr_t source,
             void* context) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.rx_flags;
  const LocalRange one = message_piece(buffer, length);
  return post(ep, {&one, 1}, source, context, flags);
}

ssize_t recvv(fid_ep* fid, const iovec* list, void**, std::size_t count, fi_addr_t source,
              void* context) {
  Handle& ep = Handle::from(fid);
  return post(ep, pieces(list, count), source, context, ep.rx_flags);
}

ssize_t recvmsg(fid_ep* fid, const fi_msg* msg, std::uint64_t flags) {
  if (msg == nullptr) return -FI_EINVAL;
  return receive_message(Handle::from(fid), *msg, flags, nullptr);
}

// How the endpoints of one type send; the calls below exist once for each.
struct Reliable {
  static constexpr std::uint64_t kFlags = kCallFlags;
  static constexpr std::uint64_t kInjectFlags = 0;
  static ssize_t send(Handle& ep, SendCall& call, std::uint64_t flags,
                      const fi_deferred_work* work = nullptr) noexcept {
    return fabric::send(ep, call, flags, work);
  }
};
struct Unreliable {
  static constexpr std::uint64_t kFlags = kDatagramTxFlags | FI_TRIGGER;
  static constexpr std::uint64_t kInjectFlags = FI_MULTICAST;  // those by default that count
  static ssize_t send(Handle& ep, SendCall& call, std::uint64_t flags,
                      const fi_deferred_work* work = nullptr) noexcept {
    return send_datagram(ep, call, flags, work);
  }
};

template <class How>
ssize_t send_pieces(Handle& ep, std::span<const LocalRange> list, fi_addr_t peer, void* context,
                    std::uint64_t flags) {
  SendCall call;
  call.peer = peer;
  call.pieces = list;
  call.report = report(ep.tx_selective(), flags, context);
  return How::send(ep, call, flags);
}

template <class How>
ssize_t send_one(fid_ep* fid, const void* buffer, std::size_t length, void*, fi_addr_t peer,
                 void* context) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.tx_flags;
  const LocalRange one = message_piece(buffer, length);
  return send_pieces<How>(ep, {&one, 1}, peer, context, flags);
}

template <class How>
ssize_t sendv(fid_ep* fid, const iovec* list, void**, std::size_t count, fi_addr_t peer,
              void* context) {
  Handle& ep = Handle::from(fid);
  return send_pieces<How>(ep, pieces(list, count), peer, context, ep.tx_flags);
}

template <class How>
ssize_t send_described(Handle& ep, const fi_msg& msg, std::uint64_t flags,
                       const fi_deferred_work* work) {
  if ((flags & ~How::kFlags) != 0) return -FI_EBADFLAGS;
  SendCall call;
  call.peer = msg.addr;
  call.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
  call.data = msg.data;
  call.pieces = pieces(msg.msg_iov, msg.iov_count);
  call.report = report(ep.tx_selective(), flags, msg.context);
  return How::send(ep, call, flags, work);
}

template <class How>
ssize_t sendmsg(fid_ep* fid, const fi_msg* msg, std::uint64_t flags) {
  if (msg == nullptr) return -FI_EINVAL;
  return send_described<How>(Handle::from(fid), *msg, flags, nullptr);
}

template <class How>
ssize_t senddata(fid_ep* fid, const void* buffer, std::size_t length, void*, std::uint64_t data,
                 fi_addr_t peer, void* context) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.tx_flags;
  const LocalRange one = message_piece(buffer, length);
  SendCall call;
  call.peer = peer;
  call.has_data = true;
  call.data = data;
  call.pieces = {&one, 1};
  call.report = report(ep.tx_selective(), flags, context);
  return How::send(ep, call, flags);
}

template <class How>
ssize_t injectdata(fid_ep* fid, const void* buffer, std::size_t length, std::uint64_t data,
                   fi_addr_t peer) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.tx_flags & How::kInjectFlags;
  const LocalRange one = message_piece(buffer, length);
  SendCall call;
  call.peer = peer;
  call.has_data = true;
  call.data = data;
  call.pieces = {&one, 1};
  call.report = messaging::Report::silence();
  return How::send(ep, call, flags);
}

template <class How>
ssize_t inject(fid_ep* fid, const void* buffer, std::size_t length, fi_addr_t peer) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.tx_flags & How::kInjectFlags;
  const LocalRange one = message_piece(buffer, length);
  SendCall call;
  call.peer = peer;
  call.pieces = {&one, 1};
  call.report = messaging::Report::silence();
  return How::send(ep, call, flags);
}

template <class How>
fi_ops_msg* operations(Direction direction) {
  static ByDirection<fi_ops_msg> tables({sizeof(fi_ops_msg), recv, recvv, recvmsg, send_one<How>,
                                         sendv<How>, sendmsg<How>, inject<How>, senddata<How>,
                                         injectdata<How>});
  return tables.of(direction);
}

}  // namespace

ssize_t receive_message(Handle& ep, const fi_msg& msg, std::uint64_t flags,
                        const fi_deferred_work* work) {
  constexpr std::uint64_t kFlags = FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_TRIGGER;
  if ((flags & ~kFlags) != 0) return -FI_EBADFLAGS;
  return post(ep, pieces(msg.msg_iov, msg.iov_count), msg.addr, msg.context, flags, work);
}

ssize_t send_message(Handle& ep, const fi_msg& msg, std::uint64_t flags,
                     const fi_deferred_work* work) {
  const bool datagrams = ep.offer() != nullptr && ep.offer()->type == FI_EP_DGRAM;
  return datagrams ? send_described<Unreliable>(ep, msg, flags, work)
                   : send_described<Reliable>(ep, msg, flags, work);
}

fi_ops_msg* message_operations(Direction direction) { return operations<Reliable>(direction); }
fi_ops_msg* datagram_operations(Direction direction) { return operations<Unreliable>(direction); }

}  // namespace weft::fabric
